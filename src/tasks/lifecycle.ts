/** Which ways a task's life may go, and what its client sees on the way. Pure. */

import type { ComingOutput, FailCode, Task, TaskOutput, TaskStatus } from '../spec/task.ts'
import type { UsageRow } from '../spec/token.ts'
import type { TaskChange } from '../store/store.ts'

/** Forward only, skipping allowed; what has ended stays as it is (the specification leaves the transitions open). */
const RANK: Record<TaskStatus, number> = {
  NOT_START: 0,
  SUBMITTED: 1,
  QUEUED: 2,
  IN_PROGRESS: 3,
  SUCCESS: 4,
  FAILURE: 4,
}

/** The percentage with which each state begins. */
const LEAST_PROGRESS: Record<TaskStatus, number> = {
  NOT_START: 0,
  SUBMITTED: 10,
  QUEUED: 20,
  IN_PROGRESS: 30,
  SUCCESS: 100,
  FAILURE: 100,
}
/** 100 is said at the end only. */
const MOST_PROGRESS_UNDER_WAY = 99

type Beginning = Pick<
  Task,
  'task_id' | 'token_id' | 'family' | 'model' | 'submit_time' | 'request' | 'base_url' | 'deadline_at' | 'due_ms'
>

/** A task before its first step: all that its steps set later is empty, unless `fields` says otherwise. */
export const blankTask = (fields: Beginning & Partial<Task>): Task => ({
  status: 'NOT_START',
  progress: 0,
  start_time: 0,
  finish_time: 0,
  fail_code: '',
  fail_reason: '',
  provider: '',
  upstream_model: '',
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

type PollResult = {
  status: Exclude<TaskStatus, 'SUCCESS' | 'FAILURE'>
  /** The vendor's own percentage, if it has one. */
  percent?: number | undefined
  /** Unix seconds. */
  now: number
}

/** What is written of a task that is still under way; a step back is not taken. */
export function advance(task: Task, { status: wanted, percent, now }: PollResult): TaskChange {
  const status = mayMove(task.status, wanted) ? wanted : task.status
  const change: TaskChange = { status, progress: Math.max(task.progress, progressIn(status, percent)) }
  if (status === 'IN_PROGRESS' && task.start_time === 0) change.start_time = Math.max(now, task.submit_time)
  return change
}

/** A vendor's 0 to 100 fills what lies between the beginning of IN_PROGRESS and the end. */
function progressIn(status: TaskStatus, percent: number | undefined): number {
  const least = LEAST_PROGRESS[status]
  if (status !== 'IN_PROGRESS' || typeof percent !== 'number' || !Number.isFinite(percent)) return least
  const share = Math.min(100, Math.max(0, percent)) / 100
  return Math.floor(least + share * (MOST_PROGRESS_UNDER_WAY - least))
}

export type Ending =
  | { status: 'SUCCESS'; outputs: TaskOutput[]; outputs_expire_at: number | null }
  | {
      status: 'FAILURE'
      fail_code: FailCode
      fail_reason: string
      /** What was still to be copied, and until when what was copied is kept: an operator may resume the task. */
      resumable?: { made: ComingOutput[]; outputs: TaskOutput[]; outputs_expire_at: number }
    }

/**
 * What is written at the end. A task that succeeded without ever having been seen at work began, as far as anybody
 * knows, when its order was sent; one that failed before it began keeps `start_time` 0.
 */
export function endChange(task: Task, given: Ending, now: number): TaskChange {
  const { resumable, ...ending } = given.status === 'FAILURE' ? given : { ...given, resumable: undefined }
  const began = task.start_time || (ending.status === 'SUCCESS' ? Math.max(task.sent_at ?? now, task.submit_time) : 0)
  const finish_time = Math.max(now, task.submit_time, began)
  return {
    ...ending,
    progress: LEAST_PROGRESS[ending.status],
    start_time: began,
    finish_time,
    made: null,
    ...resumable,
    failures: 0,
    due_ms: null,
    drop_inputs: true,
    usage: usageOf(task, given, finish_time),
  }
}

/** Takes back what the end of a failed task has counted: the task is resumed, and will be counted when it ends again. */
export function usageReversal(task: Task): UsageRow {
  const { fail_code, fail_reason, finish_time } = task
  const counted = usageOf(
    task,
    { status: 'FAILURE', fail_code: fail_code || 'internal_error', fail_reason },
    finish_time,
  )
  return { ...counted, requests: -counted.requests, errors: -counted.errors }
}

const HOUR_SECONDS = 3600

/** One request; an error, unless its client wanted it to end. Videos have no tokens. */
function usageOf({ token_id, model }: Task, ending: Ending, finish_time: number): UsageRow {
  const failed = ending.status === 'FAILURE' && ending.fail_code !== 'canceled'
  return {
    token_id,
    model,
    hour: finish_time - (finish_time % HOUR_SECONDS),
    requests: 1,
    errors: failed ? 1 : 0,
    input_tokens: 0,
    output_tokens: 0,
    estimated: 0,
  }
}
