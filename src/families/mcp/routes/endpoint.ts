/** Serves MCP over Streamable HTTP: requests of protocol 2026-07-28 one by one, and sessions of the versions before it. */
import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  type McpHttpHandler,
} from '@modelcontextprotocol/server'
import type { McpSettings } from '../../../config/config.ts'
import { memberOf } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import { createListenedResources } from '../listened-resources.ts'
import { joinedUri } from '../names.ts'
import { createRounds, type Rounds } from '../rounds.ts'
import { createMcpServer, type ServeParts } from '../serve.ts'
import type { McpAccess } from '../tool-calls.ts'
import { createSessions, type Session } from './sessions.ts'

type EndpointParts = Omit<ServeParts, 'rounds'> & {
  settings(): McpSettings
  personOf(caller: McpAccess['caller'], server: string): string | undefined
  /** Whether all requests of a client come to this process: only then there are sessions. */
  isAlone: boolean
}

type McpCall = {
  request: Request
  /** Of a POST, parsed. */
  body: unknown
  scope: string | undefined
  token_id: string
  access: McpAccess
}

type Streams = { scope: string | undefined; caller: McpAccess['caller']; handler: McpHttpHandler; open: number }
type Send = Parameters<ReturnType<typeof createSessions>['open']>[1]

export type McpEndpoint = {
  /** `ended` is called when the response was sent. */
  handle(call: McpCall): Promise<{ response: Response; ended(): void }>
  /** The lists of a server may have changed. `person`: for that one only. */
  notify(server: string, person?: string): void
  /** Calls that wait for what their clients answer. */
  waiting(): ReturnType<Rounds['open']>
  /** Aborted when the gateway stops: streams of notifications end, calls go on. */
  readonly stopping: AbortSignal
  stop(): void
  close(): Promise<void>
}

const SESSION_HEADER = 'mcp-session-id'
const MAX_SUBSCRIPTIONS = 10_000
const LISTEN = 'subscriptions/listen'

export function createEndpoint(parts: EndpointParts): McpEndpoint {
  const { settings, isAlone, personOf, clock } = parts
  const rounds = isAlone ? createRounds(parts) : undefined
  const create = (scope: string | undefined) => createMcpServer(scope, { ...parts, rounds })
  const sessions = createSessions({ settings, create, clock })
  const stopping = new AbortController()
  /** Of the current protocol, by scope; the empty one is of all servers. */
  const handlers = new Map<string, McpHttpHandler>()
  /** Those of streams of notifications, by scope and token. */
  const streams = new Map<string, Streams>()
  /** Open streams of notifications without a session, by token. */
  const listening = new Map<string, number>()

  const listenTo = createListenedResources({
    ...parts,
    notify(scope, update) {
      const send = async ({ caller, handler }: Streams) => {
        const uri = await parts.lists.changedAddress(caller, update)
        handler.notify.resourceUpdated(scope === undefined ? joinedUri(update.server, uri) : uri)
      }
      for (const one of streams.values()) if (one.scope === scope) void send(one).catch(() => {})
    },
  })

  /** One of them keeps as much as a session. */
  function listen(token_id: string): () => void {
    const open = listening.get(token_id) ?? 0
    if (open >= settings().max_token_sessions) {
      const message = `This token has ${open} open streams of notifications (mcp.max_token_sessions).`
      throw new GatewayError('rate_limit_exceeded', message, { retry_after: 60 })
    }
    listening.set(token_id, open + 1)
    return () => {
      const left = (listening.get(token_id) ?? 1) - 1
      if (left > 0) listening.set(token_id, left)
      else listening.delete(token_id)
    }
  }

  const handlerFor = (scope: string | undefined) => handlers.getOrInsertComputed(scope ?? '', () => handlerOf(scope))

  const handlerOf = (scope: string | undefined) =>
    createMcpHandler(() => create(scope), { legacy: 'reject', keepAliveMs: 0, maxSubscriptions: MAX_SUBSCRIPTIONS })

  /** The streams of the token of a call, with one more; `left` is called when it has ended. */
  function joinStreams({ scope, token_id, access: { caller } }: McpCall) {
    const leave = listen(token_id)
    const key = JSON.stringify([scope, token_id])
    const own = streams.getOrInsertComputed(key, () => ({ scope, caller, handler: handlerOf(scope), open: 0 }))
    own.open++
    const left = () => {
      leave()
      if (--own.open > 0) return
      streams.delete(key)
      void own.handler.close()
    }
    return { handler: own.handler, left }
  }

  /** A request without a session, which may open one. */
  async function sessionless({ request, body, scope, token_id, access }: McpCall, send: Send): Promise<Response> {
    const opens = isAlone && request.method === 'POST' && isInitializeRequest(body)
    return opens
      ? await sessions.open({ token_id, scope, caller: access.caller }, send)
      : await send(await sessions.single(scope, !acceptsStream(request)))
  }

  function endedIn(session: Session): void {
    session.open--
    session.used_at = clock.steady()
  }

  return {
    async handle(call) {
      const { body, scope, token_id, access } = call
      const request = accepting(call.request)
      const authInfo = { token: '', clientId: token_id, scopes: [], extra: { access } }
      const options = { authInfo, ...(body === undefined ? {} : { parsedBody: body }) }
      const isLegacy = request.method !== 'POST' || (await isLegacyRequest(request, body))
      if (!isLegacy) {
        if (memberOf(body, 'method') !== LISTEN) return alone(await handlerFor(scope).fetch(request, options))
        const { handler, left } = joinStreams(call)
        const resources = await listenTo(body, { scope, access, signal: request.signal })
        const ended = () => {
          left()
          resources.ended()
        }
        try {
          const response = await handler.fetch(request, { ...options, parsedBody: resources.body })
          return { response, ended }
        } catch (thrown) {
          ended()
          throw thrown
        }
      }
      const id = request.headers.get(SESSION_HEADER)
      if (id === null) {
        if (request.method !== 'POST') return alone(noSession(405))
        return alone(await sessionless(call, (transport) => transport.handleRequest(request, options)))
      }
      const session = sessions.find(id, { token_id, scope })
      if (!session) return alone(noSession(404))
      const resumed = request.method === 'GET' ? request.headers.get('last-event-id') : null
      if (resumed !== null && !session.events.has(resumed)) return alone(refusal(400, NOT_KEPT))
      session.open++
      const ended = () => endedIn(session)
      try {
        return { response: await session.transport.handleRequest(request, options), ended }
      } catch (thrown) {
        ended()
        throw thrown
      }
    },
    notify(server, person) {
      sessions.notify(server, (caller) => person === undefined || personOf(caller, server) === person)
      for (const { scope, caller, handler } of streams.values()) {
        if (scope !== undefined && scope !== server) continue
        if (person !== undefined && personOf(caller, server) !== person) continue
        handler.notify.toolsChanged()
        handler.notify.promptsChanged()
        handler.notify.resourcesChanged()
      }
    },
    waiting: () => rounds?.open() ?? [],
    stopping: stopping.signal,
    stop() {
      stopping.abort()
      rounds?.stop()
    },
    async close() {
      rounds?.close()
      await Promise.all([
        sessions.close(),
        ...[...handlers.values(), ...[...streams.values()].map(({ handler }) => handler)].map((one) => one.close()),
      ])
    },
  }
}

const acceptsStream = ({ headers }: Request): boolean => headers.get('accept')?.includes('text/event-stream') ?? false

/** The protocol requires both types. Whoever names none, as curl does, gets JSON. */
function accepting(request: Request): Request {
  const accept = request.headers.get('accept') ?? '*/*'
  if (!accept.includes('*/*')) return request
  const headers = new Headers(request.headers)
  headers.set('accept', 'application/json, text/event-stream')
  // The body was read before.
  return new Request(request.url, { method: request.method, headers, signal: request.signal })
}

const alone = (response: Response) => ({ response, ended() {} })

const NOT_KEPT =
  'The events after that of Last-Event-ID are not kept: they were too many or too large. Repeat the request.'

function noSession(status: 404 | 405): Response {
  const message =
    status === 404
      ? 'There is no such session: it has ended, or another token has opened it. Initialize a new one.'
      : 'A GET or DELETE needs the header Mcp-Session-Id of a session.'
  return refusal(status, message)
}

function refusal(status: 400 | 404 | 405, message: string): Response {
  const headers: HeadersInit = status === 405 ? { allow: 'POST' } : {}
  return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32001, message } }, { status, headers })
}
