/** A chat API for clients: how it decodes requests, encodes responses and reports errors. It has no HTTP types. */
import type { Call } from '../../../calls/call.ts'
import type { ClientRequest, ErrorFormat } from '../../../calls/endpoint.ts'
import type { SentStream } from '../../../calls/pipeline.ts'
import type { Chosen } from '../../../models/catalogue.ts'
import type { ChatRequest } from '../../../protocols/shared/canonical.ts'
import type { ProtocolPassthrough, ResponseEncoder, ResponseHead } from '../../../protocols/shared/protocol.ts'
import type { EndpointFamily } from '../../../spec/endpoint-family.ts'
import type { GatewayError } from '../../../spec/error.ts'
import type { Operation } from '../../../spec/operation.ts'
import type { MapFiles } from '../../files/file-references.ts'
import type { Framing } from '../../shared/event-stream.ts'

/** A decoded request, and the encoder of its response. */
export type Exchange = {
  request: ChatRequest
  writer: Dialect['writer']
  /** For a stream that is not server-sent events; replaces the framing of the dialect. */
  framing?: Framing
  /** How this request may pass as bytes; replaces the passthrough of the dialect. */
  passthrough?: ProtocolPassthrough
  /** Called before the first target is; throws where the call must not proceed. */
  admit?(call: Call): Promise<void>
  /** Why the request cannot be translated: `request` is minimal, and only `passthrough` can send it. */
  refusal?: GatewayError
}

export type EncodedBody = { content_type: string; text: string }

/** The response to a request that takes more than one call, or is executed later: a body, events, or a call that streams. */
export type Deferred = Chosen & ({ body: unknown } | { events: AsyncIterable<string> } | { stream: SentStream })

export type Dialect = ErrorFormat & {
  family: EndpointFamily
  /** The prefix of a response's id. */
  id_prefix: string
  path: string
  /** `errors` are those besides the errors of every chat API. */
  operation: Operation
  /** Whether its requests have the fields `models` and `provider`, which choose the routing. */
  has_routing_fields?: true
  /** The members of a body that hold arguments and results of tools as JSON: their numbers keep their digits. */
  exact?: readonly string[]
  /** Absent: server-sent events with a comment as keep-alive. */
  framing?: Framing
  /** Decodes a body. Throws GatewayError that names the field and its rule. `client`: absent if no HTTP client sent it. */
  parse(body: unknown, client?: Pick<ClientRequest, 'header'>): ChatRequest
  /** Where a body names files of the gateway: called only where the prefix of their ids is in its text. Absent: nowhere, or `read` resolves them. */
  files?: MapFiles
  /** Replaces `parse` where a request is more than its body. Throws as `parse` does. */
  read?(body: unknown, request: ClientRequest): Exchange | Promise<Exchange>
  /** Accepts a request that takes more than one call, or is executed later; undefined for all others. Throws as `parse` does. */
  defer?(body: unknown, request: ClientRequest): Promise<Deferred | undefined> | undefined
  /** The list without which no body is given to `defer`. Absent: each is. */
  deferred_by?: 'tools'
  /** `request_id` is for an error event within a stream. */
  writer(head: ResponseHead, request: ChatRequest, request_id: string): ResponseEncoder
  /** The same error with the field names of this protocol in `param` and in the message. */
  errorForClient?(error: GatewayError, request: ChatRequest): GatewayError
  /** The response to an error that this protocol does not report as one, such as a blocked prompt; undefined for others. */
  blocked?(error: GatewayError, head: ResponseHead, request: ClientRequest): EncodedBody | undefined
  /** Present if responses of providers of the same protocol may pass as bytes. */
  passthrough?: ProtocolPassthrough
}
