/** Checks of `admin.oidc` that a schema cannot express. */
import { isLoopbackHost } from '../../kit/address.ts'
import { isProjectRole, PROJECT_ROLES } from '../../spec/admin.ts'
import type { FileConfig } from '../schema/schema.ts'

type Violation = { path: string[]; part: 'value'; message: string }

/** Members that failed the schema are undefined here and skipped. */
export function oidcProblems({ admin }: FileConfig): Violation[] {
  const { issuer, roles, redirect_uri } = admin?.oidc ?? {}
  const out: Violation[] = []
  const report = (name: string, rest: string[], message: string) =>
    void out.push({ path: ['admin', 'oidc', name, ...rest], part: 'value', message })
  for (const [name, text] of Object.entries({ issuer, redirect_uri })) {
    const problem = text === undefined ? undefined : addressProblem(text, name)
    if (problem) report(name, [], problem)
  }
  for (const [value, entry] of Object.entries(roles ?? {})) {
    if (entry?.role === undefined) continue
    if (isProjectRole(entry.role) && entry.project === undefined) {
      report('roles', [value], `is a ${entry.role} without \`project\`, must name the id of its project`)
    }
    if (!isProjectRole(entry.role) && entry.project !== undefined) {
      report('roles', [value, 'project'], `must be absent: only ${PROJECT_ROLES.join(' and ')} are bound to a project`)
    }
  }
  if (roles !== undefined && Object.keys(roles).length === 0)
    report('roles', [], 'is empty, must give at least one value of the claim a role')
  return out
}

/** Addresses may contain secrets by mistake, so messages do not repeat them. */
export function addressProblem(text: string, name: string): string | undefined {
  const url = URL.parse(text)
  if (!url) return 'must be an address such as https://login.example.com'
  if (url.username || url.password) return 'contains a user name or password'
  if (url.search || url.hash) return 'contains a query or fragment (from "?" or "#" on); must end with its path'
  if (name === 'issuer' && url.protocol === 'http:' && !isLoopbackHost(url)) {
    return 'must begin with https://; http is accepted only on this machine, such as http://127.0.0.1:9000'
  }
  return undefined
}
