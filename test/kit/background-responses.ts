/**
 * A whole gateway as a process of its own, to be killed while it makes responses in the background: the child of that
 * suite. Its plan is the first argument, as JSON; what it says on standard output is where it listens.
 */
import { DEFAULT_TIMEOUTS } from '../../src/config/config.ts'
import { createGateway } from '../../src/gateway.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { fastClock } from './crash-gateway.ts'
import { configOf } from './gateway.ts'

export type BackgroundPlan = {
  data_dir: string
  vendor_url: string
  token: string
  /** Its time runs so many times faster than the wall clock, from this moment on (unix milliseconds). */
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
      // No vendor may come to its time-out by a fast clock alone.
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
