/** Subscriptions of clients without a session: to the resources that a stream of notifications names. */
import type { Pipeline } from '../../calls/pipeline.ts'
import { isRecord, memberOf } from '../../kit/json.ts'
import type { McpUpstream } from '../../providers/mcp/upstream.ts'
import type { Caller } from '../../spec/token.ts'
import { type GuardedLists, resourceAt } from './guarded-lists.ts'
import { RESOURCES, splitUri } from './names.ts'
import type { McpServers } from './servers.ts'
import { type McpAccess, serverFamily, watchCall } from './tool-calls.ts'

/** Of one client. */
export const MAX_RESOURCES = 100

/** `own`: its address at the server. */
export type McpResource = { upstream: McpUpstream; own: string }
type ResourceQuery = { uri: string; scope: string | undefined; caller: Caller }
type Listener = { scope: string | undefined; access: McpAccess; signal: AbortSignal }

/** The server of a resource; undefined: there is none that the caller may use. */
export function findResource(servers: McpServers, { uri, scope, caller }: ResourceQuery): McpResource | undefined {
  const split = scope === undefined ? splitUri(uri) : { server: scope, uri }
  const upstream = split && servers.find(split.server, caller)
  return upstream && servers.mayUse(upstream, RESOURCES, caller) ? { upstream, own: split.uri } : undefined
}

type ListenedParts = {
  servers: McpServers
  lists: Pick<GuardedLists, 'check'>
  pipeline: Pick<Pipeline, 'run'>
  notify(scope: string | undefined, update: Record<'server' | 'changed' | 'subscribed', string>): void
}
type Shared = { count: number; stop: Promise<() => void> }

export function createListenedResources({ servers, lists, pipeline, notify }: ListenedParts) {
  /** By scope and address: a change is told to all streams of a scope at once. */
  const known = new Map<string, Shared>()

  function leave(key: string): void {
    const shared = known.get(key)
    if (!shared || --shared.count > 0) return
    known.delete(key)
    shared.stop.then(
      (stop) => stop(),
      () => {},
    )
  }

  async function join(key: string, { upstream, own }: McpResource, scope: string | undefined): Promise<void> {
    const shared: Shared = known.get(key) ?? {
      count: 0,
      stop: upstream.watch(own, (changed) => notify(scope, { server: upstream.name, changed, subscribed: own })),
    }
    known.set(key, shared)
    shared.count++
    await shared.stop.catch((thrown) => {
      leave(key)
      throw thrown
    })
  }

  /**
   * The request with the resources that its client may have, each of which is a call; `ended` is called at the end of its
   * stream.
   */
  return async (body: unknown, { scope, access, signal }: Listener): Promise<{ body: unknown; ended(): void }> => {
    const params = memberOf(body, 'params')
    const filter = memberOf(params, 'notifications')
    const uris = memberOf(filter, 'resourceSubscriptions')
    if (!isRecord(body) || !isRecord(params) || !isRecord(filter) || !Array.isArray(uris)) return { body, ended() {} }
    const keys: string[] = []
    const joined = await Promise.all(
      [...new Set(uris)].slice(0, MAX_RESOURCES).map(async (uri, at) => {
        const found = typeof uri === 'string' ? findResource(servers, { uri, scope, caller: access.caller }) : undefined
        // A watched resource is shared by all who name it.
        if (!found || found.upstream.config?.oauth_user) return []
        const key = JSON.stringify([scope, uri])
        let isOver = false
        const watch = async (own: string) => {
          if (own !== found.own) throw new Error('A guard has changed the address.')
          await lists.check(RESOURCES, resourceAt(own), new Error('A guard has left it out.'))(found.upstream, call)
          await join(key, found, scope)
          if (isOver) leave(key)
          else keys.push(key)
        }
        const within = access.callFor(signal)
        const call = { ...within, request_id: `${within.request_id}-${at + 1}`, is_detached: true as const }
        try {
          await pipeline.run(serverFamily, call, watchCall(found.upstream, found.own, watch))
          return [uri]
        } catch {
          isOver = true
          return []
        }
      }),
    )
    const notifications = { ...filter, resourceSubscriptions: joined.flat() }
    return { body: { ...body, params: { ...params, notifications } }, ended: () => keys.splice(0).forEach(leave) }
  }
}
