/** The store of tasks, whose changes carry their time, and are reported to who follows them. */
import type { Clock } from '../kit/clock.ts'
import type { LiveTask } from '../observe/requests/live-events.ts'
import { TASK_STATUSES, type Task } from '../spec/task.ts'
import type { TaskChange, TaskStore } from '../store/store.ts'

type FollowParts = { onChanged(task: LiveTask): void; clock: Clock }

export function followedTasks(tasks: TaskStore, { onChanged, clock }: FollowParts): TaskStore {
  return {
    ...tasks,
    async add(given) {
      const added = await tasks.add(given)
      if (added.outcome === 'added') onChanged(liveTask(added.task, {}))
      return added
    },
    async save(task, change) {
      const is_saved = await tasks.save(task, { at_ms: clock.now(), ...change })
      // A step has the whole task, of which the store needs only these two.
      if (is_saved && isWhole(task) && isVisible(change)) onChanged(liveTask(task, change))
      return is_saved
    },
  }
}

const isWhole = (task: Pick<Task, 'task_id'>): task is Task => 'model' in task

const isVisible = ({ status, progress, provider }: TaskChange): boolean =>
  status !== undefined || progress !== undefined || provider !== undefined

/** The state never goes back, whatever a step reports. */
function liveTask(
  task: Task,
  { status = task.status, progress = task.progress, provider, fail_code }: TaskChange,
): LiveTask {
  const { task_id, token_id, project_id, family, model } = task
  const later = TASK_STATUSES.indexOf(status) > TASK_STATUSES.indexOf(task.status) ? status : task.status
  return {
    task_id,
    token_id,
    project_id,
    family,
    model,
    status: later,
    progress: Math.max(progress, task.progress),
    provider: provider ?? task.provider,
    fail_code: fail_code ?? task.fail_code,
  }
}
