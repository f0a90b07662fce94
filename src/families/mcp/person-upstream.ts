/** An MCP server by a connection of one person, which is found anew for each use: it may have ended at another process. */
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import type { ServedClient } from '../../providers/mcp/connect.ts'
import { createUpstream, type McpUpstream, type UpstreamParts } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { type McpConnections, NotConnected } from './connections.ts'
import { pinnedAs } from './people.ts'

type PersonParts = UpstreamParts & {
  config: McpServerConfig
  /** After which an unused connection ends, until the next use. */
  idle_ms(): number
  /** What the person is offered has changed. */
  onPersonChanged(person: string): void
}

/** `person` undefined: nobody can use it. */
export function createPersonUpstream(
  parts: PersonParts,
  person: string | undefined,
  connections: McpConnections,
  client?: ServedClient,
): McpUpstream {
  const { name, config, clock, idle_ms, onPersonChanged } = parts
  let isClosed = false
  let current: { connection_id: string; upstream: McpUpstream } | undefined
  /** Requests and subscriptions. */
  let open = 0
  let usedAt = 0
  let isWaiting = false

  function leave(): void {
    void current?.upstream.close()
    current = undefined
  }

  async function connected(): Promise<McpUpstream> {
    if (person === undefined) throw unknownPerson(name)
    const server = { name, url: config.url, oauth_user: config.oauth_user, person }
    const connection_id = await connections.require(server).catch((thrown) => {
      if (thrown instanceof NotConnected) leave()
      throw thrown
    })
    if (isClosed) throw new GatewayError('shutting_down', 'The connection was closed.', { accepted: 'no' })
    if (current?.connection_id !== connection_id) {
      leave()
      const token = connections.token(server, connection_id)
      // They are announced to nobody else; a connection of one client knows them from that of the person.
      const onChanged = () => client === undefined && onPersonChanged(person)
      current = { connection_id, upstream: createUpstream({ ...parts, token, client, onChanged }) }
    }
    return current.upstream
  }

  function endWhenIdle(): void {
    if (isWaiting || isClosed) return
    isWaiting = true
    clock.after(Math.max(1, usedAt + idle_ms() - clock.steady()), () => {
      isWaiting = false
      if (open === 0 && clock.steady() - usedAt >= idle_ms()) leave()
      else if (current) endWhenIdle()
    })
  }

  function used(change: 1 | -1): void {
    open += change
    usedAt = clock.steady()
    endWhenIdle()
  }

  async function using<Result>(work: (upstream: McpUpstream) => Promise<Result>): Promise<Result> {
    used(1)
    try {
      return await work(await connected())
    } finally {
      used(-1)
    }
  }

  return {
    name,
    config,
    pinned_as: pinnedAs(name, person ?? ''),
    state: () => ({ is_connected: false }),
    known: () => undefined,
    offer: () => using((upstream) => upstream.offer()),
    offerForCall: (signal) => using((upstream) => upstream.offerForCall(signal)),
    request: (request) => using((upstream) => upstream.request(request)),
    watch: (uri, listener) =>
      using(async (upstream) => {
        const stop = await upstream.watch(uri, listener)
        used(1)
        return () => {
          used(-1)
          stop()
        }
      }),
    for: (served) => createPersonUpstream(parts, person, connections, served),
    async close() {
      isClosed = true
      await current?.upstream.close()
      current = undefined
    },
  }
}

const unknownPerson = (name: string) =>
  new GatewayError(
    'permission_denied',
    `Each person connects an account of their own to the MCP server "${name}", and it is not known who calls: use an access token of your OpenID provider at /mcp, the playground, or an API token that mcp.servers.${name}.oauth_user.tokens gives to one person.`,
  )
