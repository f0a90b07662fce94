/**
 * Answers requests for tools, prompts and resources: by the connection of all clients, or by one through which a server may
 * ask the client.
 */
import { ProtocolError, type Server, type ServerContext } from '@modelcontextprotocol/server'
import type { Call } from '../../calls/call.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { Clock } from '../../kit/clock.ts'
import { canonicalJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/secret.ts'
import { type McpOffer, McpRefusal, type McpUpstream, type Progress } from '../../providers/mcp/upstream.ts'
import { limitsOf } from '../../providers/mcp/upstream-fetch.ts'
import type { Caller } from '../../spec/token.ts'
import { announceConnected, askToConnect, CONNECT } from './ask-to-connect.ts'
import { NotConnected } from './connections.ts'
import type { GuardedLists } from './guarded-lists.ts'
import { createNotices } from './guarded-messages.ts'
import { toolId } from './names.ts'
import { askSession, type ClientChannel, capabilitiesOf, createOwnConnections } from './own-connections.ts'
import { notWaiting, type Rounds } from './rounds.ts'
import { INVALID_PARAMS, toolError, unknown } from './rpc-errors.ts'
import type { McpServers } from './servers.ts'
import { accessOf, checkedServer, metaFor, offerForCall, type ServerCall, serverFamily } from './tool-calls.ts'

type Message = Record<string, unknown>

type RequestParts = {
  servers: McpServers
  lists: Pick<GuardedLists, 'shows'>
  pipeline: Pick<Pipeline, 'run'>
  /** Undefined: a repeated request may reach another process. */
  rounds: Rounds | undefined
  server: Server
  clock: Clock
  scope: string | undefined
  placeOf(name: string, caller: Caller): { upstream: McpUpstream; own: string }
  /** As the client knows its addresses. */
  result(upstream: McpUpstream, answer: Message): Message
}

type ServerRequest = Pick<ServerCall, 'method' | 'name' | 'params'> & {
  upstream: McpUpstream
  /** By the connection that is used, before it is sent: a server may offer something else by each. */
  check(upstream: McpUpstream, call: Call, signal: AbortSignal): Promise<void>
}

export function createServerRequests(parts: RequestParts) {
  const { server, clock, scope, servers, lists, pipeline, rounds, placeOf, result } = parts
  const capabilities = () => capabilitiesOf(server.getClientCapabilities())
  const connections = createOwnConnections(capabilities)

  /** By which the server is called, and may ask the client where it is configured so. */
  function connectionOf(upstream: McpUpstream, served: Parameters<typeof connections.of>[1]) {
    const { context } = served.channel
    if (context.sessionId !== undefined && upstream.config?.per_session) return connections.of(upstream, served)
    if (!rounds || !asksByRounds(upstream, context)) return { upstream, keep: true, [Symbol.dispose]() {} }
    const { token_id } = accessOf(context).caller
    return rounds.connections.of({ base: upstream, token_id, capabilities: capabilities() }, served)
  }

  const asksByRounds = ({ config }: McpUpstream, { sessionId }: ServerContext): boolean =>
    Boolean(config?.per_session) && sessionId === undefined && Object.keys(capabilities()).length > 0

  async function send({ upstream, check, ...request }: ServerRequest, channel: ClientChannel): Promise<Message> {
    const { context, signal } = channel
    const { caller, callFor } = accessOf(context)
    const call = callFor(signal)
    const notices = createNotices()
    using connection = connectionOf(upstream, { channel, call, notices })
    const used = connection.upstream
    const sent = {
      ...request,
      upstream: checkedServer(used, (signal) => check(used, call, signal)),
      params: { ...request.params, ...metaFor(upstream, caller) },
      onProgress: progressTo(channel, clock),
      notices,
    }
    const { answer } = await pipeline.run(serverFamily, call, sent).catch((thrown) => {
      connection.keep = thrown instanceof McpRefusal
      throw thrown
    })
    connection.keep = true
    return result(upstream, answer)
  }

  /** Of what is to be answered too, where the server asks a client without a session. */
  async function answer(request: ServerRequest, context: ServerContext): Promise<Message> {
    const { upstream, method, name, params } = request
    const of = canonicalJson([scope ?? null, method, toolId(upstream.name, name), params])
    const owner = { token_id: accessOf(context).caller.token_id, request: sha256(of) }
    const state = context.mcpReq.requestState()
    if (context.sessionId === undefined && state !== undefined) {
      if (!rounds) throw notWaiting()
      return rounds.resume(state, owner, context)
    }
    if (!rounds || !asksByRounds(upstream, context)) return send(request, askSession(context, upstream))
    const wait_ms = limitsOf(upstream.config ?? {}).call_ms
    return rounds.begin({ context, owner, wait_ms }, (channel) => send(request, channel))
  }

  type Tool = { upstream: McpUpstream; own: string; name: string }

  function offeredOf({ upstream, own, name }: Tool, offer: McpOffer, caller: Caller) {
    const tool = servers.toolsOf(upstream, offer, caller).find((one) => one.name === own)
    if (!tool) throw unknown('tool', name)
    return tool
  }

  async function callWithin(tool: Tool, given: Message, context: ServerContext): Promise<Message> {
    const { upstream, own, name } = tool
    const { caller } = accessOf(context)
    // By the connection of all, if there is one: a name that nobody offers is no call.
    if (!upstream.config?.oauth_user) offeredOf(tool, await upstream.offer(), caller)
    else if (own === CONNECT && !(await upstream.offer()).tools.some((one) => one.name === CONNECT))
      return announceConnected(server)
    return answer(
      {
        upstream,
        name: own,
        method: 'tools/call',
        params: { name: own, arguments: given },
        async check(used, call, signal) {
          const offer = await offerForCall(used, signal)
          const item = offeredOf(tool, offer, caller)
          if (!(await lists.shows(item, { server: upstream.name, name: own }, call))) throw unknown('tool', name)
          if (!(await servers.approvedOf(upstream, offer)).has(own)) throw unapproved(upstream.name, own)
        },
      },
      context,
    )
  }

  return {
    close: connections.close,
    answer,
    async callTool(
      { name, arguments: given = {} }: { name: string; arguments?: Message | undefined },
      context: ServerContext,
    ) {
      const place = placeOf(name, accessOf(context).caller)
      try {
        return await callWithin({ ...place, name }, given, context)
      } catch (thrown) {
        if (thrown instanceof NotConnected) return askToConnect(thrown, server, context)
        return toolError(thrown)
      }
    },
  }
}

const unapproved = (server: string, tool: string) =>
  new ProtocolError(
    INVALID_PARAMS,
    `The tool is off: it is new, or the server has changed it since it was approved. An operator can run: gatehouse mcp approve ${server}/${tool.slice(0, 200)}`,
  )

/** Without a limit a server could fill the memory. Those of some seconds may come at once, where the machine is busy. */
const PROGRESS_MILLISECONDS = 20
const PROGRESS_AT_ONCE = 50

/** Undefined: the client wants none. */
function progressTo(channel: ClientChannel, clock: Clock): ((progress: Progress) => void) | undefined {
  if (channel.context.mcpReq._meta?.progressToken === undefined) return undefined
  /** When the last one had been sent if they came evenly. */
  let evenAt = Number.NEGATIVE_INFINITY
  return ({ progress, total, message }) => {
    const { _meta, notify } = channel.context.mcpReq
    const progressToken = _meta?.progressToken
    const now = clock.steady()
    const nextAt = Math.max(now, evenAt + PROGRESS_MILLISECONDS)
    if (progressToken === undefined || nextAt >= now + PROGRESS_AT_ONCE * PROGRESS_MILLISECONDS) return
    evenAt = nextAt
    const params = { progressToken, progress, ...(total !== undefined && { total }), ...(message && { message }) }
    notify({ method: 'notifications/progress', params }).catch(() => {})
  }
}
