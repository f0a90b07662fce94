/** The tokens in memory: what the hot path asks, kept true by watching the store's revision. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { StoredToken, TokenStore } from '../store/store.ts'
import { callerOf } from './caller.ts'

export type Known = { token: StoredToken; caller: Caller }

export type KnownTokens = {
  /** The token of this hash, if memory has it and nothing was changed since. */
  recall(hash: string): Known | undefined
  /** The token of this hash, from the store when memory will not do; a disabled one is not found. */
  find(hash: string): Promise<Known | undefined>
  /** Something was changed: what is in memory must be looked up again before it counts. */
  doubt(): void
  /** Begins to watch for changes by other processes. */
  start(): void
  close(): Promise<void>
}

/** A change anywhere counts within a second: half for noticing it, half for looking it up. */
const WATCH_MILLISECONDS = 500
/** So long a hash that no token has is answered from memory; a token made in the meantime waits no longer than this. */
const UNKNOWN_MILLISECONDS = 500
/** Each costs about 1 KB. */
const MAX_TOKENS = 50_000
const MAX_UNKNOWN = 10_000
/** Look-ups at once: a flood of bad tokens must not stand in a queue of any length before the store. */
export const MAX_LOOK_UPS = 1_000

type Parts = { store: Pick<TokenStore, 'findByHash' | 'revision'>; clock: Clock; log: Log }

export function createKnownTokens({ store, clock, log }: Parts): KnownTokens {
  /** Entries of an older generation are only used when the store cannot be reached. */
  let generation = 0
  const known = new Map<string, Known & { generation: number }>()
  /** Hash -> when it was found to be nobody's. */
  const unknown = new Map<string, number>()
  let asking = new Map<string, Promise<Known | undefined>>()
  let reachable = true

  function doubt(): void {
    generation++
    unknown.clear()
    asking = new Map() // a look-up that began before the change must not answer a request that came after it
  }

  function reached(): void {
    if (!reachable) log.info('the store answers again')
    reachable = true
  }

  function missed(cause: unknown): void {
    if (reachable) log.error('the store does not answer; known tokens go on as they were', {}, cause)
    reachable = false
  }

  async function lookUp(hash: string): Promise<Known | undefined> {
    const since = generation
    let token: StoredToken | undefined
    try {
      token = await store.findByHash(hash)
    } catch (cause) {
      missed(cause)
      const last = known.get(hash)
      if (last) return last
      throw new GatewayError('internal_error', 'API keys cannot be looked up at the moment; try again.', { cause })
    }
    reached()
    if (!token || token.disabled) {
      known.delete(hash)
      if (since === generation) remember(unknown, { hash, value: clock.now(), most: MAX_UNKNOWN })
      return undefined
    }
    const found = { token, caller: callerOf(token), generation: since }
    remember(known, { hash, value: found, most: MAX_TOKENS })
    return found
  }

  function ask(hash: string): Promise<Known | undefined> {
    const same = asking.get(hash)
    if (same) return same
    const mine = asking
    if (mine.size >= MAX_LOOK_UPS) {
      throw new GatewayError('rate_limit_exceeded', 'Too many API keys to look up at once; try again.', {
        retry_after: 1,
      })
    }
    const answer = lookUp(hash).finally(() => mine.delete(hash))
    mine.set(hash, answer)
    return answer
  }

  const watch = createWatch({ store, clock, changed: doubt, reached, missed })

  return {
    recall(hash) {
      const found = known.get(hash)
      return found?.generation === generation ? found : undefined
    },
    async find(hash) {
      const at = unknown.get(hash)
      if (at !== undefined && clock.now() - at < UNKNOWN_MILLISECONDS) return undefined
      return ask(hash)
    },
    doubt,
    ...watch,
  }
}

/** The oldest goes when there is no room: maps keep the order in which keys came. */
function remember<Value>(map: Map<string, Value>, entry: { hash: string; value: Value; most: number }): void {
  map.delete(entry.hash)
  map.set(entry.hash, entry.value)
  const [oldest] = map.keys()
  if (oldest !== undefined && map.size > entry.most) map.delete(oldest)
}

type WatchParts = Pick<Parts, 'clock'> & {
  store: Pick<TokenStore, 'revision'>
  changed(): void
  reached(): void
  missed(cause: unknown): void
}

/** Asks for the store's revision again and again: one cheap read each time. */
function createWatch({ store, clock, changed, reached, missed }: WatchParts): Pick<KnownTokens, 'start' | 'close'> {
  let revision: number | undefined
  let running = false
  let cancel = () => {}
  let looking: Promise<void> | undefined

  async function look(): Promise<void> {
    try {
      const now = await store.revision()
      reached()
      if (now !== revision) changed()
      revision = now
    } catch (cause) {
      missed(cause)
    }
    if (running) {
      cancel = clock.after(WATCH_MILLISECONDS, () => {
        looking = look()
      })
    }
  }

  return {
    start() {
      if (running) return
      running = true
      looking = look()
    },
    async close() {
      running = false
      cancel()
      await looking
    },
  }
}
