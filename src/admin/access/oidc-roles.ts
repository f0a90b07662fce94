/** Which role the claims of an account give it. */
import type { OidcConfig } from '../../config/schema/admin-schema.ts'
import { ADMIN_ROLES, type AdminRole, isProjectRole, type Membership } from '../../spec/admin.ts'

/** `memberships`: of who has no role of the whole installation, highest role first. */
type OidcRole = { role: AdminRole; memberships: Membership[] }

/** A session carries them in each request. */
const MAX_MEMBERSHIPS = 100

/** The highest role of the values of a claim, and all projects where that is of one; undefined: none of them has a role. */
export function highestRole(claim: unknown, roles: OidcConfig['roles']): OidcRole | undefined {
  const values = new Set(Array.isArray(claim) ? claim : [claim])
  const given = Object.entries(roles).flatMap(([value, entry]) => (values.has(value) ? [entry] : []))
  const sorted = given.toSorted((a, b) => ADMIN_ROLES.indexOf(a.role) - ADMIN_ROLES.indexOf(b.role))
  const [first] = sorted
  if (!first) return undefined
  if (!isProjectRole(first.role)) return { role: first.role, memberships: [] }
  const byProject = new Map<string, Membership>()
  for (const { role, project: project_id } of sorted) {
    if (isProjectRole(role) && project_id !== undefined && !byProject.has(project_id))
      byProject.set(project_id, { project_id, role })
  }
  return { role: first.role, memberships: [...byProject.values()].slice(0, MAX_MEMBERSHIPS) }
}
