/** The admin API's sessions: login by a one-time link, logout, and the list. */
import Type from 'typebox'
import { requestBaseUrl } from '../../families/tasks/routes/request-parameters.ts'
import { BODY_ERRORS, type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { assertSameOrigin, setCookie } from '../../http/session-cookie.ts'
import { AdminSession } from '../../spec/admin.ts'
import { GatewayError } from '../../spec/error.ts'
import type { AdminSessions } from '../access/sessions.ts'
import { noSuch, originOf } from './edit.ts'
import { LIST_PARAMETERS, listAnswer, listSchema, readPage } from './list.ts'
import { LOGIN_PAGE, LOGIN_PAGE_HEADERS } from './login-page.ts'
import { adminRoute } from './route.ts'

export type SessionRouteParts = BodyParts & {
  sessions: AdminSessions
  /** Refuses a wrong link, with a delay that grows. */
  refuseLogin(context: Context): Promise<never>
  /** The hosts by which this gateway is reached. */
  hostsOf(context: Context): string[]
}

const ROOT = '/admin/v1/sessions'
const Login = Type.Object(
  { link: Type.String({ minLength: 1, maxLength: 200, description: 'What follows `#` in the link.' }) },
  { additionalProperties: false, title: 'Login' },
)
const Ended = Type.Object({ ended: Type.Integer({ description: 'How many sessions.' }) }, { title: 'SessionsEnded' })

export function sessionRoutes({ sessions, refuseLogin, hostsOf, ...parts }: SessionRouteParts): Route[] {
  // Nobody is known yet: it may hold no more than it needs.
  const readLogin = bodyReader(Login, { ...parts, max_bytes: 4_096 })
  const tag = 'Admin'
  const isSecure = ({ request }: Context) => requestBaseUrl(request, parts.settings).startsWith('https:')

  async function login(context: Context): Promise<Response> {
    assertSameOrigin(context.request, hostsOf(context))
    const { link } = await readLogin(context)
    const { address, request_id } = context
    const made = await sessions.login(link, { address, request_id, user_agent: context.header('user-agent') ?? '' })
    if (!made) return refuseLogin(context)
    const seconds = made.session.expires_at - made.session.created_at
    const cookie = setCookie({ secret: made.secret, seconds, isSecure: isSecure(context) })
    return Response.json(made.session, { headers: { 'set-cookie': cookie } })
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
        summary: 'Log in by a one-time link',
        description:
          '`gatehouse admin login` prints the link; it is valid once, for 15 minutes. The response sets the cookie of the session. The header `x-gatehouse-csrf` is needed, as with every request of a session that changes something.',
        tag,
        request: Login,
        response: AdminSession,
        responseHeaders: { 'set-cookie': 'The session.' },
        errors: [...BODY_ERRORS, 'invalid_api_key', 'permission_denied', 'rate_limit_exceeded', 'storage_unavailable'],
        example: { link: 'ghl-...' },
      },
      handle: login,
    },
    adminRoute(['POST', '/admin/v1/logout', { right: 'read', project: 'own' }], {
      summary: 'End this session',
      description: 'And delete its cookie.',
      response: Ended,
      errors: ['invalid_value'],
      handle: logout,
    }),
    adminRoute(['GET', ROOT, 'own'], {
      summary: 'List sessions',
      description: 'Newest first, without those that have ended.',
      query: LIST_PARAMETERS,
      response: listSchema(AdminSession, 'SessionList'),
      errors: ['invalid_value'],
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
      errors: ['object_not_found'],
      handle: end,
    }),
  ]
}
