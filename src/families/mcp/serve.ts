/** Answers the requests of MCP clients: at `/mcp` for all servers together, at `/mcp/{server}` for one. */
import { ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server'
import type { Call } from '../../calls/call.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { McpOffer, McpUpstream } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import { connectTool } from './ask-to-connect.ts'
import { NotConnected } from './connections.ts'
import { type EntryCheck, type GuardedLists, type Listing, recordList, resourceAt } from './guarded-lists.ts'
import { findResource, MAX_RESOURCES, type McpResource } from './listened-resources.ts'
import { joinedName, joinedUri, promptName, RESOURCES, splitName, toolId, withJoinedUris } from './names.ts'
import type { Rounds } from './rounds.ts'
import { INVALID_PARAMS, protocolError, unknown } from './rpc-errors.ts'
import { createServerRequests } from './server-requests.ts'
import type { McpServers } from './servers.ts'
import { accessOf, checkedServer, metaFor, type ServerCall, serverFamily, watchCall } from './tool-calls.ts'

export type ServeParts = {
  servers: McpServers
  lists: GuardedLists
  pipeline: Pick<Pipeline, 'run'>
  rounds: Rounds | undefined
  version: string
  clock: Clock
  log: Log
}

/** `own`: by which its server knows it; `name`: by which guards do. */
type Named = McpResource & { name: string; check: EntryCheck }

/** How a list of all servers is made. */
type List<Item> = {
  of(upstream: McpUpstream, offer: McpOffer): readonly Item[] | Promise<readonly Item[]>
  /** By which guards know it. */
  nameOf(item: Item): string
  /** As clients know it. */
  shown(upstream: McpUpstream, item: Item): Item
  /** Where the caller is not connected. */
  toConnect?(upstream: McpUpstream): Item[]
}

/** One object for a session, or for a request without one. `scope`: the name of the only server; undefined: all are joined. */
export function createMcpServer(scope: string | undefined, parts: ServeParts): Server {
  const { servers, lists, pipeline, version, clock, log } = parts
  const server = new Server(
    { name: 'gatehouse', title: 'Gatehouse', version },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        logging: {},
      },
    },
  )
  const isJoined = scope === undefined
  const named = (upstream: McpUpstream, name: string) => (isJoined ? joinedName(upstream.name, name) : name)
  const uriOf = (upstream: McpUpstream, uri: string) => (isJoined ? joinedUri(upstream.name, uri) : uri)
  const result = (upstream: McpUpstream, answer: Record<string, unknown>) =>
    isJoined ? withJoinedUris(upstream.name, answer) : answer

  const requests = createServerRequests({ ...parts, server, scope, placeOf, result })
  /** Of a session, by the address that its client knows. */
  const subscriptions = new Map<string, Promise<() => void>>()
  server.onclose = () => {
    requests.close()
    for (const uri of subscriptions.keys()) unsubscribe(uri)
  }

  function unsubscribe(uri: string): void {
    subscriptions.get(uri)?.then(
      (stop) => stop(),
      () => {},
    )
    subscriptions.delete(uri)
  }

  /** One that cannot be reached is left out where it is not the only one. */
  async function list<Item extends object>(
    context: ServerContext,
    method: string,
    { of, nameOf, shown, toConnect = () => [] }: List<Item>,
  ) {
    const { caller, callFor } = accessOf(context)
    let call: Call | undefined
    const results: Listing['results'] = []
    const listing: Listing = { caller, results, call: () => (call ??= callFor(context.mcpReq.signal)) }
    const found = scope === undefined ? servers.of(caller) : [serverOf(scope, caller)]
    const all = await Promise.all(
      found.map(async (upstream) => {
        try {
          const items = await of(upstream, await upstream.offer())
          const passed = await lists.passed(items, { server: upstream.name, nameOf, listing })
          return passed.map((item) => shown(upstream, item))
        } catch (thrown) {
          if (thrown instanceof NotConnected) return toConnect(upstream)
          if (!(thrown instanceof GatewayError)) log.error('mcp list failed', { server: upstream.name }, thrown)
          if (isJoined) return []
          throw protocolError(thrown)
        }
      }),
    )
    if (call) recordList(call, toolId(scope ?? '*', method), results, unixSeconds(clock))
    return all.flat()
  }

  function serverOf(name: string, caller: Caller): McpUpstream {
    const upstream = servers.find(name, caller)
    if (!upstream) throw new ProtocolError(INVALID_PARAMS, `There is no MCP server "${name}" for this token.`)
    return upstream
  }

  /** The server of a name, and its own name for the thing. */
  function placeOf(name: string, caller: Caller): { upstream: McpUpstream; own: string } {
    if (scope !== undefined) return { upstream: serverOf(scope, caller), own: name }
    const split = splitName(name)
    const upstream = split && servers.find(split.server, caller)
    if (!upstream) throw unknown('tool or prompt', name)
    return { upstream, own: split.name }
  }

  function resourceOf(uri: string, caller: Caller): Named {
    const found = findResource(servers, { uri, scope, caller })
    const missing = unknown('resource', uri)
    if (!found) throw missing
    return { ...found, name: RESOURCES, check: lists.check(RESOURCES, resourceAt(found.own), missing) }
  }

  async function promptOf(title: string, caller: Caller): Promise<Named> {
    const { upstream, own } = placeOf(title, caller)
    const name = promptName(own)
    const missing = unknown('prompt', title)
    const find = ({ prompts }: McpOffer) => prompts.find((prompt) => prompt.name === own)
    if (!find(await offerOf(upstream)) || !servers.mayUse(upstream, name, caller)) throw missing
    return { upstream, own, name, check: lists.check(name, find, missing) }
  }

  /** One by which a server asks no client. */
  async function complete({ upstream, name, check }: Named, params: ServerCall['params'], context: ServerContext) {
    const { caller, callFor } = accessOf(context)
    const call = callFor(context.mcpReq.signal)
    const sent = {
      upstream: checkedServer(upstream, () => check(upstream, call)),
      name,
      method: 'completion/complete' as const,
      params: { ...params, ...metaFor(upstream, caller) },
      is_free: true as const,
    }
    return (await pipeline.run(serverFamily, call, sent).catch(throwProtocolError)).answer
  }

  server.setRequestHandler('tools/list', async (_, context) => ({
    tools: await list(context, 'tools/list', {
      async of(upstream, offer) {
        const approved = await servers.approvedOf(upstream, offer)
        return servers.toolsOf(upstream, offer, accessOf(context).caller).filter(({ name }) => approved.has(name))
      },
      nameOf: ({ name }) => name,
      shown: (upstream, tool) => ({ ...tool, name: named(upstream, tool.name) }),
      toConnect: (upstream) => [connectTool(named(upstream, ''), upstream.name)],
    }),
  }))

  server.setRequestHandler('tools/call', ({ params }, context) => requests.callTool(params, context) as never)

  const mayRead = (upstream: McpUpstream, context: ServerContext) =>
    servers.mayUse(upstream, RESOURCES, accessOf(context).caller)
  server.setRequestHandler('resources/list', async (_, context) => ({
    resources: await list(context, 'resources/list', {
      of: (upstream, { resources }) => (mayRead(upstream, context) ? resources : []),
      nameOf: () => RESOURCES,
      shown: (upstream, one) => ({ ...one, uri: uriOf(upstream, one.uri) }),
    }),
  }))
  server.setRequestHandler('resources/templates/list', async (_, context) => ({
    resourceTemplates: await list(context, 'resources/templates/list', {
      of: (upstream, { templates }) => (mayRead(upstream, context) ? templates : []),
      nameOf: () => RESOURCES,
      shown: (upstream, one) => ({ ...one, uriTemplate: uriOf(upstream, one.uriTemplate) }),
    }),
  }))
  server.setRequestHandler('resources/read', ({ params }, context) => {
    const { own, ...named } = resourceOf(params.uri, accessOf(context).caller)
    const request = { ...named, method: 'resources/read' as const, params: { uri: own } }
    return requests.answer(request, context).catch(throwProtocolError) as never
  })

  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }, context) => {
    if (context.sessionId === undefined) throw new ProtocolError(INVALID_PARAMS, 'Subscriptions need a session.')
    if (subscriptions.has(uri)) return {}
    if (subscriptions.size >= MAX_RESOURCES) {
      throw new ProtocolError(INVALID_PARAMS, `A session may subscribe to ${MAX_RESOURCES} resources.`)
    }
    const { caller, callFor } = accessOf(context)
    const { upstream, own, check } = resourceOf(uri, caller)
    const call = callFor(context.mcpReq.signal)
    const watching = Promise.withResolvers<() => void>()
    subscriptions.set(uri, watching.promise)
    const watch = async (subscribed: string) => {
      await check(upstream, call)
      const send = async (changed: string) => {
        const address = await lists.changedAddress(caller, { server: upstream.name, changed, subscribed })
        await server.sendResourceUpdated({ uri: uriOf(upstream, address) })
      }
      watching.resolve(upstream.watch(subscribed, (changed) => void send(changed).catch(() => {})))
      return watching.promise
    }
    try {
      await pipeline.run(serverFamily, call, watchCall(upstream, own, watch))
      return {}
    } catch (thrown) {
      watching.reject(thrown) // where nothing was sent
      if (subscriptions.get(uri) === watching.promise) unsubscribe(uri)
      throw protocolError(thrown)
    }
  })
  server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    unsubscribe(params.uri)
    return {}
  })

  server.setRequestHandler('prompts/list', async (_, context) => ({
    prompts: await list(context, 'prompts/list', {
      of: (upstream, { prompts }) =>
        prompts.filter(({ name }) => servers.mayUse(upstream, promptName(name), accessOf(context).caller)),
      nameOf: ({ name }) => promptName(name),
      shown: (upstream, one) => ({ ...one, name: named(upstream, one.name) }),
    }),
  }))
  server.setRequestHandler('prompts/get', async ({ params }, context) => {
    const { own, ...named } = await promptOf(params.name, accessOf(context).caller)
    const given = { name: own, ...(params.arguments && { arguments: params.arguments }) }
    const request = { ...named, method: 'prompts/get' as const, params: given }
    return (await requests.answer(request, context).catch(throwProtocolError)) as never
  })

  server.setRequestHandler('completion/complete', async ({ params }, context) => {
    const { caller } = accessOf(context)
    const { ref, argument, context: filled } = params
    const named = ref.type === 'ref/prompt' ? await promptOf(ref.name, caller) : resourceOf(ref.uri, caller)
    const { upstream, own } = named
    const { completes } = await offerOf(upstream)
    if (!completes) return { completion: { values: [] } }
    const inner = ref.type === 'ref/prompt' ? { type: ref.type, name: own } : { type: ref.type, uri: own }
    const request = { ref: inner, argument, ...(filled && { context: filled }) }
    return (await complete(named, request, context)) as never
  })
  return server
}

const throwProtocolError = (thrown: unknown): never => {
  throw protocolError(thrown)
}

const offerOf = (upstream: McpUpstream): Promise<McpOffer> => upstream.offer().catch(throwProtocolError)
