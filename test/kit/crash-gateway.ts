/**
 * A whole gateway as a separate process that kills itself at a crash point: the child of the crash and rivalry suites.
 * Its plan is the first argument, as JSON; it prints its address on standard output.
 */
import { DEFAULT_TASKS, DEFAULT_TIMEOUTS } from '../../src/config/config.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import type { Clock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { configOf } from './gateway.ts'

export type CrashPlan = {
  store_url: string
  data_dir: string
  vendor_url: string
  /** The address of Meshy, for 3D models; absent: not configured. */
  meshy_url?: string
  token: string
  /** Whether the provider honours idempotency keys; it can then also cancel. */
  is_idempotent: boolean
  /** Whether orders are looked up in its list, and whether that is complete. Default `no`. */
  list?: 'no' | 'yes' | 'complete'
  /** How many times faster than the wall clock its time runs, from `epoch_ms` (unix milliseconds) on. */
  speed: number
  epoch_ms: number
  /** Default: the gateway's own. */
  copy_deadline_minutes?: number
  /** The crash point at which to die, the nth time that it is reached. */
  kill?: { point: string; nth: number }
}

export const FILM = 'acme/film'
export const SOLID = 'meshy/meshy-6'

/** Makes leases, pauses and deadlines pass quickly, and equally for all processes of one test. */
export function fastClock({ speed, epoch_ms }: Pick<CrashPlan, 'speed' | 'epoch_ms'>): Clock {
  return {
    now: () => Math.floor(epoch_ms + (Date.now() - epoch_ms) * speed),
    steady: () => performance.now() * speed,
    after(ms, work) {
      const timer = setTimeout(work, ms / speed)
      timer.unref()
      return () => clearTimeout(timer)
    },
  }
}

async function run(plan: CrashPlan): Promise<void> {
  const clock = fastClock(plan)
  const log = createLog({ clock, level: 'warn', pretty: false, write: (text) => process.stderr.write(text) })
  let passed = 0
  const { kill, copy_deadline_minutes } = plan
  const copying = copy_deadline_minutes === undefined ? {} : { copy_deadline_minutes }
  const gateway = await createGateway({
    config: configOf({
      data_dir: plan.data_dir,
      store_url: plan.store_url,
      bootstrap_token: plan.token,
      sandbox: false,
      // A busy machine must not refuse any request: the suites count on every answer.
      server: { max_delay_ms: 0 },
      // A thirtieth of it in wall-clock time: load alone must not cause a task's deadline or a provider's timeout.
      tasks: { ...DEFAULT_TASKS, deadline_minutes: 1_440, ...copying },
      // A short timeout of the response is a short lease of an order.
      timeouts: { ...DEFAULT_TIMEOUTS, connect_seconds: 300, first_byte_seconds: 60 },
      outputs: { link_hours: 24, keep_days: 30, max_bytes: 1_000_000, directory: `${plan.data_dir}/outputs` },
      providers: {
        acme: {
          kind: 'chatcompat-video',
          base_url: plan.vendor_url,
          key: 'acme-key',
          options: plan.is_idempotent ? { idempotent: true, cancel: 'delete' } : { list: plan.list ?? 'no' },
        },
        ...(plan.meshy_url === undefined ? {} : { meshy: { kind: 'meshy', base_url: plan.meshy_url, key: 'msy_key' } }),
      },
      models: {
        [FILM]: { families: ['video-generation', 'chatcompat-video'] },
        ...(plan.meshy_url === undefined ? {} : { [SOLID]: { families: ['3d-generation'] } }),
      },
    }),
    environment: {},
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

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? '') as CrashPlan)
