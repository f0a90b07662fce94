/**
 * What rate limits in Valkey cost a call: `npm run bench:valkey-limits`. Needs valkey-server or redis-server. Prints for six
 * limits what a call waits, what it costs this process and the server, for calls that are admitted and such that are
 * refused, and how much memory the server needs.
 */
import { createRateLimiter } from '../src/calls/limits/rate-limits.ts'
import { systemClock as clock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { openValkey } from '../src/store/engines/valkey-connection.ts'
import { openStore } from '../src/store/open-store.ts'
import { startValkey } from '../test/kit/valkey.ts'

const CALLS = 20_000
const FULL = 1_000_000_000_000

const server = await startValkey()
const client = new Bun.RedisClient(server.url)
const log = createLog({ clock, level: 'warn', pretty: false, write: (text) => process.stderr.write(text) })
const valkey = openValkey({ url: server.url, prefix: 'bench', timeout_ms: 10_000 }, { clock, log })
const store = await openStore({ url: 'sqlite::memory:' })

const limiter = createRateLimiter({
  config: () => ({
    rate_limits: { requests_per_second: FULL },
    models: {
      m: { rate_limits: { tokens_per_minute: FULL } },
      full: { rate_limits: { tokens_per_minute: 3_000_000 } },
    },
    tokens: {},
    limits: { queue_seconds: 0, max_end_users: 1_000, when_store_fails: 'share' as const },
  }),
  shared: { store: store.rateLimits, process_id: 'bench', valkey },
  clock,
  log,
})
const caller = {
  token_id: 'tok_a',
  rate_limits: { requests_per_minute: FULL, tokens_per_day: FULL, concurrent_requests: FULL },
  project: { project_id: 'proj_p', rate_limits: { tokens_per_hour: FULL } },
}
const expected = { input_tokens: 100, output_tokens: 200 }
const used = { input_tokens: 100, output_tokens: 150 }
const call = { caller, signal: new AbortController().signal }

async function callOnce(id: string): Promise<boolean> {
  try {
    const hold = await limiter.admit({ call, model: { id }, estimate: { expected, most: expected } })
    hold?.settle(used)
    return true
  } catch {
    return false
  }
}

/** Microseconds of processor time of the server, and how many scripts it has run. */
async function serverCost(): Promise<{ usec: number; calls: number }> {
  const [stats, cpu] = [await client.send('INFO', ['commandstats']), await client.send('INFO', ['cpu'])]
  const seconds = ['user', 'sys'].map((kind) => Number(new RegExp(`used_cpu_${kind}:([0-9.]+)`).exec(cpu)?.[1]))
  const calls = Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
  return { calls, usec: seconds.reduce((sum, one) => sum + one, 0) * 1_000_000 }
}

async function measure(name: string, model: string, together: number): Promise<void> {
  let admitted = 0
  const [cpu, before, started] = [process.cpuUsage(), await serverCost(), performance.now()]
  for (let count = 0; count < CALLS; count += together) {
    const outcomes = await Promise.all(Array.from({ length: together }, () => callOnce(model)))
    admitted += outcomes.filter(Boolean).length
  }
  const [elapsed, after, { user, system }] = [performance.now() - started, await serverCost(), process.cpuUsage(cpu)]
  const perScript = (after.usec - before.usec) / (after.calls - before.calls)
  const figures = [
    `${((elapsed * 1000 * together) / CALLS).toFixed(0)} us until its answer`,
    `${((user + system) / CALLS).toFixed(1)} us of this process`,
    `${perScript.toFixed(1)} us of the server a script`,
    `${((after.calls - before.calls) / CALLS).toFixed(2)} scripts`,
  ]
  process.stdout.write(`${name}, ${together} at a time (${admitted} of ${CALLS} admitted): ${figures.join('; ')}\n`)
}

while (!limiter.isInValkey()) await new Promise((resolve) => setImmediate(resolve))
await measure('warm-up', 'm', 64)
await measure('six limits', 'm', 1)
await measure('six limits', 'm', 64)
await measure('one of them used up', 'full', 64)
const keys = (await client.keys('bench:*')) as string[]
let bytes = 0
for (const key of keys) bytes += Number(await client.send('MEMORY', ['USAGE', key]))
process.stdout.write(`${keys.length} keys; ${(bytes / keys.length).toFixed(0)} bytes each\n`)
await limiter.close()
valkey.close()
client.close()
await store.close()
await server.stop()
