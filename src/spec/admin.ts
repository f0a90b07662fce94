/** Administrators: their roles, their rights, their tokens, and the caller of a request of the admin API. */
import Type from 'typebox'
import { orNull, titled } from './fields.ts'

/** The roles that are bound to a project; the others are of the whole installation. */
export const PROJECT_ROLES = ['project_admin', 'project_member'] as const
/** Highest first. */
export const ADMIN_ROLES = ['owner', 'operator', 'viewer', ...PROJECT_ROLES] as const
export type AdminRole = (typeof ADMIN_ROLES)[number]

export const isProjectRole = (role: AdminRole): role is (typeof PROJECT_ROLES)[number] =>
  PROJECT_ROLES.some((one) => one === role)

/** What a person is in one of its projects. */
export const Membership = titled('Membership', { project_id: Type.String(), role: Type.Enum([...PROJECT_ROLES]) })
export type Membership = Type.Static<typeof Membership>

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
  /** The project in which the caller acts; undefined for the roles of the whole installation. */
  project_id?: string
  /** All projects of a person who has several; `role` and `project_id` are one of them. */
  memberships?: readonly Membership[]
  via: 'token' | 'session' | 'command'
  session_id?: string
}

export const AdminToken = titled('AdminToken', {
  admin_token_id: Type.String({ description: '`adm_` and 16 alphanumerics.' }),
  name: Type.String(),
  role: Type.Enum([...ADMIN_ROLES]),
  project_id: orNull(Type.String(), 'The project of a role that is bound to one.'),
  prefix: Type.String({ description: 'The first characters of the secret, to recognise it by.' }),
  expires_at: orNull(Type.Integer(), 'Unix seconds; null: never.'),
  disabled: Type.Boolean({ description: 'Revoked.' }),
  declared: Type.Boolean({ description: 'It stands in the configuration file, and can be changed there only.' }),
  created_at: Type.Integer({ description: 'Unix seconds.' }),
  last_used_at: orNull(Type.Integer(), 'Unix seconds, to the minute.'),
})
export type AdminToken = Type.Static<typeof AdminToken>

export const AdminSession = titled('AdminSession', {
  session_id: Type.String({ description: '`ses_` and 16 alphanumerics.' }),
  actor: Type.String({ description: 'Who has logged in.' }),
  role: Type.Enum([...ADMIN_ROLES]),
  project_id: orNull(Type.String(), 'The project of a role that is bound to one.'),
  memberships: Type.Array(Membership, { description: 'All projects of a person who has several, else empty.' }),
  address: Type.String({ description: 'From where it was begun.' }),
  user_agent: Type.String({ description: 'The browser that began it.' }),
  created_at: Type.Integer({ description: 'Unix seconds.' }),
  last_used_at: Type.Integer({ description: 'Unix seconds, to the minute.' }),
  expires_at: Type.Integer({ description: 'Unix seconds; it ends earlier if it is not used.' }),
})
export type AdminSession = Type.Static<typeof AdminSession>
