/** Subscriptions of clients without a session: to the resources that a stream of notifications names. */
import { isRecord, memberOf } from '../../kit/json.ts'
import type { McpUpstream } from '../../providers/mcp/upstream.ts'
import type { Caller } from '../../spec/token.ts'
import { joinedUri, splitUri } from './names.ts'
import type { McpServers } from './servers.ts'

/** Of one client. */
export const MAX_RESOURCES = 100

/** `own`: its address at the server. */
export type McpResource = { upstream: McpUpstream; own: string }
type ResourceQuery = { uri: string; scope: string | undefined; caller: Caller }

/** The server of a resource; undefined: there is none that the caller may use. */
export function findResource(servers: McpServers, { uri, scope, caller }: ResourceQuery): McpResource | undefined {
  const split = scope === undefined ? splitUri(uri) : { server: scope, uri }
  const upstream = split && servers.find(split.server, caller)
  return upstream && { upstream, own: split.uri }
}

type ListenedParts = { servers: McpServers; notify(scope: string | undefined, uri: string): void }
type Shared = { count: number; stop: Promise<() => void> }

export function createListenedResources({ servers, notify }: ListenedParts) {
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

  async function join(key: string, { upstream, own }: McpResource, scope: string | undefined): Promise<boolean> {
    const shared: Shared = known.get(key) ?? {
      count: 0,
      stop: upstream.watch(own, (uri) => notify(scope, scope === undefined ? joinedUri(upstream.name, uri) : uri)),
    }
    known.set(key, shared)
    shared.count++
    return shared.stop.then(
      () => true,
      () => {
        leave(key)
        return false
      },
    )
  }

  /** The request with the resources that its client may have; `ended` is called at the end of its stream. */
  return async (
    body: unknown,
    { scope, caller }: Omit<ResourceQuery, 'uri'>,
  ): Promise<{ body: unknown; ended(): void }> => {
    const params = memberOf(body, 'params')
    const filter = memberOf(params, 'notifications')
    const uris = memberOf(filter, 'resourceSubscriptions')
    if (!isRecord(body) || !isRecord(params) || !isRecord(filter) || !Array.isArray(uris)) return { body, ended() {} }
    const keys: string[] = []
    const joined = await Promise.all(
      [...new Set(uris)].slice(0, MAX_RESOURCES).map(async (uri) => {
        const found = typeof uri === 'string' ? findResource(servers, { uri, scope, caller }) : undefined
        const key = JSON.stringify([scope, uri])
        if (!found || !(await join(key, found, scope))) return []
        keys.push(key)
        return [uri]
      }),
    )
    const notifications = { ...filter, resourceSubscriptions: joined.flat() }
    return { body: { ...body, params: { ...params, notifications } }, ended: () => keys.splice(0).forEach(leave) }
  }
}
