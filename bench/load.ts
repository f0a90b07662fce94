/** The loads that wrk cannot make, as a process of its own: a fixed schedule of requests, and many slow streams. */
import { percentile } from './figures.ts'
import { type Connection, connect, post, renderRequest, type Target } from './http-client.ts'
import { SLOW_EVENTS, wallMicroseconds } from './vendor-answers.ts'

export type RateOrder = Target & { load: 'rate'; perSecond: number; seconds: number; warmSeconds: number }
export type RateResult = { p50: number; p99: number; sent: number; answered: number; failed: number }
export type SlowOrder = Target & { load: 'slow'; streams: number }
export type SlowResult = { events: number; expected: number; failed: number; delayP50: number; delayP99: number }

/** More would not help: at a thousand a second these are all busy only when each answer takes a quarter of a second. */
const RATE_CONNECTIONS = 256
/** How long answers may still come in after the last request of a schedule. */
const GRACE_SECONDS = 3
/** Streams are opened this many at a time, every 25 ms: two thousand in a second and a quarter. */
const OPEN_AT_ONCE = 40
/** A slow stream may take this much longer than its events do, before it counts as lost. */
const SLOW_GRACE_SECONDS = 20

/**
 * Sends on a fixed schedule whatever the answers do, and counts each latency from the moment the request was due:
 * a server that stalls is charged for everything that had to wait. Latencies are in milliseconds.
 */
async function fixedRate(order: RateOrder): Promise<RateResult> {
  const request = renderRequest(order)
  const total = order.perSecond * order.seconds
  const warm = order.perSecond * order.warmSeconds
  const due = new Map<number, number>()
  const idle: Connection[] = []
  const latencies: number[] = []
  let done = 0
  let failed = 0
  const finish = (connection: Connection, good: boolean) => {
    const index = due.get(connection.id)
    if (index === undefined) return
    due.delete(connection.id)
    done++
    if (!good) failed++
    else if (index >= warm) latencies.push(performance.now() - start - dueAt(index))
  }
  const handlers = {
    answered: (connection: Connection, status: number) => {
      finish(connection, status === 200)
      idle.push(connection)
    },
    closed: (connection: Connection) => finish(connection, false),
  }
  for (let id = 0; id < RATE_CONNECTIONS; id++) idle.push(await connect(order.url, id, handlers))
  const dueAt = (index: number) => (index * 1000) / order.perSecond
  const start = performance.now()
  const deadline = start + (order.seconds + GRACE_SECONDS) * 1000
  let sent = 0
  // Turns without a pause: a timer is up to a millisecond late, which is more than what is measured.
  while (done < total && performance.now() < deadline) {
    while (sent < total && idle.length > 0 && start + dueAt(sent) <= performance.now()) {
      const connection = idle.pop()
      if (!connection) break
      due.set(connection.id, sent++)
      post(connection, request)
    }
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  return { p50: percentile(latencies, 50), p99: percentile(latencies, 99), sent, answered: done - failed, failed }
}

/** Opens many streams and reads each to its end. `opened` is called once all of them are open. */
async function slowStreams(order: SlowOrder, opened: () => void): Promise<SlowResult> {
  const request = renderRequest(order)
  const carried = new Map<number, string>()
  const delays: number[] = []
  let ended = 0
  let failed = 0
  const { promise: allEnded, resolve } = Promise.withResolvers<void>()
  const finish = (connection: Connection, good: boolean) => {
    if (!good) failed++
    connection.busy = false
    if (++ended === order.streams) resolve()
  }
  const handlers = {
    piece: (connection: Connection, text: string) => {
      const now = wallMicroseconds()
      const seen = (carried.get(connection.id) ?? '') + text
      let from = 0
      for (const match of seen.matchAll(/sent=(\d+);/g)) {
        delays.push((now - Number(match[1])) / 1000)
        from = match.index + match[0].length
      }
      // Only the start of a stamp that was cut in two needs to be kept.
      carried.set(connection.id, seen.slice(Math.max(from, seen.length - 32)))
    },
    answered: (connection: Connection, status: number) => {
      finish(connection, status === 200)
      connection.socket.end()
    },
    closed: (connection: Connection) => connection.left !== 0 && finish(connection, false),
  }
  for (let id = 0; id < order.streams; id += OPEN_AT_ONCE) {
    const ids = Array.from({ length: Math.min(OPEN_AT_ONCE, order.streams - id) }, (_, index) => id + index)
    const connections = await Promise.all(ids.map((each) => connect(order.url, each, handlers)))
    for (const connection of connections) post(connection, request)
    await Bun.sleep(25)
  }
  opened()
  const limit = Bun.sleep((SLOW_EVENTS + SLOW_GRACE_SECONDS) * 1000)
  await Promise.race([allEnded, limit])
  return {
    events: delays.length,
    expected: order.streams * SLOW_EVENTS,
    failed: failed + (order.streams - ended),
    delayP50: percentile(delays, 50),
    delayP99: percentile(delays, 99),
  }
}

const order: RateOrder | SlowOrder = JSON.parse(process.env.BENCH_ORDER ?? '{}')
const print = (line: unknown) => process.stdout.write(`${JSON.stringify(line)}\n`)
if (order.load === 'rate') print(await fixedRate(order))
if (order.load === 'slow') print(await slowStreams(order, () => print({ opened: true })))
process.exit(0)
