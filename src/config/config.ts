/** The configuration in use: file and environment merged, defaults filled in, frozen. */
import type { LogLevel } from '../kit/log.ts'
import type { RateLimits } from '../spec/rate-limit.ts'
import type { InstallationBudgets, StorageQuotas, TokenDefaults } from './schema/account-schema.ts'
import type { AdminConfig } from './schema/admin-schema.ts'
import type { AlertsConfig } from './schema/alerts-schema.ts'
import type { CacheConfig } from './schema/cache-schema.ts'
import type { DeclaredAdminToken, DeclaredProject, DeclaredToken } from './schema/declared-schema.ts'
import type { GuardConfig } from './schema/guard-schema.ts'
import type { LedgerConfig } from './schema/ledger-schema.ts'
import type { McpConfig, McpServerConfig } from './schema/mcp-schema.ts'
import type { LimitsConfig } from './schema/rate-limit-schema.ts'
import type { RequestLogConfig } from './schema/request-log-schema.ts'
import type { FileConfig, ModelConfig, ProviderConfig, Timeouts } from './schema/schema.ts'
import type { CallsConfig, ServerConfig } from './schema/server-schema.ts'
import type { StoreConfig, ValkeyConfig } from './schema/store-schema.ts'
import type { BatchesConfig, FilesConfig, OutputsConfig, ResponsesConfig, TasksConfig } from './schema/task-schema.ts'
import type { MetricsConfig, TelemetryConfig } from './schema/telemetry-schema.ts'

/** Undefined: derived from where the server listens, from its memory, or from whether other processes serve the same clients. */
type DerivedSetting =
  | 'base_url'
  | 'files_base_url'
  | 'drain_seconds'
  | 'max_bytes_in_flight'
  | 'max_token_bytes_in_flight'

export type ServerSettings = Required<Omit<ServerConfig, DerivedSetting | 'metadata_hosts' | 'http_client'>> &
  Pick<ServerConfig, 'metadata_hosts'> & { [Name in DerivedSetting]: ServerConfig[Name] | undefined }

/** Without a port it has no listener of its own. */
type AdminSettings = Required<Omit<AdminConfig, 'host' | 'port' | 'oidc'>> & Pick<AdminConfig, 'host' | 'port' | 'oidc'>

export type RetiredPolicy = 'refuse' | 'serve' | 'redirect'

/** Without `s3` in the directory; undefined: `outputs` in the data directory. */
export type OutputSettings = Required<Omit<OutputsConfig, 'directory' | 's3'>> & Pick<OutputsConfig, 'directory' | 's3'>

/** Sections in which every setting has a default. */
type FilledSection =
  | 'store'
  | 'timeouts'
  | 'calls'
  | 'tasks'
  | 'responses'
  | 'files'
  | 'batches'
  | 'cache'
  | 'limits'
  | 'ledger'

export type Config = { [Name in FilledSection]: Required<NonNullable<FileConfig[Name]>> } & {
  /** The file it came from; undefined when there is none. */
  file: string | undefined
  /** Absolute paths of files whose contents it has. */
  secret_files?: readonly string[]
  data_dir: string
  /** `sqlite:<path>` or `postgres://...`; may contain a password. */
  store_url: string
  log_level: LogLevel
  bootstrap_token: string | undefined
  /** The owner token of the environment; undefined: none. */
  admin_token: string | undefined
  /** Encrypts what the request log records of contents, and the key before it; undefined: none. */
  contents_key?: string | undefined
  contents_key_old?: string | undefined
  server: ServerSettings
  sandbox: boolean
  discover: boolean
  when_retired: RetiredPolicy
  tokens: Required<Pick<TokenDefaults, 'models'>> & TokenDefaults
  /** Projects and API tokens of the file, by name. */
  projects: Record<string, DeclaredProject>
  api_tokens: Record<string, DeclaredToken>
  /** By name. */
  admin_tokens: Record<string, DeclaredAdminToken>
  outputs: OutputSettings
  /** Of the installation. */
  rate_limits: RateLimits
  /** Undefined: none. The URL may contain a password. */
  valkey: Required<ValkeyConfig> | undefined
  budgets: InstallationBudgets
  request_log: RequestLogSettings
  alerts: AlertsConfig
  metrics: MetricsSettings
  mcp: McpSettings
  telemetry: TelemetryConfig
  admin: AdminSettings
  /** By name. */
  guards: Record<string, GuardConfig>
  providers: Record<string, ProviderConfig>
  models: Record<string, ModelConfig>
}

type RequestLogSettings = Required<Omit<RequestLogConfig, 'contents' | 'summaries'>> &
  Pick<RequestLogConfig, 'contents'> & { summaries: Required<NonNullable<RequestLogConfig['summaries']>> }

type MetricsSettings = Required<Omit<MetricsConfig, 'host' | 'port'>> & Pick<MetricsConfig, 'host' | 'port'>

export type McpSettings = Required<Omit<McpConfig, 'servers' | 'oauth' | 'max_chat_cost'>> &
  Pick<McpConfig, 'oauth' | 'max_chat_cost'> & { servers: Record<string, McpServerConfig> }

/** A coding agent opens one session for each window; one that ends without a word keeps it until it is idle. */
export const DEFAULT_MCP: McpSettings = {
  enabled: true,
  approve: 'auto',
  max_sessions: 2_000,
  max_token_sessions: 200,
  idle_minutes: 30,
  max_chat_rounds: 10,
  max_chat_calls: 50,
  max_chat_seconds: 300,
  servers: {},
}

export const DEFAULT_METRICS: MetricsSettings = { enabled: true, require_token: 'remote' }

export const DEFAULT_SERVER: ServerSettings = {
  host: '127.0.0.1',
  port: 8787,
  workers: 1,
  base_url: undefined,
  files_base_url: undefined,
  hosts: [],
  max_body_bytes: 32 * 1024 * 1024,
  max_text_body_bytes: 8 * 1024 * 1024,
  body_seconds: 60,
  keep_alive_seconds: 15,
  shutdown_seconds: 25,
  drain_seconds: undefined,
  cors_origins: [],
  trust_proxy: false,
  delta_mirror: true,
  families: 'all',
  end_revoked_calls: true,
  show_target: true,
  caller_routing: true,
  show_cost: true,
  explain_tokens: [],
  max_bytes_in_flight: undefined,
  max_token_bytes_in_flight: undefined,
  max_delay_ms: 250,
}

/** Load balancers probe every second or two, and take a gateway out after two or three failures. */
const DEFAULT_DRAIN_SECONDS = 5

/** Time between SIGTERM and the closing of the port, within the time to stop. */
export function drainSeconds({ server, store_url, valkey }: Pick<Config, 'server' | 'store_url' | 'valkey'>): number {
  const { drain_seconds, shutdown_seconds, workers } = server
  const hasOthers = () => workers !== 1 || valkey !== undefined || !store_url.startsWith('sqlite:')
  return Math.min(drain_seconds ?? (hasOthers() ? DEFAULT_DRAIN_SECONDS : 0), shutdown_seconds)
}

/** A body of a megabyte takes two in memory, parsed and encoded for its provider, and three while it is converted. */
const PART_OF_MEMORY = 1 / 4
const LEAST_BYTES = 256 * 1024 * 1024

/** What bodies may take, of the memory of this machine or container. */
export const defaultBytesInFlight = (): number =>
  Math.max(LEAST_BYTES, Math.floor(process.constrainedMemory() * PART_OF_MEMORY))

/** Upstream timeouts: official clients wait 10 minutes in total, so no single silence may exceed half of that. */
export const DEFAULT_TIMEOUTS: Required<Timeouts> = {
  connect_seconds: 10,
  first_byte_seconds: 300,
  idle_seconds: 300,
  total_seconds: 600,
}

/** Most whole answers that have begun arrive within it, and official clients have tried again long before. */
export const DEFAULT_CALLS: Required<CallsConfig> = { finish_after_leave_seconds: 30 }

export const DEFAULT_TASKS: Required<TasksConfig> = {
  deadline_minutes: 60,
  copy_deadline_minutes: 1_440,
  poll_seconds: 4,
  slow_poll_seconds: 15,
  concurrency: 32,
  callback_origins: [],
}

export const DEFAULT_OUTPUTS: OutputSettings = {
  link_hours: 24,
  keep_days: 30,
  max_bytes: 2 * 1024 * 1024 * 1024,
}

/** As OpenAI documents `store` and its duration: client libraries refer to stored items without asking for storage. */
export const DEFAULT_RESPONSES: Required<ResponsesConfig> = { keep_days: 30, store_default: true }

/** As OpenAI bounds files and the input of batches. */
export const DEFAULT_FILES: Required<FilesConfig> = {
  max_bytes: 512 * 1024 * 1024,
  batch_max_bytes: 200 * 1024 * 1024,
  keep_days: 0,
  batch_keep_days: 30,
  project_files: 100_000,
  project_bytes: 100 * 1024 * 1024 * 1024,
}
/** As Anthropic keeps results. The concurrency leaves most of a provider to interactive requests. */
export const DEFAULT_BATCHES: Required<BatchesConfig> = { concurrency: 8, max_unfinished: 50, keep_days: 29 }

/** A thousand long conversations or 200,000 short ones; a tenth of a small disk. */
export const DEFAULT_STORAGE: Required<StorageQuotas> = {
  response_bytes: 1024 * 1024 * 1024,
  response_rows: 200_000,
  task_bytes: 256 * 1024 * 1024,
  unfinished_tasks: 10_000,
  files: 10_000,
  file_bytes: 10 * 1024 * 1024 * 1024,
  idempotency_keys: 10_000,
}

export const DEFAULT_LIMITS: Required<LimitsConfig> = {
  queue_seconds: 0,
  max_end_users: 100_000,
  store: 'database',
  when_store_fails: 'share',
}

export const DEFAULT_CACHE: Required<CacheConfig> = {
  storage: 'memory',
  max_entries: 10_000,
  max_bytes: 64 * 1024 * 1024,
  max_vector_bytes: 32 * 1024 * 1024,
}

/** The time-out is far above the round trip within a network, and short beside that of a call to a provider. */
export const DEFAULT_VALKEY = { prefix: 'gatehouse', timeout_ms: 100 } as const

export const DEFAULT_STORE: Required<StoreConfig> = { migrate: 'auto' }

export const DEFAULT_ADMIN: AdminSettings = {
  enabled: true,
  session_hours: 12,
  idle_minutes: 60,
  requests_per_minute: 1200,
  config_by_api: 'apply',
  config_variables: [],
}
export const DEFAULT_REQUEST_LOG: RequestLogSettings = {
  enabled: true,
  keep_days: 7,
  sinks: [],
  reader: 'store',
  summaries: { minutes_keep_hours: 24, hours_keep_days: 21, days_keep_days: 1_100 },
}

export const DEFAULT_LEDGER: Required<LedgerConfig> = {
  currency: 'USD',
  exchange_rates: {},
  unknown_price: 'allow',
  durable: false,
  spool_megabytes: 1_000,
  keep_minutes_days: 2,
  keep_hours_days: 92,
  keep_entries_days: 400,
}

/** The file of the SQLite store, and its URL. */
export const storePath = (dataDir: string): string => `${dataDir}/gatehouse.db`
export const storeUrl = (dataDir: string): string => `sqlite:${storePath(dataDir)}`
