/** Checks of `admin.oidc` that a schema cannot express. */
import { isLoopbackHost } from '../../kit/address.ts'
import { isProjectRole, PROJECT_ROLES } from '../../spec/admin.ts'
import type { FileConfig } from '../schema/schema.ts'
import type { Report } from './problem.ts'

/** Members that failed the schema are undefined here and skipped. */
export function checkOidc({ admin }: FileConfig, report: Report): void {
  const { roles } = admin?.oidc ?? {}
  const path = ['admin', 'oidc', 'roles']
  for (const [value, entry] of Object.entries(roles ?? {})) {
    if (entry?.role === undefined) continue
    if (isProjectRole(entry.role) && entry.project === undefined) {
      report([...path, value], `is a ${entry.role} without \`project\`, must name the id of its project`)
    }
    if (!isProjectRole(entry.role) && entry.project !== undefined) {
      const message = `must be absent: only ${PROJECT_ROLES.join(' and ')} are bound to a project`
      report([...path, value, 'project'], message)
    }
  }
  if (roles !== undefined && Object.keys(roles).length === 0)
    report(path, 'is empty, must give at least one value of the claim a role')
}

export function issuerProblem(text: string): string | undefined {
  const problem = oidcAddressProblem(text)
  const url = URL.parse(text)
  if (problem !== undefined || url?.protocol !== 'http:' || isLoopbackHost(url)) return problem
  return 'must begin with https://; http is accepted only on this machine, such as http://127.0.0.1:9000'
}

/** Addresses may contain secrets by mistake, so messages do not repeat them. */
export function oidcAddressProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url) return 'must be an address such as https://login.example.com'
  if (url.username || url.password) return 'contains a user name or password'
  if (url.search || url.hash) return 'contains a query or fragment (from "?" or "#" on); must end with its path'
  return undefined
}
