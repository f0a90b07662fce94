/** Ends one try, by a time limit or because another was faster, while the call itself goes on. */
import type { Clock } from '../kit/clock.ts'
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'

export type TryControl = {
  /** Ends with the signal of the call, or when the try is cancelled. */
  readonly signal: AbortSignal
  /** Rejects when the try is cancelled. */
  readonly cancelled: Promise<never>
  cancel(reason: GatewayError): void
}

/** `signal`: of the call. It is followed for the life of the response, and is collected with the request. */
export function createTryControl(signal: AbortSignal): TryControl {
  const control = new AbortController()
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const follow = () => control.abort(signal.reason)
  if (signal.aborted) follow()
  else signal.addEventListener('abort', follow, { once: true })
  return {
    signal: control.signal,
    cancelled: promise,
    cancel(reason) {
      reject(reason)
      control.abort(reason)
    },
  }
}

type LimitParts = { clock: Clock; ms: number | undefined; error(): GatewayError }

/**
 * Rejects when the try is cancelled, whether or not `execute` heeds the signal. It is cancelled with `error` if `execute`
 * has not resolved after `ms`.
 */
export async function withControl<Answer>(
  control: TryControl,
  { clock, ms, error }: LimitParts,
  execute: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const stop = ms === undefined ? undefined : clock.after(ms, () => control.cancel(error()))
  try {
    return await Promise.race([execute(control.signal), control.cancelled])
  } finally {
    stop?.()
  }
}

/** Ends the try, its stream included, after the total time of its target; returns what stops that. */
export function limitTotal(control: TryControl, { provider, timeouts }: Target, clock: Clock) {
  const seconds = timeouts?.total_seconds
  if (seconds === undefined) return undefined
  const message = `The response of the upstream "${provider.id}" took longer than ${seconds} s.`
  return clock.after(seconds * 1000, () => control.cancel(new GatewayError('upstream_timeout', message)))
}
