/**
 * An open HTTP request, as the app and its routes know it until its response is written, and whole responses. A large one is
 * sent as its client reads it, and its bytes count as held until then.
 */
import type { ServerSettings } from '../config/config.ts'
import type { Abortable, Follower } from '../kit/abortable.ts'
import type { Clock } from '../kit/clock.ts'
import { LinkedItem } from '../kit/linked-set.ts'
import { orderedAlphanumerics } from '../kit/secret.ts'
import type { TraceContext } from '../kit/trace-context.ts'
import type { BatchExchange } from '../protocols/shared/batch-exchange.ts'
import type { Capture } from '../protocols/shared/capture.ts'
import type { AdminCaller } from '../spec/admin.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import { fieldWarning, WARNING_HEADER } from './body.ts'
import type { AccessNote, Context, FinishedRequest, Outcome, Peer } from './context.ts'
import type { ByteBudget } from './load.ts'
import { pathOf, queryOf } from './request-parts.ts'
import { headOf } from './response-body.ts'
import type { MatchedRoute } from './route-order.ts'
import type { SocketMessage } from './socket.ts'

const NO_PARAMS: Record<string, string> = {}
const NO_ADMIN: AdminCaller = { actor: '', role: 'viewer', project_id: '', via: 'token' }
const NO_CALLER: Caller = { token_id: '', mayUseModel: () => false, mayUseFamily: () => false }
const ONCE = { once: true } as const

/** The same for all requests of an app. */
export type LiveParts = {
  settings: ServerSettings
  clock: Clock
  budget: ByteBudget
  addHeaders(headers: Record<string, string>, context: Context): void
  /** The response of its route, or to an error; then what every response has. */
  answer(context: Live): Response | Promise<Response>
  errorFor(thrown: unknown, context: Live): Response
  complete(response: Response, context: Live): Response
  /** Called once for each request. */
  ended(context: Live, outcome: Outcome): void
}

/** An open request: one object with all its fields, and without closures. */
export class Live extends LinkedItem<Live> implements Context, FinishedRequest, Abortable {
  readonly request: Request
  readonly request_id: string
  /** Shortened when it is over, for who records it. */
  path: string
  readonly arrived: number
  total_ms = 0
  outcome: Outcome = 'done'
  readonly peer: Peer
  matched: MatchedRoute | undefined
  params = NO_PARAMS
  trace: TraceContext | undefined = undefined
  capture: Capture | undefined = undefined
  caller = NO_CALLER
  admin = NO_ADMIN
  readonly note: AccessNote = {}
  readonly message: SocketMessage | undefined
  status = 0
  warning: string | undefined
  isSentLater = false
  hasHeaders = false
  is_explained = false
  /** Why it was aborted; undefined: it was not. */
  abortedBy: GatewayError | undefined
  readonly #parts: LiveParts
  #control: AbortController | undefined
  /** Mostly there is one, the request to a provider. */
  #follower: Follower | undefined
  #others: Follower[] | undefined
  #isOver = false
  #held = 0

  constructor(request: Request, peer: Peer, parts: LiveParts) {
    super()
    this.#parts = parts
    this.request = request
    this.request_id = requestId(request, parts.clock.now())
    this.path = pathOf(request)
    this.arrived = parts.clock.steady()
    this.peer = peer
    this.message = peer.message
    if (peer.message) this.note.websocket = peer.message.connection_id
    if (request.signal.aborted) this.leave()
    else request.signal.addEventListener('abort', this, ONCE)
  }

  get context(): this {
    return this
  }

  /** A method, since the parameters and variables of an asynchronous function would be two objects more for each request. */
  async respond(): Promise<Response> {
    let response: Response
    try {
      response = await this.#parts.answer(this)
    } catch (thrown) {
      response = this.#parts.errorFor(thrown, this)
      if (this.request.method === 'HEAD') response = await headOf(response)
    }
    return this.#parts.complete(response, this)
  }

  /** The signal of the request was aborted. */
  handleEvent(): void {
    this.leave()
  }

  leave(): void {
    this.abort(new GatewayError('client_closed_request', 'The client has left.', { has_left: true }))
  }

  abort(reason: GatewayError): void {
    if (this.abortedBy) return
    this.abortedBy = reason
    this.#control?.abort(reason)
    const followers = [this.#follower, ...(this.#others ?? [])]
    for (const follower of followers) follower?.handleEvent()
  }

  get exchange(): BatchExchange | undefined {
    return this.peer.exchange
  }

  /** It collects the request of a line for its vendor: no client has made it. */
  get isCollected(): boolean {
    return this.exchange !== undefined && this.exchange.result === undefined
  }

  get aborted(): boolean {
    return this.abortedBy !== undefined
  }

  get reason(): GatewayError | undefined {
    return this.abortedBy
  }

  get ending(): Abortable {
    return this
  }

  addEventListener(_: 'abort', follower: Follower): void {
    if (!this.#follower) this.#follower = follower
    else {
      this.#others ??= []
      this.#others.push(follower)
    }
  }

  removeEventListener(_: 'abort', follower: Follower): void {
    if (this.#follower === follower) this.#follower = undefined
    else if (this.#others) this.#others = this.#others.filter((other) => other !== follower)
  }

  get signal(): AbortSignal {
    if (!this.#control) {
      this.#control = new AbortController()
      if (this.abortedBy) this.#control.abort(this.abortedBy)
    }
    return this.#control.signal
  }

  get route(): string | undefined {
    return this.matched?.route.path
  }

  get address(): string {
    return clientAddress(this.request, this.peer, this.#parts.settings)
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

  withHeaders(headers: Record<string, string>): Record<string, string> {
    this.hasHeaders = true
    headers['x-request-id'] = this.request_id
    headers['request-id'] = this.request_id
    if (this.warning !== undefined) headers[WARNING_HEADER] = this.warning
    this.#parts.addHeaders(headers, this)
    return headers
  }

  noteFields(body: unknown): void {
    const fields = this.matched?.fields
    if (fields) this.warning = fieldWarning(body, fields)
  }

  finish(outcome: Outcome): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#held > 0) this.#parts.budget.release(this.#holder, this.#held)
    this.request.signal.removeEventListener('abort', this)
    this.#parts.ended(this, this.abortedBy?.code === 'client_closed_request' ? 'client_gone' : outcome)
  }
}

/** The client's own id where it is safe in a log; otherwise a generated one. */
function requestId(request: Request, now_ms: number): string {
  const given = request.headers.get('x-request-id')
  return given !== null && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${orderedAlphanumerics(now_ms, 24)}`
}

/** Behind a trusted proxy: the address that the proxy saw, the last of its list. */
function clientAddress(request: Request, peer: Peer, { trust_proxy }: ServerSettings): string {
  const forwarded = trust_proxy ? request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() : ''
  return forwarded || peer.address
}

/** Smaller ones fit into the buffers of a connection. */
const LARGE_CHARACTERS = 256 * 1024
const SLICE_CHARACTERS = 64 * 1024
/** A client that reads nothing for this long is disconnected. */
const STALLED_MILLISECONDS = 60_000

type ResponseParts = { context: Context; clock: Clock; headers?: Record<string, string> | undefined }

export function jsonResponse(value: unknown, parts: ResponseParts): Response {
  const { context, clock, headers } = parts
  return textResponse(JSON.stringify(value), context, clock, { 'content-type': JSON_TYPE, ...headers })
}

export const JSON_TYPE = 'application/json;charset=utf-8'

/** The runtime would copy a large text into memory that nothing counts, and keep it until the client has read it. */
export function textResponse(text: string, context: Context, clock: Clock, headers: Record<string, string>): Response {
  const body = text.length > LARGE_CHARACTERS ? pulled(text, context, clock) : text
  return new Response(body, { headers: context.withHeaders(headers) })
}

function pulled(whole: string, context: Context, clock: Clock): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let text = whole
  let at = 0
  let lastReadAt = clock.steady()
  let cancelTimer = () => {}
  context.sendLater(bytesInMemory(text))

  function end(outcome: Outcome): void {
    text = ''
    cancelTimer()
    context.finish(outcome)
  }

  /** One timer for the whole response, set again when it fires. */
  function watch(controller: ReadableStreamDefaultController, ms = STALLED_MILLISECONDS): void {
    cancelTimer = clock.after(ms, () => {
      const left = lastReadAt + STALLED_MILLISECONDS - clock.steady()
      if (left > 0) return watch(controller, left)
      end('client_gone')
      controller.error(new Error('The client read nothing for too long.'))
    })
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        watch(controller)
        const stop = () => {
          end('cut')
          controller.error(new Error('The request was aborted.'))
        }
        context.signal.addEventListener('abort', stop, { once: true })
      },
      pull(controller) {
        lastReadAt = clock.steady()
        if (at >= text.length) {
          end('done')
          controller.close()
          return
        }
        const next = sliceEnd(text, at)
        controller.enqueue(encoder.encode(text.slice(at, next)))
        at = next
      },
      cancel() {
        end('client_gone')
      },
    },
    { highWaterMark: 0 },
  )
}

/** The runtime holds a text with one byte a character, or with two if it has a character beyond Latin-1. */
const bytesInMemory = (text: string): number => (BEYOND_LATIN_1.test(text) ? 2 * text.length : text.length)

const BEYOND_LATIN_1 = /[^\0-\xff]/

/** Never between the two halves of a character outside the basic plane. */
function sliceEnd(text: string, at: number): number {
  const end = Math.min(at + SLICE_CHARACTERS, text.length)
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end + 1 : end
}
