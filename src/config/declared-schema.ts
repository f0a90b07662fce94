/** Projects and API tokens in the configuration file. */
import Type, { type TSchema } from 'typebox'
import { ADMIN_ROLES } from '../spec/admin.ts'
import { EndpointFamily } from '../spec/endpoint-family.ts'
import { LOG_CONTENTS } from '../spec/token.ts'
import { budgets } from './account-schema.ts'
import { rateLimits } from './rate-limit-schema.ts'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

const SETTINGS = {
  labels: optional(
    Type.Record(Type.String(), Type.String(), { description: 'For the operator; they change nothing.' }),
  ),
  models: optional(
    Type.Array(Type.String(), { description: 'The models that it may use, as glob patterns. Default: all.' }),
  ),
  families: optional(Type.Array(EndpointFamily, { description: 'The families that it may use. Default: all.' })),
  rate_limits: rateLimits('What it may use.'),
  budgets: budgets('Its budgets, one for each window.'),
  end_users: optional(
    Type.Object(
      { rate_limits: rateLimits('What each end user may use.'), budgets: budgets('Budgets of each end user.') },
      { ...closed, description: 'For each of its end users.' },
    ),
  ),
  allowed_addresses: optional(
    Type.Array(Type.String(), { description: 'CIDR ranges of client addresses. Default: every address.' }),
  ),
  expires_at: optional(Type.Integer({ minimum: 1, description: 'Unix seconds. Default: never.' })),
}

const DeclaredProject = Type.Object(
  {
    ...SETTINGS,
    disabled: optional(Type.Boolean({ description: 'Its tokens are refused while it is true. Default false.' })),
    log_contents: optional(
      Type.Enum([...LOG_CONTENTS], {
        description:
          'Whether contents of its tokens are recorded; header: as each request says. Default: as request_log.contents says.',
      }),
    ),
  },
  closed,
)
export type DeclaredProject = Type.Static<typeof DeclaredProject>

const DeclaredToken = Type.Object(
  {
    secret: Type.String({
      minLength: 1,
      description: 'What clients send; ${NAME} takes it from the environment. 20 to 512 visible ASCII characters.',
    }),
    project: optional(Type.String({ description: 'A key of `projects`: the project that owns it. Default: none.' })),
    ...SETTINGS,
  },
  closed,
)
export type DeclaredToken = Type.Static<typeof DeclaredToken>

const DeclaredAdminToken = Type.Object(
  {
    secret: Type.String({
      minLength: 1,
      description:
        'What administrators send; ${NAME} takes it from the environment. 20 to 512 visible ASCII characters.',
    }),
    role: Type.Enum([...ADMIN_ROLES], { description: 'What it may do.' }),
    project: optional(
      Type.String({ description: 'A key of `projects`: that of a project_admin, and of no other role.' }),
    ),
    expires_at: optional(Type.Integer({ minimum: 1, description: 'Unix seconds. Default: never.' })),
  },
  closed,
)
export type DeclaredAdminToken = Type.Static<typeof DeclaredAdminToken>

const NAME = '^\\S(.{0,98}\\S)?$'

export const DeclaredProjects = Type.Record(Type.String({ pattern: NAME }), DeclaredProject, {
  description:
    'Projects by name. They are created at the start and at a reload, and can be changed here only. One that leaves the file stays, and can be changed by the API.',
})
export const DeclaredTokens = Type.Record(Type.String({ pattern: NAME }), DeclaredToken, {
  description:
    'API tokens by name. They are created at the start and at a reload, and can be changed here only. One that leaves the file is revoked.',
})
export const DeclaredAdminTokens = Type.Record(Type.String({ pattern: NAME }), DeclaredAdminToken, {
  description:
    'Admin tokens by name, as API tokens. Another secret is another token. One that leaves the file is revoked.',
})
