/**
 * A whole gateway as a separate process, killed while it records calls: the child of that suite. Its plan is the first
 * argument, as JSON; it prints its address on standard output.
 */
import { DEFAULT_LEDGER } from '../../src/config/config.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { configOf } from './gateway.ts'

export type LedgerPlan = {
  data_dir: string
  store_url: string
  vendor_url: string
  token: string
  durable: boolean
}

async function run(plan: LedgerPlan): Promise<void> {
  const clock = systemClock
  const log = createLog({ clock, level: 'error', pretty: false, write: (text) => process.stderr.write(text) })
  const gateway = await createGateway({
    config: configOf({
      data_dir: plan.data_dir,
      store_url: plan.store_url,
      bootstrap_token: plan.token,
      sandbox: false,
      ledger: { ...DEFAULT_LEDGER, durable: plan.durable },
      providers: { v: { base_url: plan.vendor_url, key: 'vendor-key' } },
      models: { 'v/m': { prices: { input: 1, output: 2 } } },
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

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? '') as LedgerPlan)
