/**
 * A gateway as a separate process that kills itself at a point of a batch: the child of the kill test of batches. Its plan is the
 * first argument, or a line on standard input: one that waits for it has loaded its modules already.
 */
import { DEFAULT_BATCHES, DEFAULT_LEDGER } from '../../src/config/config.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { fastClock } from './crash-gateway.ts'
import { configOf } from './gateway.ts'
import { firstLine } from './gateway-process.ts'

export type BatchPlan = {
  store_url: string
  data_dir: string
  vendor_url: string
  token: string
  speed: number
  epoch_ms: number
  /** How far its clock is ahead: past the leases of processes that were killed. */
  ahead_ms?: number
  /** Lines that it calls at a time. */
  concurrency?: number
  /** The vendor executes the lines in batches of its own. */
  is_native?: boolean
  /** The point at which to die, the nth time that it is reached. */
  kill?: { point: string; nth: number }
}

async function run(plan: BatchPlan): Promise<void> {
  const fast = fastClock(plan)
  const clock = { ...fast, now: () => fast.now() + (plan.ahead_ms ?? 0) }
  const log = createLog({ clock, level: 'error', pretty: false, write: (text) => process.stderr.write(text) })
  let passed = 0
  const { kill } = plan
  const gateway = await createGateway({
    config: configOf({
      data_dir: plan.data_dir,
      store_url: plan.store_url,
      bootstrap_token: plan.token,
      sandbox: false,
      ...(plan.concurrency !== undefined && { batches: { ...DEFAULT_BATCHES, concurrency: plan.concurrency } }),
      ledger: { ...DEFAULT_LEDGER, durable: true },
      outputs: { link_hours: 24, keep_days: 30, max_bytes: 1_000_000, directory: `${plan.data_dir}/outputs` },
      providers: { acme: { kind: 'chatcompat', base_url: plan.vendor_url, key: 'acme-key' } },
      models: {
        'acme/chat': {
          families: ['chatcompat'],
          prices: { input: 1, output: 1 },
          ...(plan.is_native && { batch: 'native' }),
        },
      },
    }),
    environment: {},
    store_url: plan.store_url,
    log,
    clock,
    version: '0.0.0-test',
    crashHook(point) {
      if (point === kill?.point && ++passed === kill.nth) process.kill(process.pid, 'SIGKILL')
    },
  })
  const server = await listen({ gateway, server: { host: '127.0.0.1', port: 0 }, log })
  process.stdout.write(`${server.url}\n`)
  await new Promise(() => {})
}

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? (await firstLine(Bun.stdin.stream()))) as BatchPlan)
