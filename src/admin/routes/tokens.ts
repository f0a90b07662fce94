/** The admin API's tokens: those of callers, which it creates, changes, rotates and revokes. */
import Type from 'typebox'
import type { Projects } from '../../accounts/projects.ts'
import { type LimitsRouteParts, limitsOf, TokenLimits } from '../../accounts/routes/limits-route.ts'
import type { Tokens } from '../../accounts/tokens.ts'
import { type BodyParts, bodyReader, optionalBodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { closedObject, integer, parameter, titled } from '../../spec/fields.ts'
import { Token, TokenChange, TokenOrder } from '../../spec/token.ts'
import {
  assertGuards,
  assertMatch,
  ETAG_HEADER,
  IF_MATCH_HEADER,
  noSuch,
  objectAnswer,
  objectIn,
  originOf,
} from './edit.ts'
import { ACCOUNT_PARAMETERS, listAnswer, listRoute, readAccountFilter, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type TokenRouteParts = BodyParts &
  LimitsRouteParts & { tokens: Tokens; projects: Projects; guardNames(): readonly string[] }

const ROOT = '/admin/v1/tokens'
const ONE = `${ROOT}/:token_id`
const params = { token_id: 'The id of a token.' }
/** Changes with every use, and is no reason to refuse an edit. */
const VOLATILE = ['last_used_at']

const IssuedToken = titled('IssuedToken', {
  ...Token.properties,
  secret: Type.String({ description: 'Shown only in this response.' }),
})
const Rotation = closedObject('TokenRotation', {
  overlap_seconds: integer(
    { minimum: 0, maximum: 7_776_000 },
    'For how long the present secret stays valid. Default 0: it is refused at once.',
  ),
})

export function tokenRoutes({ tokens, projects, guardNames, ...parts }: TokenRouteParts): Route[] {
  const readOrder = bodyReader(TokenOrder, parts)
  const readChange = bodyReader(TokenChange, parts)
  const readRotation = optionalBodyReader(Rotation, parts)
  const { found, projectOf } = objectIn('token_id', 'token', tokens.find)

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const page = { ...readPage(query), ...readAccountFilter(query) }
    const own = context.admin.project_id
    const project_id = query.get('project_id') ?? own
    if (own !== undefined && project_id !== own) return listAnswer([], undefined)
    const { rows, next } = await tokens.page({ ...page, ...(project_id !== undefined && { project_id }) })
    return listAnswer(rows, next)
  }

  /** What counts for its calls: nothing does for one that is revoked or disabled. */
  async function limits(context: Context): Promise<Response> {
    const { token_id } = await found(context)
    const caller = await tokens.callerOf(token_id)
    if (caller) return Response.json(await limitsOf(caller, parts))
    throw new GatewayError('object_not_found', `The token ${token_id} is not active, so nothing is counted for it.`)
  }

  /** A project_admin creates and moves tokens only within its own project, and learns of no other. */
  async function assertProject({ admin }: Context, project_id: string | null | undefined): Promise<void> {
    if (project_id === undefined) return
    if (admin.project_id !== undefined && project_id !== admin.project_id) throw noSuch('project', project_id ?? 'null')
    if (project_id !== null && !(await projects.find(project_id))) {
      const param = 'project_id'
      throw invalidValue(param, `project_id: there is no project ${JSON.stringify(project_id)}.`)
    }
  }

  async function create(context: Context): Promise<Response> {
    const { project_id = context.admin.project_id, ...order } = await readOrder(context)
    await assertProject(context, project_id)
    assertGuards(order, guardNames())
    const issued = await tokens.issue({ ...order, ...(project_id !== undefined && { project_id }) }, originOf(context))
    return objectAnswer(context, { ...issued.token, secret: issued.secret }, [...VOLATILE, 'secret'])
  }

  async function update(context: Context): Promise<Response> {
    const change = await readChange(context)
    await assertProject(context, change.project_id)
    assertGuards(change, guardNames())
    const check = checkOf(context)
    const changed = await tokens.update(
      inPath(context),
      (present) => {
        check(present)
        return change
      },
      originOf(context),
    )
    return objectAnswer(context, changed, VOLATILE)
  }

  async function rotate(context: Context): Promise<Response> {
    const { overlap_seconds = 0 } = await readRotation(context)
    const check = checkOf(context)
    const issued = await tokens.rotate(inPath(context), { overlap_seconds, by: originOf(context), check })
    return objectAnswer(context, { ...issued.token, secret: issued.secret }, [...VOLATILE, 'secret'])
  }

  async function revoke(context: Context): Promise<Response> {
    const revoked = await tokens.revoke(inPath(context), originOf(context), checkOf(context))
    return objectAnswer(context, revoked, VOLATILE)
  }

  return [
    listRoute(['GET', ROOT, { right: 'read', project: 'own' }], {
      summary: 'List tokens',
      description: 'Revoked ones too. A project_admin sees those of its project.',
      query: { ...ACCOUNT_PARAMETERS, project_id: parameter('Only the tokens of this project.') },
      of: [Token, 'TokenList'],
      handle: list,
    }),
    adminRoute(['POST', ROOT, { right: 'manage', project: 'own' }], {
      summary: 'Create a token',
      description:
        'The secret is in this response and nowhere else. Absent fields come from `tokens` of the configuration. The token of a project_admin belongs to its project.',
      request: TokenOrder,
      response: IssuedToken,
      responseHeaders: ETAG_HEADER,
      errors: ['object_not_found'],
      example: { name: 'laptop', models: ['sandbox/*'], rate_limits: { requests_per_minute: 60 } },
      handle: create,
    }),
    adminRoute(['GET', ONE, { right: 'read', project: projectOf }], {
      summary: 'A token',
      description: 'Without its secret, which is not stored.',
      params,
      response: Token,
      responseHeaders: ETAG_HEADER,
      handle: async (context) => objectAnswer(context, await found(context), VOLATILE),
    }),
    adminRoute(['GET', `${ONE}/limits`, { right: 'read', project: projectOf }], {
      summary: 'What is left of the limits and budgets of a token',
      description: 'And of its project: what `GET /v1/limits` answers to the token itself.',
      params,
      response: TokenLimits,
      errors: ['storage_unavailable'],
      handle: limits,
    }),
    adminRoute(['PATCH', ONE, { right: 'manage', project: 'own' }], {
      summary: 'Change a token',
      description:
        'Absent fields stay as they are; a given field replaces the whole of what was set. In force within a second in every process.',
      params,
      headers: IF_MATCH_HEADER,
      request: TokenChange,
      response: Token,
      responseHeaders: ETAG_HEADER,
      example: { rate_limits: { requests_per_minute: 120 } },
      handle: update,
    }),
    adminRoute(['POST', `${ONE}/rotate`, { right: 'manage', project: 'own' }], {
      summary: "Replace a token's secret",
      description: 'The new secret is in this response and nowhere else; the old one stays valid for the overlap.',
      params,
      headers: IF_MATCH_HEADER,
      request: Rotation,
      body_optional: true,
      response: IssuedToken,
      responseHeaders: ETAG_HEADER,
      example: { overlap_seconds: 3600 },
      handle: rotate,
    }),
    adminRoute(['DELETE', ONE, { right: 'manage', project: 'own' }], {
      summary: 'Revoke a token',
      description:
        'In force at once in this process, within a second in others; its open calls end. It stays in the list.',
      params,
      headers: IF_MATCH_HEADER,
      response: Token,
      handle: revoke,
    }),
  ]
}

const inPath = ({ params: { token_id = '' } }: Context) => ({ token_id })

/** Within the transaction of a change, which reads the row: until then a project_admin may not know whether it is there. */
const checkOf = (context: Context) => (present: Token) => {
  assertOwn(context, present)
  assertMatch(context, present, VOLATILE)
}

/** The same answer for what is not there and for what belongs to another project. */
function assertOwn({ admin }: Context, { token_id, project_id }: Token): void {
  if (admin.project_id !== undefined && project_id !== admin.project_id) throw noSuch('token', token_id)
}
