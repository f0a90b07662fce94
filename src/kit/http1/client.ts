/** An HTTP/1.1 client over sockets: connections are kept for further requests, and it is known whether a byte was sent. */
import type { Clock } from '../clock.ts'
import { type Http1Call, type Http1Request, type Pooled, startCall } from './call.ts'
import type { Connection } from './connection.ts'
import type { ResponseHead } from './response-parser.ts'

type Http1Client = {
  send(request: Http1Request): Http1Call
  /** How many connections are idle. */
  idle(): number
  close(): void
}

type ClientParts = { clock: Clock; ca?: string }

/** By the steady clock. */
type Idle = { connection: Connection; since: number; until: number }

/** Of one pool, and of all. */
const MOST_IDLE = 256
const MOST_IDLE_IN_ALL = 1_024
/** Without a `keep-alive` header of the server. Many close after 60 or 75 seconds; Node's after 5. */
const IDLE_MS = 4_000
const LONGEST_IDLE_MS = 30_000
/** Less than what a server promises: it may close while a request is on its way. */
const IDLE_MARGIN_MS = 1_000
export function createHttp1Client({ clock, ca }: ClientParts): Http1Client {
  const pools = new Map<string, Idle[]>()
  let idle = 0
  let isClosed = false

  function take(pool: string): Pooled | undefined {
    const list = pools.get(pool)
    const now = clock.steady()
    for (let last = list?.pop(); last; last = list?.pop()) {
      idle--
      last.connection.onIdleClosed = undefined
      last.connection.closeAfter(0)
      if (last.connection.isOpen() && last.until > now)
        return { connection: last.connection, idle_ms: now - last.since }
      last.connection.destroy()
    }
    return undefined
  }

  function keep(pool: string, connection: Connection, head: ResponseHead): void {
    const ms = idleMs(head)
    const list = pools.get(pool) ?? []
    if (isClosed || !connection.isOpen() || ms <= 0 || list.length >= MOST_IDLE || idle >= MOST_IDLE_IN_ALL) {
      connection.destroy()
      return
    }
    const since = clock.steady()
    const entry = { connection, since, until: since + ms }
    pools.set(pool, list)
    list.push(entry)
    idle++
    connection.onIdleClosed = () => {
      const at = list.indexOf(entry)
      if (at === -1) return
      list.splice(at, 1)
      idle--
      if (list.length === 0) pools.delete(pool)
    }
    connection.closeAfter(Math.ceil(ms / 1000))
  }

  const parts = { clock, ca, take, keep }
  return {
    send: (request) => startCall(request, parts),
    idle: () => idle,
    close() {
      isClosed = true
      for (const list of [...pools.values()]) for (const { connection } of [...list]) connection.destroy()
      pools.clear()
      idle = 0
    },
  }
}

/** By the server's `keep-alive: timeout=5`, which is in seconds. */
function idleMs({ headers }: ResponseHead): number {
  const value = headers.find(([name]) => name === 'keep-alive')?.[1] ?? ''
  const seconds = /(?:^|[,\s])timeout=(\d{1,6})/i.exec(value)?.[1]
  if (seconds === undefined) return IDLE_MS
  return Math.min(Number(seconds) * 1000 - IDLE_MARGIN_MS, LONGEST_IDLE_MS)
}
