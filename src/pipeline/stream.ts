/** Delivers a streamed answer, and settles its call when it ends, fails or is read no further. */
import type { Log } from '../kit/log.ts'
import { asGatewayError } from '../spec/error.ts'
import type { Call } from './call.ts'
import type { AnyMeter, ResponseStream, StreamFamily, UsageOf } from './family.ts'
import type { Settlement } from './settle.ts'

type Delivery<Work, M extends AnyMeter> = {
  family: Pick<StreamFamily<never, Work, M>, 'encodeError' | 'errorForClient'>
  /** Rejects with the provider's refusal. */
  stream: Promise<ResponseStream<UsageOf<M>>>
  work: Work
  call: Call
  meter: M
  settlement: Settlement
  log: Log
  onFirstByte(): void
}

export async function* deliver<Work, M extends AnyMeter>({
  family,
  stream,
  work,
  call,
  meter,
  settlement,
  log,
  onFirstByte,
}: Delivery<Work, M>): AsyncGenerator<string | Uint8Array> {
  try {
    const { parts, includesUsage, end, store } = await stream
    onFirstByte()
    yield* parts
    call.signal.throwIfAborted() // some sources end, and do not throw, when they are aborted
    // Only a client that asked for the usage waits for it, which takes a while where it must be estimated.
    const usage = includesUsage ? ((await meter?.usage()) as UsageOf<M>) : undefined
    const settled = settlement.succeeded()
    const last = end(usage)
    await store?.()
    if (last !== '') yield last
    await settled
  } catch (thrown) {
    const reason = call.signal.reason ?? family.errorForClient?.(thrown, work) ?? thrown
    const error = asGatewayError(reason, { log, request_id: call.request_id })
    const settled = settlement.failed(error)
    // The client is told before an estimate is awaited, which may take as long as a cut connection has to live.
    yield family.encodeError(error, work)
    await settled
  } finally {
    // Read no further: what was delivered counts. After an end or a failure this has no effect.
    void settlement.succeeded()
  }
}
