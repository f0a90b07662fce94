/** What a client's way of speaking must do for a chat request: read it, write its answer, and tell its errors. */
import type { TSchema } from 'typebox'
import type { Context, Operation } from '../../http/context.ts'
import type { Framing } from '../../http/event-stream.ts'
import type { ChatRequest } from '../../protocols/canonical.ts'
import type { ProtocolPassthrough, ResponseEncoder, ResponseHead } from '../../protocols/protocol.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import type { GatewayError } from '../../spec/error.ts'

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
