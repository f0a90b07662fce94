/** Tells those who asked for it that their task has ended: signed, at least once, tried again for a day. */
import type { Log } from '../kit/log.ts'
import type { Callback, CallbackStore, TaskStore } from '../store/store.ts'
import { attempt, hostOf } from './callbacks-attempt.ts'
import type { DeliveryParts } from './callbacks-delivery.ts'
import { callbackSecret } from './callbacks-signature.ts'
import { createTurns, type Turn } from './callbacks-turns.ts'
import { isEnded } from './lifecycle.ts'

export type Callbacks = {
  /** Begins to deliver. */
  start(): void
  /** Takes no more in hand; those under way have until the deadline, and are sent again later if they miss it. */
  stop(options: { deadline_ms: number }): Promise<void>
  /** Resolves when none is in hand and none is due now: for tests that own the clock. */
  idle(): Promise<void>
  /** The secret with which the callbacks of this token's tasks are signed. */
  secretOf(token_id: string): string
}

export type CallbackParts = Omit<DeliveryParts, 'private_origins'> & {
  store: { callbacks: CallbackStore; tasks: Pick<TaskStore, 'find'> & Partial<Pick<TaskStore, 'watch'>> }
  /** Origins that may be called although they are private; asked anew each time. Default: none. */
  private_origins?(): readonly string[]
  log: Log
  /** How many are delivered at a time. Default 32. */
  concurrency?: number
}

const DEFAULT_CONCURRENCY = 32
/** Well above the time-out of an attempt and the writes around it. */
const LEASE_MILLISECONDS = 60_000
/** Others who share the store may have ended a task, and a store that failed may be back. */
const LOOK_MILLISECONDS = 5_000

export function createCallbacks(parts: CallbackParts): Callbacks {
  const { store, clock, log, concurrency = DEFAULT_CONCURRENCY, private_origins = () => [] } = parts
  const turns = createTurns({ concurrency, clock })
  const under_way = new Set<Promise<void>>()
  const stopped = new AbortController()
  const trying = { store, delivery: { ...parts, private_origins }, log, stopped: stopped.signal }
  let state: 'new' | 'running' | 'stopping' = 'new'
  let looking: Promise<void> | undefined
  let is_wanted = false
  let cancelTimer = () => {}
  let unwatch = () => {}

  /** Takes what is due and begins on it; how many there were. */
  async function round(): Promise<number> {
    const limit = concurrency - under_way.size
    if (limit <= 0) return 0
    const now_ms = clock.now()
    const claimed = await store.callbacks.claim({ now_ms, until_ms: now_ms + LEASE_MILLISECONDS, limit })
    const put_off: { callback_id: string; due_ms: number }[] = []
    for (const callback of claimed) {
      const { callback_id, url, token_id } = callback
      const turn = turns.take({ host: hostOf(url), token_id })
      if ('due_ms' in turn) put_off.push({ callback_id, due_ms: turn.due_ms })
      else begin(callback, turn)
    }
    if (put_off.length > 0) await store.callbacks.postpone(put_off)
    return claimed.length
  }

  function begin(callback: Callback, turn: Turn): void {
    const work = attempt(trying, callback).then((was) => {
      turn.end(was)
      under_way.delete(work)
      if (state === 'running') void look()
    })
    under_way.add(work)
  }

  /** Looks until nothing is due or no hand is free, and sets the time of the next look. One at a time. */
  function look(): Promise<void> {
    is_wanted = true
    looking ??= lookOn().finally(() => {
      looking = undefined
      if (is_wanted && state === 'running') void look()
    })
    return looking
  }

  async function lookOn(): Promise<void> {
    let next_ms = LOOK_MILLISECONDS
    try {
      while (is_wanted && state !== 'stopping') {
        is_wanted = false
        if ((await round()) > 0) is_wanted = true
        else next_ms = Math.min(LOOK_MILLISECONDS, ((await store.callbacks.earliest()) ?? Infinity) - clock.now())
      }
    } catch (error) {
      log.error('callbacks not read', {}, error)
    }
    cancelTimer()
    // With no hand free the next look comes when one is.
    if (state === 'running' && under_way.size < concurrency)
      cancelTimer = clock.after(Math.max(1, next_ms), () => void look())
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'running'
      unwatch = store.tasks.watch?.((change) => void (isEnded(change) && look())) ?? unwatch
      void look()
    },
    async stop({ deadline_ms }) {
      state = 'stopping'
      cancelTimer()
      unwatch()
      await looking
      const over = Promise.withResolvers<void>()
      const cancel = clock.after(Math.max(0, deadline_ms), over.resolve)
      if (under_way.size > 0 && deadline_ms > 0) await Promise.race([Promise.all(under_way), over.promise])
      cancel()
      stopped.abort(new Error('The gateway is being stopped.'))
      await Promise.all(under_way)
    },
    async idle() {
      while (state !== 'stopping') {
        await look()
        await Promise.all(under_way)
        if (under_way.size > 0 || looking) continue
        const earliest = await store.callbacks.earliest()
        if (under_way.size === 0 && !looking && (earliest === null || earliest > clock.now())) return
      }
    },
    secretOf: (token_id) => callbackSecret(parts.master_secret, token_id),
  }
}
