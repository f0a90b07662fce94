/** What a client's way of speaking must do for a chat request: read it, write its answer, and tell its errors. */
import type { Chosen } from '../../models/catalogue.ts'
import type { ClientRequest, ErrorFormat } from '../../pipeline/endpoint.ts'
import type { ChatRequest } from '../../protocols/canonical.ts'
import type { ProtocolPassthrough, ResponseEncoder, ResponseHead } from '../../protocols/protocol.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { Operation } from '../../spec/operation.ts'

/** The form of a stream: its media type (default: server-sent events), and what it sends while nothing happens. */
type Framing = { content_type?: string; keep_alive: string }

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

export type EncodedBody = { content_type: string; text: string }

/** The response to a request that is executed later: a body, or the events that follow. */
export type Deferred = Chosen & ({ body: unknown } | { events: AsyncIterable<string> })

export type Dialect = ErrorFormat & {
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
  read?(body: unknown, request: ClientRequest): Exchange | Promise<Exchange>
  /** Accepts a request that is executed later; undefined for all others. Throws as `parse` does. */
  defer?(body: unknown, request: ClientRequest): Promise<Deferred | undefined>
  /** `request_id` is for what is told of an error in mid-stream. */
  writer(head: ResponseHead, request: ChatRequest, request_id: string): ResponseEncoder
  /** The same error with its `param`, and its place in the message, as the client knows them. */
  errorForClient?(error: GatewayError, request: ChatRequest): GatewayError
  /** The answer to an error that is no error in this protocol, such as a prompt that was blocked; undefined for others. */
  blocked?(error: GatewayError, head: ResponseHead, request: ClientRequest): EncodedBody | undefined
  /** Present where answers of vendors of this family may pass as bytes. */
  passthrough?: ProtocolPassthrough
}
