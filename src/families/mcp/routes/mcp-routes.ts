/** The routes `/mcp` and `/mcp/{server}`: who calls, from where, and what is left to the official SDK. */
import Type from 'typebox'
import type { Call } from '../../../calls/call.ts'
import type { ServerSettings } from '../../../config/config.ts'
import type { McpLogin } from '../../../config/schema/mcp-schema.ts'
import { bodyLimits, readJson } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import { isOwnHost } from '../../../http/request-parts.ts'
import type { Clock } from '../../../kit/clock.ts'
import { memberOf } from '../../../kit/json.ts'
import { type ErrorCode, GatewayError } from '../../../spec/error.ts'
import type { Operation } from '../../../spec/operation.ts'
import { storedStream } from '../../shared/event-stream.ts'
import type { McpEndpoint } from './endpoint.ts'
import { eventsUntil } from './notification-stream.ts'

export type McpRouteParts = {
  mcp: {
    /** Loads the SDK with the first request; undefined: MCP is off. */
    endpoint(): Promise<McpEndpoint> | undefined
    /** Whether there is a server of this name that the caller may use. */
    has(server: string, caller: Context['caller']): boolean
    /** The caller of an access token; undefined: the request has none. */
    authenticate: NonNullable<Route['authenticate']>
    /** Undefined: clients cannot log in. */
    login(): McpLogin | undefined
  }
  settings: ServerSettings
  clock: Clock
}

const RpcError = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Union([Type.String(), Type.Number(), Type.Null()]),
    error: Type.Object({
      code: Type.Integer(),
      message: Type.String(),
      data: Type.Optional(Type.Object({ code: Type.String() })),
    }),
  },
  { title: 'McpError' },
)

/** JSON-RPC has no codes for HTTP's errors: these are of the range that it leaves to servers. */
const PARSE_ERROR = -32700
const INVALID_REQUEST = -32600
const REFUSED = -32000

function encodeError({ code, message, status, detail }: GatewayError): Type.Static<typeof RpcError> {
  const { retry_after } = detail
  const number = code === 'invalid_json' ? PARSE_ERROR : status === 400 ? INVALID_REQUEST : REFUSED
  const data = { code, ...(retry_after !== undefined && { retry_after }) }
  return { jsonrpc: '2.0', id: null, error: { code: number, message, data } }
}

const ERRORS: ErrorCode[] = [
  'invalid_json',
  'invalid_value',
  'invalid_api_key',
  'permission_denied',
  'origin_not_allowed',
  'unknown_url',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
  'rate_limit_exceeded',
  'server_is_overloaded',
  'upstream_unreachable',
]

const Message = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    method: Type.Optional(Type.String()),
    params: Type.Optional(Type.Object({})),
  },
  { title: 'McpMessage' },
)

const Answer = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    method: Type.Optional(Type.String({ description: 'Of a notification.' })),
    result: Type.Optional(Type.Object({})),
    error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String() })),
  },
  { title: 'McpAnswer' },
)

const OPERATIONS: Record<'POST' | 'GET' | 'DELETE', Omit<Operation, 'tag' | 'errors'>> = {
  POST: {
    summary: 'Send a message of the Model Context Protocol',
    description:
      'Streamable HTTP of protocol 2026-07-28 and of the versions before it. `initialize` opens a session, whose id is in the response header Mcp-Session-Id; other requests need none. A response is JSON, or a stream of events where progress is reported.',
    request: Message,
    response: Answer,
    stream: Answer,
    otherResponses: { 202: 'The message was a notification.' },
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  },
  GET: {
    summary: 'Receive notifications of an MCP session',
    description:
      'A stream of events, open until the session ends. Needs the header Mcp-Session-Id. With Last-Event-ID, the stream of that event is resumed after it.',
    stream: Answer,
    media: ['text/event-stream'],
  },
  DELETE: { summary: 'End an MCP session', description: 'Needs the header Mcp-Session-Id.' },
}

const METADATA_PATH = '/.well-known/oauth-protected-resource'

const Metadata = Type.Object(
  {
    resource: Type.String(),
    authorization_servers: Type.Array(Type.String()),
    bearer_methods_supported: Type.Array(Type.String()),
    resource_name: Type.String(),
    scopes_supported: Type.Optional(Type.Array(Type.String())),
  },
  { title: 'ProtectedResourceMetadata' },
)

/** Where clients log in (RFC 9728). Each path is a resource of its own, since clients compare it with the one they use. */
function metadataRoutes({ mcp }: McpRouteParts): Route[] {
  return ['', '/mcp', '/mcp/:server'].map((path) => ({
    method: 'GET',
    path: METADATA_PATH + path,
    public: true,
    operation: {
      summary: 'Show where MCP clients log in',
      description: 'Metadata of OAuth 2.0 (RFC 9728), where `mcp.oauth` is configured.',
      tag: 'MCP',
      response: Metadata,
      errors: ['unknown_url'],
      ...(path.includes(':') ? { params: { server: 'The name of a server, as configured.' } } : {}),
    },
    handle({ params }) {
      const login = mcp.login()
      if (!login)
        throw new GatewayError('unknown_url', 'Clients log in with API tokens only: mcp.oauth is not configured.')
      return Response.json({
        resource: login.resource + ofServer(params),
        authorization_servers: [login.issuer],
        bearer_methods_supported: ['header'],
        resource_name: 'Gatehouse',
        ...(login.scopes && { scopes_supported: login.scopes }),
      } satisfies Type.Static<typeof Metadata>)
    },
  }))
}

const ofServer = ({ server }: Context['params']): string =>
  server === undefined ? '' : `/${encodeURIComponent(server)}`

function challenge(context: Context, { mcp }: McpRouteParts): string | undefined {
  const login = mcp.login()
  if (!login) return undefined
  const { origin, pathname } = new URL(login.resource)
  const error = context.header('authorization') ? ', error="invalid_token"' : ''
  return `Bearer resource_metadata="${origin}${METADATA_PATH}${pathname}${ofServer(context.params)}"${error}`
}

export function mcpRoutes(parts: McpRouteParts): Route[] {
  return [...metadataRoutes(parts), ...endpointRoutes(parts)]
}

function endpointRoutes(parts: McpRouteParts): Route[] {
  return (['POST', 'GET', 'DELETE'] as const).flatMap((method) =>
    ['/mcp', '/mcp/:server'].map((path) => ({
      method,
      path,
      operation: {
        ...OPERATIONS[method],
        tag: 'MCP',
        errors: method === 'POST' ? ERRORS : ERRORS.filter((code) => !BODY_ERRORS.has(code)),
        ...(path.includes(':') ? { params: { server: 'The name of a server, as configured.' } } : {}),
      },
      encodeError,
      errorSchema: RpcError,
      authenticate: parts.mcp.authenticate,
      challenge: (context) => challenge(context, parts),
      handle: (context) => handle(context, parts),
    })),
  )
}

const BODY_ERRORS: ReadonlySet<ErrorCode> = new Set([
  'invalid_json',
  'invalid_value',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
])

async function handle(context: Context, { mcp, settings, clock }: McpRouteParts): Promise<Response> {
  const { request, request_id, params, caller } = context
  const { server: scope } = params
  const opening = mcp.endpoint()
  if (!opening) throw new GatewayError('unknown_url', 'MCP is off: mcp.enabled is false.')
  assertOrigin(request, settings)
  if (scope !== undefined && !mcp.has(scope, caller)) {
    throw new GatewayError(
      'unknown_url',
      `There is no MCP server ${JSON.stringify(scope.slice(0, 100))} for this token.`,
    )
  }
  const body = request.method === 'POST' ? await readMessage(context, { settings, clock }) : undefined
  const endpoint = await opening
  const callFor = (signal: AbortSignal) => callWithin(context, signal)
  const access = { request_id, caller, signal: context.signal, callFor }
  const sent = await endpoint.handle({ request, body, scope, token_id: caller.token_id, access })
  const isEndless = request.method === 'GET' || memberOf(body, 'method') === 'subscriptions/listen'
  return passed({ ...sent, ...(isEndless && { stopping: endpoint.stopping }) }, context, { settings, clock })
}

/** The protocol has none since 2025-06-18, and a call of several tools could not be recorded as one request. */
async function readMessage(context: Context, parts: { settings: ServerSettings; clock: Clock }): Promise<unknown> {
  const body = await readJson(context.request, bodyLimits(context, 'text', parts))
  if (!Array.isArray(body)) return body
  throw new GatewayError('invalid_value', 'The body must be one message of JSON-RPC, not a batch of several.')
}

/** A page of another origin must not use a gateway that only the browser's machine reaches. */
function assertOrigin(request: Request, settings: ServerSettings): void {
  const { cors_origins } = settings
  const origin = request.headers.get('origin')
  if (origin === null || cors_origins.includes('*') || cors_origins.includes(origin)) return
  if (URL.parse(origin)?.host === request.headers.get('host') && isOwnHost(request, settings)) return
  throw new GatewayError(
    'origin_not_allowed',
    'Pages of this origin may not use MCP; add the origin to server.cors_origins.',
  )
}

/** Clients of these versions know an event of each stream before its result, and can ask for what came after it. */
function isResumable({ headers }: Request): boolean {
  return headers.has('mcp-session-id') && (headers.get('mcp-protocol-version') ?? '') >= '2025-11-25'
}

/** A client that has left a session may come back for the result; whatever else ends the request ends its call. */
function endedByGateway({ signal }: Context): AbortSignal {
  const ending = new AbortController()
  const end = () => {
    if (!(signal.reason instanceof GatewayError && signal.reason.detail.has_left)) ending.abort(signal.reason)
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  return ending.signal
}

/** The call of a tool is the call of its request: their ends are recorded together, unless the request has ended before. */
function callWithin(context: Context & Partial<Call>, ended: AbortSignal): Call {
  const { request_id, caller, arrived, trace, capture } = context
  const canResume = isResumable(context.request)
  const signal = AbortSignal.any([canResume ? endedByGateway(context) : context.signal, ended])
  const call = { caller, arrived, trace, capture, signal }
  if (canResume && context.signal.aborted) return { ...call, request_id: `${request_id}-call`, is_detached: true }
  return {
    ...call,
    request_id,
    set record(record: NonNullable<Call['record']>) {
      context.record = record
    },
    get record() {
      return context.record as NonNullable<Call['record']>
    },
    set limits(limits: NonNullable<Call['limits']>) {
      context.limits = limits
    },
    get limits() {
      return context.limits as NonNullable<Call['limits']>
    },
  }
}

type Sent = { response: Response; ended(): void; stopping?: AbortSignal }

/** The response of the SDK, recorded as any other. */
async function passed(
  { response, ended, stopping }: Sent,
  context: Context,
  { settings, clock }: Omit<McpRouteParts, 'mcp'>,
): Promise<Response> {
  const headers = Object.fromEntries(response.headers)
  const { body, status } = response
  let isOpen = true
  const end = () => {
    if (isOpen) ended()
    isOpen = false
  }
  if (body && headers['content-type']?.startsWith('text/event-stream')) {
    delete headers['content-type']
    // Nothing of a generator runs where the client has left before it has read.
    const left = () => {
      if (!body.locked) void body.cancel().catch(() => {})
      end()
    }
    if (context.signal.aborted) left()
    else context.signal.addEventListener('abort', left, { once: true })
    const events = eventsUntil({
      body,
      ended: end,
      clock,
      ...(stopping && { stopping, access_ends: context.access_ends }),
    })
    return storedStream(events, context, {
      headers: context.withHeaders(headers),
      settings,
      clock,
    })
  }
  const bytes = body && (await response.bytes())
  end()
  return new Response(bytes, { status, headers: context.withHeaders(headers) })
}
