/** Ends one try after a time, while the call itself goes on. */
import type { Clock } from '../kit/clock.ts'
import type { GatewayError } from '../spec/error.ts'

type LimitParts = {
  clock: Clock
  ms: number
  /** The signal of the call: the try ends with it. */
  signal: AbortSignal
  error(): GatewayError
}

/**
 * Calls `execute` with a signal of its own. Rejects with `error` after `ms`, whether or not `execute` heeds the signal.
 * Once it has resolved, only the signal of the call can end it.
 */
export async function withTimeLimit<Answer>(
  { clock, ms, signal, error }: LimitParts,
  execute: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const control = new AbortController()
  const follow = () => control.abort(signal.reason)
  if (signal.aborted) follow()
  // It stays for the life of the response, and goes with the request's signal.
  else signal.addEventListener('abort', follow, { once: true })
  const late = Promise.withResolvers<never>()
  const cancel = clock.after(ms, () => {
    const reason = error()
    late.reject(reason)
    control.abort(reason)
  })
  try {
    return await Promise.race([execute(control.signal), late.promise])
  } finally {
    cancel()
  }
}
