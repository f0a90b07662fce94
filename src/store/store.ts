/** Contracts of everything that is stored: one small interface for each kind of record, the same on every engine. */
import type { AuditDraft } from '../spec/audit.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { JsonObject, Task, TaskOutput, TaskStatus } from '../spec/task.ts'
import type { UsageRow } from '../spec/token.ts'
import type { AdminStore } from './admin/admin-store.ts'
import type { Alert, AlertHistoryStore, AlertStore } from './admin/alert-store.ts'
import type { AuditStore } from './admin/audit-store.ts'
import type { ConfigVersionStore } from './admin/config-version-store.ts'
import type { McpConnectionStore } from './admin/mcp-connection-store.ts'
import type { McpToolStore } from './admin/mcp-tool-store.ts'
import type { OverrideStore } from './admin/override-store.ts'
import type { BatchStore } from './batches/batch-store.ts'
import type { FileRowStore } from './files/file-row.ts'
import type { BudgetStore, TaskBudget } from './ledger/budget-store.ts'
import type { LedgerEntry } from './ledger/ledger-entry.ts'
import type { LedgerStore } from './ledger/ledger-store.ts'
import type { StorePage } from './page.ts'
import type { CachedAnswerStore, CachedVectors } from './requests/cache-store.ts'
import type { RequestContentsStore } from './requests/contents-row.ts'
import type { LiveStore } from './requests/live-store.ts'
import type { RequestLogStore } from './requests/request-row.ts'
import type { RequestSumStore } from './requests/request-sums.ts'
import type { ConversationStore } from './responses/conversation-store.ts'
import type { ResponseRunStore, ResponseStore } from './responses/response-store.ts'
import type { SchemaState } from './schema-state.ts'
import type { DueTimes } from './tasks/due-times.ts'
import type { TaskStep } from './tasks/task-step.ts'
import type { Webhook, WebhookAttempt, WebhookDelivery, WebhookState } from './tasks/webhook-row.ts'
import type { ProjectStore, TokenStore } from './tokens/account-store.ts'
import type { StoredAmounts } from './tokens/amount-store.ts'
import type { EndUserStore } from './tokens/end-user-store.ts'
import type { RateLimitStore, TaskLimit } from './tokens/lease-store.ts'

export type UsageStore = {
  /** Sums of the ledger, newest hour first, of one token or of all, from an hour on (unix seconds). */
  list(filter: { token_id?: string; since?: number; limit: number }): Promise<UsageRow[]>
}

export type ModelStore = {
  /** When each model entered the catalogue (unix seconds): unknown models are stored with `now`. Returns all of `ids`. */
  firstSeen(ids: string[], now: number): Promise<Map<string, number>>
  /** Every model that was ever in the catalogue of a gateway on this store. */
  ids(): Promise<string[]>
}

export type NewTask = {
  task: Task
  /** The media of the request: stored separately, and deleted once the order is accepted or the task has ended. */
  inputs?: JsonObject
  /** The webhook to call when the task has ended. */
  callback?: { callback_id: string; url: string }
  /** The client's key and the hash of its body, both remembered until `expires_at` (unix seconds). */
  idempotency?: { key: string; body_hash: string; expires_at: number }
  /** What it holds of budgets until it is charged; each of them was leased by this process. */
  budgets?: TaskBudget[]
  limits?: readonly TaskLimit[]
  /** How often the due times were moved when its own were computed. Rejects with `DueTimesMoved` if they were moved since. */
  moves?: number | undefined
}

/** `conflict`: the key was used for another body. */
export type Added = { outcome: 'added' | 'replayed'; task: Task } | { outcome: 'conflict' }

export type Claim = {
  /** The claiming worker; unique to the process. */
  by: string
  /** The provider whose tasks are claimed; empty: tasks that have no target yet. */
  provider: string
  now_ms: number
  /** When the lease expires. */
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
    | 'provider_key'
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
  /** Deletes the media, which are no longer needed. */
  drop_inputs?: true
  /** Keeps the claim, for a step that continues; otherwise the claim ends with the write. */
  keep_lease?: true
  /** When the webhook of a task that ends is due; default: when it finished. */
  webhook_due_ms?: number
  /** What is recorded in the same transaction, when the task ends. */
  entry?: LedgerEntry
  /** Of which the operator is alerted in the same transaction. */
  alerts?: readonly Alert[]
  /** When it happens, in unix milliseconds, for the steps of the task; absent: none is recorded. */
  at_ms?: number
}

export type Reopening = {
  due_ms: number
  deadline_at: number
  /** The files to continue copying; null: nothing is known of the files, and the provider is polled again. */
  copying: { made: NonNullable<Task['made']>; outputs: TaskOutput[] } | null
  /** The new id of the webhook, if there is one. */
  callback_id: string
  /** What was recorded at its end is taken back; this is what is recorded for one that ended before there was a ledger. */
  reversal: LedgerEntry
}

export type TaskFilter = {
  /** Of one token, or of all. */
  token_id?: string
  project_id?: string
  model?: string
  families?: EndpointFamily[]
  statuses?: TaskStatus[]
  /** The task_id after which the page starts. */
  after?: string
  limit: number
  /** By submit_time and task_id. Default `desc`: newest first. */
  order?: 'asc' | 'desc'
}

export type SentTask = Pick<
  Task,
  'task_id' | 'status' | 'fail_code' | 'request' | 'sent_at' | 'operation' | 'provider_key'
>

type Times = { now: number; now_ms: number }
export type TaskStore = {
  /** Durable when it resolves. Throws rate_limit_exceeded at one of its limits. Atomic: two calls with the same token and idempotency key create one task. */
  add(task: NewTask): Promise<Added>
  /** One indexed read. With a `token_id`: only a task of that token. Deleted tasks are not found. */
  find(task_id: string, token_id?: string): Promise<Task | undefined>
  /** The task of a client's idempotency key and the hash of its body, until the key expires. */
  findByKey(token_id: string, key: string, now: number): Promise<{ task: Task; body_hash: string } | undefined>
  inputs(task_id: string): Promise<JsonObject | undefined>
  /** Throws invalid_value if `after` is not a task of the token and the families. */
  list(filter: TaskFilter): Promise<Task[]>
  /**
   * Claims due tasks: sets `leased_by` and `fence`; `due_ms` becomes the end of the lease. Fair between tokens: the
   * oldest due task of each comes before the second oldest of any. No two claims get the same task.
   */
  claim(claim: Claim): Promise<Task[]>
  /**
   * Stores the outcome of a step of a claimed task. False, and nothing is written, if the fence has changed. If the task
   * ends (its `status` is in `change`), its webhook becomes due in the same transaction.
   */
  save(task: Pick<Task, 'task_id' | 'fence'>, change: TaskChange): Promise<boolean>
  /** Its states, targets and failed steps, in order. */
  steps(task_id: string): Promise<TaskStep[]>
  /** Tasks whose orders were sent to this provider from `since` on (unix seconds), in no order; deleted ones too. */
  sentSince(filter: { provider: string; since: number }): Promise<SentTask[]>
  /** Makes waiting tasks due now. Claimed tasks and tasks that are never due do not change. */
  advancePolling(task_ids: string[], now_ms: number): Promise<void>
  /** Stores the cancel request and makes the task due; undefined if the task does not exist or has ended. `audit`: appended with it. */
  requestCancel(task_id: string, now: Times, audit?: (changed: Task) => AuditDraft): Promise<Task | undefined>
  /** For the operator: makes a waiting or failed task due again with another deadline; false if there is no such task. */
  resume(task_id: string, change: { due_ms: number; deadline_at: number }, audit?: AuditDraft): Promise<boolean>
  /**
   * For the operator: sets a failed task back to IN_PROGRESS, due now and without its failure, and gives its webhook a
   * new id, since the next end is another event. False, and nothing is written, if the fence has changed, or the task has
   * not failed or was deleted.
   */
  reopen(task: Pick<Task, 'task_id' | 'fence'>, change: Reopening, audit?: AuditDraft): Promise<boolean>
  /** Hides an ended task, empties its request and makes its outputs due for removal; false if there is no such task. */
  remove(task_id: string, token_id: string, now: number): Promise<boolean>
  /** Each provider with unfinished tasks and its earliest `due_ms` (the end of a lease counts). */
  queues(): Promise<{ provider: string; due_ms: number }[]>
  /** Tasks whose outputs have expired, oldest first. */
  outputsToRemove(now: number, limit: number): Promise<{ task_id: string; outputs: TaskOutput[] }[]>
  /** Records that the files were removed: empties `outputs`. */
  outputsRemoved(task_ids: string[]): Promise<void>
  /** Deletes at most `limit` expired idempotency keys; returns how many it deleted. */
  deleteExpiredKeys(now: number, limit: number): Promise<number>
  health(): Promise<{ unfinished: number; oldest_submit_time: number | null; earliest_due_ms: number | null }>
  /**
   * Calls the listener for tasks that were added or changed, by this process and, where the engine supports it, by
   * others. Only for speed: polling finds missed changes. The returned function unsubscribes.
   */
  watch(listener: (change: { task_id: string; status: TaskStatus }) => void): () => void
}

export type WebhookStore = {
  /** Claims due webhooks until the lease expires; no two claims get the same one. */
  claim(claim: { now_ms: number; until_ms: number; limit: number }): Promise<Webhook[]>
  /** Stores an attempt: `due_ms` is the next attempt, null for none; `status` is the HTTP status, 0 for no response. */
  save(
    callback_id: string,
    outcome: { due_ms: number | null; delivered_at: number | null } & WebhookAttempt,
  ): Promise<void>
  /** Releases claimed webhooks until their new times; this does not count as an attempt. */
  postpone(webhooks: { callback_id: string; due_ms: number }[]): Promise<void>
  /**
   * For the operator: makes the webhook of an ended task due again, whether or not it was delivered, as if it had not been attempted. False: the
   * task has none, or has not ended.
   */
  retry(task_id: string, now_ms: number, audit: AuditDraft): Promise<boolean>
  /** For the operator: of ended tasks, the last to end first, with their attempts. */
  page(options: {
    state?: WebhookState
    project_id?: string
    limit: number
    after?: string[]
  }): Promise<StorePage<WebhookDelivery>>
  /** Undefined: there is none, or its task has not ended. */
  delivery(callback_id: string): Promise<WebhookDelivery | undefined>
  /** When the next webhook is due. */
  earliest(): Promise<number | null>
  ofTask(task_id: string): Promise<(Webhook & { delivered_at: number | null; last_status: number | null }) | undefined>
}

export type SecretStore = {
  /** The value stored under this name; if there is none, `make` creates it. The same for all processes. */
  get(name: string, make: () => string): Promise<string>
}

/** A method rejects with `storage_unavailable` when the database cannot be reached or written now. */
export type Store = {
  /** The engine's name, for the log. */
  engine: string
  tokens: TokenStore
  projects: ProjectStore
  admin: AdminStore
  audit: AuditStore
  ledger: LedgerStore
  usage: UsageStore
  models: ModelStore
  tasks: TaskStore
  webhooks: WebhookStore
  secrets: SecretStore
  responses: ResponseStore
  responseRuns: ResponseRunStore
  conversations: ConversationStore
  batches: BatchStore
  amounts: StoredAmounts
  budgets: BudgetStore
  alerts: AlertStore
  alertHistory: AlertHistoryStore
  live: LiveStore
  configVersions: ConfigVersionStore
  cachedAnswers: CachedAnswerStore
  /** For the semantic cache; absent where the engine has no vectors. Throws StoreError where its extension is missing. */
  openCachedVectors?: () => Promise<CachedVectors>
  rateLimits: RateLimitStore
  overrides: OverrideStore
  mcpTools: McpToolStore
  mcpConnections: McpConnectionStore
  requestLog: RequestLogStore
  requestSums: RequestSumStore
  endUsers: EndUserStore
  requestContents: RequestContentsStore
  dueTimes: DueTimes
  files: FileRowStore
  /** Writes something; rejects when that is not possible. For /readyz. */
  ping(): Promise<void>
  /** The schema of the database, which a newer build may have migrated meanwhile, beside that of this build. */
  schema(): Promise<SchemaState>
  /** Frees the memory of caches, where the engine has any in this process. */
  releaseMemory(): void
  close(): Promise<void>
}

/** What helps where the file of the database is damaged. */
export const RESTORE =
  'The file is damaged, or not a database: restore it from a backup, as the page "Back up and restore" of the manual says (docs/manual/how-to/back-up.md).'

/** A store that cannot be opened. The message tells the operator what is wrong, where, and what would be right. */
export class StoreError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StoreError'
  }
}

export type StoreCheck = {
  engine: 'sqlite' | 'postgres'
  checked: string[]
  /** What they found; none: nothing is damaged, as far as they can tell. */
  problems: string[]
}
