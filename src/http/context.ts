/** One request on its way through the house, and the table of routes it is matched against. */
import type { TSchema } from 'typebox'
import type { ErrorCode, GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'

/** `done`: all was said. `client_gone`: the client left first. `cut`: the answer broke off. */
export type Outcome = 'done' | 'client_gone' | 'cut'

/** What HTTP itself knows of a request, for the access log. Never a prompt, a response or a secret. */
export type AccessNote = {
  token_id?: string
  /** The model of a stored task that was read; of a call, the pipeline knows it. */
  model?: string
  stream?: boolean
  /** Milliseconds from arrival to the first byte of the response body. */
  first_byte_ms?: number
  error?: ErrorCode
  upstream_status?: number
}

/** A request that is over. */
export type FinishedRequest = {
  context: Context
  /** As it came, at most 200 characters. */
  path: string
  status: number
  outcome: Outcome
  total_ms: number
}

export type Context = {
  request: Request
  request_id: string
  /** Path parameters, percent-decoded. */
  params: Record<string, string>
  /** Aborted, with the reason, when the client has left or when the gateway stops for good. */
  signal: AbortSignal
  /** The client has left: aborts `signal`. For an answer that is still being written. */
  leave(): void
  /** Ends the request for the log. An answer that is written later (`note.stream`) calls it at its end; once. */
  finish(outcome: Outcome): void
  /** Who calls; a public route has nobody. */
  caller: Caller
  /** The client's address. */
  address: string
  /** Unix milliseconds of arrival. */
  arrived: number
  note: AccessNote
}

export type Parameter = { description: string; schema: TSchema; example?: unknown }

/** What the OpenAPI document says of a route. */
export type Operation = {
  summary: string
  description?: string
  tag: string
  request?: TSchema
  /** The request may come as `multipart/form-data` too, with files in these fields. */
  files?: string[]
  /** What may stand in the query and in the headers. */
  query?: Record<string, Parameter>
  headers?: Record<string, Parameter>
  response?: TSchema
  /** The chunk schema, when the route also answers as a stream of events. */
  stream?: TSchema
  /** Of a success that is no JSON, or not always: the other media types. */
  media?: string[]
  errors?: ErrorCode[]
  /** Other answers without an error, by status: what they mean. */
  also?: Record<number, string>
  /** What the headers of a success tell besides what all answers do. */
  tells?: Record<string, string>
  /** What is told in a body of its own with a status that is no success. */
  refusal?: { status: number; when: string; response: TSchema }
  params?: Record<string, string>
  example?: unknown
}

export type Route = {
  method: 'GET' | 'POST' | 'DELETE'
  /** Hono's path syntax; `:model{.+}` takes raw slashes. */
  path: string
  /** The path as people write it, where the pattern does not tell: `/v1beta/models/{model}:embedContent`. */
  shown?: string
  /** No token needed: never, or not for a request that is let in by other means, such as a signed link. */
  public?: true | ((context: Context) => boolean)
  /** Serves stored files: the only routes at `server.files_base_url`. */
  serves_files?: true
  /** Left out of the OpenAPI document. */
  hidden?: true
  operation: Operation
  /**
   * How this route's family writes an error, and how such a body looks; the OpenAI shape when absent. `request` is for a
   * path that several families share.
   */
  writeError?(error: GatewayError, request_id?: string, request?: Request): unknown
  errorSchema?: TSchema
  handle(context: Context): Response | Promise<Response>
}
