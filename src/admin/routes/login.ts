/** The admin API's sessions: login by a one-time link, logout, and the list. */
import Type from 'typebox'
import { adminBaseUrl } from '../../families/tasks/routes/request-parameters.ts'
import { BODY_ERRORS, type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { assertSameOrigin, setCookie } from '../../http/session-cookie.ts'
import { sha256 } from '../../kit/secret.ts'
import { ADMIN_ROLES, AdminSession } from '../../spec/admin.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { closedObject, integer, text, titled } from '../../spec/fields.ts'
import type { AdminAccounts } from '../access/administrators.ts'
import { assertNoMoreThan } from '../access/rights.ts'
import type { AdminSessions } from '../access/sessions.ts'
import { noSuch, originOf } from './edit.ts'
import { listAnswer, listRoute, readPage } from './list.ts'
import { LOGIN_PAGE, LOGIN_PAGE_HEADERS } from './login-page.ts'
import { adminRoute } from './route.ts'

type SessionRouteParts = BodyParts & {
  sessions: AdminSessions
  accounts: Pick<AdminAccounts, 'authenticate' | 'assertProject'>
  /** Refuses a wrong link, with a delay that grows. */
  refuseLogin(context: Context): Promise<never>
  /** The hosts by which this gateway is reached. */
  hostsOf(context: Context): string[]
}

const ROOT = '/admin/v1/sessions'
const Login = closedObject('Login', {
  link: text({ minLength: 1, maxLength: 200 }, 'What follows `#` in the link.'),
  token: text({ minLength: 1, maxLength: 512 }, 'An admin token, in place of a link.'),
})
const LoginLinkOrder = closedObject('LoginLinkOrder', {
  name: Type.String({
    minLength: 1,
    maxLength: 100,
    description: 'The person, as the audit log and the request log name it.',
  }),
  role: Type.Enum([...ADMIN_ROLES], { description: 'No right of it may be one that the caller lacks.' }),
  project_id: text('Of a project_admin or project_member. Default: that of the caller.'),
  valid_seconds: integer({ minimum: 60, maximum: 604_800 }, 'How long the link may be used, once. Default 86400.'),
})
const LoginLink = titled('LoginLink', {
  link: Type.String({ description: 'To be opened in a browser. Shown only in this response.' }),
  expires_at: Type.Integer({ description: 'Unix seconds.' }),
})
const LINK_SECONDS = 86_400
/** A name is part of lines and lists. */
const CONTROL = /\p{Cc}/u
const Ended = titled('SessionsEnded', { ended: Type.Integer({ description: 'How many sessions.' }) })

export function sessionRoutes({ sessions, accounts, refuseLogin, hostsOf, ...parts }: SessionRouteParts): Route[] {
  // Nobody is known yet: it may hold no more than it needs.
  const readLogin = bodyReader(Login, { ...parts, max_bytes: 4_096 })
  const readLinkOrder = bodyReader(LoginLinkOrder, parts)
  const tag = 'Admin'
  const isSecure = (context: Context) => adminBaseUrl(context, parts.settings).startsWith('https:')

  async function login(context: Context): Promise<Response> {
    assertSameOrigin(context.request, hostsOf(context))
    const { link, token } = await readLogin(context)
    if ((link === undefined) === (token === undefined)) {
      throw invalidValue('link', 'A login needs either "link" or "token", and not both.')
    }
    const { address, request_id } = context
    const browser = { address, request_id, user_agent: context.header('user-agent') ?? '' }
    const made =
      token === undefined ? await sessions.login(link ?? '', browser) : await byToken(token, context, browser)
    if (!made) return refuseLogin(context)
    const seconds = made.session.expires_at - made.session.created_at
    const cookie = setCookie({ secret: made.secret, seconds, isSecure: isSecure(context) })
    return Response.json(made.session, { headers: { 'set-cookie': cookie } })
  }

  /** The session ends with the token. */
  async function byToken(token: string, context: Context, browser: Parameters<AdminSessions['begin']>[1]) {
    const { actor, role, project_id } = await accounts.authenticate(token.trim(), context)
    const person = { actor, role, ...(project_id !== undefined && { project_id }) }
    return sessions.begin({ ...person, token_hash: sha256(token.trim()) }, browser)
  }

  async function createLink(context: Context): Promise<Response> {
    const { name, role, project_id = context.admin.project_id, valid_seconds } = await readLinkOrder(context)
    if (CONTROL.test(name)) throw invalidValue('name', 'name: must not hold control characters.')
    assertNoMoreThan(context.admin, role)
    const own = context.admin.project_id
    if (own !== undefined && project_id !== own) throw noSuch('project', project_id)
    await accounts.assertProject({ role, ...(project_id !== undefined && { project_id }) })
    const person = { name: name.trim(), role, project_id: project_id ?? null }
    const order = { person, seconds: valid_seconds ?? LINK_SECONDS }
    const { secret, expires_at } = await sessions.createLink(originOf(context), order)
    return Response.json({
      link: `${adminBaseUrl(context, parts.settings)}/console#${secret}`,
      expires_at,
    })
  }

  const cleared = (context: Context) => ({
    'set-cookie': setCookie({ secret: '', seconds: 0, isSecure: isSecure(context) }),
  })

  async function logout(context: Context): Promise<Response> {
    const { session_id } = context.admin
    if (session_id === undefined) {
      throw new GatewayError('invalid_value', 'The caller has a token and no session; a token is revoked instead.')
    }
    await sessions.end(session_id, originOf(context))
    return Response.json({ ended: 1 }, { headers: cleared(context) })
  }

  async function list(context: Context): Promise<Response> {
    const { rows, next } = await sessions.page(readPage(context.query()))
    return listAnswer(rows, next)
  }

  async function end(context: Context): Promise<Response> {
    const { session_id = '' } = context.params
    if (!(await sessions.end(session_id, originOf(context)))) throw noSuch('session', session_id)
    return Response.json({ ended: 1 })
  }

  return [
    {
      method: 'GET',
      path: '/admin/login',
      public: true,
      hidden: true,
      operation: { summary: 'Log in by a link', tag },
      handle: () => new Response(LOGIN_PAGE, { headers: LOGIN_PAGE_HEADERS }),
    },
    {
      method: 'POST',
      path: '/admin/v1/login',
      public: true,
      operation: {
        summary: 'Log in by a one-time link or an admin token',
        description:
          '`gatehouse admin login` prints a link, and `POST /admin/v1/login-links` makes one for a person; each is valid once. The session of an admin token ends when that is revoked. The response sets the cookie of the session. The header `x-gatehouse-csrf` is needed, as with every request of a session that changes something.',
        tag,
        request: Login,
        response: AdminSession,
        responseHeaders: { 'set-cookie': 'The session.' },
        errors: [...BODY_ERRORS, 'invalid_api_key', 'permission_denied', 'rate_limit_exceeded', 'storage_unavailable'],
        example: { link: 'ghl-...' },
      },
      handle: login,
    },
    adminRoute(['POST', '/admin/v1/login-links', { right: 'manage', project: 'own' }], {
      summary: 'Make a login link for a person',
      description:
        'It begins a session of this role, once. A project_admin makes links for its project. Nobody gives a right that they lack.',
      request: LoginLinkOrder,
      response: LoginLink,
      errors: ['object_not_found'],
      example: { name: 'Ann', role: 'viewer' },
      handle: createLink,
    }),
    adminRoute(['POST', '/admin/v1/logout', { right: 'read', project: 'own' }], {
      summary: 'End this session',
      description: 'And delete its cookie.',
      response: Ended,
      errors: ['invalid_value'],
      handle: logout,
    }),
    listRoute(['GET', ROOT, 'own'], {
      summary: 'List sessions',
      description: 'Newest first, without those that have ended.',
      of: [AdminSession, 'SessionList'],
      handle: list,
    }),
    adminRoute(['DELETE', ROOT, 'own'], {
      summary: 'End all sessions',
      description: 'Everybody has to log in again, the caller too.',
      response: Ended,
      handle: async (context) =>
        Response.json({ ended: await sessions.endAll(originOf(context)) }, { headers: cleared(context) }),
    }),
    adminRoute(['DELETE', `${ROOT}/:session_id`, 'own'], {
      summary: 'End a session',
      description: 'In force at once, in every process.',
      params: { session_id: 'The id of a session.' },
      response: Ended,
      handle: end,
    }),
  ]
}
