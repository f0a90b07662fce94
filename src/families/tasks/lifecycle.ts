/** Which ways a task's life may go, and what its client sees on the way. Pure. */
import type { ComingOutput, FailCode, Task, TaskOutput, TaskStatus } from '../../spec/task.ts'
import type { TaskChange } from '../../store/store.ts'

/** Forward only, skipping allowed; what has ended stays as it is (the specification leaves the transitions open). */
const RANK: Record<TaskStatus, number> = {
  NOT_START: 0,
  SUBMITTED: 1,
  QUEUED: 2,
  IN_PROGRESS: 3,
  SUCCESS: 4,
  FAILURE: 4,
}

/** The percentage at which each state starts. */
const MIN_PROGRESS: Record<TaskStatus, number> = {
  NOT_START: 0,
  SUBMITTED: 10,
  QUEUED: 20,
  IN_PROGRESS: 30,
  SUCCESS: 100,
  FAILURE: 100,
}
/** 100 is reserved for ended tasks. */
const MAX_PROGRESS_UNFINISHED = 99

type NewTaskFields = Pick<
  Task,
  'task_id' | 'token_id' | 'family' | 'model' | 'submit_time' | 'request' | 'base_url' | 'deadline_at' | 'due_ms'
>

/** A task before its first step: the fields that its steps set later are empty, unless `fields` sets them. */
export const blankTask = (fields: NewTaskFields & Partial<Task>): Task => ({
  project_id: null,
  end_user: null,
  status: 'NOT_START',
  progress: 0,
  start_time: 0,
  finish_time: 0,
  fail_code: '',
  fail_reason: '',
  provider: '',
  upstream_model: '',
  provider_key: null,
  call_options: null,
  trace: null,
  tried: [],
  sent_at: null,
  sent_to: null,
  operation: null,
  made: null,
  outputs: [],
  outputs_expire_at: null,
  cancel_asked_at: null,
  late_outcome: null,
  failures: 0,
  leased_by: '',
  fence: 0,
  ...fields,
})

export const isEnded = ({ status }: Pick<Task, 'status'>): boolean => RANK[status] === RANK.SUCCESS

export const mayMove = (from: TaskStatus, to: TaskStatus): boolean => RANK[from] < RANK[to] && RANK[from] < RANK.SUCCESS

type ProviderProgress = {
  status: Exclude<TaskStatus, 'SUCCESS' | 'FAILURE'>
  /** The provider's own percentage, if it reports one. */
  percent?: number | undefined
  /** Unix seconds. */
  now: number
}

/** The change to a task that is still in progress. Status and progress never decrease. */
export function advance(task: Task, { status: reported, percent, now }: ProviderProgress): TaskChange {
  const status = mayMove(task.status, reported) ? reported : task.status
  const change: TaskChange = { status, progress: Math.max(task.progress, progressIn(status, percent)) }
  if (status === 'IN_PROGRESS' && task.start_time === 0) change.start_time = Math.max(now, task.submit_time)
  return change
}

/** The provider has generated its files, which are to be stored. Where no poll saw it in progress, it counts as started when it was sent. */
export const advanceToGenerated = (task: Task, now: number): TaskChange => ({
  ...advance(task, { status: 'IN_PROGRESS', percent: 100, now }),
  ...(task.start_time === 0 && { start_time: Math.max(task.sent_at ?? now, task.submit_time) }),
})

/** Maps the provider's 0 to 100 to the range between the start of IN_PROGRESS and the end. */
function progressIn(status: TaskStatus, percent: number | undefined): number {
  const least = MIN_PROGRESS[status]
  if (status !== 'IN_PROGRESS' || typeof percent !== 'number' || !Number.isFinite(percent)) return least
  const share = Math.min(100, Math.max(0, percent)) / 100
  return Math.floor(least + share * (MAX_PROGRESS_UNFINISHED - least))
}

export type Ending =
  | { status: 'SUCCESS'; outputs: TaskOutput[]; outputs_expire_at: number | null }
  | {
      status: 'FAILURE'
      fail_code: FailCode
      fail_reason: string
      /** The files that were not copied yet, and how long the copied ones are retained: an operator may resume the task. */
      resumable?: { made: ComingOutput[]; outputs: TaskOutput[]; outputs_expire_at: number }
    }

/**
 * The change that ends a task. A task that succeeded and was never seen in progress counts as started when its order was
 * sent; one that failed before it started keeps `start_time` 0.
 */
export function endChange(task: Task, given: Ending, now: number): TaskChange {
  const { resumable, ...ending } = given.status === 'FAILURE' ? given : { ...given, resumable: undefined }
  const start_time =
    task.start_time || (ending.status === 'SUCCESS' ? Math.max(task.sent_at ?? now, task.submit_time) : 0)
  const finish_time = Math.max(now, task.submit_time, start_time)
  return {
    ...ending,
    progress: MIN_PROGRESS[ending.status],
    start_time,
    finish_time,
    made: null,
    ...resumable,
    failures: 0,
    due_ms: null,
    drop_inputs: true,
  }
}
