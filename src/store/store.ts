/** What the gateway stores: one small interface for each kind of record, the same on every engine. */
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { JsonObject, Task, TaskOutput, TaskStatus } from '../spec/task.ts'
import type { Token, UsageRow } from '../spec/token.ts'

/** A token with the SHA-256 (hex) of its secret. The secret itself is never stored. */
export type StoredToken = Token & { hash: string }

export type TokenStore = {
  /** Adds a token. Throws if its `token_id` or `hash` is taken. */
  add(token: StoredToken): Promise<void>
  /** Adds the token only if the store holds none at all; false if it held one. Atomic between processes. */
  addFirst(token: StoredToken): Promise<boolean>
  findByHash(hash: string): Promise<StoredToken | undefined>
  find(token_id: string): Promise<StoredToken | undefined>
  /** All tokens, oldest first. */
  list(): Promise<StoredToken[]>
  /** Changes fields of a token; false if there is no such token. */
  update(token_id: string, change: Partial<Omit<StoredToken, 'token_id' | 'created_at'>>): Promise<boolean>
  /** Writes when tokens were last used (unix seconds); a time never moves back. Does not count as a change. */
  touch(used: { token_id: string; last_used_at: number }[]): Promise<void>
  /** A number that grows with every add and update, by any process: how caches learn of a change. */
  revision(): Promise<number>
}

export type UsageStore = {
  /** Adds the counts of the rows to what is stored for the same token, model and hour. One transaction. */
  add(rows: UsageRow[]): Promise<void>
  /** Stored rows, newest hour first, of one token or of all, from an hour on (unix seconds). */
  list(filter: { token_id?: string; since?: number; limit: number }): Promise<UsageRow[]>
}

export type ModelStore = {
  /**
   * When each model entered the catalogue (unix seconds): those not yet known are stored with `now`; the rest keep
   * their time. Answers all of `ids`.
   */
  firstSeen(ids: string[], now: number): Promise<Map<string, number>>
}

export type NewTask = {
  task: Task
  /** The media of the request: kept apart, and dropped once the order is taken or the task has ended. */
  inputs?: JsonObject
  /** Called when the task has ended. */
  callback?: { callback_id: string; url: string }
  /** The client's key, and what it was sent with: unix seconds until which both are remembered. */
  idempotency?: { key: string; body_hash: string; expires_at: number }
}

/** `conflict`: the key was used for another body. */
export type Added = { outcome: 'added' | 'replayed'; task: Task } | { outcome: 'conflict' }

export type Claim = {
  /** Who claims: unique to the process. */
  by: string
  /** The provider whose tasks are wanted; empty: those that have no target yet. */
  provider: string
  now_ms: number
  /** When the lease runs out. */
  until_ms: number
  limit: number
}

export type TaskChange = Partial<
  Pick<
    Task,
    | 'status'
    | 'progress'
    | 'start_time'
    | 'finish_time'
    | 'fail_code'
    | 'fail_reason'
    | 'provider'
    | 'upstream_model'
    | 'tried'
    | 'sent_at'
    | 'sent_to'
    | 'operation'
    | 'made'
    | 'outputs'
    | 'outputs_expire_at'
    | 'deadline_at'
    | 'late_outcome'
    | 'failures'
    | 'due_ms'
  >
> & {
  /** The media are of no more use. */
  drop_inputs?: true
  /** The task keeps its holder (for a step that goes on); otherwise the claim ends with the write. */
  keep_lease?: true
  /** Written with it, all or nothing: what the end of the task counts. */
  usage?: UsageRow
}

export type Reopening = {
  due_ms: number
  deadline_at: number
  /** What copying goes on with; null: nothing is known of the files, and the upstream is asked again. */
  copying: { made: NonNullable<Task['made']>; outputs: TaskOutput[] } | null
  /** The id of the callback from now on, where there is one. */
  callback_id: string
  /** Takes back what the end of the task has counted. */
  usage: UsageRow
}

export type TaskFilter = {
  /** Of one token, or of all. */
  token_id?: string
  families?: EndpointFamily[]
  statuses?: TaskStatus[]
  /** The task_id after which to go on; unknown ones give nothing. */
  after?: string
  limit: number
  /** By submit_time and task_id. Default `desc`: newest first. */
  order?: 'asc' | 'desc'
}

export type TaskStore = {
  /** Durable when it resolves. Atomic: two with the same token and idempotency key make one task. */
  add(task: NewTask): Promise<Added>
  /** One indexed read. With a `token_id`: only a task of that token. Deleted tasks are not found. */
  find(task_id: string, token_id?: string): Promise<Task | undefined>
  /** The task that a client's key stands for, and what the key was sent with, while it is remembered. */
  findByKey(token_id: string, key: string, now: number): Promise<{ task: Task; body_hash: string } | undefined>
  inputs(task_id: string): Promise<JsonObject | undefined>
  list(filter: TaskFilter): Promise<Task[]>
  /**
   * Claims due tasks: `leased_by` and `fence` are set, `due_ms` is the end of the lease. Fair between tokens:
   * the oldest due task of each comes before the second oldest of any. No two claims get the same task.
   */
  claim(claim: Claim): Promise<Task[]>
  /**
   * Writes a step's outcome of a claimed task; false, and nothing is written, if the task has another fence by now.
   * A task that ended (its `status` is in `change`) makes its callback due in the same transaction.
   */
  save(task: Pick<Task, 'task_id' | 'fence'>, change: TaskChange): Promise<boolean>
  /** Makes waiting tasks due now; claimed tasks and those that are never due do not change. */
  advancePolling(task_ids: string[], now_ms: number): Promise<void>
  /** Stores the cancel request and makes the task due; undefined when there is no such task, or it has ended. */
  askCancel(task_id: string, now: { now: number; now_ms: number }): Promise<Task | undefined>
  /** For the operator: makes a waiting or failed task due again, with another deadline. False: there is none such. */
  resume(task_id: string, change: { due_ms: number; deadline_at: number }): Promise<boolean>
  /**
   * For the operator: puts a failed task back to IN_PROGRESS, due now, with nothing left of its failure, and gives its
   * callback another id: the next end is another event. False, and nothing is written, if the task does not have this
   * fence any more, has not failed, or was deleted.
   */
  reopen(task: Pick<Task, 'task_id' | 'fence'>, change: Reopening): Promise<boolean>
  /** Hides an ended task from everyone and makes its outputs due for removal; false if there is none such. */
  remove(task_id: string, token_id: string, now: number): Promise<boolean>
  /** Each provider with unfinished tasks and its earliest `due_ms` (the end of a lease counts as one). */
  lanes(): Promise<{ provider: string; due_ms: number }[]>
  /** Tasks whose outputs are to be deleted by now, oldest first. */
  outputsToRemove(now: number, limit: number): Promise<{ task_id: string; outputs: TaskOutput[] }[]>
  /** Their files are gone: `outputs` is empty from now on. */
  outputsRemoved(task_ids: string[]): Promise<void>
  /** Forgets idempotency keys that are over their time, at most `limit` at once; how many there were. */
  forgetKeys(now: number, limit: number): Promise<number>
  health(): Promise<{ unfinished: number; oldest_submit_time: number | null; earliest_due_ms: number | null }>
  /**
   * Calls the listener for tasks that were added or changed, by this process and, where the engine supports it, by
   * others. Only for speed: polling finds what is missed. The result ends it.
   */
  watch(listener: (change: { task_id: string; status: TaskStatus }) => void): () => void
}

/** `attempts`: how many were made and saved so far; 0 before the first. */
export type Webhook = { callback_id: string; task_id: string; token_id: string; url: string; attempts: number }

export type WebhookStore = {
  /** Claims due webhooks until the lease runs out; no two claims get the same. */
  claim(claim: { now_ms: number; until_ms: number; limit: number }): Promise<Webhook[]>
  /** The attempt's outcome: `due_ms` for another try, null for none; `status` is the HTTP status, 0 for no answer. */
  save(
    callback_id: string,
    outcome: { due_ms: number | null; delivered_at: number | null; status: number },
  ): Promise<void>
  /** Returns claimed webhooks, each due at its time; this does not count as an attempt. */
  postpone(webhooks: { callback_id: string; due_ms: number }[]): Promise<void>
  /** The earliest time at which one is due. */
  earliest(): Promise<number | null>
  /** For the operator. */
  ofTask(task_id: string): Promise<(Webhook & { delivered_at: number | null; last_status: number | null }) | undefined>
}

export type SecretStore = {
  /** The value kept under this name; made by `make` and stored if there is none. The same for all processes. */
  get(name: string, make: () => string): Promise<string>
}

/** An answer with its own input, in the form in which clients of responses read both. */
export type StoredResponse = {
  response_id: string
  token_id: string
  /** The one it goes on from; it may be gone by now. */
  previous_id: string | null
  created_at: number
  expires_at: number
  input: JsonObject[]
  response: JsonObject
}

export type ResponseStore = {
  /** Keeps an answer. Those that it goes on from (`lives`) live at least as long as it does. */
  add(response: StoredResponse, lives: string[]): Promise<void>
  /** Those of this token that are not over their time, in no order. */
  find(response_ids: string[], token_id: string, now: number): Promise<StoredResponse[]>
  /** How many signs of JSON text those have, together. */
  length(response_ids: string[], token_id: string, now: number): Promise<number>
  /**
   * The answer and all that it goes on from, oldest first; empty when it is not there. A gap ends the way back, and so
   * does the one with which the texts of all are longer than `max_length`.
   */
  conversation(
    response_id: string,
    at: { token_id: string; now: number; max_length: number },
  ): Promise<StoredResponse[]>
  /** False if there is none such of this token. */
  remove(response_id: string, token_id: string): Promise<boolean>
  /** Removes those that are over their time, at most `limit` at once; how many there were. */
  forget(now: number, limit: number): Promise<number>
}

/** Some events of a response as text; the last one has this number. */
export type ToldEvents = { last_number: number; events: string }

/** A claimed background response: each claim has another `fence`. */
export type ResponseRun = {
  response: StoredResponse
  request: JsonObject
  /** How often it was begun, this time included. */
  attempts: number
  fence: number
  /** The number of the last stored event; -1 for a response without a stream. */
  told: number
}

/** Identifies a claimed run. */
type RunKey = { response_id: string; fence: number }

export type ResponseRunStore = {
  /** Stores a queued response, with its first events when it is streamed. */
  add(
    queued: { response: StoredResponse; request: JsonObject; told: ToldEvents | undefined; due_ms: number },
    lives: string[],
  ): Promise<void>
  /** Claims due runs, each until `until_ms`: the oldest of each token before the second oldest of any. */
  claim(claim: { now_ms: number; until_ms: number; limit: number }): Promise<ResponseRun[]>
  /** Renews the lease of a run; false when the run is gone or was claimed again. */
  renew(run: RunKey, until_ms: number): Promise<boolean>
  /** Stores the current response and its new events; false as above. */
  tell(run: RunKey, notifications: { response?: JsonObject; told?: ToldEvents | undefined }): Promise<boolean>
  /** The same at its end: the run is removed. */
  end(run: RunKey, notifications: { response: JsonObject; told?: ToldEvents | undefined }): Promise<boolean>
  /** Releases a run as if it had not been started. */
  release(run: RunKey, due_ms: number): Promise<void>
  /** Ends a response of this token as `response`, also a claimed one; false when it had ended before. */
  cancel(response_id: string, token_id: string, response: JsonObject): Promise<boolean>
  isRunning(response_id: string): Promise<boolean>
  /** How many responses of this token have not ended, running ones included. */
  waiting(token_id: string): Promise<number>
  /** Events after this number, in order; the first of them may begin before it. */
  events(response_id: string, after: number): Promise<ToldEvents[]>
  /** When the next one is due; null when there is none. */
  earliest(): Promise<number | null>
}

export type Store = {
  /** The engine's name, for the log. */
  engine: string
  tokens: TokenStore
  usage: UsageStore
  models: ModelStore
  tasks: TaskStore
  webhooks: WebhookStore
  secrets: SecretStore
  responses: ResponseStore
  responseRuns: ResponseRunStore
  /** Rejects when the store cannot answer; for /readyz. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** A store that cannot be opened. The message tells the operator what is wrong, where, and what would be right. */
export class StoreError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StoreError'
  }
}
