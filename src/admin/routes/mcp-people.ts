/** Lists the people who are connected to MCP servers, for the operator, who may disconnect them. */
import Type from 'typebox'
import type { McpConnections } from '../../families/mcp/connections.ts'
import type { Context, Route } from '../../http/context.ts'
import type { OAuthServer } from '../../providers/mcp/user-oauth.ts'
import { orNull, titled } from '../../spec/fields.ts'
import type { McpConnectionRow } from '../../store/admin/mcp-connection-store.ts'
import { noSuch, originOf } from './edit.ts'
import { listRoute, pageAnswer, readPage } from './list.ts'
import { McpConnectionEnded } from './mcp-connections.ts'
import { adminRoute } from './route.ts'

type McpPeopleRouteParts = {
  mcpConnections: Pick<McpConnections, 'list' | 'endNamed'>
  /** As it is configured now; undefined: it is not any more. */
  personalServer(name: string): OAuthServer | undefined
}

const ROOT = '/admin/v1/mcp/people'

const McpPerson = titled('McpPerson', {
  connection_id: Type.String({ description: '`mcpc_` and 16 alphanumerics.' }),
  server: Type.String(),
  subject: Type.String({ description: 'The person, as the OpenID provider names it.' }),
  issuer: Type.String({ description: 'The OpenID provider.' }),
  state: Type.Enum(['connected', 'ended'], {
    description: 'ended: the authorization server has refused to go on, and the person must connect again.',
  }),
  connected_at: orNull(Type.Integer(), 'Unix seconds.'),
  last_used_at: orNull(Type.Integer(), 'Unix seconds, to the minute.'),
})

export function mcpPeopleRoutes({ mcpConnections, personalServer }: McpPeopleRouteParts): Route[] {
  async function list(context: Context): Promise<Response> {
    const { limit, after: [after] = [] } = readPage(context.query())
    const rows = await mcpConnections.list(limit + 1, after)
    return pageAnswer(rows, { limit, view, keyOf: ({ connection_id }) => [connection_id ?? ''] })
  }

  async function end(context: Context): Promise<Response> {
    const { connection_id = '' } = context.params
    const ended = await mcpConnections.endNamed(connection_id, personalServer, originOf(context))
    if (!ended) throw noSuch('connection to an MCP server', connection_id)
    return Response.json(ended)
  }

  return [
    listRoute(['GET', ROOT, 'read'], {
      summary: 'List people who are connected to MCP servers',
      description: 'The connections of all people to servers with `oauth_user`.',
      of: [McpPerson, 'McpPersonList'],
      handle: list,
    }),
    adminRoute(['DELETE', `${ROOT}/:connection_id`, 'operate'], {
      summary: 'Disconnect a person from an MCP server',
      description: 'As the person could: deletes its tokens and the approvals of its tools, and revokes the tokens.',
      params: { connection_id: 'The id in the list of people.' },
      response: McpConnectionEnded,
      handle: end,
    }),
  ]
}

function view({ person, sealed, ...row }: McpConnectionRow) {
  const { connection_id, server, connected_at, last_used_at } = row
  const [subject, issuer] = person.split(' ')
  const state = sealed === null ? 'ended' : 'connected'
  return { connection_id, server, subject, issuer, state, connected_at, last_used_at }
}
