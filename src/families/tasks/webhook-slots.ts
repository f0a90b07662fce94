/** Shares the delivery slots: no token and no receiver can use all of them, and no token delays another token's receiver. */
import type { Clock } from '../../kit/clock.ts'

/** Slots of one token at a receiver that responds. At one that last timed out, each slot is blocked for a whole timeout. */
const SLOTS_PER_RECEIVER = 4
const SLOTS_PER_SILENT_RECEIVER = 1
/** The longest wait: a receiver that is back should not wait for a time that was computed while it was unavailable. */
const MAX_WAIT_MILLISECONDS = 600_000
const MIN_WAIT_MILLISECONDS = 1_000
/** Beyond this number, pools without running deliveries are dropped. */
const MAX_POOLS = 1_000

/** `host`: name and port of the receiver. */
type Delivery = { host: string; token_id: string }

type Pool = {
  limit: number
  running: number
  /** How long the last delivery took. */
  took_ms: number
  /** When the last waiting delivery is due, by the steady clock. */
  end_ms: number
}

export function createWebhookSlots({ concurrency, clock }: { concurrency: number; clock: Clock }) {
  const pools = new Map<string, Pool>()
  const half = Math.max(1, Math.floor(concurrency / 2))
  const per_receiver = Math.min(SLOTS_PER_RECEIVER, concurrency)

  function poolOf(name: string, limit: number): Pool {
    const pool = pools.get(name) ?? { limit, running: 0, took_ms: MIN_WAIT_MILLISECONDS, end_ms: 0 }
    pools.delete(name) // the most recently used are last
    pools.set(name, pool)
    return pool
  }

  /** A silent receiver of one token must not delay another token at the same host: many tenants share some hosts. */
  const poolsOf = ({ host, token_id }: Delivery) => ({
    receiver: poolOf(`receiver ${host} ${token_id}`, per_receiver),
    token: poolOf(`token ${token_id}`, half),
    host: poolOf(`host ${host}`, half),
  })

  function dropIdlePools(): void {
    for (const [name, pool] of pools) {
      if (pools.size <= MAX_POOLS) return
      if (pool.running === 0) pools.delete(name)
    }
  }

  return {
    /** Takes a slot, or returns when to try again: waiting deliveries queue up, each a little later than the one before. */
    reserve(delivery: Delivery): number | undefined {
      const all = Object.values(poolsOf(delivery))
      dropIdlePools()
      const full = all.find(({ running, limit }) => running >= limit)
      if (full) return Math.round(clock.now() + enqueue(full, clock.steady()))
      for (const pool of all) pool.running++
      return undefined
    },
    release(delivery: Delivery, { answered, took_ms }: { answered: boolean; took_ms: number }): void {
      const { receiver, token, host } = poolsOf(delivery)
      for (const pool of [receiver, token, host]) {
        pool.running--
        pool.took_ms = took_ms
      }
      receiver.limit = answered ? per_receiver : SLOTS_PER_SILENT_RECEIVER
    },
  }
}

function enqueue(pool: Pool, now_ms: number): number {
  pool.end_ms = Math.max(pool.end_ms, now_ms) + Math.max(1, pool.took_ms / pool.limit)
  return Math.min(Math.max(pool.end_ms - now_ms, MIN_WAIT_MILLISECONDS), MAX_WAIT_MILLISECONDS)
}
