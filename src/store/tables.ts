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
import type { BudgetHold, BudgetListing } from './ledger/budget-store.ts'
import type { LedgerCounts, LedgerEntry } from './ledger/ledger-entry.ts'
import type { CachedAnswer } from './requests/cache-store.ts'
import type { ContentsRow } from './requests/contents-row.ts'
import type { LiveRow } from './requests/live-store.ts'
import type { Feedback, RequestRow } from './requests/request-row.ts'
import type { MinuteRow, SumsRow } from './requests/sum-row.ts'
import type { StoredConversation } from './responses/conversation-store.ts'
import type { StoredResponse } from './responses/response-row.ts'
import type { StoredEvents } from './responses/response-store.ts'
import type { TaskStep } from './tasks/task-step.ts'
import type { WebhookAttempt, WebhookDelivery } from './tasks/webhook-row.ts'
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

/** Members that are JSON text in their column; null stays null. */
type JsonText<Row, Names extends keyof Row> = Omit<Row, Names> & {
  [Name in Names]: string | (null extends Row[Name] ? null : never)
}

export const TASK_JSON = ['request', 'call_options', 'tried', 'operation', 'made', 'outputs', 'late_outcome'] as const
/** `deleted_at`: when it was deleted; null: it is visible. */
type TasksTable = JsonText<Task, (typeof TASK_JSON)[number]> & { deleted_at: number | null }

/** `due_ms`: null: the task has not ended yet, or no attempt is left. `ended_ms`: null: it has not ended yet. */
type CallbacksTable = Omit<WebhookDelivery, 'tries' | 'ended_ms'> & { ended_ms: number | null }

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

/** `tags` and `detail` are JSON text. */
type RequestLogTable = Omit<RequestRow, 'tags' | 'detail'> & { tags: string | null; detail: string }

/** `data`: JSON. */
export type AlertHistoryTable = JsonText<AlertHistoryRow, 'data'> & { open_key: string | null }

/** `memberships`: JSON; null for none. */
export type SessionsTable = Omit<StoredSession, 'memberships'> & { memberships: string | null }

/** `before` and `after` are JSON text without secrets. */
export type AuditTable = Omit<AuditRow, 'before' | 'after'> & { before: string | null; after: string | null }

export type Tables = BatchTables & {
  audit: AuditTable
  admin_sessions: SessionsTable
  admin_links: { hash: string; actor: string; expires_at: number; person: string | null }
  admin_tokens: Omit<StoredAdminToken, 'disabled' | 'declared'> & { disabled: number; declared: number }
  /** `answer` is encrypted: a response may contain a secret. */
  admin_keys: StoredAnswer & { scope: string; key: string; expires_at: number }
  tokens: TokensTable
  projects: ProjectsTable
  ledger_entries: LedgerEntriesTable
  ledger_sums: LedgerSumsTable
  ledger_end_users: LedgerEndUsersTable
  ledger_end_user_counts: { start: number; token_id: string; end_users: number }
  /** `entry` is JSON text: the entry of the call if its process ends before it. */
  open_calls: { entry_id: string; entry: string; process: string }
  ledger_processes: { process: string; until_ms: number }
  ledger_starts: { noun: string; start: number }
  models: { id: string; first_seen: number }
  revisions: { noun: string; revision: number }
  tasks: TasksTable
  /** `inputs` is JSON text. */
  task_inputs: { task_id: string; inputs: string }
  task_keys: { token_id: string; key: string; body_hash: string; task_id: string; expires_at: number }
  callbacks: CallbacksTable
  webhook_attempts: WebhookAttempt & { callback_id: string }
  secrets: { name: string; value: string }
  responses: ResponsesTable
  response_runs: ResponseRunsTable
  /** Events in order, as they are streamed; the last one has this number. */
  response_events: StoredEvents & { response_id: string; token_id: string | null }
  conversations: ConversationsTable
  conversation_items: ConversationItemsTable
  cached_answers: CachedAnswer & { cache_key: string }
  budget_accounts: BudgetListing
  budget_leases: BudgetHold & { process_id: string; expires_ms: number }
  /** What unfinished tasks hold. */
  budget_holds: BudgetHold & { call_id: string }
  /** Those that are not delivered yet. */
  alerts: DueAlert
  alert_history: AlertHistoryTable
  live_events: LiveRow
  live_followers: { process_id: string; until_ms: number }
  task_steps: Omit<TaskStep, 'provider_key'> & { task_id: string; provider_key: string }
  config_versions: Omit<ConfigVersion, 'changes'> & { changes: string }
  alert_marks: { mark_key: string; until_ms: number }
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
  files: FileRow & { is_ready: number }
}

export type Database = Kysely<Tables>
export type Write = Transaction<Tables>
