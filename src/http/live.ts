/** An open HTTP request: what the app and its routes know of it until its response is written. */
import type { ServerSettings } from '../config/config.ts'
import { orderedAlphanumerics } from '../kit/secret.ts'
import type { TraceContext } from '../kit/trace-context.ts'
import type { AdminCaller } from '../spec/admin.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { AccessNote, Context, Outcome } from './context.ts'
import { pathOf, queryOf } from './query.ts'
import type { SocketHandler, SocketMessage } from './socket.ts'
import { fieldWarning, type KnownFields } from './unknown-fields.ts'

/** The other end of a connection, as the listener knows it. */
export type Peer = {
  readonly address: string
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

export const NO_PARAMS: Record<string, string> = {}
const NO_ADMIN: AdminCaller = { actor: '', role: 'viewer', project_id: '', via: 'token' }
const NO_CALLER: Caller = { token_id: '', mayUseModel: () => false, mayUseFamily: () => false }

export type LiveParts = {
  peer: Peer
  settings: ServerSettings
  /** When it arrived: by the steady clock, and in unix milliseconds. */
  arrived: number
  arrived_ms: number
  budget: ByteBudget
  /** Called once. */
  ended(context: Live, outcome: Outcome): void
  message: SocketMessage | undefined
}

/** An open request. */
export class Live implements Context {
  readonly request: Request
  readonly request_id: string
  readonly path: string
  readonly arrived: number
  readonly peer: Peer
  params = NO_PARAMS
  route: string | undefined
  trace: TraceContext | undefined
  caller = NO_CALLER
  admin = NO_ADMIN
  readonly note: AccessNote = {}
  readonly message: SocketMessage | undefined
  status = 0
  /** The top-level fields that its route knows; undefined where it takes no JSON body. */
  fields: KnownFields | undefined
  warning: string | undefined
  readonly #control = new AbortController()
  readonly #parts: LiveParts
  #isOver = false
  #held = 0
  isSentLater = false
  is_explained = false

  constructor(request: Request, parts: LiveParts) {
    this.#parts = parts
    this.request = request
    this.request_id = requestId(request, parts.arrived_ms)
    this.path = pathOf(request)
    this.arrived = parts.arrived
    this.peer = parts.peer
    this.message = parts.message
    if (parts.message) this.note.websocket = parts.message.connection_id
    if (request.signal.aborted) this.leave()
    else request.signal.addEventListener('abort', this.leave, { once: true })
  }

  readonly leave = () =>
    this.abort(new GatewayError('client_closed_request', 'The client has left.', { has_left: true }))

  get signal(): AbortSignal {
    return this.#control.signal
  }

  get address(): string {
    return clientAddress(this.request, this.#parts)
  }

  header(name: string): string | null {
    return this.request.headers.get(name)
  }

  query(): URLSearchParams {
    return queryOf(this.request)
  }

  /** Whose bytes these are; empty: nobody is known yet. */
  get #holder(): string {
    return this.caller.token_id || this.admin.actor
  }

  hold(bytes: number): void {
    // The rest of a body whose request has ended, for example because it came too slowly, is not read any more.
    if (this.#isOver) throw new GatewayError('client_closed_request', 'The request is over.')
    this.#parts.budget.take(this.#holder, bytes)
    this.#held += bytes
  }

  sendLater(bytes: number): void {
    this.isSentLater = true
    this.#parts.budget.add(this.#holder, bytes)
    this.#held += bytes
  }

  abort(reason: GatewayError): void {
    this.#control.abort(reason)
  }

  noteFields(body: unknown): void {
    if (this.fields) this.warning = fieldWarning(body, this.fields)
  }

  finish(outcome: Outcome): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#held > 0) this.#parts.budget.release(this.#holder, this.#held)
    this.request.signal.removeEventListener('abort', this.leave)
    this.#parts.ended(this, hasLeft(this) ? 'client_gone' : outcome)
  }
}

const hasLeft = ({ signal }: Context): boolean => signal.aborted && signal.reason?.code === 'client_closed_request'

/** The client's own id where it is safe in a log; otherwise a generated one. */
function requestId(request: Request, now_ms: number): string {
  const given = request.headers.get('x-request-id')
  return given !== null && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${orderedAlphanumerics(now_ms, 24)}`
}

/** Behind a trusted proxy: the address that the proxy saw, the last of its list. */
function clientAddress(request: Request, { peer, settings }: { peer: Peer; settings: ServerSettings }): string {
  const forwarded = settings.trust_proxy ? request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() : ''
  return forwarded || peer.address
}
