/** Which role the claims of an account give it. */
import type { OidcConfig } from '../../config/schema/admin-schema.ts'
import { isRecord } from '../../kit/json.ts'
import { ADMIN_ROLES, type AdminRole } from '../../spec/admin.ts'

type OidcRole = { role: AdminRole; project_id?: string }

/** A claim by its whole name, which may contain dots as those of a namespace do, or by a path of members. */
export function claimAt(claims: Record<string, unknown>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const step of name.split('.')) {
    if (!isRecord(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return value
}

/**
 * The highest role of the values of a claim, in the order of ADMIN_ROLES; undefined: none of them has a role. Of several
 * projects, the first in the file counts: a session is bound to one.
 */
export function highestRole(claim: unknown, roles: OidcConfig['roles']): OidcRole | undefined {
  const values = new Set(Array.isArray(claim) ? claim : [claim])
  const given = Object.entries(roles).filter(([value]) => values.has(value))
  const [first] = given.toSorted(([, a], [, b]) => ADMIN_ROLES.indexOf(a.role) - ADMIN_ROLES.indexOf(b.role))
  if (!first) return undefined
  const [, { role, project }] = first
  return { role, ...(role === 'project_admin' && project !== undefined && { project_id: project }) }
}
