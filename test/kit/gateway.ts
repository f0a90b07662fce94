/** A whole gateway in memory, called in-process: the real parts, a clock that stands still, no port. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Config,
  DEFAULT_ADMIN,
  DEFAULT_BATCHES,
  DEFAULT_CACHE,
  DEFAULT_CALLS,
  DEFAULT_FILES,
  DEFAULT_LEDGER,
  DEFAULT_LIMITS,
  DEFAULT_MCP,
  DEFAULT_METRICS,
  DEFAULT_OUTPUTS,
  DEFAULT_REQUEST_LOG,
  DEFAULT_RESPONSES,
  DEFAULT_SERVER,
  DEFAULT_STORE,
  DEFAULT_TASKS,
  DEFAULT_TIMEOUTS,
  type ServerSettings,
} from '../../src/config/config.ts'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import type { GatewayParts } from '../../src/gateway/parts.ts'
import type { Clock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { type ManualClock, manualClock } from './clock.ts'

type Settings = Omit<Partial<Config>, 'server'> & { server?: Partial<ServerSettings> }

export type TestGateway = {
  instance: Gateway
  clock: ManualClock
  /** The first token's secret. */
  token: string
  /** Everything that was logged, as text. */
  logged(): string
  /** Calls the gateway as the first token, unless the headers say otherwise. A `json` body or a form is posted. */
  call(path: string, options?: CallOptions): Promise<Response>
  /** Posts a chat request. */
  chat(body: unknown, options?: CallOptions): Promise<Response>
  [Symbol.asyncDispose](): Promise<void>
}

export type CallOptions = {
  method?: string
  headers?: Record<string, string>
  json?: unknown
  form?: FormData
  signal?: AbortSignal
}

export function configOf(settings: Settings = {}): Config {
  return {
    file: undefined,
    // Of this gateway alone, and created only where something is written to it.
    data_dir: join(tmpdir(), `gatehouse-test-${process.pid}`, crypto.randomUUID()),
    store_url: 'sqlite::memory:',
    store: DEFAULT_STORE,
    log_level: 'debug',
    bootstrap_token: undefined,
    admin_token: undefined,
    sandbox: true,
    discover: false,
    when_retired: 'refuse',
    tokens: { models: ['*'] },
    timeouts: DEFAULT_TIMEOUTS,
    calls: DEFAULT_CALLS,
    tasks: DEFAULT_TASKS,
    outputs: { ...DEFAULT_OUTPUTS, directory: join(tmpdir(), `gatehouse-test-${process.pid}`) },
    responses: DEFAULT_RESPONSES,
    files: DEFAULT_FILES,
    batches: DEFAULT_BATCHES,
    cache: DEFAULT_CACHE,
    rate_limits: {},
    limits: DEFAULT_LIMITS,
    valkey: undefined,
    ledger: DEFAULT_LEDGER,
    budgets: [],
    alerts: {},
    telemetry: {},
    metrics: DEFAULT_METRICS,
    mcp: DEFAULT_MCP,
    admin: DEFAULT_ADMIN,
    request_log: DEFAULT_REQUEST_LOG,
    projects: {},
    api_tokens: {},
    admin_tokens: {},
    guards: {},
    providers: {},
    models: {},
    ...settings,
    // A busy machine delays the event loop of all tests; those of load shedding set its limit.
    server: { ...DEFAULT_SERVER, max_delay_ms: 0, ...settings.server },
  }
}

export async function startGateway(
  settings: Settings = {},
  parts: {
    clock?: Clock
    /** Default: memory. */
    store_url?: string
    environment?: Record<string, string>
    manual?: NonNullable<GatewayParts['manual']>
    crashHook?: NonNullable<GatewayParts['crashHook']>
  } = {},
): Promise<TestGateway> {
  const clock = manualClock()
  let lines = ''
  const write = (text: string) => {
    lines += text
  }
  const log = createLog({ clock, level: 'debug', pretty: false, write })
  const gateway = await createGateway({
    config: configOf(settings),
    environment: {},
    clock,
    log,
    store_url: 'sqlite::memory:',
    version: '0.0.0-test',
    ...parts,
  })
  const token = gateway.first_token?.secret ?? ''

  function call(path: string, { method, headers, json, form, signal }: CallOptions = {}): Promise<Response> {
    const init: RequestInit = {
      method: method ?? (json === undefined && !form ? 'GET' : 'POST'),
      headers: { authorization: `Bearer ${token}`, ...(json === undefined ? {} : JSON_TYPE), ...headers },
    }
    if (json !== undefined) init.body = typeof json === 'string' ? json : JSON.stringify(json)
    if (form) init.body = form
    if (signal) init.signal = signal
    return gateway.fetch(new Request(`http://gatehouse.test${path}`, init))
  }

  return {
    instance: gateway,
    clock,
    token,
    logged() {
      gateway.flushRequests()
      log.flush()
      return lines
    },
    call,
    chat: (body, options) => call('/v1/chat/completions', { ...options, json: body }),
    [Symbol.asyncDispose]: () => gateway.close({ deadline_ms: 0 }),
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }
