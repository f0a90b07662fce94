/** One MCP server behind the gateway: connects when it is first needed, and passes requests on. */
import type { Client } from '@modelcontextprotocol/client'
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import { memberOf } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import { createScrubbingTransport, type Transport } from '../upstream/transport.ts'
import { connectTo, type ServedClient, type ServerParts, STREAM_END } from './connect.ts'
import { createOffered, type McpOffer } from './offered.ts'
import { limitsOf } from './upstream-fetch.ts'
import { createWatchedResources, type WatchedResources } from './watched-resources.ts'

export type { McpOffer }

/** An error of JSON-RPC that the server returned: passed on as it is. */
export class McpRefusal extends Error {
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data: unknown) {
    super(message)
    this.name = 'McpRefusal'
    this.code = code
    this.data = data
  }
}

/** `failing`: its last use failed, and those since then; in milliseconds. */
type McpState = { is_connected: boolean; failing?: { since_ms: number; error: string } | undefined }

export type Progress = { progress: number; total?: number | undefined; message?: string | undefined }

export type McpRequest = {
  method: 'tools/call' | 'resources/read' | 'resources/subscribe' | 'prompts/get' | 'completion/complete'
  params: Record<string, unknown>
  signal: AbortSignal
  /** Absent: the server is asked for none. */
  onProgress?: ((progress: Progress) => void) | undefined
}

export type McpUpstream = {
  readonly name: string
  /** Undefined: the built-in server. */
  readonly config: McpServerConfig | undefined
  /** Where its tools are approved, if not by its name: those of one person. */
  readonly pinned_as?: string
  /** What it offers now, at most a minute old. Rejects with GatewayError while it cannot be reached. */
  offer(): Promise<McpOffer>
  /** The same with tools that are at most 5 s old: before one is called, since a server may change it without a word. */
  offerForCall(signal?: AbortSignal): Promise<McpOffer>
  /** Of the connection that clients share, as this process knows it. */
  state(): McpState
  /** What it has offered before, without waiting; undefined: it was not reached yet. */
  known(): McpOffer | undefined
  /** Rejects with McpRefusal or GatewayError. */
  request(request: McpRequest): Promise<Record<string, unknown>>
  /** Rejects as `request` does. */
  watch: WatchedResources['watch']
  /** The same server by a connection of one client, which whoever asks for it closes. */
  for(client: ServedClient): McpUpstream
  close(): Promise<void>
}

export type UpstreamParts = ServerParts & { transport: Transport }

/** Of the variables of a program, many are none, and stand in its answers: `production`. */
const SECRET_NAME = /key|token|secret|passw|credential|auth/i
const SECRET_CHARACTERS = 8

const secretsOf = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    SECRET_NAME.test(name) && value.length >= SECRET_CHARACTERS ? [value] : [],
  )

/** After a failure, the next attempts wait: 1 s, 2 s, 4 s, ... */
const MAX_PAUSE_MILLISECONDS = 30_000

export function createUpstream(parts: UpstreamParts): McpUpstream {
  const { name, config, clock, log } = parts
  const limits = limitsOf(config ?? {})
  const { client_secret, refresh_token } = { ...config?.oauth, ...config?.oauth_user }
  const { key, headers = {}, env = {} } = config ?? {}
  const secrets = [key, client_secret, refresh_token, ...Object.values(headers), ...secretsOf(env)].filter(
    (one) => one !== undefined,
  )
  const transport = createScrubbingTransport(parts.transport, secrets)
  let connection: Promise<Client> | undefined
  /** `isOfLists`: only the lists failed, and the connection serves other requests. */
  let failure: { error: GatewayError; until: number; isOfLists: boolean } | undefined
  let failures = 0
  let state: McpState = { is_connected: false }
  let isClosed = false
  const resources = createWatchedResources({
    connect: () => connect(),
    isConnected: () => connection !== undefined,
    timeout_ms: limits.connect_ms,
    clock,
  })

  function connect(isForLists = false): Promise<Client> {
    if (isClosed) return Promise.reject(new GatewayError('shutting_down', 'The gateway is stopping.'))
    if (failure && clock.steady() < failure.until && (isForLists || !failure.isOfLists)) {
      return Promise.reject(failure.error)
    }
    if (connection) return connection
    const mine = connectTo({
      ...parts,
      limits,
      transport,
      onChanged: offered.changed,
      onUpdated: resources.updated,
      onClosed: () => forget(mine),
    }).then(
      (client) => {
        if (!failure?.isOfLists) failure = undefined
        state = { ...state, is_connected: true }
        resources.connected(client)
        return client
      },
      (thrown) => {
        // Before it is forgotten, so that no new connection is due while none may be made.
        const error = paused(thrown, false)
        forget(mine, error.code !== 'permission_denied') // a person who is not connected any more has no changes
        throw error
      },
    )
    connection = mine
    return mine
  }

  function forget(mine: Promise<Client>, mayReturn = true): void {
    if (connection !== mine) return
    connection = undefined
    state = { ...state, is_connected: false }
    offered.forget()
    // Whoever waits for changes sends nothing that would connect again.
    const mayConnect = () => !isClosed && resources.isUsed()
    if (mayReturn && mayConnect()) clock.after(MAX_PAUSE_MILLISECONDS, () => mayConnect() && connect().catch(() => {}))
  }

  /** Its session is over, or it answers nothing more: the next use connects again. */
  async function drop(client: Client): Promise<void> {
    const mine = connection
    if ((await mine?.catch(() => undefined)) === client && mine) forget(mine)
    client.close().catch(() => {})
  }

  /** Many servers answer 400 to a session that they do not know, and to one bad request as well: only the former to a ping. */
  async function isLost(client: Client, thrown: unknown): Promise<boolean> {
    const status = statusOf(thrown)
    if (status !== 400) return LOST.has(status)
    if (client.transport?.sessionId === undefined) return false
    const ping = client.request({ method: 'ping' }, { timeout: limits.connect_ms })
    return await ping.then(
      () => false,
      (again) => LOST.has(statusOf(again)),
    )
  }

  /** The reason is logged: what a server writes reaches clients only by calls, whose answers guards check. */
  function failed(thrown: unknown): GatewayError {
    const { code, message } = asFailure(thrown, name)
    log.warn('mcp server failed', { server: name, error: code, why: message })
    return knownFailure(thrown, name) ?? new GatewayError('bad_upstream_response', `The MCP server "${name}" failed.`)
  }

  function paused(thrown: unknown, isOfLists: boolean): GatewayError {
    const error = failed(thrown)
    const wait = Math.min(MAX_PAUSE_MILLISECONDS, 1000 * 2 ** failures++)
    failure = { error, until: clock.steady() + wait, isOfLists }
    const since_ms = state.failing?.since_ms ?? clock.now()
    state = { ...state, failing: { since_ms, error: transport.scrub(asFailure(thrown, name).message) } }
    return error
  }

  const offered = createOffered({
    name,
    limits,
    clock,
    connect: () => connect(true),
    isConnected: () => connection !== undefined,
    isClosed: () => isClosed,
    onListed() {
      failures = 0
      failure = undefined
      state = { is_connected: connection !== undefined }
    },
    onChanged: parts.onChanged,
    // A server that is late, or that refuses a list, may still work on calls of others.
    async isLost(client, thrown) {
      const isLost = LOST.has(statusOf(thrown))
      if (isLost) await drop(client)
      return isLost
    },
    failed: (thrown, pauses) => (pauses ? paused(thrown, true) : failed(thrown)),
  })

  return {
    name,
    config,
    offer: offered.offer,
    offerForCall: offered.offerForCall,
    state: () => state,
    known: offered.known,
    async request({ method, params, signal, onProgress }) {
      signal.throwIfAborted()
      const options = {
        signal,
        timeout: limits.call_ms,
        maxTotalTimeout: limits.call_ms,
        ...(onProgress ? { onprogress: onProgress } : {}),
      }
      const send = async (): Promise<Record<string, unknown>> => {
        const client = await connect()
        return await client.request({ method, params } as never, options).catch(async (thrown) => {
          if (await isLost(client, thrown)) await drop(client)
          throw thrown
        })
      }
      try {
        // A server that has lost the session has not executed the request.
        return await send().catch((thrown) => (statusOf(thrown) === 404 ? send() : Promise.reject(thrown)))
      } catch (thrown) {
        signal.throwIfAborted()
        throw asRefusal(thrown, name)
      }
    },
    watch: (uri, listener) =>
      resources.watch(uri, listener).catch((thrown) => {
        throw asRefusal(thrown, name)
      }),
    for: (client) => createUpstream({ ...parts, client, onChanged() {} }),
    async close() {
      isClosed = true
      const open = connection
      connection = undefined
      await open?.then(
        (client) => client.close(),
        () => {},
      )
    },
  }
}

/** Of a response that was no success. */
const statusOf = (thrown: unknown): unknown => memberOf(memberOf(thrown, 'data'), 'status')
/** Of servers that do not know the session any more: 404 by the protocol, 400 of many. */
const LOST: ReadonlySet<unknown> = new Set([400, 404])

type RpcError = Error & { code: number; data?: unknown }
const isRefusal = (thrown: unknown): thrown is RpcError =>
  thrown instanceof Error && thrown.name === 'ProtocolError' && typeof (thrown as Partial<RpcError>).code === 'number'

/** Whatever the server has answered to a request. */
function asRefusal(thrown: unknown, name: string): McpRefusal | GatewayError {
  if (!isRefusal(thrown)) return asFailure(thrown, name)
  if (thrown.data === STREAM_END) return new GatewayError('upstream_cut', thrown.message)
  return new McpRefusal(thrown.code, thrown.message, thrown.data)
}

/** The SDK's own errors, and those of the transport, which the SDK may have wrapped. */
function asFailure(thrown: unknown, name: string): GatewayError {
  const { message } = thrown as { message?: string }
  return (
    knownFailure(thrown, name) ??
    new GatewayError('bad_upstream_response', `The MCP server "${name}" failed: ${String(message).slice(0, 300)}`, {
      cause: thrown,
    })
  )
}

/** In words of the gateway; undefined: the error has text of the server. */
function knownFailure(thrown: unknown, name: string): GatewayError | undefined {
  if (thrown instanceof GatewayError) return thrown
  const { code, cause, message } = thrown as { code?: unknown; cause?: unknown; message?: string }
  if (cause instanceof GatewayError) return cause
  if (code === 'REQUEST_TIMEOUT') {
    return new GatewayError('upstream_timeout', `The MCP server "${name}" did not answer in time.`)
  }
  if (code === 'CONNECTION_CLOSED' || code === 'NOT_CONNECTED') {
    return new GatewayError('upstream_cut', `The MCP server "${name}" closed its connection.`)
  }
  const status = /\b(401|403)\b/.test(message ?? '') || (thrown as Error).name === 'UnauthorizedError'
  if (status) return new GatewayError('upstream_auth', `The MCP server "${name}" rejected the credentials.`)
  return undefined
}
