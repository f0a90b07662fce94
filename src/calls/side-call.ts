/** A call of its own on behalf of another one: limited in time, recorded by itself, and left when that one is left. */
import type { Clock } from '../kit/clock.ts'
import { withoutExchange } from '../protocols/shared/batch-exchange.ts'
import { GatewayError } from '../spec/error.ts'
import type { Call } from './call.ts'

type Parent = Pick<Call, 'request_id' | 'caller' | 'signal' | 'end_user' | 'trace'> & {
  options?: Pick<NonNullable<Call['options']>, 'tags'>
}

type SideCall = { timeout_ms: number; clock: Clock; what: string; caller?: Call['caller'] }

/** `work` rejects with what `run` rejects with; `upstream_timeout` where it takes longer. */
export async function runAside<T>(
  { request_id, caller, end_user, signal, options, trace }: Parent,
  { timeout_ms, clock, what, caller: own = caller }: SideCall,
  run: (call: Call) => Promise<T>,
): Promise<T> {
  const late = new AbortController()
  const cancel = clock.after(timeout_ms, () => {
    late.abort(new GatewayError('upstream_timeout', `${what} in ${timeout_ms} ms.`))
  })
  try {
    const call: Call = {
      request_id,
      caller: own,
      signal: AbortSignal.any([signal, late.signal]),
      arrived: clock.steady(),
      is_detached: true,
      trace,
      options: { timeout_ms, ...(options?.tags ? { tags: options.tags } : {}) },
      ...(end_user === undefined ? {} : { end_user }),
    }
    return await withoutExchange(() => run(call))
  } finally {
    cancel()
  }
}
