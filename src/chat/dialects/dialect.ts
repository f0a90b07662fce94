/** What a client's way of speaking must do for a chat request: read it, write its answer, and tell its errors. */
import type { TSchema } from 'typebox'
import type { Context, Operation } from '../../http/context.ts'
import type { Framing } from '../../http/event-stream.ts'
import type { Faults } from '../../providers/provider.ts'
import type { ChatChunk, ChatCompletion } from '../../spec/chat-completion.ts'
import type { ChatRequest } from '../../spec/chat-request.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { Usage } from '../../spec/usage.ts'

/** What every answer and every event of one request carries alike. */
export type ResponseHead = { id: string; created: number; model: string }

/** The answer to one request, written for its client. */
export type ResponseEncoder = {
  /** The body of a whole answer. */
  whole(answer: ChatCompletion, usage: Usage): unknown
  /** The events of one batch, as text; empty when there is nothing for the client in it. */
  write(batch: ChatChunk[]): string
  /** Whether the end of the stream tells the usage, and so waits for it. */
  includesUsage: boolean
  /** The end of a stream that went well. */
  end(usage: Usage | undefined): string
  /** The end of a stream that broke. */
  fail(error: GatewayError): string
  /** Remembers the answer for its client, after it was written and before its end is told. */
  keep?(): Promise<void>
}

/** A request that was read, and who writes its answer. */
export type Exchange = {
  request: ChatRequest
  writer: Dialect['writer']
  /** Of a stream that is no server-sent events, in place of the dialect's. */
  framing?: Framing
  /** How this one request may pass as bytes, in place of the dialect's own way. */
  passthrough?: ProtocolPassthrough
  /** Why it cannot be put into the house's words: `request` is its outline, and only `relay` can take it. */
  refusal?: GatewayError
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
  heard: (ChatChunk | string)[]
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
  whole(text: string, parts: PassthroughParts): { answer: ChatCompletion; write(usage: Usage): unknown }
  stream(parts: PassthroughParts): PassthroughStream
}

export type Dialect = {
  family: EndpointFamily
  /** Before the random part of an answer's id. */
  id_prefix: string
  path: string
  /** `errors` are those beside what every dialect of chat may answer. */
  operation: Operation
  /** What its streams send in silence, where that is no comment. */
  framing?: Framing
  /** A client's JSON in the house's words. Throws GatewayError naming the field and what it may be. */
  parse(body: unknown): ChatRequest
  /** Reads a request in place of `parse`, where its body alone does not say all of it. Throws as `parse` does. */
  read?(body: unknown, context: Context): Exchange | Promise<Exchange>
  /** The answer to a request that is no exchange, such as one for later; undefined for all others. Throws as `parse` does. */
  instead?(body: unknown, context: Context): Promise<Response | undefined>
  /** `request_id` is for what is told of an error in mid-stream. */
  writer(head: ResponseHead, request: ChatRequest, request_id: string): ResponseEncoder
  /** The body of an error that is told with its status; the OpenAI shape when absent. */
  writeError?(error: GatewayError, request_id?: string): unknown
  /** How such a body looks. */
  errorSchema?: TSchema
  /** The same error with its `param`, and its place in the message, as the client knows them. */
  errorForClient?(error: GatewayError, request: ChatRequest): GatewayError
  /** The answer to an error that is no error in this protocol, such as a prompt that was blocked; undefined for others. */
  blocked?(error: GatewayError, head: ResponseHead, request: Request): Response | undefined
  /** Present where answers of vendors of this family may pass as bytes. */
  passthrough?: ProtocolPassthrough
}
