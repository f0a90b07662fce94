/** Durable tasks, from acceptance to their end: what the HTTP routes and the operator's commands call. */
import type { StorageQuotas } from '../../accounts/token-quotas.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { LoopControl } from '../../jobs/job-loop.ts'
import { unixSeconds } from '../../kit/clock.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Task, TaskStatus } from '../../spec/task.ts'
import type { Caller } from '../../spec/token.ts'
import type { CrashHook } from './crash-points.ts'
import { isEnded } from './lifecycle.ts'
import { createPollAccelerator } from './poll-accelerator.ts'
import { retryAfterSeconds } from './poll-schedule.ts'
import type { StepMemory, StepParts } from './steps/claimed-task.ts'
import { type Order, type Submitted, submit } from './submit.ts'
import { createWaiting } from './wait.ts'
import { createWorker } from './worker.ts'

export type { InputChecker, ProviderSettings, TaskSettings } from './steps/claimed-task.ts'
export type { Order, Submitted } from './submit.ts'

/** The families of a route: it shows no other tasks. */
type Families = readonly EndpointFamily[]

type TaskListing = { tasks: Task[]; has_more: boolean }

type Health = {
  unfinished: number
  /** Seconds since the oldest unfinished task was accepted. */
  oldest_seconds: number
  /** Seconds by which the most overdue step is late. */
  lag_seconds: number
}

export type Tasks = LoopControl & {
  /** Checks everything, then one durable write; no provider is called. Throws GatewayError with `param`. */
  submit(order: Order): Promise<Submitted>
  /** One indexed read. Throws task_not_exist, also for a task of another token, or of none of the families. */
  find(task_id: string, caller: Caller, families?: Families): Promise<Task>
  /** For a signed link, whose holder may read the task. */
  findAny(task_id: string, families?: Families): Promise<Task | undefined>
  /** Resolves with the task once its state or progress differs from `seen`, or `seconds` have passed. */
  wait(seen: Task, options: { seconds: number; signal: AbortSignal; caller: Caller }): Promise<Task>
  list(
    caller: Caller,
    filter: { families?: Families; statuses?: TaskStatus[]; after?: string; limit: number; order?: 'asc' | 'desc' },
  ): Promise<TaskListing>
  /** Stores the cancel request; an ended task is returned as it is. */
  cancel(task_id: string, caller: Caller, families?: Families): Promise<Task>
  /** Deletes an ended task and its files. Throws task_not_ended, task_not_exist. */
  remove(task_id: string, caller: Caller, families?: Families): Promise<void>
  /** After how many seconds a client should read this task again. */
  retryAfter(task: Task): number
  health(): Promise<Health>
  /** Ends all requests that wait for a change, since the gateway stops. */
  endWaits(): void
}

type TasksParts = Omit<StepParts, keyof StepMemory | 'crashHook'> & {
  pipeline: Pipeline
  quotas: Pick<StorageQuotas, 'tasks' | 'keys'>
  /** Crash-injection hook, used by tests only. */
  crashHook?: CrashHook
}

export function createTasks({ crashHook = () => {}, ...given }: TasksParts): Tasks {
  const parts = { ...given, crashHook }
  const { store, quotas, clock, settings } = parts
  const worker = createWorker(parts)
  const pollAccelerator = createPollAccelerator({ ...parts, worker })
  const waiting = createWaiting(parts)

  async function find(task_id: string, { token_id }: Caller, families?: Families): Promise<Task> {
    const task = await store.tasks.find(task_id, token_id)
    if (!task || !isOf(families, task)) throw noSuchTask()
    pollAccelerator.note(task)
    return task
  }

  return {
    submit: (order) => submit(parts, order),
    find,
    async findAny(task_id, families) {
      const task = await store.tasks.find(task_id)
      return task && isOf(families, task) ? task : undefined
    },
    wait: (seen, { seconds, signal, caller }) =>
      waiting.until(seen, { seconds, signal, read: () => find(seen.task_id, caller) }),

    async list({ token_id }, { limit, families, ...filter }) {
      // One more than requested shows whether there are more.
      const tasks = await store.tasks.list({
        ...filter,
        ...(families && { families: [...families] }),
        token_id,
        limit: limit + 1,
      })
      return { tasks: tasks.slice(0, limit), has_more: tasks.length > limit }
    },

    async cancel(task_id, caller, families) {
      const task = await find(task_id, caller, families)
      if (isEnded(task)) return task
      const canceling = await store.tasks.requestCancel(task_id, { now: unixSeconds(clock), now_ms: clock.now() })
      worker.wake()
      return canceling ?? find(task_id, caller)
    },

    async remove(task_id, caller, families) {
      const task = await find(task_id, caller, families)
      if (!isEnded(task)) {
        throw new GatewayError('task_not_ended', 'This task has not ended yet. Cancel it first, or wait for its end.')
      }
      if (!(await store.tasks.remove(task_id, caller.token_id, unixSeconds(clock)))) throw noSuchTask()
      quotas.tasks.freed(caller.token_id)
    },

    retryAfter: (task) => (isEnded(task) ? 0 : retryAfterSeconds(task, settings(), clock.now())),

    async health() {
      const { unfinished, oldest_submit_time, earliest_due_ms } = await store.tasks.health()
      const now_ms = clock.now()
      return {
        unfinished,
        oldest_seconds: oldest_submit_time === null ? 0 : Math.max(0, unixSeconds(clock) - oldest_submit_time),
        lag_seconds: earliest_due_ms === null ? 0 : Math.max(0, now_ms - earliest_due_ms) / 1000,
      }
    },

    start: () => worker.start(),
    async stop(options) {
      pollAccelerator.stop()
      waiting.stop()
      await worker.stop(options)
    },
    endWaits: () => waiting.stop(),
    idle: () => worker.idle(),
  }
}

const isOf = (families: Families | undefined, { family }: Task) => families?.includes(family) ?? true

/** The same for a task of another token: its existence is not disclosed. */
const noSuchTask = () =>
  new GatewayError('task_not_exist', 'There is no such task of this token. It may have been deleted.')
