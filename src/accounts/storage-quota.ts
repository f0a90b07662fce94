/** Limits what each token or project may store, by what it has stored and what its open requests will store. */
import type { Clock } from '../kit/clock.ts'
import { GatewayError } from '../spec/error.ts'
import type { StoredAmount } from '../store/tokens/amount-store.ts'

export type StorageQuota = {
  fits(token_id: string, amount: StoredAmount): Promise<boolean>
  /** Reserves space until the returned function is called. Throws `storage_quota_exceeded`. */
  reserve(token_id: string, amount: StoredAmount): Promise<() => void>
  /** The same without a limit, for what `fits` has just found to fit. */
  hold(token_id: string, amount: StoredAmount): () => void
  /** Notes that so much was stored. */
  stored(token_id: string, amount: StoredAmount): void
  /** Notes that something was deleted. */
  freed(token_id: string): void
  /** Runs work that stores so much. Throws `storage_quota_exceeded` before it. */
  keep<T>(token_id: string, amount: StoredAmount, work: () => Promise<T>): Promise<T>
}

type QuotaParts = {
  /** The amount in the store. */
  read(token_id: string): Promise<StoredAmount>
  /** Read at each use. */
  limits(): Limits
  /** Who stores (default: a token), what is limited, such as "responses", and what to do about it. */
  texts: { owner?: 'project'; stored: string; remedy: string }
  clock: Pick<Clock, 'steady'>
}

/** With the names of their settings. Without `bytes`: rows alone are limited. */
type Limits = { rows: Limit; bytes?: Limit }
type Limit = { most: number; setting: string }

/** `isStale`: something was deleted. `during`: what was added while a read ran, which may not include it. */
type Entry = {
  stored: StoredAmount
  reserved: StoredAmount
  during: StoredAmount
  readAt: number
  isStale: boolean
  reading: Promise<void> | undefined
}

/** What other processes store, and what a read has missed, counts after this time. */
const FRESH_MILLISECONDS = 30_000
/** Before a refusal the store is read again, at most this often: other processes delete too. */
const REFUSED_FRESH_MILLISECONDS = 1_000
const MAX_TOKENS = 10_000

export function createStorageQuota({ read, limits, texts, clock }: QuotaParts): StorageQuota {
  const entries = new Map<string, Entry>()

  function entryOf(token_id: string): Entry {
    const found = entries.get(token_id)
    if (found) return found
    if (entries.size >= MAX_TOKENS) forgetOne()
    const entry: Entry = {
      stored: nothing(),
      reserved: nothing(),
      during: nothing(),
      readAt: Number.NEGATIVE_INFINITY,
      isStale: false,
      reading: undefined,
    }
    entries.set(token_id, entry)
    return entry
  }

  /** The oldest that no open request uses. */
  function forgetOne(): void {
    for (const [token_id, { reserved, reading }] of entries) {
      if (reserved.rows > 0 || reading) continue
      entries.delete(token_id)
      return
    }
  }

  function refresh(token_id: string, entry: Entry): Promise<void> {
    entry.reading ??= readInto(token_id, entry).finally(() => {
      entry.reading = undefined
    })
    return entry.reading
  }

  async function readInto(token_id: string, entry: Entry): Promise<void> {
    const readAt = clock.steady()
    entry.isStale = false
    entry.during = nothing()
    const found = await read(token_id)
    entry.stored = { rows: found.rows + entry.during.rows, bytes: found.bytes + entry.during.bytes }
    entry.readAt = readAt
  }

  const exceeded = ({ stored, reserved }: Entry, { rows, bytes }: StoredAmount): Limit | undefined => {
    const limit = limits()
    if (stored.rows + reserved.rows + rows > limit.rows.most) return limit.rows
    if (limit.bytes && stored.bytes + reserved.bytes + bytes > limit.bytes.most) return limit.bytes
    return undefined
  }

  /** The limit that this amount would exceed. In the steady state nothing is read. */
  async function limitFor(token_id: string, entry: Entry, amount: StoredAmount): Promise<Limit | undefined> {
    if (clock.steady() - entry.readAt >= FRESH_MILLISECONDS) await refresh(token_id, entry)
    if (!exceeded(entry, amount)) return undefined
    if (entry.isStale || clock.steady() - entry.readAt >= REFUSED_FRESH_MILLISECONDS) await refresh(token_id, entry)
    return exceeded(entry, amount)
  }

  function hold(token_id: string, { rows, bytes }: StoredAmount): () => void {
    const { reserved } = entryOf(token_id)
    reserved.rows += rows
    reserved.bytes += bytes
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      reserved.rows -= rows
      reserved.bytes -= bytes
    }
  }

  async function reserve(token_id: string, amount: StoredAmount): Promise<() => void> {
    const entry = entryOf(token_id)
    // Once more: another request may have reserved since.
    const limit = (await limitFor(token_id, entry, amount)) ?? exceeded(entry, amount)
    if (limit) throw quotaExceeded(entry, { amount, limit, limits: limits(), texts })
    return hold(token_id, amount)
  }

  function stored(token_id: string, { rows, bytes }: StoredAmount): void {
    const entry = entryOf(token_id)
    for (const sum of [entry.stored, entry.during]) {
      sum.rows += rows
      sum.bytes += bytes
    }
  }

  return {
    fits: async (token_id, amount) => (await limitFor(token_id, entryOf(token_id), amount)) === undefined,
    reserve,
    hold,
    stored,
    freed(token_id) {
      const entry = entries.get(token_id)
      if (entry) entry.isStale = true
    },
    async keep(token_id, amount, work) {
      const release = await reserve(token_id, amount)
      try {
        const result = await work()
        stored(token_id, amount)
        return result
      } finally {
        release()
      }
    },
  }
}

const nothing = (): StoredAmount => ({ rows: 0, bytes: 0 })

type Refusal = { amount: StoredAmount; limit: Limit; limits: Limits; texts: QuotaParts['texts'] }

function quotaExceeded({ stored, reserved }: Entry, { amount, limit, limits, texts }: Refusal): GatewayError {
  const text = (number: number) => number.toLocaleString('en-US')
  const isOfRows = limit.setting === limits.rows.setting
  const [held, needed] = isOfRows
    ? [`${text(stored.rows + reserved.rows)} ${texts.stored}`, text(amount.rows)]
    : [`${text(stored.bytes + reserved.bytes)} bytes of ${texts.stored}`, `${text(amount.bytes)} bytes`]
  return new GatewayError(
    'storage_quota_exceeded',
    `This ${texts.owner ?? 'token'} stores ${held} of at most ${text(limit.most)}, and the request needs ${needed} more. ${texts.remedy} The operator of the gateway can raise ${limit.setting}.`,
  )
}
