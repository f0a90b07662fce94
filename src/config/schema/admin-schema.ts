/** The section `admin` of `gatehouse.yaml`: the admin API. */
import Type from 'typebox'
import { ADMIN_ROLES } from '../../spec/admin.ts'
import { flag, integer, list, number, oneOf, optional, required, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

const CONFIG_BY_API = ['off', 'validate', 'apply'] as const

const OidcRole = section(
  {
    role: Type.Enum([...ADMIN_ROLES], { description: 'What the administrator may do.' }),
    project: text({ ...mark.shown, minLength: 1 }, 'The id of the project of a role that is bound to one.'),
  },
  'The role of an account whose claim has this value.',
)

const OidcConfig = section(
  {
    issuer: required(
      { ...mark.origin, ...mark.variable, ...mark.sent_to, pattern: '^https?://' },
      'Address above /.well-known/openid-configuration.',
    ),
    client_id: required(
      { ...mark.shown, ...mark.variable, minLength: 1 },
      'How the gateway is registered with the provider.',
    ),
    client_secret: required({ ...mark.secret, minLength: 1 }, 'Its secret.'),
    scopes: list(
      Type.String({ pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' }),
      { ...mark.shown, maxItems: 50 },
      'Asked of the provider besides `openid`. Default: profile and email.',
    ),
    role_claim: required({ ...mark.shown, minLength: 1 }, 'Such as `groups` or `realm_access.roles`.'),
    roles: Type.Record(Type.String({ minLength: 1 }), OidcRole, {
      description:
        'The role of each value of the claim. Of several, the highest counts: owner, operator, viewer. Who has none of these is in all projects that are named.',
    }),
    redirect_uri: text(
      { ...mark.origin, ...mark.variable, pattern: '^https?://.+/admin/v1/login/oidc/callback$' },
      'Default: /admin/v1/login/oidc/callback of this gateway.',
    ),
  },
  'Login of administrators with an OpenID provider.',
)
export type OidcConfig = Type.Static<typeof OidcConfig>

export const AdminConfig = section(
  {
    enabled: flag(mark.restart, 'Serve the admin API. Default true.'),
    host: text(
      { ...mark.shown, ...mark.variable, ...mark.restart },
      'The address of its own listener, with `port`. Default: that of the gateway.',
    ),
    port: integer(
      { ...mark.restart, minimum: 0, maximum: 65_535 },
      'Of a listener of its own; it then answers only there. Default: none.',
    ),
    session_hours: number(
      { exclusiveMinimum: 0, maximum: 720 },
      'Until an administrator must log in again. Default 12.',
    ),
    idle_minutes: number(
      { exclusiveMinimum: 0, maximum: 43_200 },
      'Without a request, until a session ends. Default 60.',
    ),
    requests_per_minute: integer(
      { minimum: 1, maximum: 1_000_000 },
      'Requests of each administrator to each process. Default 1200.',
    ),
    config_by_api: oneOf(CONFIG_BY_API, 'What the admin API may do with a file. Default apply.'),
    config_variables: list(
      Type.String({ pattern: '^(?!GATEHOUSE_)[A-Za-z_][A-Za-z0-9_]*$' }),
      { ...mark.shown, maxItems: 1_000 },
      'Variables that a text of the admin API may use. Default: none.',
    ),
    oidc: optional(OidcConfig),
  },
  'The admin API at /admin/v1.',
)
export type AdminConfig = Type.Static<typeof AdminConfig>
