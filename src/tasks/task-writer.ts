/** A task as its client sees it (specification 2.7). */
import type { Outputs } from '../outputs/outputs.ts'
import type { Task, TaskData } from '../spec/task.ts'

/** `outputs` only of a success, their links made anew each time. */
export function taskData(task: Task, { link }: Pick<Outputs, 'link'>): TaskData {
  const { task_id, status, base_url, submit_time, start_time, finish_time, fail_code, fail_reason } = task
  const data: TaskData = {
    task_id,
    status,
    progress: `${task.progress}%`,
    submit_time,
    start_time,
    finish_time,
    fail_code,
    fail_reason,
  }
  if (status !== 'SUCCESS') return data
  data.outputs = task.outputs.map(({ url }, index) => url ?? link({ base_url, task_id, index }))
  const [first] = data.outputs
  if (first !== undefined) data.result_url = first
  return data
}
