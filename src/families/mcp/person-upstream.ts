/** An MCP server by a connection of one person, which is found anew for each use: it may have ended at another process. */
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import type { ServedClient } from '../../providers/mcp/connect.ts'
import { createUpstream, type McpUpstream } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { type McpConnections, NotConnected } from './connections.ts'

type PersonParts = Parameters<typeof createUpstream>[0] & { config: McpServerConfig }

/** `person` undefined: nobody can use it. */
export function createPersonUpstream(
  parts: PersonParts,
  person: string | undefined,
  connections: McpConnections,
  client?: ServedClient,
): McpUpstream {
  const { name, config } = parts
  let isClosed = false
  let current: { connection_id: string; upstream: McpUpstream } | undefined

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
      // Changes of one person's lists are announced to nobody else.
      current = { connection_id, upstream: createUpstream({ ...parts, token, client, onChanged() {} }) }
    }
    return current.upstream
  }

  return {
    name,
    config,
    pinned_as: `${name}:${encodeURIComponent(person ?? '')}`,
    state: () => ({ is_connected: false }),
    known: () => undefined,
    offer: async () => (await connected()).offer(),
    offerForCall: async (signal) => (await connected()).offerForCall(signal),
    request: async (request) => (await connected()).request(request),
    watch: async (uri, listener) => (await connected()).watch(uri, listener),
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
