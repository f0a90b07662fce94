/** Holds the state of one target with one key: its open calls, latency, errors, and until when it is avoided. */
import type { ProviderHealth } from '../../providers/health.ts'
import type { Provider } from '../../providers/provider.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { OverrideState } from '../../store/admin/override-store.ts'
import { type Latency, newLatency, observeLatency, usualLatency } from './bounds.ts'

/** How a call ended, as far as it says something about the target. `neutral`: nothing, such as when the client has left. */
export type Outcome =
  /** `first_byte_ms` undefined: an error that is the caller's own, which comes faster than an answer. */
  | { kind: 'ok'; first_byte_ms: number | undefined }
  | { kind: 'neutral' }
  /** It was given up because another target answered first: its first byte takes at least as long. */
  | { kind: 'lost'; after_ms: number }
  /**
   * An error of the target. `at_once`: it counts like as many errors as are needed for an ejection. `after_ok`: the call
   * was counted as a success at its first byte.
   */
  | { kind: 'failed'; at_once: boolean; after_ok?: boolean }
  | { kind: 'rate_limited'; retry_after_ms: number | undefined }
  /** The provider refused the key. */
  | { kind: 'refused' }

/** All times are milliseconds of the clock that the caller passes; 0: not set. */
export type TargetState = Latency & {
  /** `provider/model`, with `#key` where the provider has several. */
  readonly id: string
  open: number
  last_ok_at: number
  /** Errors without a first byte in between. */
  consecutive_failures: number
  /** Streams that broke after their first byte, without a complete response in between. */
  consecutive_cuts: number
  /** Successes and failures of the current and the previous window. */
  window_at: number
  ok: [current: number, previous: number]
  failed: [current: number, previous: number]
  /** Set while the target is avoided because of errors; after it, one call at a time tests it. */
  ejected_until: number
  /** When the last ejection began: a call from before it neither ends nor prolongs it. */
  ejected_at: number
  /** Ejections without a success in between: each is twice as long as the one before. */
  ejections: number
  is_probing: boolean
  cooling_until: number
  /** 429s without a success in between. */
  cooldowns: number
  refused_until: number
  /** When the last cooldown or refusal began. */
  limited_at: number
  /** What the probes of its provider show; undefined: it is not probed. */
  health: ProviderHealth | undefined
  /** Set by the operator at run time: it gets no calls at all. */
  blocked: OverrideState | undefined
  /** The last error that was a fault of the target, or of the key; undefined: none. */
  last_error: { at: number; error: GatewayError } | undefined
  /** When it was last available again after an ejection. */
  returned_at: number
}

/** Consecutive errors after which a target is avoided; Envoy's default for consecutive 5xx. */
const MOST_CONSECUTIVE = 5
/** The share of errors after which a target is avoided, and the calls that it takes to know it. */
const MOST_SHARE = 0.5
const LEAST_CALLS = 10
const WINDOW_MS = 30_000
const FIRST_EJECTION_MS = 5_000
const LONGEST_EJECTION_MS = 300_000
/** A 429 without `retry-after`: doubled with each further one. */
const FIRST_COOLDOWN_MS = 1_000
/** A longer `retry-after` is a quota of an hour or a day: it may be raised at any time, so the target is asked again. */
const LONGEST_COOLDOWN_MS = 120_000
/** After this time a refused key is tried once more: it may have been allowed at the provider. */
const REFUSED_MS = 300_000

export const createTargetState = (id: string): TargetState => ({
  id,
  open: 0,
  ...newLatency(),
  last_ok_at: 0,
  consecutive_failures: 0,
  consecutive_cuts: 0,
  window_at: 0,
  ok: [0, 0],
  failed: [0, 0],
  ejected_until: 0,
  ejected_at: 0,
  ejections: 0,
  is_probing: false,
  cooling_until: 0,
  cooldowns: 0,
  refused_until: 0,
  limited_at: 0,
  health: undefined,
  blocked: undefined,
  last_error: undefined,
  returned_at: 0,
})

/** `provider/model`, as logs and headers show it. Each target keeps its name: several recorders of a call need it. */
export function targetName(target: { provider: { id: string }; model: string }): string {
  let name = names.get(target)
  if (name === undefined) {
    name = `${target.provider.id}/${target.model}`
    names.set(target, name)
  }
  return name
}

const names = new WeakMap<object, string>()

/** The same, with `#key` where the provider has several keys: what is remembered is remembered for that. */
export const stateId = (target: { provider: Pick<Provider, 'id'>; model: string; key?: string }): string =>
  target.key === undefined ? targetName(target) : `${targetName(target)}#${target.key}`

/** As if it had never been called; calls that are open still end, and probes go on. */
export function forget(state: TargetState): void {
  Object.assign(state, createTargetState(state.id), {
    open: state.open,
    waiting: state.waiting,
    silent_since: state.silent_since,
    health: state.health,
    blocked: state.blocked,
  })
}

/** Why a target is avoided; undefined: it is not. */
type Avoided = OverrideState | 'key refused' | 'rate limited' | 'unhealthy' | 'ejected' | 'probing'

export function avoidedBecause(state: TargetState, now: number): Avoided | undefined {
  if (state.blocked !== undefined) return state.blocked
  if (state.refused_until > now) return 'key refused'
  if (state.cooling_until > now) return 'rate limited'
  if (state.health?.is_unhealthy) return 'unhealthy'
  if (state.ejected_until > now) return 'ejected'
  if (state.ejected_until !== 0 && state.is_probing) return 'probing'
  return undefined
}

/** When it may be called again, so far as known. */
export const availableAt = ({ refused_until, cooling_until, ejected_until, health }: TargetState): number =>
  Math.max(refused_until, cooling_until, ejected_until, health?.is_unhealthy ? health.next_probe_at : 0)

/** The provider works again, as a probe shows: the next call tests its targets, however long they were to be avoided. */
export function endEjections(states: Iterable<TargetState>, health: ProviderHealth, now: number): void {
  for (const state of states) if (state.health === health && state.ejected_until > now) state.ejected_until = now
}

/** A call to it begins. Returns whether it is the probe of an ejected target. */
export function begin(state: TargetState, now: number): boolean {
  state.open++
  if (state.waiting++ === 0) state.silent_since = now
  const isProbe = state.ejected_until !== 0 && state.ejected_until <= now && !state.is_probing
  if (isProbe) state.is_probing = true
  return isProbe
}

type Change = 'ejected' | 'returned' | 'key refused' | 'cooling'

type Noted = { now: number; started: number; isProbe: boolean }

/** A call to it no longer waits: it has its first byte, or its error. */
export function answered(state: TargetState, now: number): void {
  state.waiting--
  state.silent_since = now
}

/** A call to it has its first byte. The same as `note` of an outcome that is ok. */
export function noteAnswer(state: TargetState, first_byte_ms: number, noted: Noted): Change | undefined {
  if (noted.isProbe) state.is_probing = false
  return noteOk(state, first_byte_ms, noted)
}

/** What a call to it showed; the call itself may still be open. Returns what changed, for the log. */
export function note(state: TargetState, outcome: Outcome, noted: Noted): Change | undefined {
  const { now, started } = noted
  if (noted.isProbe) state.is_probing = false
  switch (outcome.kind) {
    case 'neutral':
      return undefined
    case 'ok':
      return noteOk(state, outcome.first_byte_ms, noted)
    case 'lost':
      // A time below the usual ones says nothing: it would only make the target look faster than it is.
      if (outcome.after_ms > 0 && outcome.after_ms >= usualLatency(state)) observeLatency(state, outcome.after_ms, now)
      return undefined
    case 'failed':
      return noteFailure(state, outcome, noted)
    case 'rate_limited': {
      // Many calls at once that are all limited are one event.
      if (started >= state.limited_at) {
        state.cooldowns++
        state.limited_at = now
      }
      const wait = outcome.retry_after_ms ?? FIRST_COOLDOWN_MS * 2 ** Math.min(Math.max(0, state.cooldowns - 1), 10)
      state.cooling_until = Math.max(state.cooling_until, now + Math.min(wait, LONGEST_COOLDOWN_MS))
      return 'cooling'
    }
    case 'refused':
      state.refused_until = now + REFUSED_MS
      state.limited_at = now
      return 'key refused'
  }
}

function noteOk(state: TargetState, first_byte_ms: number | undefined, { now, started }: Noted): Change | undefined {
  turnWindow(state, now)
  state.ok[0]++
  state.consecutive_failures = 0
  state.last_ok_at = now
  if (first_byte_ms !== undefined) observeLatency(state, first_byte_ms, now)
  if (started >= state.limited_at) {
    state.cooldowns = 0
    state.cooling_until = 0
    state.refused_until = 0
  }
  if (state.ejected_until === 0 || started < state.ejected_at) return undefined
  state.ejected_until = 0
  state.returned_at = now
  state.ejections = 0
  // Errors from before the ejection would eject it again at the next one.
  state.ok = [0, 0]
  state.failed = [0, 0]
  return 'returned'
}

function noteFailure(
  state: TargetState,
  { at_once, after_ok }: { at_once: boolean; after_ok?: boolean },
  { now, started, isProbe }: Noted,
): Change | undefined {
  if (started < state.ejected_at) return undefined
  turnWindow(state, now)
  state.failed[0]++
  if (after_ok) {
    state.ok[0] = Math.max(0, state.ok[0] - 1)
    state.consecutive_cuts++
  } else state.consecutive_failures++
  const isEjected = state.ejected_until > now
  if (isEjected) return undefined // it was sent because every target was avoided
  const failed = state.failed[0] + state.failed[1]
  const calls = failed + state.ok[0] + state.ok[1]
  const isBroken =
    at_once ||
    isProbe ||
    Math.max(state.consecutive_failures, state.consecutive_cuts) >= MOST_CONSECUTIVE ||
    (calls >= LEAST_CALLS && failed >= calls * MOST_SHARE)
  if (!isBroken) return undefined
  state.ejected_at = now
  state.ejected_until = now + Math.min(FIRST_EJECTION_MS * 2 ** state.ejections, LONGEST_EJECTION_MS)
  state.ejections = Math.min(state.ejections + 1, 10)
  state.consecutive_failures = 0
  state.consecutive_cuts = 0
  return 'ejected'
}

function turnWindow(state: TargetState, now: number): void {
  const passed = now - state.window_at
  if (passed < WINDOW_MS) return
  const isNext = passed < 2 * WINDOW_MS
  state.ok = [0, isNext ? state.ok[0] : 0]
  state.failed = [0, isNext ? state.failed[0] : 0]
  state.window_at = now
}
