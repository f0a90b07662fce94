/** One upstream call of a request: what the router notes of it, and what is reported. */
import { tenth } from '../kit/clock.ts'
import { type Target, targetName } from '../providers/provider.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'

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

export const newAttempt = (target: Target, started: number, is_hedge: boolean): Attempt => ({
  target,
  started,
  ms: undefined,
  error: undefined,
  upstream_status: undefined,
  is_hedge,
  is_lost: false,
})

export function noteFailure(attempt: Attempt, error: unknown): void {
  const isKnown = error instanceof GatewayError
  attempt.error = isKnown ? error.code : 'internal_error'
  attempt.upstream_status = isKnown ? error.detail.upstream_status : undefined
}

/** What is reported of one upstream call. Members that are undefined are left out of JSON. */
export const attemptReport = ({ target, error, upstream_status, ms, next, is_hedge, is_lost }: Attempt) => ({
  target: targetName(target),
  key: target.key,
  error,
  upstream_status,
  ms: ms === undefined ? undefined : tenth(ms),
  hedge: is_hedge || undefined,
  lost: is_lost || undefined,
  next,
})
