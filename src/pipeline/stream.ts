/** Delivers a streamed response, and settles its call when it ends, fails or is not read to its end. */
import type { Log } from '../kit/log.ts'
import { asGatewayError } from '../spec/error.ts'
import { usageForClient } from './cost.ts'
import type { AnyMeter, ResponseStream, StreamFamily, UsageOf } from './family.ts'
import type { PreparedCall } from './prepared-call.ts'
import type { Settlement } from './settle.ts'

type Delivery<M extends AnyMeter> = {
  /** Rejects with the provider's error. */
  response: Promise<ResponseStream<UsageOf<M>>>
  settlement: Settlement
  onFirstByte(): void
  log: Log
}

export async function* deliver<Work, M extends AnyMeter>(
  family: Pick<StreamFamily<never, Work, M>, 'encodeError' | 'errorForClient' | 'asksForCost'>,
  prepared: Pick<PreparedCall<Work, never, M>, 'record' | 'model' | 'work' | 'meter'>,
  { response, settlement, onFirstByte, log }: Delivery<M>,
): AsyncGenerator<string | Uint8Array> {
  const { call } = prepared.record
  let stream: ResponseStream<UsageOf<M>> | undefined
  try {
    stream = await response
    const { parts, includesUsage, end, store } = stream
    onFirstByte()
    yield* parts
    call.signal.throwIfAborted() // some sources end, and do not throw, when they are aborted
    // Only a client that requested the usage waits for it: an estimate takes a while.
    const usage = includesUsage ? await usageForClient<Work, M>(family, prepared) : undefined
    const settled = settlement.succeeded()
    const last = end(usage)
    await store?.()
    // Once its usage is known without an estimate, it is recorded within this turn of the event loop.
    if (settlement.isAwaited() || prepared.record.entries) await settled
    if (last !== '') yield last
  } catch (thrown) {
    const reason = call.signal.reason ?? family.errorForClient?.(thrown, prepared.work) ?? thrown
    const error = asGatewayError(reason, { log, request_id: call.request_id })
    // The response ends before the usage is estimated: that may take longer than a client, or a stop, waits.
    void settlement.failed(error)
    yield stream?.fail ? stream.fail(error) : family.encodeError(error, prepared.work)
  } finally {
    // Not read to its end. After an end or a failure this has no effect.
    void settlement.left()
  }
}
