/**
 * Encodes a chat response for the client, whole or as a stream, and ends a stream in which a provider sends one of its own
 * secrets, split over several deltas.
 */
import type { Parts, ResponseStream } from '../../calls/family.ts'
import type { ChatChunk } from '../../protocols/shared/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../../protocols/shared/protocol.ts'
import type { Provider } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Units, Usage } from '../../spec/usage.ts'
import type { ChatMeter } from './meter.ts'

/** What the encoding of a response needs: its identity, and the client's encoder. */
export type ResponseContext = { head: ResponseHead; writer: ResponseEncoder }

/** A whole response: its body as JSON text, or as a value to be serialized. */
export type Whole = { encode(usage: Usage): unknown }

/** Chunks of a provider, encoded for the client. Resolves when the first part has arrived, or rejects with the provider's error. */
export const translated = (
  chunks: AsyncIterable<ChatChunk[]>,
  writer: ResponseEncoder,
  meter: Pick<ChatMeter, 'count'>,
): Promise<ResponseStream<Usage>> => awaitFirstPart(new EncodedChunks(chunks, writer, meter), writer)

type Part = string | Uint8Array

/** The parts of a response, and the first one, which is read before the response begins. */
export abstract class ResponseParts implements AsyncIterableIterator<Part>, Parts {
  #first: IteratorResult<Part> | undefined;

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Reads the next part from the provider. Never an empty one. */
  protected abstract read(): Promise<IteratorResult<Part>>
  /** Closes the connection to the provider. */
  abstract return(): Promise<IteratorResult<Part>>

  async start(): Promise<void> {
    this.#first = await this.read()
  }

  takeFirst(): Part | undefined {
    const part = this.#first?.value
    if (part !== undefined) this.#first = undefined
    return part
  }

  next(): Promise<IteratorResult<Part>> {
    const first = this.#first
    if (!first) return this.read()
    this.#first = undefined
    return Promise.resolve(first)
  }
}

class EncodedChunks extends ResponseParts {
  readonly #chunks: AsyncIterator<ChatChunk[]>
  readonly #writer: ResponseEncoder
  readonly #meter: Pick<ChatMeter, 'count'>

  constructor(chunks: AsyncIterable<ChatChunk[]>, writer: ResponseEncoder, meter: Pick<ChatMeter, 'count'>) {
    super()
    this.#chunks = chunks[Symbol.asyncIterator]()
    this.#writer = writer
    this.#meter = meter
  }

  protected async read(): Promise<IteratorResult<Part>> {
    for (;;) {
      const { done, value } = await this.#chunks.next()
      if (done) return { done, value: undefined }
      let text: string
      try {
        this.#meter.count(value)
        text = this.#writer.encode(value)
      } catch (thrown) {
        await this.return()
        throw thrown
      }
      if (text !== '') return { done: false, value: text }
    }
  }

  async return(): Promise<IteratorResult<Part>> {
    await this.#chunks.return?.()
    return { done: true, value: undefined }
  }
}

type End = Pick<ResponseEncoder, 'includesUsage' | 'end' | 'fail' | 'store'>

/** Waits for the first part, so that an error can still set the status: nothing was sent to the client yet. */
export async function awaitFirstPart(
  parts: ResponseParts,
  { includesUsage, end, fail, store }: End,
): Promise<ResponseStream<Usage>> {
  await parts.start()
  return { parts, includesUsage, end, fail, ...(store ? { store } : {}) }
}

type DeltaWatch = NonNullable<ReturnType<NonNullable<Provider['watchDeltas']>>>

/**
 * A secret within one event is replaced where the provider's bytes are read. One that is split over events cannot be
 * replaced any more, so half of it ends the stream. Deltas of several choices are checked as one text.
 */
export function watchSecrets(meter: ChatMeter, { id, watchDeltas }: Provider): ChatMeter {
  const watch = watchDeltas?.()
  return watch ? new WatchingMeter(id, meter, watch) : meter
}

/** The same meter, which also watches. */
class WatchingMeter implements ChatMeter {
  readonly #provider: string
  readonly #meter: ChatMeter
  readonly #watch: DeltaWatch

  constructor(provider: string, meter: ChatMeter, watch: DeltaWatch) {
    this.#provider = provider
    this.#meter = meter
    this.#watch = watch
  }

  usage(): Usage | Promise<Usage> {
    return this.#meter.usage()
  }

  units(usage: Usage): Units {
    return this.#meter.units(usage)
  }

  hasCounted(): boolean {
    return this.#meter.hasCounted()
  }

  hasDelivered(): boolean {
    return this.#meter.hasDelivered()
  }

  countWhole(answer: Parameters<ChatMeter['countWhole']>[0]): void {
    this.#meter.countWhole(answer)
  }

  count(batch: ChatChunk[]): void {
    for (const { choices } of batch) {
      for (const { delta } of choices) {
        this.#take(delta.content)
        this.#take(delta.reasoning_content)
        this.#take(delta.refusal)
        if (delta.tool_calls) for (const call of delta.tool_calls) this.#take(call.function?.arguments)
      }
    }
    this.#meter.count(batch)
  }

  countRaw(text: string): void {
    this.#take(text)
    this.#meter.countRaw(text)
  }

  #take(text: string | null | undefined): void {
    if (!text || !this.#watch.completes(text)) return
    throw new GatewayError(
      'bad_upstream_response',
      `The upstream "${this.#provider}" repeated the gateway's credentials in its answer, which was ended there. Tell the operator.`,
    )
  }
}
