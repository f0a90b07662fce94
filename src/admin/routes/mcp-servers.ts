/** The admin API's MCP servers: how each is reached, whether it is connected, and since when it fails. */
import Type from 'typebox'
import { shownValue } from '../../config/edit/masking.ts'
import { type McpServerConfig, sandboxText } from '../../config/schema/mcp-schema.ts'
import type { McpServers } from '../../families/mcp/servers.ts'
import type { Context, Route } from '../../http/context.ts'
import { landlockVersion } from '../../kit/confinement.ts'
import type { McpUpstream } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { orNull, titled } from '../../spec/fields.ts'
import { noSuch } from './edit.ts'
import { listRoute, pageOfAll } from './list.ts'
import { adminRoute } from './route.ts'

type McpServerRouteParts = { mcpServers: Pick<McpServers, 'all' | 'approvedOf'> }

const McpServer = titled('McpServer', {
  server: Type.String(),
  kind: Type.Enum(['built in', 'http', 'sse', 'openapi', 'program']),
  address: orNull(Type.String(), 'Its address, or the program without its arguments; null: it is built in.'),
  sandbox: orNull(
    Type.String(),
    'How its program is confined, such as `on: network any`; `off`; or that it cannot be here. null: it is none.',
  ),
  per_session: Type.Boolean({
    description: 'Sessions of clients have connections of their own, of which nothing is said here.',
  }),
  state: Type.Enum(['connected', 'failing', 'idle'], {
    description: 'In this process. failing: its last use failed. idle: not used yet, or its connection has ended.',
  }),
  failing_since: orNull(Type.Integer(), 'Unix seconds.'),
  error: orNull(Type.String(), 'Why its last use failed, without secrets.'),
  tools: orNull(Type.Integer({ minimum: 0 }), 'How many it offers; null: it was not reached yet.'),
})

const ROOT = '/admin/v1/mcp/servers'

export function mcpServerRoutes({ mcpServers }: McpServerRouteParts): Route[] {
  async function connect({ params: { server = '' } }: Context): Promise<Response> {
    const found = mcpServers.all().find(({ name }) => name === server)
    if (!found) throw noSuch('MCP server', server)
    try {
      // New tools are stored with it, so that they can be approved before a client comes.
      await mcpServers.approvedOf(found, await found.offer())
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !found.state().failing) throw thrown
    }
    return Response.json(view(found))
  }

  return [
    listRoute(['GET', ROOT, 'read'], {
      summary: 'List MCP servers',
      description: 'Those that are configured, by name, and whether they can be reached as far as this process knows.',
      of: [McpServer, 'McpServerList'],
      handle: (context) => pageOfAll(context, mcpServers.all(), { view, placeOf: ({ name }) => name }),
    }),
    adminRoute(['POST', `${ROOT}/:server/connect`, 'operate'], {
      summary: 'Connect to an MCP server',
      description:
        'Asks it for its tools, as the first client would. After a failure the next attempt waits, at most 30 seconds.',
      params: { server: 'The name of a server in `mcp.servers`, or `sandbox`.' },
      response: McpServer,
      handle: connect,
    }),
  ]
}

function view(upstream: McpUpstream) {
  const { name, config } = upstream
  const { is_connected, failing } = upstream.state()
  return {
    server: name,
    ...placeOf(name, config),
    sandbox: config ? sandboxText(config, landlockVersion() > 0) : null,
    per_session: config?.per_session ?? false,
    state: failing ? 'failing' : is_connected ? 'connected' : 'idle',
    failing_since: failing ? Math.floor(failing.since_ms / 1000) : null,
    error: failing?.error ?? null,
    tools: upstream.known()?.tools.length ?? null,
  }
}

function placeOf(name: string, config: McpServerConfig | undefined): { kind: string; address: string | null } {
  if (!config) return { kind: 'built in', address: null }
  const { url, sse, openapi, command } = config
  const shown = (member: string[], value: unknown) => String(shownValue(['mcp', 'servers', name, ...member], value))
  if (openapi) return { kind: 'openapi', address: shown(['openapi', 'base_url'], openapi.base_url) }
  if (command !== undefined) return { kind: 'program', address: command }
  return url === undefined
    ? { kind: 'sse', address: shown(['sse'], sse) }
    : { kind: 'http', address: shown(['url'], url) }
}
