/**
 * What a wire protocol does for its clients: it encodes responses, and passes the bytes of its own providers through.
 */
import type { GatewayError } from '../../spec/error.ts'
import type { Usage } from '../../spec/usage.ts'
import type { ChatChunk, ChatCompletion, ChatRequest } from './canonical.ts'
import type { Faults } from './upstream.ts'

/** The members that a response and all events of one request share. */
export type ResponseHead = { id: string; created: number; model: string }

/** Encodes the response to one request for its client. */
export type ResponseEncoder = {
  /** The body of a whole response. */
  whole(answer: ChatCompletion, usage: Usage): unknown
  /** The events of one batch, as text; empty if the client receives nothing for it. */
  encode(batch: ChatChunk[]): string
  /** Whether the end of the stream includes the usage, and so waits for it. */
  includesUsage: boolean
  /** The end of a successful stream. */
  end(usage: Usage | undefined): string
  /** The end of a failed stream. */
  fail(error: GatewayError): string
  /** Stores the response for its client, after it was encoded and before its end is sent. */
  store?(): Promise<void>
}

/** The context of one response that passes through. */
export type PassthroughParts = { head: ResponseHead; request: ChatRequest; writer: ResponseEncoder; faults: Faults }

/** The result of some bytes of the provider. */
export type PassthroughStep = {
  /** For the client: texts of whole events as latin1, one character per byte. None is empty. */
  events: string[]
  /**
   * For the meter, in order: the chunks of events that were parsed, and the text of those that were not. The text is
   * as it stands in JSON, in latin1.
   */
  received: (ChatChunk | string)[]
  /** The provider failed after these events. */
  failure?: GatewayError | undefined
  /** The provider has sent its last event. */
  isDone: boolean
}

/** One streamed response that passes through. */
export type PassthroughStream = {
  push(bytes: Uint8Array): PassthroughStep
  /**
   * Called after the last bytes. Returns the remaining events, an end that the provider left out, or the failure of a
   * cut stream.
   */
  close(): PassthroughStep
  /** Whether the response is complete, even if more bytes follow. */
  isFinished(): boolean
  includesUsage: boolean
  /** The events to send after everything that passed. */
  end(usage: Usage | undefined): string
}

/**
 * What the meter counts of a whole response. Without usage it counts the content, which may be decoded only when it is
 * read.
 */
export type CountedWhole = { readonly usage?: Usage | null | undefined; readonly choices: ChatCompletion['choices'] }

/** A whole response that passes through. */
export type PassthroughWhole = CountedWhole & {
  /** The body for the client. Called once. */
  encode(usage: Usage): unknown
}

/** Passthrough of a protocol, where the client and the provider have the same API. */
export type ProtocolPassthrough = {
  /** The client's headers that are forwarded to the provider, in lower case. */
  headers: readonly string[]
  /** The client's body for the provider, except for the model; undefined if it must be translated. */
  body(body: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined
  /**
   * What the gateway must know of a body that `parse` refuses because only its own provider understands all of it.
   * Throws like `parse`. Absent if `parse` refuses nothing that a provider accepts.
   */
  minimalRequest?(body: unknown): ChatRequest
  /** A whole response. Throws if it is invalid. */
  whole(text: string, parts: PassthroughParts): PassthroughWhole
  stream(parts: PassthroughParts): PassthroughStream
}
