/** Administrators: their roles, their rights, their tokens, and the caller of a request of the admin API. */
import Type from 'typebox'

/** `project_admin` is bound to one project; the others are of the whole installation. */
export const ADMIN_ROLES = ['owner', 'operator', 'viewer', 'project_admin'] as const
export type AdminRole = (typeof ADMIN_ROLES)[number]

/**
 * `read`: see everything but secrets. `operate`: drain, disable, cancel, retry, purge, test. `manage`: projects, tokens,
 * budgets. `own`: admin tokens, sessions of others, the configuration, erasure of data. `contents`: read recorded prompts
 * and responses. `call`: call models in the playground.
 */
export const RIGHTS = ['read', 'operate', 'manage', 'own', 'contents', 'call'] as const
export type Right = (typeof RIGHTS)[number]

/** The caller of a request of the admin API. */
export type AdminCaller = {
  /** Who it is, for the audit log: `environment`, `admin:adm_...`, or who has logged in. */
  actor: string
  role: AdminRole
  /** The project of a project_admin; undefined for the other roles. */
  project_id?: string
  via: 'token' | 'session' | 'command'
  session_id?: string
}

export const AdminToken = Type.Object(
  {
    admin_token_id: Type.String({ description: '`adm_` and 16 alphanumerics.' }),
    name: Type.String(),
    role: Type.Enum([...ADMIN_ROLES]),
    project_id: Type.Union([Type.String(), Type.Null()], { description: 'The project of a project_admin.' }),
    prefix: Type.String({ description: 'The first characters of the secret, to recognise it by.' }),
    expires_at: Type.Union([Type.Integer(), Type.Null()], { description: 'Unix seconds; null: never.' }),
    disabled: Type.Boolean({ description: 'Revoked.' }),
    declared: Type.Boolean({ description: 'It stands in the configuration file, and can be changed there only.' }),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    last_used_at: Type.Union([Type.Integer(), Type.Null()], { description: 'Unix seconds, to the minute.' }),
  },
  { title: 'AdminToken' },
)
export type AdminToken = Type.Static<typeof AdminToken>

export const AdminSession = Type.Object(
  {
    session_id: Type.String({ description: '`ses_` and 16 alphanumerics.' }),
    actor: Type.String({ description: 'Who has logged in.' }),
    role: Type.Enum([...ADMIN_ROLES]),
    project_id: Type.Union([Type.String(), Type.Null()], { description: 'The project of a project_admin.' }),
    address: Type.String({ description: 'From where it was begun.' }),
    user_agent: Type.String({ description: 'The browser that began it.' }),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    last_used_at: Type.Integer({ description: 'Unix seconds, to the minute.' }),
    expires_at: Type.Integer({ description: 'Unix seconds; it ends earlier if it is not used.' }),
  },
  { title: 'AdminSession' },
)
export type AdminSession = Type.Static<typeof AdminSession>
