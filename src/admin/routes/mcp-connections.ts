/** The admin API's connections to MCP servers of the person who has the session: begun, finished and ended. */
import Type from 'typebox'
import type { McpConnections } from '../../families/mcp/connections.ts'
import type { McpServers } from '../../families/mcp/servers.ts'
import { adminBaseUrl } from '../../families/tasks/routes/request-parameters.ts'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { AdminAccess, Context, Route } from '../../http/context.ts'
import type { McpUpstream } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { closedObject, orNull, titled } from '../../spec/fields.ts'
import { noSuch, originOf } from './edit.ts'
import { listAnswer, listRoute, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type McpConnectionRouteParts = BodyParts & {
  mcpServers: Pick<McpServers, 'all'>
  mcpConnections: McpConnections
}

const ROOT = '/admin/v1/mcp/connections'
/** Who may call models in the playground may connect: for themselves only. */
const ACCESS: AdminAccess = { right: 'call', project: 'own' }

const McpConnection = titled('McpConnection', {
  server: Type.String(),
  state: Type.Enum(['connected', 'ended', 'none'], {
    description: 'ended: the authorization server has refused to go on, and the person must connect again.',
  }),
  connected_at: orNull(Type.Integer(), 'Unix seconds.'),
})
export const McpConnectionEnded = titled('McpConnectionEnded', { revoked: Type.Boolean() })
const Finish = closedObject('McpConnectionFinish', {
  query: Type.String({
    maxLength: 8192,
    description: 'What the authorization server has added to the address of the console: code, state, iss.',
  }),
})

export function mcpConnectionRoutes(parts: McpConnectionRouteParts): Route[] {
  const { mcpServers, mcpConnections, settings } = parts
  const readFinish = bodyReader(Finish, parts)

  const isPersonal = ({ config }: McpUpstream, { project_id }: Context['admin']): boolean => {
    if (!config?.oauth_user) return false
    return project_id === undefined || config.projects === undefined || config.projects.includes(project_id)
  }

  const personOf = ({ admin: { actor, via } }: Context): string | undefined =>
    via === 'session' ? mcpConnections.personOf({ actor }, undefined) : undefined

  function require(context: Context): { person: string; session_id: string } {
    const [person, { session_id }] = [personOf(context), context.admin]
    if (person !== undefined && session_id !== undefined) return { person, session_id }
    throw new GatewayError(
      'object_not_found',
      'Only who has logged in to the console by the OpenID provider (admin.oidc) has connections to MCP servers.',
    )
  }

  const nameOf = ({ name, config }: McpUpstream) => ({ name, url: config?.url, oauth_user: config?.oauth_user })
  const personal = (context: Context) => mcpServers.all().filter((one) => isPersonal(one, context.admin))

  function serverOf(context: Context) {
    const { server = '' } = context.params
    const { person } = require(context)
    const found = personal(context).find(({ name }) => name === server)
    if (!found) throw noSuch('MCP server with oauth_user', server)
    return { ...nameOf(found), person }
  }

  async function list(context: Context): Promise<Response> {
    const person = personOf(context)
    const found = person === undefined ? [] : personal(context)
    const { limit, after: [after = ''] = [] } = readPage(context.query())
    const rest = found.filter(({ name }) => name > after)
    const rows = rest.slice(0, limit).map(async (upstream) => ({
      server: upstream.name,
      ...(await mcpConnections.state({ ...nameOf(upstream), person: person ?? '' })),
    }))
    return listAnswer(await Promise.all(rows), rest.length > limit ? [rest[limit - 1]?.name ?? ''] : undefined)
  }

  async function begin(context: Context): Promise<Response> {
    const server = serverOf(context)
    const { session_id } = require(context)
    const redirect_uri = mcpConnections.redirectUri(adminBaseUrl(context, settings))
    return Response.json({ location: await mcpConnections.begin(server, { redirect_uri, session_id }) })
  }

  async function finish(context: Context): Promise<Response> {
    const from = require(context)
    const { query } = await readFinish(context)
    const find = (server: string) => {
      const found = personal(context).find(({ name }) => name === server)
      return found && nameOf(found)
    }
    return Response.json({ server: await mcpConnections.finish({ ...from, query }, find, originOf(context)) })
  }

  const params = { server: 'The name of a server in `mcp.servers` with `oauth_user`.' }
  return [
    listRoute(['GET', ROOT, ACCESS], {
      summary: 'List your connections to MCP servers',
      description:
        'The servers with `oauth_user`, and whether the person who has the session is connected. Empty in sessions that were not begun by `admin.oidc`.',
      of: [McpConnection, 'McpConnectionList'],
      handle: list,
    }),
    adminRoute(['POST', `${ROOT}/:server`, ACCESS], {
      summary: 'Begin to connect to an MCP server',
      description:
        'For the console: the address of the authorization server, which sends the browser back to `/console/mcp`. Only the same session can finish it, once, within 10 minutes.',
      params,
      response: titled('McpConnectionBegun', { location: Type.String() }),
      errors: ['upstream_unreachable', 'bad_upstream_response', 'upstream_auth', 'server_is_overloaded'],
      handle: begin,
    }),
    adminRoute(['POST', ROOT, ACCESS], {
      summary: 'Finish to connect to an MCP server',
      description: 'With what the authorization server has sent back by the browser.',
      request: Finish,
      response: titled('McpConnectionMade', { server: Type.String() }),
      errors: ['object_not_found', 'upstream_unreachable', 'bad_upstream_response', 'upstream_auth'],
      example: { query: 'code=...&state=...&iss=https%3A%2F%2Flogin.example.com' },
      handle: finish,
    }),
    adminRoute(['DELETE', `${ROOT}/:server`, ACCESS], {
      summary: 'End your connection to an MCP server',
      description: 'Deletes its tokens, and revokes them where the authorization server has an endpoint for it.',
      params,
      response: McpConnectionEnded,
      handle: async (context) => Response.json(await mcpConnections.end(serverOf(context), originOf(context))),
    }),
  ]
}
