/** Encodes a chat response for the client, whole or as a stream. */

import type { ResponseStream } from '../../calls/family.ts'
import type { ChatChunk } from '../../protocols/shared/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../../protocols/shared/protocol.ts'
import type { Usage } from '../../spec/usage.ts'
import type { ChatMeter } from './meter.ts'

/** What the encoding of a response needs: its identity, and the client's encoder. */
export type ResponseContext = { head: ResponseHead; writer: ResponseEncoder }

/** A whole response: its body as JSON text, or as a value to be serialized. */
export type Whole = { encode(usage: Usage): unknown }

/** Chunks of a provider, encoded for the client. Resolves when the first part has arrived, or rejects with the provider's error. */
export const translated = (
  chunks: AsyncIterable<ChatChunk[]>,
  writer: ResponseEncoder,
  meter: ChatMeter,
): Promise<ResponseStream<Usage>> => awaitFirstPart(new EncodedChunks(chunks, writer, meter), writer)

type Part = string | Uint8Array

/** The parts of a response, and the first one, which is read before the response begins. */
export abstract class ResponseParts implements AsyncIterableIterator<Part> {
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
  readonly #meter: ChatMeter

  constructor(chunks: AsyncIterable<ChatChunk[]>, writer: ResponseEncoder, meter: ChatMeter) {
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
