/** Shares the delivery slots: no token and no receiver can take them all, and no token slows down another one's receiver. */
import type { Clock } from '../kit/clock.ts'

/** For one token at a receiver that answers; at one that did not, the last time, each slot is lost for a whole timeout. */
const SLOTS_PER_RECEIVER = 4
const SLOTS_PER_SILENT_RECEIVER = 1
/** Nobody waits longer: a receiver that is back should not wait because of what was computed while it was away. */
const LONGEST_WAIT_MILLISECONDS = 600_000
const SHORTEST_WAIT_MILLISECONDS = 1_000
/** Beyond this number, lines with no delivery under way are forgotten. */
const MOST_LINES = 1_000

/** `host`: name and port of the receiver. */
type Delivery = { host: string; token_id: string }

type WebhookSlots = {
  /** Takes a slot, or returns when to try again: those that wait form a line, each a little later than the one before. */
  reserve(delivery: Delivery): number | undefined
  /** Returns the slot. */
  release(delivery: Delivery, outcome: { answered: boolean; took_ms: number }): void
}

type Line = {
  limit: number
  running: number
  /** How long the last delivery took. */
  took_ms: number
  /** When the last one in line is due. */
  end_ms: number
}

export function createWebhookSlots({ concurrency, clock }: { concurrency: number; clock: Clock }): WebhookSlots {
  const lines = new Map<string, Line>()
  const half = Math.max(1, Math.floor(concurrency / 2))
  const per_receiver = Math.min(SLOTS_PER_RECEIVER, concurrency)

  function lineOf(name: string, limit: number): Line {
    const line = lines.get(name) ?? { limit, running: 0, took_ms: SHORTEST_WAIT_MILLISECONDS, end_ms: 0 }
    lines.delete(name) // the most recently used are last
    lines.set(name, line)
    return line
  }

  /** A silent receiver of one token must not delay another token at the same host: many tenants share some hosts. */
  const linesOf = ({ host, token_id }: Delivery) => ({
    receiver: lineOf(`receiver ${host} ${token_id}`, per_receiver),
    token: lineOf(`token ${token_id}`, half),
    host: lineOf(`host ${host}`, half),
  })

  function forget(): void {
    for (const [name, line] of lines) {
      if (lines.size <= MOST_LINES) return
      if (line.running === 0) lines.delete(name)
    }
  }

  return {
    reserve(delivery) {
      const all = Object.values(linesOf(delivery))
      forget()
      const full = all.find(({ running, limit }) => running >= limit)
      if (full) return joinLine(full, clock.now())
      for (const line of all) line.running++
      return undefined
    },
    release(delivery, { answered, took_ms }) {
      const { receiver, token, host } = linesOf(delivery)
      for (const line of [receiver, token, host]) {
        line.running--
        line.took_ms = took_ms
      }
      receiver.limit = answered ? per_receiver : SLOTS_PER_SILENT_RECEIVER
    },
  }
}

function joinLine(line: Line, now_ms: number): number {
  line.end_ms = Math.max(line.end_ms, now_ms) + Math.max(1, line.took_ms / line.limit)
  const wait_ms = Math.min(Math.max(line.end_ms - now_ms, SHORTEST_WAIT_MILLISECONDS), LONGEST_WAIT_MILLISECONDS)
  return Math.round(now_ms + wait_ms)
}
