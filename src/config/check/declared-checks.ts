/** Checks of declared projects, tokens and admin tokens that a schema cannot express. */
import { nearest } from '../../kit/nearest.ts'
import { isProjectRole, PROJECT_ROLES } from '../../spec/admin.ts'
import type { FileConfig } from '../schema/schema.ts'
import type { Report } from './problem.ts'

const SECRET = /^[\x21-\x7e]{20,512}$/

/** Members that failed the schema are undefined, and skipped. */
export function checkDeclared({ projects = {}, api_tokens = {}, admin_tokens = {} }: FileConfig, report: Report): void {
  const bySecret = new Map<string, string>()
  for (const [section, tokens] of Object.entries({ api_tokens, admin_tokens })) {
    for (const [name, token] of Object.entries(tokens)) {
      if (token === undefined) continue
      const { secret, project } = token
      if (secret !== undefined) {
        const message = secretProblem(secret, bySecret)
        if (message) report([section, name, 'secret'], message)
        bySecret.set(secret, `${section}.${name}`)
      }
      const message = project === undefined ? undefined : projectProblem(project, Object.keys(projects))
      if (message) report([section, name, 'project'], message)
    }
  }
  for (const [name, token] of Object.entries(admin_tokens)) {
    if (token?.role === undefined || isProjectRole(token.role) === (token.project !== undefined)) continue
    const message = isProjectRole(token.role)
      ? `is needed: a ${token.role} is bound to a project`
      : `is of a ${PROJECT_ROLES.join(' or ')} only; ${token.role} is of the whole installation`
    report(['admin_tokens', name, 'project'], message)
  }
}

function secretProblem(secret: string, known: ReadonlyMap<string, string>): string | undefined {
  if (!SECRET.test(secret)) return 'must have 20 to 512 visible ASCII characters and no spaces'
  const same = known.get(secret)
  return same && `is that of ${same} as well`
}

function projectProblem(project: string, known: string[]): string | undefined {
  if (known.includes(project)) return undefined
  const near = nearest(project, known)
  const hint = near === undefined ? 'declare it there' : `did you mean ${JSON.stringify(near)}?`
  return `found ${JSON.stringify(project)}, which is not a key of projects; ${hint}`
}
