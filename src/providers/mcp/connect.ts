/** Opens one connection to an MCP server with the official SDK: Streamable HTTP, HTTP+SSE, a program, or the built-in server. */
import type { Client, ClientCapabilities, Transport as McpTransport } from '@modelcontextprotocol/client'
import type { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Server } from '@modelcontextprotocol/server'
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import { type Clock, pause } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Transport } from '../upstream/transport.ts'
import type { AccessToken } from './access-token.ts'
import type { ProgramPlaces } from './program-sandbox.ts'
import { createUpstreamFetch, type UpstreamLimits } from './upstream-fetch.ts'

/** The client for which a connection is made, as far as its server may ask it. */
export type ServedClient = {
  capabilities: Pick<ClientCapabilities, 'sampling' | 'elicitation'>
  /** Rejects where no call of the client is open. */
  request(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>>
  log(params: { level: string; data: unknown; logger?: string | undefined }): void
}

export type ServerParts = {
  /** Of a person; undefined: as the server is configured. */
  token?: AccessToken | undefined
  /** Undefined: the connection is of all clients together. */
  client?: ServedClient | undefined
  name: string
  /** Undefined: the built-in server. */
  config: McpServerConfig | undefined
  version: string
  clock: Clock
  log: Log
  /** As they are now. */
  programs(): ProgramPlaces
  /** Its tools, prompts or resources have changed, as far as it says so. */
  onChanged(): void
}

type ConnectParts = ServerParts & {
  limits: UpstreamLimits
  /** Removes the secrets of the server from its responses. */
  transport: Transport & { scrub(text: string): string }
  /** Why the program was not started. */
  onRefused?(why: string): void
  onUpdated(uri: string): void
  onClosed(): void
}

/** Of one list; each may be as long as the longest message. */
const MAX_PAGES = 20

/** Marks the error of a request whose response has ended without a result: no JSON of a server is a symbol. */
export const STREAM_END = Symbol('the stream has ended')

/** Loaded with the first connection: 20 MB. */
const sdk = () => import('@modelcontextprotocol/client')

/** Rejects with GatewayError after `connect_ms`. */
export async function connectTo(parts: ConnectParts): Promise<Client> {
  const { name, limits, clock, config } = parts
  const { Client } = await sdk()
  const changed = { autoRefresh: false, onChanged: () => parts.onChanged() }
  const client = new Client(
    { name: 'gatehouse', version: parts.version },
    {
      capabilities: parts.client?.capabilities ?? {},
      listMaxPages: MAX_PAGES,
      listChanged: { tools: changed, prompts: changed, resources: changed },
      // A program would be started once more to ask for its version, and the older transport has only older ones.
      ...(config?.url === undefined ? {} : { versionNegotiation: { mode: 'auto' as const } }),
    },
  )
  if (parts.client) serve(client, parts.client)
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => parts.onUpdated(params.uri))
  client.onclose = parts.onClosed
  client.onerror = () => {} // whoever waits for an answer gets the error as well
  const over = new AbortController()
  const late = pause(clock, limits.connect_ms, over.signal).then(() => {
    throw new GatewayError(
      'upstream_timeout',
      `The MCP server "${name}" could not be reached within ${limits.connect_ms / 1000} s.`,
    )
  })
  late.catch(() => {})
  let refusal: string | undefined
  const onRefused = (why: string) => {
    refusal = why
  }
  try {
    const transport = await transportTo({ ...parts, onRefused })
    await Promise.race([client.connect(transport, { timeout: limits.connect_ms }), late])
    return client
  } catch (thrown) {
    await client.close().catch(() => {})
    throw refusal === undefined ? thrown : new Error(refusal)
  } finally {
    over.abort()
  }
}

function serve(client: Client, { capabilities, request, log }: ServedClient): void {
  const ask = (method: 'sampling/createMessage' | 'elicitation/create') =>
    client.setRequestHandler(method, async ({ params }) => (await request(method, params)) as never)
  if (capabilities.sampling) ask('sampling/createMessage')
  if (capabilities.elicitation) ask('elicitation/create')
  client.setNotificationHandler('notifications/message', ({ params }) => log(params))
}

async function transportTo(parts: ConnectParts): Promise<McpTransport> {
  const { name, config, transport, limits, clock } = parts
  if (!config) return simulated(parts)
  const { StreamableHTTPClientTransport, SSEClientTransport } = await sdk()
  if (config.command !== undefined) return program(config, parts)
  const fetch = createUpstreamFetch({
    name,
    config,
    token: parts.token,
    transport,
    limits,
    clock,
    onStreamEnd,
    onAnswersEnd: () => void made.close().catch(() => {}),
  })
  if (config.openapi) {
    const { createOpenApiServer } = await import('./openapi-server.ts')
    return await within(createOpenApiServer({ name, openapi: config.openapi, fetch }))
  }
  const made: McpTransport =
    config.sse === undefined
      ? new StreamableHTTPClientTransport(new URL(config.url ?? ''), { fetch })
      : inOrder(new SSEClientTransport(new URL(config.sse), { fetch }))
  return made

  /** Without a result the request would wait until its timeout: the SDK reports the end of a stream to nobody. */
  function onStreamEnd(id: unknown, thrown: unknown): void {
    const message =
      thrown instanceof GatewayError
        ? thrown.message
        : `The MCP server "${name}" closed its response before the result.`
    const error = { code: -32000, message, data: STREAM_END }
    // A result that has just arrived is first; of a request that has one, this is ignored.
    clock.after(STREAM_END_MILLISECONDS, () => made.onmessage?.({ jsonrpc: '2.0', id: id as string, error }))
  }
}

async function simulated({ clock }: ConnectParts): Promise<McpTransport> {
  const { createSandboxServer } = await import('./sandbox-server.ts')
  return await within(createSandboxServer({ clock }))
}

/** To a server in this process. */
async function within(server: Server): Promise<McpTransport> {
  const { InMemoryTransport } = await sdk()
  const [ours, theirs] = InMemoryTransport.createLinkedPair()
  await server.connect(theirs)
  return ours
}

const STREAM_END_MILLISECONDS = 20

/** Lines of a program that are logged after each start. */
const MAX_LINES = 20
const MAX_LINE_CHARACTERS = 300

/** Its environment is that of the SDK: PATH and a few more, never a secret of the gateway; and it is confined. */
async function program(config: McpServerConfig, parts: ConnectParts): Promise<McpTransport> {
  const { name, limits, transport, log } = parts
  const stdio = await import('@modelcontextprotocol/client/stdio')
  const child = new stdio.StdioClientTransport({
    ...(await startOf(config, parts)),
    stderr: 'pipe',
    maxBufferSize: limits.max_bytes,
  })
  endGroup(child)
  let lines = 0
  child.stderr?.on('data', (bytes: Buffer) => {
    if (lines++ >= MAX_LINES) return
    const text = transport.scrub(bytes.toString('utf8'))
    const why = /^gatehouse: (.+)/.exec(text)?.[1]
    if (lines === 1 && why !== undefined) parts.onRefused?.(why)
    log.info('mcp program wrote', { server: name, text: text.slice(0, MAX_LINE_CHARACTERS).trim() })
  })
  return inOrder(child, transport.scrub)
}

async function startOf(config: McpServerConfig, { name, programs }: ConnectParts) {
  const { command = '', args = [], env = {}, sandbox } = config
  if (sandbox === 'off') return { command, args, env }
  const { getDefaultEnvironment } = await import('@modelcontextprotocol/client/stdio')
  const { confinementOf, launched } = await import('./program-sandbox.ts')
  return launched(confinementOf({ name, config, inherited: getDefaultEnvironment(), places: programs() }))
}

/** Ends the processes that a confined program has left in its process group, as `npx` leaves the server. */
function endGroup(child: StdioClientTransport): void {
  const { start, close } = child
  let pid: number | null = null
  const kill = () => {
    const group = pid
    pid = null
    try {
      if (group !== null) process.kill(-group, 'SIGKILL')
    } catch {
      // None is left, or it is not confined and has no group.
    }
  }
  child.onclose = kill
  Object.assign(child, {
    async start() {
      await start.call(child)
      pid = child.pid
    },
    close: () => close.call(child).finally(kill),
  })
}

/** Of several messages that came together, the SDK would handle a result first, and then know no call of its progress. */
function inOrder<One extends McpTransport>(transport: One, clean = (text: string) => text): One {
  let receive: McpTransport['onmessage']
  Object.defineProperty(transport, 'onmessage', {
    get: () => receive,
    set(next: McpTransport['onmessage']) {
      receive =
        next &&
        ((message, extra) => {
          const one = scrubbed(message, clean)
          if ('method' in one) next(one, extra)
          else
            Promise.resolve()
              .then(() => next(one, extra))
              .catch((thrown) => transport.onerror?.(thrown))
        })
    },
  })
  return transport
}

/** A program may answer with what it was given. */
function scrubbed<Message>(message: Message, scrub: (text: string) => string): Message {
  const text = JSON.stringify(message)
  const clean = scrub(text)
  return clean === text ? message : JSON.parse(clean)
}
