/** The gateway with everything on that costs something: limits, a budget and prices besides what is on by default. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GATEWAY_CORE, type Group, startGroup } from './processes.ts'
import { freePort, VENDOR_KEY } from './subjects.ts'

/** Not a secret: it opens nothing but what a benchmark starts. */
export const TOKEN = `sk-${'benchmark0'.repeat(5).slice(0, 48)}`

type Order = {
  /** A new directory for its configuration, data and log. */
  home: string
  vendorPort: number
  /** `bin/gatehouse`, of this version or another one. */
  binary: string
  /** The settings of `server`, in YAML's flow form. */
  server: string
  sandbox?: boolean
  /** Further settings, in YAML. `request_log` is on in any case. */
  request_log?: string
  more?: string
  env?: Record<string, string>
  /** Also a model `bench/slow`, whose streams take 15 seconds. */
  slow?: boolean
  /** Further settings of its provider, in YAML's flow form with a comma before them. */
  quirks?: string
  /** Default: that of gateways. */
  core?: number | string
}

/** Its models are `bench/whole` and `bench/stream`; its one token has no limit that the load meets. */
export function everythingOn({
  home,
  vendorPort,
  binary,
  server,
  sandbox = false,
  request_log = '{ keep_days: 1 }',
  more = '',
  env = {},
  slow = false,
  quirks = '',
  core = GATEWAY_CORE,
}: Order): {
  port: number
  /** Of its process. */
  environment: Record<string, string>
  start(): Group
} {
  mkdirSync(home)
  const port = freePort()
  const model = (answer: string) =>
    `  bench/${answer}:
    targets: [{ provider: vendor, model: ${answer} }]
    limits: { max_tokens: { maximum: 32768, default: 4096 } }
    prices: { currency: USD, input: 2.5, output: 10, as_of: "2026-11-01" }
    rate_limits: { requests_per_minute: 1000000000, tokens_per_minute: 1000000000000 }`
  writeFileSync(
    join(home, 'gatehouse.yaml'),
    `server: ${server}
sandbox: ${sandbox}
providers:
  vendor: { kind: chatcompat, base_url: "http://127.0.0.1:${vendorPort}/v1", key: "\${BENCH_VENDOR_KEY}"${quirks} }
rate_limits: { requests_per_second: 1000000 }
budgets: [{ amount: 9000000, window: month }]
request_log: ${request_log}
metrics: { enabled: true }
${more}
models:
${['whole', 'stream', ...(slow ? ['slow'] : [])].map(model).join('\n')}
`,
  )
  const environment = {
    GATEHOUSE_CONFIG: join(home, 'gatehouse.yaml'),
    GATEHOUSE_DATA_DIR: join(home, 'data'),
    GATEHOUSE_PORT: String(port),
    GATEHOUSE_BOOTSTRAP_TOKEN: TOKEN,
    BENCH_VENDOR_KEY: VENDOR_KEY,
    ...env,
  }
  const order = { command: [binary, 'serve'], core, log: join(home, 'gateway.log'), cwd: home, env: environment }
  return { port, environment, start: () => startGroup(order) }
}
