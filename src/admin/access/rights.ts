/** The one table of the rights of each role, and the check against it. */
import { type AdminCaller, type AdminRole, isProjectRole, type Right } from '../../spec/admin.ts'
import { GatewayError } from '../../spec/error.ts'

const RIGHTS_OF: Readonly<Record<AdminRole, readonly Right[]>> = {
  owner: ['read', 'operate', 'manage', 'own', 'contents', 'call'],
  operator: ['read', 'operate', 'manage', 'call'],
  viewer: ['read'],
  /** Within its project: a route that does not say how it is limited to a project refuses this role. */
  project_admin: ['read', 'manage', 'contents', 'call'],
  project_member: ['read', 'call'],
}

export const rightsOf = (role: AdminRole): readonly Right[] => RIGHTS_OF[role]

/** Throws permission_denied, naming the roles that have the right. */
export function assertRight({ role }: AdminCaller, right: Right): void {
  if (RIGHTS_OF[role].includes(right)) return
  throw new GatewayError(
    'permission_denied',
    `The role ${role} does not have the right "${right}"; ${rolesWith(right)} has.`,
  )
}

/** Throws permission_denied where the role has a right that the caller lacks, or is of more than the caller's project. */
export function assertNoMoreThan({ role: own, project_id }: AdminCaller, role: AdminRole): void {
  const missing = RIGHTS_OF[role].find((right) => !RIGHTS_OF[own].includes(right))
  if (missing === undefined && (project_id === undefined || isProjectRole(role))) return
  const more = missing === undefined ? 'is of the whole installation' : `has the right "${missing}"`
  throw new GatewayError('permission_denied', `The role ${own} may not give the role ${role}: that ${more}.`)
}

/** Throws permission_denied for a caller that is bound to a project. */
export function assertInstallation({ role, project_id }: AdminCaller): void {
  if (!isProjectRole(role) && project_id === undefined) return
  throw new GatewayError('permission_denied', `The role ${role} may not use this: it concerns the whole installation.`)
}

const rolesWith = (right: Right): string =>
  Object.entries(RIGHTS_OF)
    .filter(([role, rights]) => !isProjectRole(role as AdminRole) && rights.includes(right))
    .map(([role]) => role)
    .join(' or ')
