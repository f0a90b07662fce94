/** One durable task, from acceptance to its end: what the faces over HTTP and the operator's commands ask of the room. */
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { Task, TaskStatus } from '../spec/task.ts'
import type { Caller } from '../spec/token.ts'
import type { VideoRequest } from '../spec/video-request.ts'

export type Order = {
  request: VideoRequest
  /** By which face it came: the model must declare it. */
  family: Extract<EndpointFamily, 'video-generation' | 'chatcompat-video'>
  caller: Caller
  /** `scheme://host` by which the client reached the gateway. */
  base_url: string
  idempotency_key?: string
}

/** The model that was asked for and the one that serves it, for the lifecycle headers. */
export type Submitted = { task: Task; replayed: boolean; requested: string; model: string }

export type TaskListing = { tasks: Task[]; has_more: boolean }

export type Health = {
  unfinished: number
  /** Seconds since the oldest unfinished task was accepted. */
  oldest_seconds: number
  /** Seconds by which the most overdue step is late. */
  lag_seconds: number
}

export type Tasks = {
  /** Checks everything, then one durable write; no vendor is called. Throws GatewayError with `param`. */
  submit(order: Order): Promise<Submitted>
  /** One indexed read. Throws task_not_exist, also for a task of another token. */
  find(task_id: string, caller: Caller): Promise<Task>
  /** For a signed link: whoever holds it may read. */
  findAny(task_id: string): Promise<Task | undefined>
  /** Resolves with the task once its state or progress differs from `seen`, or `seconds` have passed. */
  wait(seen: Task, options: { seconds: number; signal: AbortSignal; caller: Caller }): Promise<Task>
  list(
    caller: Caller,
    filter: { statuses?: TaskStatus[]; after?: string; limit: number; order?: 'asc' | 'desc' },
  ): Promise<TaskListing>
  /** Notes the wish; an ended task is answered as it is. */
  cancel(task_id: string, caller: Caller): Promise<Task>
  /** Forgets an ended task and its files. Throws task_not_ended, task_not_exist. */
  remove(task_id: string, caller: Caller): Promise<void>
  /** Seconds after which asking again for this task makes sense. */
  retryAfter(task: Task): number
  health(): Promise<Health>
  /** Begins to step tasks. */
  start(): void
  /** Takes no more steps in hand and waits for those under way, at most until the deadline. */
  stop(options: { deadline_ms: number }): Promise<void>
  /** Resolves when no step is in hand and none is due now: for tests that own the clock. */
  idle(): Promise<void>
}
