/** The admin API's administrators: admin tokens, and who the caller is. */
import Type from 'typebox'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { ADMIN_ROLES, AdminToken, Membership, RIGHTS } from '../../spec/admin.ts'
import { closedObject, orNull, text, titled } from '../../spec/fields.ts'
import type { AdminAccounts } from '../access/administrators.ts'
import { rightsOf } from '../access/rights.ts'
import { objectAnswer, objectIn, originOf } from './edit.ts'
import { listAnswer, listRoute, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type AccountRouteParts = BodyParts & {
  accounts: AdminAccounts
  /** Of the ledger. */
  currency(): string
}

const ROOT = '/admin/v1/admin-tokens'
const ONE = `${ROOT}/:admin_token_id`
const params = { admin_token_id: 'The id of an admin token.' }

const AdminTokenOrder = closedObject('AdminTokenOrder', {
  name: Type.String({ description: '1 to 100 characters.' }),
  role: Type.Enum([...ADMIN_ROLES]),
  project_id: text('Of a project_admin or project_member, and of no other role.'),
  expires_at: Type.Optional(orNull(Type.Integer(), 'Unix seconds; null: never. Default: never.')),
})
const IssuedAdminToken = titled('IssuedAdminToken', {
  ...AdminToken.properties,
  secret: Type.String({ description: 'Shown only in this response.' }),
})
const Administrator = titled('Administrator', {
  actor: Type.String({ description: 'As the audit log names it.' }),
  role: Type.Enum([...ADMIN_ROLES]),
  project_id: orNull(Type.String()),
  memberships: Type.Array(Membership, {
    description:
      'All projects of a person who has several: the header x-gatehouse-project chooses one for a request. Else empty.',
  }),
  via: Type.Enum(['token', 'session']),
  session_id: orNull(Type.String()),
  rights: Type.Array(Type.Enum([...RIGHTS])),
  currency: Type.String({ description: 'In which the gateway counts, such as USD.' }),
})

export function accountRoutes({ accounts, currency, ...parts }: AccountRouteParts): Route[] {
  const readOrder = bodyReader(AdminTokenOrder, parts)

  const { found } = objectIn('admin_token_id', 'admin token', accounts.find)

  async function list(context: Context): Promise<Response> {
    const { rows, next } = await accounts.page(readPage(context.query()))
    return listAnswer(rows, next)
  }

  async function create(context: Context): Promise<Response> {
    const issued = await accounts.issue(await readOrder(context), originOf(context))
    return Response.json({ ...issued.token, secret: issued.secret })
  }

  async function revoke(context: Context): Promise<Response> {
    const { admin_token_id } = await found(context)
    return Response.json(await accounts.revoke(admin_token_id, originOf(context)))
  }

  function me({ admin }: Context): Response {
    const { actor, role, project_id = null, memberships = [], via, session_id = null } = admin
    const rights = rightsOf(role)
    return Response.json({ actor, role, project_id, memberships, via, session_id, rights, currency: currency() })
  }

  return [
    adminRoute(['GET', '/admin/v1/me', { right: 'read', project: 'own' }], {
      summary: 'Who calls',
      description: 'The role and the rights of the caller.',
      response: Administrator,
      handle: me,
    }),
    listRoute(['GET', ROOT, 'own'], {
      summary: 'List admin tokens',
      description: 'Oldest first, revoked ones too. GATEHOUSE_ADMIN_TOKEN is not among them.',
      of: [AdminToken, 'AdminTokenList'],
      handle: list,
    }),
    adminRoute(['POST', ROOT, 'own'], {
      summary: 'Create an admin token',
      description: 'The secret is in this response and nowhere else.',
      request: AdminTokenOrder,
      response: IssuedAdminToken,
      example: { name: 'dashboard', role: 'viewer' },
      handle: create,
    }),
    adminRoute(['GET', ONE, 'own'], {
      summary: 'An admin token',
      description: 'Without its secret, which is not stored.',
      params,
      response: AdminToken,
      responseHeaders: { etag: 'Of the present state.' },
      handle: async (context) => objectAnswer(context, await found(context), ['last_used_at']),
    }),
    adminRoute(['DELETE', ONE, 'own'], {
      summary: 'Revoke an admin token',
      description: 'In force at once, in every process. It stays in the list.',
      params,
      response: AdminToken,
      handle: revoke,
    }),
  ]
}
