/** One HTTP request, and the route that it is matched against. */
import type { TSchema } from 'typebox'
import type { Abortable } from '../kit/abortable.ts'
import type { TraceContext } from '../kit/trace-context.ts'
import type { BatchExchange } from '../protocols/shared/batch-exchange.ts'
import type { Capture } from '../protocols/shared/capture.ts'
import type { AdminCaller, Right } from '../spec/admin.ts'
import type { ErrorCode, GatewayError } from '../spec/error.ts'
import type { Operation } from '../spec/operation.ts'
import type { Caller } from '../spec/token.ts'
import type { SocketHandler, SocketMessage, SocketProtocol } from './socket.ts'

/** `done`: the response was sent in full. `client_gone`: the client left first. `cut`: the response was cut short. */
export type Outcome = 'done' | 'client_gone' | 'cut'

/** What HTTP knows of a request, for the access log. Never a prompt, a response or a secret. */
export type AccessNote = {
  token_id?: string
  /** The model of a stored task that was read; the pipeline knows the model of a call. */
  model?: string
  stream?: boolean
  /** The id of the request that opened the WebSocket, for a call that is a message of one. */
  websocket?: string
  /** Milliseconds from arrival to the first byte of the response body. */
  first_byte_ms?: number
  error?: ErrorCode
  upstream_status?: number
}

/** The other end of a connection, as the listener knows it. */
export type Peer = {
  readonly address: string
  /** The request is this message of its WebSocket. */
  readonly message?: SocketMessage
  /** Whose request it is, where the gateway makes it itself; no connection has one. */
  readonly caller?: Caller
  /** That request is a line of a batch which a vendor executes. */
  readonly exchange?: BatchExchange
  /** It has connected to the listener of the admin API. */
  readonly isAdmin?: true
  /** It has connected to the listener of the metrics. */
  readonly isMetrics?: true
  /** Few file descriptors are left: its connection is closed after the response, and only health is reported. */
  readonly isCrowded?: boolean
  /** The process is being replaced: its connection is closed after the response, so that the client opens another one. */
  readonly isRetiring?: boolean
  /** Called when the request is over: its connection may be kept alive, and is closed where its client has stopped reading. */
  ended?(outcome: Outcome): void
  /** Makes the connection a WebSocket; false where the request's headers do not allow it. Absent: it cannot. */
  upgrade?(handler: SocketHandler, headers: Record<string, string>): boolean
}

export type FinishedRequest = {
  readonly context: Context
  /** As the client sent it, at most 200 characters. */
  readonly path: string
  readonly status: number
  readonly outcome: Outcome
  readonly total_ms: number
}

export type Context = {
  request: Request
  request_id: string
  /** As it was sent, without the query. */
  readonly path: string
  /** The pattern of the route that it was matched to; undefined: none. */
  readonly route: string | undefined
  /** The trace that it belongs to; undefined: none is recorded. */
  trace: TraceContext | undefined
  /** What is to be noted of its call; absent: nothing. */
  capture?: Capture | undefined
  /** Path parameters, percent-decoded. */
  params: Record<string, string>
  /** The value of a request header; null when absent. */
  header(name: string): string | null
  query(): URLSearchParams
  /** Aborted, with the reason, when the client has left or when the gateway stops for good. */
  readonly signal: AbortSignal
  /** The same as `signal`, for who needs no signal as such. */
  readonly ending: Abortable
  /** Aborts `signal` because the client has left. For a response that is still being written. */
  leave(): void
  /** Ends the request for the log, once. A response that is written later (`note.stream`) calls it at its end. */
  finish(outcome: Outcome): void
  /** Counts bytes of the body that are held until the request ends. Throws where too many are held. */
  hold(bytes: number): void
  /**
   * Announces a whole response that is written as its client reads it: counts its bytes, and leaves `finish` to the
   * writer.
   */
  sendLater(bytes: number): void
  /**
   * Adds what every response has besides its own headers: its request id, and what is known of its call. For a response
   * that is returned at once; the app adds them to any other.
   */
  withHeaders(headers: Record<string, string>): Record<string, string>
  /** The caller; a caller without rights on a public route. */
  caller: Caller
  /** When the access token expires by which the caller is known, in unix seconds; absent: it is an API token. */
  access_ends?: number
  /** The caller of a route of the admin API; without rights elsewhere. */
  admin: AdminCaller
  /** Whether the response contains the routing decision: the client asks for it and may have it. */
  is_explained: boolean
  /** The client's address. */
  address: string
  /** `isAdmin`: it has connected to the listener of the admin API. */
  readonly peer?: { readonly isAdmin?: true }
  /** When it arrived, by the steady clock. */
  arrived: number
  note: AccessNote
  /** Present where the request is a message of a WebSocket: its body is here, parsed. */
  message: SocketMessage | undefined
  /** Called with the JSON body of a request: the response warns of top-level fields that are probably misspelt. */
  noteFields(body: unknown): void
}

/** Who may use a route of the admin API. */
export type AdminAccess = {
  right: Right
  /**
   * How a project_admin is limited to its project. `own`: the route limits all it does to `context.admin.project_id`
   * where that is set. A function: the project of the object, `null` for an object of none; a project_admin of another
   * project gets 404. Absent: a project_admin may not use the route.
   */
  project?: 'own' | ((context: Context) => string | null | Promise<string | null>)
}

export type Route = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Hono's path syntax; `:model{.+}` takes raw slashes. */
  path: string
  /** The documented path, where the pattern differs: `/v1beta/models/{model}:embedContent`. */
  shown?: string
  /** Whether no token is needed: never, or not for a request that is authorized otherwise, such as by a signed link. */
  public?: true | ((context: Context) => boolean)
  /** Identifies the caller of a route that accepts more than API tokens; undefined: as at all others. */
  authenticate?(context: Context): Promise<Caller> | undefined
  /** `WWW-Authenticate` of its 401; undefined: `Bearer`. */
  challenge?(context: Context): string | undefined
  /** A route of the admin API: needs an admin token or a session, never an API token. */
  admin?: AdminAccess
  /** Serves stored files: the only routes at `server.files_base_url`. */
  serves_files?: true
  /** Served only at the listener of the metrics, which serves nothing else. */
  only_at_metrics?: true
  /** Its paths have no other methods, though the pattern of another route matches them: `x:generateContent` is no model. */
  exclusive?: true
  /** Answered under any load: for probes and administration. */
  answers_under_load?: true
  /** Left out of the OpenAPI document. */
  hidden?: true
  operation: Operation
  /**
   * How this route's family encodes an error, and the schema of such a body; the OpenAI form when absent. `request` is
   * for a path that several families share.
   */
  encodeError?(error: GatewayError, request_id?: string, request?: Request): unknown
  /** The HTTP status of an error in this route's family; absent: that of the error's code. */
  errorStatus?(error: GatewayError): number
  /** Errors of unknown paths below this one have the form of this route. */
  errors_below?: string
  errorSchema?: TSchema
  handle(context: Context): Response | Promise<Response>
  /** How the path speaks over a WebSocket; absent: it does not. */
  socket?: SocketProtocol
  /** The same for one request, whose query or headers decide. */
  socketFor?(context: Context): SocketProtocol | Promise<SocketProtocol>
}
