/**
 * Reads a streamed response: its events, the object in each, and the chunks, one batch for each read of its bytes. Detects
 * whether it is complete.
 */
import { isRecord, type JsonRecord, parseJson, parseJsonKeeping } from '../../kit/json.ts'
import { createSseParser, type SseEvent, type SseParser, SseTooLong } from '../../kit/sse.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ChatChunk } from './canonical.ts'
import { type ByteSource, type Faults, holdsError } from './upstream.ts'

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

type PayloadParts = {
  faults: Faults
  /** The body has ended, so its last event may be incomplete. */
  atEnd: boolean
  /** Whether an event reports an error in a form that is specific to this protocol. */
  isFailure?: ((payload: JsonRecord, event: string) => boolean) | undefined
  /** The members with arguments of tools, whose numbers keep their digits. */
  exact?: readonly string[] | undefined
}

/** The marker after which OpenAI-shaped providers send nothing. */
export const isDoneMark = (data: string): boolean => data.length < 64 && data.trim() === '[DONE]'

/**
 * The object in an event, or the error that it reports; undefined if the event has no content. Some providers send
 * empty data or a comment after `data:` to keep a connection alive, and some wrap the object in a list.
 */
export function payloadOf(
  { event, data }: SseEvent,
  { faults, atEnd, isFailure, exact }: PayloadParts,
): JsonRecord | GatewayError | undefined {
  if (data === '' || data.charCodeAt(0) === 58 || isDoneMark(data)) return undefined
  const parsed = exact ? parseJsonKeeping(data, exact) : parseJson(data)
  const payload: unknown = Array.isArray(parsed) ? parsed[0] : parsed
  if (!isRecord(payload)) {
    if (parsed === undefined && atEnd) return undefined
    return event === 'error' ? faults.inAnswer(data) : faults.notUnderstood('sent an event that is not a JSON object')
  }
  return event === 'error' || holdsError(payload) || isFailure?.(payload, event) ? faults.inAnswer(payload) : payload
}

/** The same of a parsed value that is no event. Throws the error. */
export function objectIn(parsed: unknown, faults: Faults): JsonRecord {
  const payload: unknown = Array.isArray(parsed) && parsed.length > 0 ? parsed[0] : parsed
  if (!isRecord(payload)) throw faults.notUnderstood('sent something that is not a JSON object')
  if (holdsError(payload)) throw faults.inAnswer(payload)
  return payload
}

type SourceParts = {
  answer: ByteSource
  faults: Faults
  /** Whether the provider has sent a finish reason. If so, a broken or silent connection counts as the end. */
  isFinished?: () => boolean
  /** The longest event in characters, if not the default. */
  limit?: number
}

/** Returns the events of one read. Without bytes, they are the last events. */
export function createEventSource({ answer, faults, isFinished = () => false, limit }: SourceParts) {
  const parser = createSseParser(limit)
  return async (): Promise<{ bytes: Uint8Array | undefined; events: SseEvent[] }> => {
    const bytes = await readNext(answer, isFinished)
    return { bytes, events: bytes ? eventsIn(parser, bytes, faults) : parser.end() }
  }
}

/** The next bytes; undefined at the end, which is also a connection that breaks once the response is finished. */
async function readNext(answer: ByteSource, isFinished: () => boolean): Promise<Uint8Array | undefined> {
  try {
    return await answer.read()
  } catch (error) {
    const isLost = error instanceof GatewayError && (error.code === 'upstream_cut' || error.code === 'upstream_timeout')
    if (isLost && isFinished()) return undefined
    throw error
  }
}

export function eventsIn(parser: SseParser, bytes: Uint8Array, faults: Faults): SseEvent[] {
  try {
    return parser.push(bytes)
  } catch (thrown) {
    if (thrown instanceof SseTooLong) throw faults.notUnderstood(`sent ${thrown.message}`)
    throw thrown
  }
}

export type EventReader = {
  /** The chunk for one event; undefined if the event has no content. */
  take(event: JsonRecord): ChatChunk | undefined
  isFinished(): boolean
  isDone(): boolean
  isEmpty?(): boolean
  /** Whether an event is an error in a form that is specific to this protocol. */
  isFailure?(event: JsonRecord): boolean
  /** The members with arguments of tools, whose numbers keep their digits. */
  exact?: readonly string[]
}

export function createEventDecoder(reader: EventReader, faults: Faults): ChunkDecoder {
  const isFailure =
    reader.isFailure && ((read: JsonRecord, event: string) => reader.isFailure?.(typed(read, event)) === true)
  return {
    isFinished: reader.isFinished,
    take(events, bytes) {
      const chunks: ChatChunk[] = []
      const parts = { faults, atEnd: !bytes, isFailure, exact: reader.exact }
      let failure: GatewayError | undefined
      for (const event of events) {
        const read = payloadOf(event, parts)
        if (read instanceof GatewayError) failure = read
        else {
          const chunk = read && reader.take(typed(read, event.event))
          if (chunk) chunks.push(chunk)
        }
        if (failure || reader.isDone()) break
      }
      if (reader.isEmpty?.()) throw faults.notUnderstood('answered with an empty response')
      const isDone = failure !== undefined || reader.isDone()
      return { chunks, failure: reader.isFinished() ? undefined : failure, isDone }
    },
    end() {
      if (!reader.isFinished()) throw faults.cut()
      return []
    },
  }
}

/** Some imitations of an API name the type only in `event:`. */
const typed = (payload: JsonRecord, event: string): JsonRecord =>
  payload.type === undefined ? { ...payload, type: event } : payload
