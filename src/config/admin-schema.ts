/** The section `admin` of `gatehouse.yaml`: the admin API. */
import Type, { type TSchema } from 'typebox'
import { ADMIN_ROLES } from '../spec/admin.ts'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

const CONFIG_BY_API = ['off', 'validate', 'apply'] as const

const OidcRole = Type.Object(
  {
    role: Type.Enum([...ADMIN_ROLES], { description: 'What the administrator may do.' }),
    project: optional(Type.String({ minLength: 1, description: 'The id of the project of a project_admin.' })),
  },
  { ...closed, description: 'The role of an account whose claim has this value.' },
)

const OidcConfig = Type.Object(
  {
    issuer: Type.String({
      pattern: '^https?://',
      description:
        'Address of the OpenID provider, above /.well-known/openid-configuration. http only on this machine.',
    }),
    client_id: Type.String({ minLength: 1, description: 'How the gateway is registered with the provider.' }),
    client_secret: Type.String({ minLength: 1, description: 'Its secret: ${NAME} takes it from the environment.' }),
    scopes: optional(
      Type.Array(Type.String({ pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' }), {
        maxItems: 50,
        description: 'Asked of the provider besides `openid`. Default: profile and email.',
      }),
    ),
    role_claim: Type.String({
      minLength: 1,
      description:
        'The claim with the groups or roles of the account, such as `groups`, or a path such as `realm_access.roles`.',
    }),
    roles: Type.Record(Type.String({ minLength: 1 }), OidcRole, {
      description:
        'The role of each value of the claim. Of several, the highest counts: owner, operator, viewer, project_admin.',
    }),
    redirect_uri: optional(
      Type.String({
        pattern: '^https?://.+/admin/v1/login/oidc/callback$',
        description:
          'Where the provider sends the browser back to. Default: /admin/v1/login/oidc/callback at the address by which the gateway is reached.',
      }),
    ),
  },
  { ...closed, description: 'Login of administrators with an OpenID provider.' },
)
export type OidcConfig = Type.Static<typeof OidcConfig>

export const AdminConfig = Type.Object(
  {
    enabled: optional(Type.Boolean({ description: 'Whether the admin API is there. Default true.' })),
    host: optional(
      Type.String({ description: 'The address of its own listener, with `port`. Default: that of the gateway.' }),
    ),
    port: optional(
      Type.Integer({
        minimum: 0,
        maximum: 65_535,
        description: 'The port of a listener of its own; it then answers only there. Default: none.',
      }),
    ),
    session_hours: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 720,
        description: 'Time after which an administrator must log in again. Default 12.',
      }),
    ),
    idle_minutes: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 43_200,
        description: 'Time without a request after which a session ends. Default 60.',
      }),
    ),
    requests_per_minute: optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Requests of each administrator to each process. Default 1200.',
      }),
    ),
    config_by_api: optional(
      Type.Enum([...CONFIG_BY_API], {
        description: 'What the admin API may do with a proposed file; validate also compares. Default apply.',
      }),
    ),
    config_variables: optional(
      Type.Array(Type.String({ pattern: '^(?!GATEHOUSE_)[A-Za-z_][A-Za-z0-9_]*$' }), {
        maxItems: 1_000,
        description:
          'Variables that a file given by the admin API may take besides those of the file on disk at the same place. The API cannot extend it. Default: none.',
      }),
    ),
    oidc: optional(OidcConfig),
  },
  { ...closed, description: 'The admin API at /admin/v1.' },
)
export type AdminConfig = Type.Static<typeof AdminConfig>
