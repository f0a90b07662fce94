/** The tables as the query builder sees them. Used only inside `store/`. */
import type { Kysely, Transaction } from 'kysely'
import type { ACCOUNT_SETTINGS, AccountSettingName, AccountValues } from '../spec/account-settings.ts'
import type { AuditRow } from '../spec/audit.ts'
import type { Task } from '../spec/task.ts'
import type { LogContents } from '../spec/token.ts'
import type { StoredAdminToken, StoredAnswer, StoredSession } from './admin/admin-store.ts'
import type { AlertHistoryRow, DueAlert } from './admin/alert-store.ts'
import type { ConfigVersion } from './admin/config-version-store.ts'
import type { McpConnectionRow } from './admin/mcp-connection-store.ts'
import type { McpToolRow } from './admin/mcp-tool-store.ts'
import type { Override } from './admin/override-store.ts'
import type { BatchTables } from './batches/batch-tables.ts'
import type { FileRow } from './files/file-row.ts'
import type { LedgerCounts, LedgerEntry } from './ledger/ledger-entry.ts'
import type { CachedAnswer } from './requests/cache-store.ts'
import type { ContentsRow } from './requests/contents-row.ts'
import type { LiveRow } from './requests/live-store.ts'
import type { Feedback, RequestRow } from './requests/request-row.ts'
import type { MinuteRow, SumsRow } from './requests/sum-row.ts'
import type { StoredConversation } from './responses/conversation-store.ts'
import type { StoredResponse } from './responses/response-row.ts'
import type { TaskStep } from './tasks/task-step.ts'
import type { WebhookAttempt } from './tasks/webhook-row.ts'
import type { LeaseRow } from './tokens/lease-store.ts'

type Rows = typeof ACCOUNT_SETTINGS
/** Each setting of an account; those that are JSON are text here. */
export type SettingColumns = {
  [Name in AccountSettingName]: Rows[Name]['is_json'] extends true
    ? string | Extract<AccountValues[Name], null>
    : AccountValues[Name]
}

export type AccountColumns = SettingColumns & {
  name: string
  disabled: number // 0 or 1
  declared: number // 0 or 1: it is in the configuration file
  created_at: number
}

type TokensTable = AccountColumns & {
  token_id: string
  project_id: string | null
  prefix: string
  hash: string
  /** Of the secret before the last rotation, and until when it is valid. */
  previous_hash: string | null
  previous_expires_at: number | null
  last_used_at: number | null
  added_revision: number // orders tokens of the same second
}

type ProjectsTable = AccountColumns & {
  log_contents: LogContents | null
  project_id: string
  deleted_at: number | null
  added_revision: number
}

type ModelsTable = { id: string; first_seen: number }

type RevisionsTable = { noun: string; revision: number }

/** Members that are JSON text in their column; null stays null. */
type JsonText<Row, Names extends keyof Row> = Omit<Row, Names> & {
  [Name in Names]: string | (null extends Row[Name] ? null : never)
}

export const TASK_JSON = ['request', 'call_options', 'tried', 'operation', 'made', 'outputs', 'late_outcome'] as const
/** `deleted_at`: when it was deleted; null: it is visible. */
type TasksTable = JsonText<Task, (typeof TASK_JSON)[number]> & { deleted_at: number | null }

type TaskInputsTable = {
  task_id: string
  /** JSON text. */
  inputs: string
}

type TaskKeysTable = { token_id: string; key: string; body_hash: string; task_id: string; expires_at: number }

type CallbacksTable = {
  callback_id: string
  task_id: string
  token_id: string
  url: string
  attempts: number
  /** null: the task has not ended yet, or no attempt is left. */
  due_ms: number | null
  delivered_at: number | null
  last_status: number | null
  project_id: string | null
  /** null: the task has not ended yet. */
  ended_ms: number | null
}

type WebhookAttemptsTable = WebhookAttempt & { callback_id: string }

export type ResponsesTable = JsonText<Omit<StoredResponse, 'end_user'>, 'input' | 'response'> & {
  end_user: string | null
}

type ResponseRunsTable = {
  response_id: string
  token_id: string
  end_user: string | null
  /** JSON text. */
  request: string
  attempts: number
  /** When it may be claimed; while it is claimed, the end of the lease. */
  due_ms: number
  fence: number
}

/** Events in order, as they are streamed; the last one has this number. */
type ResponseEventsTable = { response_id: string; token_id: string | null; last_number: number; events: string }

type ConversationsTable = JsonText<StoredConversation, 'metadata'> & {
  /** Increases with every change of the items. */
  revision: number
  locked_by: string | null
  locked_until_ms: number
}

/** `item` is JSON text. */
type ConversationItemsTable = {
  conversation_id: string
  position: number
  item_id: string
  item: string
  end_user: string | null
}

type CachedAnswersTable = CachedAnswer & { cache_key: string }

/** `units` is JSON text; the two totals of it are columns, so that they can be summed. */
export type LedgerEntriesTable = Omit<LedgerEntry, 'units'> & {
  units: string
  input_tokens: number
  output_tokens: number
}

export type OfCall = Pick<LedgerEntry, 'token_id' | 'family' | 'model' | 'provider' | 'upstream_model'> & {
  /** Empty: none. */
  project_id: string
}

/** `start` in unix seconds, `period` in seconds. */
export type LedgerSumsTable = OfCall & LedgerCounts & { period: number; start: number }

/** By day. `end_user` is empty where nobody was named. */
export type LedgerEndUsersTable = OfCall & LedgerCounts & { start: number; end_user: string }

/** `entry` is JSON text: the entry of the call if its process ends before it. */
type OpenCallsTable = { entry_id: string; entry: string; process: string }

/** Amounts are nano-units. */
type BudgetAccountsTable = {
  account_key: string
  start_ms: number
  end_ms: number
  scope_key: string
  settled: number
  credit: number
  held: number
  /** The highest threshold of which the operator was notified, in per cent. */
  notified: number
}

type BudgetLeasesTable = {
  process_id: string
  account_key: string
  start_ms: number
  amount: number
  expires_ms: number
}

/** Those that are not delivered yet. `body` is JSON text. */
type AlertsTable = DueAlert
type AlertMarksTable = { mark_key: string; until_ms: number }

/** `tags` and `detail` are JSON text. */
type RequestLogTable = Omit<RequestRow, 'tags' | 'detail'> & { tags: string | null; detail: string }

/** What unfinished tasks hold. */
type BudgetHoldsTable = { call_id: string; account_key: string; start_ms: number; amount: number }

type AdminTokensTable = Omit<StoredAdminToken, 'disabled' | 'declared'> & { disabled: number; declared: number }

/** `data`: JSON. */
export type AlertHistoryTable = JsonText<AlertHistoryRow, 'data'> & { open_key: string | null }

/** `memberships`: JSON; null for none. */
export type SessionsTable = Omit<StoredSession, 'memberships'> & { memberships: string | null }

/** `answer` is encrypted: a response may contain a secret. */
type AdminKeysTable = StoredAnswer & { scope: string; key: string; expires_at: number }

/** `before` and `after` are JSON text without secrets. */
export type AuditTable = Omit<AuditRow, 'before' | 'after'> & { before: string | null; after: string | null }

type FilesTable = FileRow & { is_ready: number }

export type Tables = BatchTables & {
  audit: AuditTable
  admin_sessions: SessionsTable
  admin_links: { hash: string; actor: string; expires_at: number; person: string | null }
  admin_tokens: AdminTokensTable
  admin_keys: AdminKeysTable
  tokens: TokensTable
  projects: ProjectsTable
  ledger_entries: LedgerEntriesTable
  ledger_sums: LedgerSumsTable
  ledger_end_users: LedgerEndUsersTable
  ledger_end_user_counts: { start: number; token_id: string; end_users: number }
  open_calls: OpenCallsTable
  ledger_processes: { process: string; until_ms: number }
  ledger_starts: { noun: string; start: number }
  models: ModelsTable
  revisions: RevisionsTable
  tasks: TasksTable
  task_inputs: TaskInputsTable
  task_keys: TaskKeysTable
  callbacks: CallbacksTable
  webhook_attempts: WebhookAttemptsTable
  secrets: { name: string; value: string }
  responses: ResponsesTable
  response_runs: ResponseRunsTable
  response_events: ResponseEventsTable
  conversations: ConversationsTable
  conversation_items: ConversationItemsTable
  cached_answers: CachedAnswersTable
  budget_accounts: BudgetAccountsTable
  budget_leases: BudgetLeasesTable
  budget_holds: BudgetHoldsTable
  alerts: AlertsTable
  alert_history: AlertHistoryTable
  live_events: LiveRow
  live_followers: { process_id: string; until_ms: number }
  task_steps: Omit<TaskStep, 'provider_key'> & { task_id: string; provider_key: string }
  config_versions: Omit<ConfigVersion, 'changes'> & { changes: string }
  alert_marks: AlertMarksTable
  rate_limit_leases: LeaseRow
  routing_overrides: Override
  mcp_tools: McpToolRow
  mcp_connections: McpConnectionRow
  request_log: RequestLogTable
  request_tags: { tag: string; at_ms: number; row_id: number }
  request_feedback: Feedback
  request_contents: ContentsRow
  request_minutes: MinuteRow
  request_sums: SumsRow
  files: FilesTable
}

export type Database = Kysely<Tables>
export type Write = Transaction<Tables>
