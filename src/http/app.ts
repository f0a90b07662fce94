/** Handles every HTTP request: request id, caller, route, errors, CORS, and the event for the access log. */
import { Hono } from 'hono'
import type { ServerSettings } from '../config/config.ts'
import type { Clock } from '../kit/clock.ts'
import { LinkedSet } from '../kit/linked-set.ts'
import type { Log } from '../kit/log.ts'
import { asGatewayError, errorBody, GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { AdminAccess, Context, FinishedRequest, Outcome, Peer, Route } from './context.ts'
import { addCorsHeaders, isPreflight, preflight } from './cors.ts'
import { errorResponse } from './errors.ts'
import { isFilesHost } from './files-host.ts'
import { Live, type LiveParts } from './live.ts'
import { createByteBudget } from './load.ts'
import { assertKnownHost, assertOneHost, isServedAt, isWebSocket, pathOf, presentedSecret } from './request-parts.ts'
import { headOf, isLeftUnread } from './response-body.ts'
import type { OpenRequest } from './revoked-calls.ts'
import { bySpecificity, isLiteral, type MatchedRoute, matchable, methodsByPath } from './route-order.ts'
import { createSockets, messageRequest, type SocketProtocol, upgradeHeaders } from './socket.ts'
import { createPathHints } from './unknown-path.ts'

/** Identifies the caller; throws invalid_api_key. Synchronous where possible, so that the hot path awaits nothing. */
export type Authenticate = (secret: string | undefined, context: Context) => Caller | Promise<Caller>

type AppParts = {
  routes: Route[]
  authenticate: Authenticate
  settings: ServerSettings
  clock: Clock
  log: Log
  /** Identifies the caller of a route of the admin API, and checks what it may do. Sets `context.admin`. */
  admitAdmin?(context: Context, access: AdminAccess): Promise<void>
  /** Whether the admin API has a listener of its own, and answers only there. */
  hasAdminListener?: boolean
  /** Refuses a request of this token while the process is overloaded: throws server_is_overloaded. */
  admitLoad?(token_id: string): void
  /** Called at the end of each request. */
  onFinished(request: FinishedRequest): void
  /** Called for each request that arrives. */
  onArrival?: ((context: Context) => void) | undefined
  /** Called for each request of a known caller before its route is. Throws GatewayError. */
  readOptions?(context: Context, settings: ServerSettings): void
  contents?: { readonly mayRecord: boolean; admit(context: Context): void } // the same, after it: what is recorded
  /** Sets further headers of a response. */
  addHeaders?(headers: Record<string, string>, context: Context): void
}

type App = {
  fetch(request: Request, peer?: Peer): Promise<Response>
  open(): number // the requests whose response is not yet written
  /** The number of WebSockets that are open. */
  sockets(): number
  /** Of request bodies and unread answers in memory. */
  bytes(): number
  requests(): Iterable<OpenRequest>
  /** Waits for open requests until the deadline, then aborts them. */
  close(options: { deadline_ms: number }): Promise<void>
}

type Env = { Bindings: { live: Live } }

const BROKEN_ENCODING = /%(?![0-9A-Fa-f]{2})/
const CUT_MILLISECONDS = 1_000 // how long aborted requests may take to send their error

export function createApp({
  routes,
  authenticate,
  settings,
  clock,
  log,
  onFinished,
  onArrival,
  readOptions = () => {},
  contents,
  addHeaders = () => {},
  admitLoad = () => {},
  hasAdminListener = false,
  admitAdmin = () => Promise.reject(new GatewayError('unknown_url', 'The admin API is off.')),
}: AppParts): App {
  const live = new LinkedSet<Live>()
  const sockets = createSockets({ clock })
  const budget = createByteBudget(settings)
  const parts: LiveParts = { settings, clock, budget, addHeaders, answer, errorFor, complete, ended }
  let closing = false
  /** Resolved when the last open request is over or abandoned; created when `close` waits for it. */
  let empty: PromiseWithResolvers<void> | undefined

  const hintFor = createPathHints(routes)
  const hono = new Hono<Env>({ getPath: pathOf })
  // The response to an error is made in one place, by `respond`.
  hono.onError((thrown) => {
    throw thrown
  })
  /** Routes without parameters are looked up by path and method; Hono matches the others. */
  const direct = new Map<string, Map<string, MatchedRoute>>()
  for (const group of bySpecificity(routes)) {
    for (const route of group) {
      const matched = matchable(route)
      if (isLiteral(route)) direct.set(route.path, (direct.get(route.path) ?? new Map()).set(route.method, matched))
      hono.on(route.method, route.path, async ({ env, req }) => {
        env.live.params = req.param()
        const response = await handle(matched, env.live)
        return env.live.request.method === 'HEAD' ? headOf(response) : response
      })
    }
    for (const [path, allow] of methodsByPath(group)) hono.all(path, ({ env }) => withoutRoute(env.live, allow))
  }
  hono.notFound(({ env, req }) => {
    const { path, request } = env.live
    // A browser that is refused here could not read the 404 of its request.
    if (isPreflight(request)) return preflight(request, settings)
    if (isWebSocket(request)) throw noWebSocket()
    const hint = hintFor(path)
    const message = `Invalid URL (${req.method} ${truncated(path)})${hint === undefined ? '' : `; ${hint}`}`
    throw new GatewayError('unknown_url', message)
  })

  /** The response to a method that no route of the path has. */
  function withoutRoute({ request, path }: Live, allow: string[]): Response {
    if (request.method === 'OPTIONS') return preflight(request, settings, allow)
    if (isWebSocket(request)) throw noWebSocket()
    const message = `${request.method} is not a method of ${truncated(path)}; it has ${allow.join(', ')}.`
    throw new GatewayError('method_not_allowed', message, { allow })
  }

  /** Checks the host, and identifies the caller. */
  function admit(route: Route, context: Live): undefined | Promise<void> {
    if (settings.files_base_url !== undefined && !route.serves_files && isFilesHost(context.request, settings)) {
      throw new GatewayError('unknown_url', 'Only stored files are served at this host.')
    }
    if ((route.only_at_metrics ?? false) !== (context.peer.isMetrics ?? false)) {
      throw new GatewayError('unknown_url', 'Metrics have a listener of their own, which serves nothing else.')
    }
    if (hasAdminListener && !isServedAt(context.path, context.peer.isAdmin === true)) {
      throw new GatewayError('unknown_url', 'There is no such path at this address: the admin API has one of its own.')
    }
    if (context.peer.isCrowded && !route.answers_under_load) throw crowded()
    const isOpen = typeof route.public === 'function' ? route.public(context) : route.public === true
    if (isOpen) {
      assertKnownHost(context.request, settings)
      return
    }
    if (route.admin) return admitAdmin(context, route.admin)
    const known = context.peer.caller ?? route.authenticate?.(context)
    const caller = known ?? authenticate(presentedSecret(context.request), context)
    if (caller instanceof Promise) return caller.then((found) => enter(route, context, found))
    enter(route, context, caller)
  }

  function enter(route: Route, context: Live, caller: Caller): void {
    context.caller = caller
    context.note.token_id = caller.token_id
    if (settings.explain_tokens.length > 0) context.is_explained = isExplained(context, settings)
    if (!route.answers_under_load) admitLoad(caller.token_id)
    readOptions(context, settings)
    if (contents && (contents.mayRecord || caller.project?.log_contents !== undefined)) contents.admit(context)
  }

  /** Throws where the request is refused. */
  function handle(matched: MatchedRoute, context: Live): Response | Promise<Response> {
    const { route } = matched
    context.matched = matched
    const admitted = admit(route, context)
    return admitted ? handleLater(route, context, admitted) : handleAdmitted(route, context)
  }

  const handleLater = (route: Route, context: Live, admitted: Promise<void>): Promise<Response> =>
    admitted.then(() => handleAdmitted(route, context))

  function handleAdmitted(route: Route, context: Live): Response | Promise<Response> {
    if (BROKEN_ENCODING.test(context.path)) {
      throw new GatewayError('invalid_value', 'The path has a "%" without two hexadecimal digits after it.')
    }
    return route.handle(context)
  }

  /** Makes the request's connection a WebSocket. Each of its messages is then handled like a request of the route. */
  async function upgrade(matched: MatchedRoute, context: Live): Promise<Response> {
    const { request, request_id: connection_id, peer } = context
    const { route } = matched
    context.matched = matched
    await admit(route, context)
    const protocol = (await route.socketFor?.(context)) ?? (route.socket as SocketProtocol)
    const handler = sockets.open(protocol, {
      connection_id,
      token_id: context.caller.token_id,
      call: (message, signal) => respond(messageRequest(request, 'POST', signal), { address: peer.address, message }),
    })
    if (peer.upgrade?.(handler, upgradeHeaders(context))) return new Response(null, { status: 101 })
    handler.closed()
    throw noWebSocket()
  }

  function errorFor(thrown: unknown, context: Live): Response {
    const error = asGatewayError(context.abortedBy ?? thrown, { log, request_id: context.request_id })
    const { note, path, matched } = context
    context.hasHeaders = false
    note.error = error.code
    note.stream = false
    if (error.detail.upstream_status !== undefined) note.upstream_status = error.detail.upstream_status
    const family =
      matched?.route ??
      routes.find(({ errors_below }) => errors_below !== undefined && path.startsWith(errors_below)) ??
      routes.find((route) => route.encodeError && isAkin(route.path, path))
    const challenge = error.status === 401 ? matched?.route.challenge?.(context) : undefined
    const response = errorResponse(error, {
      challenge,
      write: (one) => bodyOf(one, context, family?.encodeError),
      status: family?.errorStatus?.(error),
    })
    if (matched?.route.admin) response.headers.set('cache-control', 'no-store')
    return response
  }

  function bodyOf(error: GatewayError, { request, request_id }: Live, write: Route['encodeError']): unknown {
    if (!write) return errorBody(error) // in its family's form otherwise, where it can be encoded
    try {
      return write(error, request_id, request)
    } catch (thrown) {
      log.error('error body could not be encoded', { request_id }, thrown)
      return errorBody(error)
    }
  }

  function ended(context: Live, outcome: Outcome): void {
    live.delete(context)
    context.peer.ended?.(outcome)
    context.outcome = outcome
    context.total_ms = clock.steady() - context.arrived
    context.path = truncated(context.path)
    if (!context.isCollected) onFinished(context)
    if (live.size === 0) empty?.resolve()
  }

  function answer(context: Live): Response | Promise<Response> {
    const { request } = context
    if (closing) throw new GatewayError('shutting_down', 'The gateway is being stopped.', { retry_after: 1 })
    assertOneHost(request)
    const methods = direct.get(context.path)
    if (isWebSocket(request)) {
      const matched = methods?.get('POST') ?? methods?.get('GET')
      if (matched?.route.socket ?? matched?.route.socketFor) return upgrade(matched as MatchedRoute, context)
    }
    const matched = methods?.get(request.method)
    return matched ? handle(matched, context) : hono.fetch(request, { live: context })
  }

  function respond(request: Request, peer: Peer = { address: '127.0.0.1' }): Promise<Response> {
    const context = new Live(request, peer, parts)
    live.add(context)
    onArrival?.(context)
    return context.respond()
  }

  function complete(response: Response, context: Live): Response {
    const { request, peer } = context
    context.status = response.status
    if (!context.hasHeaders) {
      const headers = context.withHeaders({})
      for (const name in headers) response.headers.set(name, headers[name] ?? '')
    }
    if (closing || peer.isCrowded || peer.isRetiring || (response.status >= 400 && isLeftUnread(request, response)))
      response.headers.set('connection', 'close')
    if (settings.cors_origins.length > 0) addCorsHeaders(response.headers, request, settings)
    if (!context.note.stream || request.method === 'HEAD') {
      context.note.first_byte_ms ??= clock.steady() - context.arrived
      if (!context.isSentLater) context.finish('done')
    }
    return response
  }

  return {
    fetch: respond,
    open: () => live.size,
    sockets: sockets.count,
    bytes: budget.held,
    requests: () => live,
    async close({ deadline_ms }) {
      closing = true
      sockets.stop(deadline_ms)
      if (live.size === 0) return
      empty ??= Promise.withResolvers<void>()
      const { promise, resolve } = empty
      const cut = () => {
        for (const one of live) {
          one.abort(new GatewayError('shutting_down', 'The gateway was stopped before the response was complete.'))
        }
        clock.after(CUT_MILLISECONDS, resolve)
      }
      const cancel = clock.after(deadline_ms, cut)
      await promise
      cancel()
    },
  }
}

/** Clients that prefer a WebSocket, such as Codex, fall back to HTTP at once after a 426. */
const noWebSocket = () =>
  new GatewayError(
    'upgrade_required',
    'WebSockets are not supported here: send an HTTP POST; with "stream": true the response is a stream of events.',
  )

const crowded = () =>
  new GatewayError('server_is_overloaded', 'The gateway has too many connections open; try again.', { retry_after: 1 })

/** Whether paths share a prefix (`/v1/videos`): errors below a family's paths have the family's form. */
const isAkin = (path: string, other: string): boolean => beginningOf(path) === beginningOf(other)
const beginningOf = (path: string): string => path.split('/', 3).join('/')

/** A path may have thousands of characters, which a log line should not. */
const truncated = (path: string): string => (path.length <= 200 ? path : `${path.slice(0, 200)}...`)

function isExplained(context: Live, { explain_tokens }: Pick<ServerSettings, 'explain_tokens'>): boolean {
  if (context.header('x-gatehouse-explain') !== '1') return false
  return explain_tokens.includes('*') || explain_tokens.includes(context.caller.token_id)
}
