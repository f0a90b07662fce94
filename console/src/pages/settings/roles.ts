/** The roles, with what each may do. */
import type { Administrator } from '../../api/types.ts'

export type Role = Administrator['role']

export const ROLES: { value: Role; label: string; note: string; isOfProject: boolean }[] = [
  { value: 'owner', label: 'Owner', note: 'everything', isOfProject: false },
  { value: 'operator', label: 'Operator', note: 'health, routing, tasks', isOfProject: false },
  { value: 'viewer', label: 'Viewer', note: 'reads', isOfProject: false },
  { value: 'project_admin', label: 'Admin of a project', note: 'its tokens', isOfProject: true },
  { value: 'project_member', label: 'Member of a project', note: 'reads it, and calls', isOfProject: true },
]

export const roleName = (role: string): string => ROLES.find(({ value }) => value === role)?.label ?? role
export const isOfProject = (role: Role): boolean => role.startsWith('project_')
