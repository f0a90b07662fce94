/** How a family describes its endpoints: without HTTP types, so that one builder makes every route. */
import type { TSchema } from 'typebox'
import type { ConversationCache } from '../protocols/responses/client/items.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { GatewayError } from '../spec/error.ts'
import type { Operation } from '../spec/operation.ts'
import type { Call } from './call.ts'
import type { AnyMeter, Family, UsageOf } from './family.ts'

/** A call of a client, and what its request contains besides the body. */
export type ClientRequest = Call & {
  /** Path parameters, percent-decoded. */
  readonly params: Readonly<Record<string, string>>
  /** The value of a request header; null when absent. */
  header(name: string): string | null
  query(): URLSearchParams
  /** Present where the request is a message of a WebSocket. `isWarmUp`: it only prepares the conversation. */
  readonly message?: { readonly isWarmUp: boolean; readonly conversations: ConversationCache } | undefined
}

/** How an API encodes an error, its status, and the schema of such a body; absent: the OpenAI form. */
export type ErrorFormat = {
  /** The HTTP status of an error in this API; absent: that of the error's code. */
  errorStatus?(error: GatewayError): number
  encodeError?(error: GatewayError, request_id?: string): unknown
  errorSchema?: TSchema
}

/** An endpoint that receives a JSON body and returns one. */
export type JsonEndpoint<Input, Work, Answer, M extends AnyMeter> = ErrorFormat & {
  path: string
  operation: Operation
  /** Decides how large a body may be; absent: text. */
  contents?: 'text' | 'media'
  family: Family<Input, Work, Answer, M>
  /** The family that the caller must be allowed to use; checked before the body is decoded. */
  endpoint: EndpointFamily
  /** Throws GatewayError that names the field and its rule. */
  decode(body: unknown, request: ClientRequest): Input | Promise<Input>
  encode(answered: Answered<Input, Answer, M>, request: ClientRequest): unknown
  /** The same error with the field names of this API. */
  errorForClient?(error: GatewayError): GatewayError
}

type Answered<Input, Answer, M extends AnyMeter> = {
  input: Input
  answer: Answer
  usage: UsageOf<M>
  /** The public id of the model that served the call. */
  model: string
}
