/** Reads the chunks of a streamed response, one batch for each read of its bytes, and detects whether it is complete. */

import { createSseParser, type SseEvent } from '../kit/sse.ts'
import type { ChatChunk } from './canonical.ts'
import { eventsIn, readNext } from './event-source.ts'
import type { ByteSource, Faults } from './upstream.ts'

/** Turns the events of one body into chunks. */
export type ChunkDecoder = {
  /** The events that one read completes; `bytes` is undefined at the end of the body, whose last event may be incomplete. */
  take(events: SseEvent[], bytes: Uint8Array | undefined): DecodedEvents
  /** Whether the provider has sent a finish reason: then a broken or silent connection counts as the end. */
  isFinished(): boolean
  /** Called after the last event: the chunks that the provider left out. Throws if the response was cut. */
  end(): ChatChunk[]
}

/** `failure`: follows the chunks. `isDone`: the provider has sent its last event. */
type DecodedEvents = { chunks: ChatChunk[]; failure?: unknown; isDone: boolean }

/** `release`: the body was read to its end. `drop`: it was not. */
type ChunkBody = ByteSource & { release?(): void; drop?(): void }

/** A response that has begun: a stream, or one body. */
type OpenedChunks = { body: ChunkBody; decoder: ChunkDecoder; faults: Faults } | { whole: ChatChunk[] }

type Batch = IteratorResult<ChatChunk[], undefined>

const OVER: Batch = { done: true, value: undefined }

/** `open` is called with the first read. */
export class ChunkStream implements AsyncIterableIterator<ChatChunk[], undefined> {
  readonly #open: () => Promise<OpenedChunks>
  readonly #parser = createSseParser()
  #opened: Exclude<OpenedChunks, { whole: unknown }> | undefined
  #state: 'reading' | 'ending' | 'over' = 'reading'
  #failure: unknown

  constructor(open: () => Promise<OpenedChunks>) {
    this.#open = open
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<Batch> {
    if (this.#state === 'over') return OVER
    try {
      if (!this.#opened) {
        const opened = await this.#open()
        if ('whole' in opened) return this.#end(opened.whole)
        this.#opened = opened
      }
      const { body, decoder } = this.#opened
      while (this.#state === 'reading') {
        const chunks = this.#take(await readNext(body, decoder.isFinished))
        if (chunks.length > 0) return { done: false, value: chunks }
      }
      if (this.#isLeft()) {
        body.drop?.()
        return OVER
      }
      if (this.#failure !== undefined) throw this.#failure
      const rest = decoder.end()
      body.release?.()
      return this.#end(rest)
    } catch (thrown) {
      await this.return()
      throw thrown
    }
  }

  /** The state may have changed while the response was opened or read. */
  #isLeft(): boolean {
    return this.#state === 'over'
  }

  #take(bytes: Uint8Array | undefined): ChatChunk[] {
    const { decoder, faults } = this.#opened as Exclude<OpenedChunks, { whole: unknown }>
    const events = bytes ? eventsIn(this.#parser, bytes, faults) : this.#parser.end()
    const { chunks, failure, isDone } = decoder.take(events, bytes)
    this.#failure = failure
    if (this.#state === 'reading' && (!bytes || isDone || failure !== undefined)) this.#state = 'ending'
    return chunks
  }

  #end(chunks: ChatChunk[]): Batch {
    this.#state = 'over'
    return chunks.length > 0 ? { done: false, value: chunks } : OVER
  }

  async return(): Promise<Batch> {
    if (this.#state !== 'over') this.#opened?.body.drop?.()
    this.#state = 'over'
    return OVER
  }
}
