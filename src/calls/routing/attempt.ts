/** One upstream call of a request: what is noted and reported of it, and what it needs to know of its call. */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import type { Abortable } from '../../kit/abortable.ts'
import type { Target } from '../../providers/provider.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import type { Bounds } from './bounds.ts'
import type { AttemptPolicy } from './outcome.ts'
import type { Strategy } from './preferences.ts'

/** One upstream call of a request. */
export type Attempt = {
  readonly target: Target
  /** Milliseconds of the steady clock. */
  readonly started: number
  /** The time to its first byte or its error; undefined while neither has come. */
  ms: number | undefined
  error: ErrorCode | undefined
  upstream_status: number | undefined
  /** Whether it was asked because the first one was slow. */
  readonly is_hedge: boolean
  /** Whether it was given up because another one answered first. */
  is_lost: boolean
  /** The id of its span, where its provider was told of it. */
  span_id?: string
  /** What followed it, where it did not serve the call. */
  next?: NextStep
}

/**
 * `hedge`: a second target was asked beside it. The last ones say why none followed. `none_left`: every other target was
 * tried or is avoided, its provider may get no more retries, or the deadline is reached.
 */
export type NextStep =
  | 'other_target'
  | 'other_key'
  | 'same_target'
  | 'fallback_model'
  | 'hedge'
  | 'not_retried'
  | 'tries_used'
  | 'call_ended'
  | 'none_left'

/** One call, at the targets of one model; notified of each attempt, in order. */
export type Routing = {
  readonly settings: RoutingConfig
  /** Instead of that of the settings; absent: that one. */
  readonly strategy?: Strategy | undefined
  /** Whether no other provider is tried after the first one. */
  readonly is_one_provider?: boolean
  readonly bounds: Bounds
  /** Whose turn it is, where calls of several callers wait. */
  readonly token_id: string
  readonly signal: AbortSignal
  /** The same, for who needs no signal as such. Absent: `signal` itself. */
  readonly ending?: Abortable
  readonly is_stream: boolean
  readonly policy: AttemptPolicy
  /** False: the calls say nothing about how the targets work. */
  readonly is_observed: boolean
  /** Whether two targets may be asked at once. */
  readonly is_hedged: boolean
  /** Whether another model serves the call where no target is available: then those that are avoided are not tried. */
  readonly has_fallback: boolean
  /** What the call costs at a target, for the strategy `cheapest`; undefined: not known. */
  costOf?(target: Target): number | undefined
  /** The number that calls of one conversation share; called only where it is needed. */
  affinity?(sticky: NonNullable<RoutingConfig['sticky']>): number | undefined
  attemptStarted(attempt: Attempt): void
  attemptFailed(attempt: Attempt, error: unknown): void
  /** The attempt that serves the call, which must be ended when its response has ended. */
  serving(attempt: Attempt & ServingAttempt): void
}

export type Sender<Answer> = {
  /**
   * Calls a target. Resolves with the first part of a stream, or with a whole response. `signal`: of an attempt that may end
   * before its call; undefined: it ends with that.
   */
  sendTo(target: Target, signal: AbortSignal | undefined, attempt: Attempt): Promise<Answer>
}

/** The attempt that serves a call: to be ended when its response has ended, with an error where it broke. */
export type ServingAttempt = { end(error?: unknown): void }

/** One of several attempts that serve a call together. Where the call fails, that says nothing about any one of them. */
export class ServingTogether implements ServingAttempt {
  readonly #others: ServingAttempt | undefined
  readonly #one: ServingAttempt

  constructor(others: ServingAttempt | undefined, one: ServingAttempt) {
    this.#others = others
    this.#one = one
  }

  end(error?: unknown): void {
    this.#others?.end(error)
    this.#one.end(error === undefined ? undefined : LOST)
  }
}

/** The reason for which an attempt ends that another one has beaten. */
export const LOST = new GatewayError('client_closed_request', 'Another target answered first.')

/** How an attempt follows the last one. */
export function stepTo({ target, is_hedge }: Attempt, { target: last }: Attempt): NextStep {
  if (is_hedge) return 'hedge'
  if (target.provider.id !== last.provider.id || target.model !== last.model) return 'other_target'
  return target.key === last.key ? 'same_target' : 'other_key'
}
