/** Delivers a streamed response, and settles its call when it ends, fails or is not read to its end. */
import type { Log } from '../kit/log.ts'
import { asGatewayError } from '../spec/error.ts'
import { usageForClient } from './entries.ts'
import type { AnyMeter, Parts, ResponseStream, StreamFamily, UsageOf } from './family.ts'
import type { PreparedCall } from './prepared-call.ts'
import type { Settled, Settlements } from './settle.ts'

type Part = string | Uint8Array

type Delivery<M extends AnyMeter> = {
  /** Rejects with the provider's error. */
  response: Promise<ResponseStream<UsageOf<M>>>
  settlements: Pick<Settlements, 'isAwaited' | 'succeeded' | 'left' | 'failed'>
  onFirstByte(): void
  log: Log
}

type DeliveredFamily<Work, M extends AnyMeter> = Pick<
  StreamFamily<never, Work, M>,
  'encodeError' | 'errorForClient' | 'asksForCost'
>
type Delivered<Work, M extends AnyMeter> = Settled & Pick<PreparedCall<Work, never, M>, 'work' | 'meter'>

const OVER: IteratorResult<Part> = { done: true, value: undefined }

/** The parts of one response, one at a time: each `next` waits for one part of the provider. */
export class DeliveredStream<Work, M extends AnyMeter> implements AsyncIterableIterator<Part>, Parts {
  readonly #family: DeliveredFamily<Work, M>
  readonly #prepared: Delivered<Work, M>
  readonly #delivery: Delivery<M>
  #stream: ResponseStream<UsageOf<M>> | undefined
  #source: AsyncIterator<Part> | undefined
  #isOver = false

  constructor(family: DeliveredFamily<Work, M>, prepared: Delivered<Work, M>, delivery: Delivery<M>) {
    this.#family = family
    this.#prepared = prepared
    this.#delivery = delivery
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** The response is there. */
  begin(stream: ResponseStream<UsageOf<M>>): void {
    this.#source = stream.parts[Symbol.asyncIterator]()
    this.#stream = stream
    if (!this.#isOver) this.#delivery.onFirstByte()
    // The client has left meanwhile.
    else void this.#source.return?.().catch(() => {})
  }

  takeFirst(): Part | undefined {
    return this.#isOver ? undefined : this.#stream?.parts.takeFirst?.()
  }

  async next(): Promise<IteratorResult<Part>> {
    if (this.#isOver) return OVER
    try {
      if (!this.#stream) await this.#delivery.response
      if (this.#isOver) return OVER
      const item = await (this.#source as AsyncIterator<Part>).next()
      return item.done ? await this.#end() : item
    } catch (thrown) {
      return this.#fail(thrown)
    }
  }

  /** The client reads no more. */
  async return(): Promise<IteratorResult<Part>> {
    if (this.#isOver) return OVER
    this.#isOver = true
    void this.#delivery.settlements.left(this.#prepared)
    await this.#source?.return?.()
    return OVER
  }

  async #end(): Promise<IteratorResult<Part>> {
    const { includesUsage, end, store } = this.#stream as ResponseStream<UsageOf<M>>
    const { record } = this.#prepared
    const { settlements } = this.#delivery
    record.call.signal.throwIfAborted() // some sources end, and do not throw, when they are aborted
    // Only a client that requested the usage waits for it: an estimate takes a while.
    const usage = includesUsage ? await usageForClient<Work, M>(this.#family, this.#prepared) : undefined
    const settled = settlements.succeeded(this.#prepared)
    const last = end(usage)
    await store?.()
    // Once its usage is known without an estimate, it is recorded within this turn of the event loop.
    if (record.entries || settlements.isAwaited()) await settled
    this.#isOver = true
    return last === '' ? OVER : { done: false, value: last }
  }

  #fail(thrown: unknown): IteratorResult<Part> {
    if (this.#isOver) return OVER
    this.#isOver = true
    const { encodeError, errorForClient } = this.#family
    const { record, work } = this.#prepared
    const { call } = record
    const reason = call.signal.reason ?? errorForClient?.(thrown, work) ?? thrown
    const error = asGatewayError(reason, { log: this.#delivery.log, request_id: call.request_id })
    // The response ends before the usage is estimated: that may take longer than a client, or a stop, waits.
    void this.#delivery.settlements.failed(this.#prepared, error)
    return { done: false, value: this.#stream?.fail ? this.#stream.fail(error) : encodeError(error, work) }
  }
}
