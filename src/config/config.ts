/** The configuration as the house uses it: file and environment merged, defaults filled in, frozen. */
import type { LogLevel } from '../kit/log.ts'
import type { ModelConfig, ProviderConfig, Timeouts, TokenDefaults } from './schema.ts'
import type { OutputsConfig, ResponsesConfig, TasksConfig } from './task-schema.ts'

export type ServerSettings = {
  host: string
  port: number
  /** Undefined: derived from where the server listens. */
  base_url: string | undefined
  /** Undefined: files are served by the same address as all else. */
  files_base_url: string | undefined
  max_body_bytes: number
  /** Of requests of other families than chat and the generation of media. `max_body_bytes` bounds these as well. */
  max_text_body_bytes: number
  body_seconds: number
  keep_alive_seconds: number
  shutdown_seconds: number
  cors_origins: string[]
  trust_proxy: boolean
  delta_mirror: boolean
}

export type RetiredPolicy = 'refuse' | 'serve' | 'redirect'

/** Without `s3` in the directory; undefined: `outputs` in the data directory. */
export type OutputSettings = Required<Omit<OutputsConfig, 'directory' | 's3'>> & Pick<OutputsConfig, 'directory' | 's3'>

export type Config = {
  /** The file it came from; undefined when there is none. */
  file: string | undefined
  data_dir: string
  /** `sqlite:<path>` or `postgres://...`; it may hold a password. */
  store_url: string
  log_level: LogLevel
  bootstrap_token: string | undefined
  server: ServerSettings
  sandbox: boolean
  discover: boolean
  when_retired: RetiredPolicy
  tokens: Required<Pick<TokenDefaults, 'models'>> & TokenDefaults
  timeouts: Required<Timeouts>
  tasks: Required<TasksConfig>
  outputs: OutputSettings
  responses: Required<ResponsesConfig>
  providers: Record<string, ProviderConfig>
  models: Record<string, ModelConfig>
}

export const DEFAULT_SERVER: ServerSettings = {
  host: '127.0.0.1',
  port: 8787,
  base_url: undefined,
  files_base_url: undefined,
  max_body_bytes: 32 * 1024 * 1024,
  max_text_body_bytes: 8 * 1024 * 1024,
  body_seconds: 60,
  keep_alive_seconds: 15,
  shutdown_seconds: 25,
  cors_origins: [],
  trust_proxy: false,
  delta_mirror: true,
}

/** The upstream time-outs: official clients wait 10 minutes in all, so no single silence may outlast half of it. */
export const DEFAULT_TIMEOUTS: Required<Timeouts> = {
  connect_seconds: 10,
  first_byte_seconds: 300,
  idle_seconds: 300,
  total_seconds: 600,
}

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

/** As long as the vendor of that dialect keeps them. */
export const DEFAULT_RESPONSES: Required<ResponsesConfig> = { keep_days: 30 }

/** The one file in which everything is kept, and the store's address of it. */
export const storePath = (dataDir: string): string => `${dataDir}/gatehouse.db`
export const storeUrl = (dataDir: string): string => `sqlite:${storePath(dataDir)}`
