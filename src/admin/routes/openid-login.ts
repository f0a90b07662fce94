/** The admin API's login with an OpenID provider: the way there, and the way back. */
import Type from 'typebox'
import type { ServerSettings } from '../../config/config.ts'
import { adminBaseUrl } from '../../families/tasks/routes/request-parameters.ts'
import type { Context, Route } from '../../http/context.ts'
import { loginCookie, setCookie, setLoginCookie } from '../../http/session-cookie.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { parameter, titled } from '../../spec/fields.ts'
import { LOGIN_SECONDS, LoginRefused, localPath, type OidcLogin } from '../access/oidc.ts'
import type { AdminSessions } from '../access/sessions.ts'
import type { Audit } from '../audit/audit.ts'

type OidcRouteParts = {
  oidc: OidcLogin
  sessions: Pick<AdminSessions, 'begin'>
  audit: Pick<Audit, 'record'>
  /** Refuses a login that failed, with a delay that grows. */
  refuseSecret(context: Context, message: string): Promise<never>
  settings: ServerSettings
}

const LoginMethods = titled('LoginMethods', {
  methods: Type.Array(Type.String(), {
    description:
      '`link`: one that `gatehouse admin login` prints; `token`: an admin token; `oidc`: at the OpenID provider, by `/admin/v1/login/oidc`.',
  }),
})
type LoginMethods = Type.Static<typeof LoginMethods>

const PATH = '/admin/v1/login/oidc'
const CONSOLE = '/console'
/** A code of a provider has at most a few hundred characters, some have thousands. */
const MAX_QUERY = 8_192

export function oidcRoutes({ oidc, sessions, audit, refuseSecret, settings }: OidcRouteParts): Route[] {
  const tag = 'Admin'
  const addressOf = (context: Context) => adminBaseUrl(context, settings)
  const isSecure = (context: Context) => addressOf(context).startsWith('https:')

  async function begin(context: Context): Promise<Response> {
    const asked = context.query().get('return_to')
    const return_to = asked === null ? '' : localPath(asked)
    if (return_to === undefined) {
      throw invalidValue('return_to', 'return_to must be a path of this gateway below /admin/ or /console.')
    }
    const { location, cookie } = await oidc.begin({
      redirect_uri: `${addressOf(context)}${PATH}/callback`,
      return_to,
    })
    const state = setLoginCookie(cookie, { seconds: LOGIN_SECONDS, isSecure: isSecure(context) })
    return new Response(null, { status: 302, headers: { location, 'set-cookie': state, ...NO_REFERRER } })
  }

  async function finish(context: Context): Promise<Response> {
    const { address, request_id } = context
    const query = context.query().toString()
    if (query.length > MAX_QUERY) throw new GatewayError('invalid_value', `The query exceeds ${MAX_QUERY} characters.`)
    try {
      const { person, return_to } = await oidc.finish({ query, cookie: loginCookie(context.request) })
      const user_agent = context.header('user-agent') ?? ''
      const { session, secret } = await sessions.begin(person, { address, request_id, user_agent })
      const seconds = session.expires_at - session.created_at
      const location = return_to === '' ? CONSOLE : return_to
      const response = new Response(null, { status: 303, headers: { location, ...NO_REFERRER } })
      response.headers.append('set-cookie', setCookie({ secret, seconds, isSecure: isSecure(context) }))
      response.headers.append('set-cookie', setLoginCookie('', { seconds: 0, isSecure: isSecure(context) }))
      return response
    } catch (error) {
      if (!(error instanceof LoginRefused)) throw error
      if (error.actor === undefined) return refuseSecret(context, error.message)
      // Only who has an account with the provider gets here, so strangers cannot fill the audit log.
      const who = { actor: error.actor, address, request_id }
      const refused = {
        action: 'session.refuse',
        object_type: 'session',
        object_id: '',
        after: { reason: error.message },
      }
      await audit.record({ ...who, ...refused })
      throw new GatewayError('permission_denied', error.message)
    }
  }

  return [
    {
      method: 'GET',
      path: '/admin/v1/login',
      public: true,
      operation: {
        summary: 'How one can log in',
        description: 'For the page that asks for it.',
        tag,
        response: LoginMethods,
      },
      handle: () =>
        Response.json({ methods: ['link', 'token', ...(oidc.isConfigured() ? ['oidc'] : [])] } satisfies LoginMethods),
    },
    {
      method: 'GET',
      path: PATH,
      public: true,
      operation: {
        summary: 'Log in with an OpenID provider',
        description:
          'For a browser: redirects to the provider of `admin.oidc`, with a cookie that the way back needs within 10 minutes.',
        tag,
        query: {
          return_to: parameter(
            'Where the browser is sent after the login: a path of this gateway below /admin/ or /console. Default: the console.',
            Type.String({ maxLength: 2_000 }),
          ),
        },
        otherResponses: { 302: 'A redirect to the OpenID provider.' },
        errors: [
          'invalid_value',
          'object_not_found',
          'upstream_unreachable',
          'bad_upstream_response',
          'server_is_overloaded',
        ],
      },
      handle: begin,
    },
    {
      method: 'GET',
      path: `${PATH}/callback`,
      public: true,
      hidden: true,
      operation: { summary: 'The way back from an OpenID provider', tag },
      handle: finish,
    },
  ]
}

const NO_REFERRER = { 'referrer-policy': 'no-referrer' }
