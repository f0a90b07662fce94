/** What a wire protocol does for its clients: it encodes answers, and passes the bytes of its own providers through. */

import type { GatewayError } from '../spec/error.ts'
import type { Usage } from '../spec/usage.ts'
import type { ChatChunk, ChatCompletion, ChatRequest } from './canonical.ts'
import type { Faults } from './upstream.ts'

/** What every answer and every event of one request carries alike. */
export type ResponseHead = { id: string; created: number; model: string }

/** The answer to one request, written for its client. */
export type ResponseEncoder = {
  /** The body of a whole answer. */
  whole(answer: ChatCompletion, usage: Usage): unknown
  /** The events of one batch, as text; empty when there is nothing for the client in it. */
  encode(batch: ChatChunk[]): string
  /** Whether the end of the stream tells the usage, and so waits for it. */
  includesUsage: boolean
  /** The end of a stream that went well. */
  end(usage: Usage | undefined): string
  /** The end of a stream that broke. */
  fail(error: GatewayError): string
  /** Remembers the answer for its client, after it was written and before its end is told. */
  store?(): Promise<void>
}

/** What the relay lane knows of one answer. */
export type PassthroughParts = { head: ResponseHead; request: ChatRequest; writer: ResponseEncoder; faults: Faults }

/** What came of some bytes of the vendor's. */
export type PassthroughStep = {
  /** For the client: whole events, one sign a byte (latin1). */
  events: string
  /**
   * What the meter has to know, in its order: of events that were read, their chunks; of those that were not, the text in
   * them as it stands within the quotes of JSON, one sign a byte.
   */
  received: (ChatChunk | string)[]
  /** The vendor failed after these events. */
  failure?: GatewayError | undefined
  /** The vendor has said that nothing more comes. */
  isDone: boolean
}

/** One streamed answer on its way through. */
export type PassthroughStream = {
  push(bytes: Uint8Array): PassthroughStep
  /** After the last bytes: what was left, what the vendor forgot, or the failure that it is no end at all. */
  close(): PassthroughStep
  /** Whether the answer is complete, whatever still comes. */
  isFinished(): boolean
  includesUsage: boolean
  /** What has to be told after all that passed. */
  end(usage: Usage | undefined): string
}

/** Where both sides speak the same: how what its own vendors say passes as bytes. */
export type ProtocolPassthrough = {
  /** The client's headers that go to the vendor, in lower case. */
  headers: readonly string[]
  /** The client's body as its vendor may have it, but for the model; undefined for one that must be translated. */
  body(body: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined
  /**
   * What the house must know of a body that `parse` refuses because only its own vendor understands all of it. Throws
   * as `parse` does. Absent where `parse` refuses nothing that a vendor takes.
   */
  minimalRequest?(body: unknown): ChatRequest
  /** A whole answer: what of it counts, and the body for the client. Throws what is wrong with it. */
  whole(text: string, parts: PassthroughParts): { answer: ChatCompletion; encode(usage: Usage): unknown }
  stream(parts: PassthroughParts): PassthroughStream
}
