/**
 * A whole gateway as a separate process, killed while it generates background responses: the child of that suite. Its
 * plan is the first argument, as JSON; it prints its address on standard output.
 */
import { DEFAULT_TIMEOUTS } from '../../src/config/config.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { fastClock } from './crash-gateway.ts'
import { configOf } from './gateway.ts'

export type BackgroundPlan = {
  data_dir: string
  vendor_url: string
  token: string
  /** How many times faster than the wall clock its time runs, from `epoch_ms` (unix milliseconds) on. */
  speed: number
  epoch_ms: number
}

async function run(plan: BackgroundPlan): Promise<void> {
  const clock = fastClock(plan)
  const log = createLog({ clock, level: 'warn', pretty: false, write: (text) => process.stderr.write(text) })
  const gateway = await createGateway({
    config: configOf({
      data_dir: plan.data_dir,
      store_url: `sqlite:${plan.data_dir}/gatehouse.db`,
      bootstrap_token: plan.token,
      sandbox: false,
      // The fast clock alone must not cause a provider's timeout.
      timeouts: { ...DEFAULT_TIMEOUTS, connect_seconds: 3_000, first_byte_seconds: 3_000, idle_seconds: 3_000 },
      providers: { v: { base_url: plan.vendor_url, key: 'vendor-key' } },
      models: { 'v/m': {} },
    }),
    environment: {},
    log,
    clock,
    version: '0.0.0-test',
  })
  const server = await listen({ gateway, server: { host: '127.0.0.1', port: 0 }, log })
  process.stdout.write(`${server.url}\n`)
  await new Promise(() => {})
}

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? '') as BackgroundPlan)
