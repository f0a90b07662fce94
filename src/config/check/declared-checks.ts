/** Checks of declared projects, tokens and admin tokens that a schema cannot express. */
import { nearest } from '../../kit/nearest.ts'
import { isProjectRole, PROJECT_ROLES } from '../../spec/admin.ts'
import type { Path } from '../load/read-yaml.ts'
import type { FileConfig } from '../schema/schema.ts'
import { budgetProblems } from './budget-checks.ts'

type Problem = { path: Path; message: string; part?: 'value' }

const SECRET = /^[\x21-\x7e]{20,512}$/

/** `patternProblem`: what is wrong with a pattern of model ids. Members that failed the schema are undefined, and skipped. */
export function declaredProblems(
  { projects = {}, api_tokens = {}, admin_tokens = {} }: FileConfig,
  patternProblem: (pattern: string) => string | undefined,
): Problem[] {
  const problems: Problem[] = []
  const sections = [
    ['projects', projects],
    ['api_tokens', api_tokens],
  ] as const
  for (const [section, declared] of sections) {
    for (const [name, given] of Object.entries(declared)) {
      if (given === undefined) continue
      const { models = [], budgets = [], end_users } = given
      for (const [index, pattern] of models.entries()) {
        const problem = pattern === undefined ? undefined : patternProblem(pattern)
        if (problem) problems.push({ path: [section, name, 'models', index], message: problem })
      }
      const lists: [Path, typeof budgets][] = [
        [[section, name, 'budgets'], budgets],
        [[section, name, 'end_users', 'budgets'], end_users?.budgets ?? []],
      ]
      for (const [path, list] of lists)
        for (const { index, field, message } of budgetProblems(list))
          problems.push({ path: field ? [...path, index, field] : [...path, index], message })
    }
  }
  const bySecret = new Map<string, string>()
  for (const [section, tokens] of [
    ['api_tokens', api_tokens],
    ['admin_tokens', admin_tokens],
  ] as const) {
    for (const [name, token] of Object.entries(tokens)) {
      if (token === undefined) continue
      const { secret, project } = token
      if (secret !== undefined) {
        const message = secretProblem(secret, bySecret)
        if (message) problems.push({ path: [section, name, 'secret'], message })
        bySecret.set(secret, `${section}.${name}`)
      }
      const message = project === undefined ? undefined : projectProblem(project, Object.keys(projects))
      if (message) problems.push({ path: [section, name, 'project'], message })
    }
  }
  for (const [name, token] of Object.entries(admin_tokens)) {
    if (token?.role === undefined || isProjectRole(token.role) === (token.project !== undefined)) continue
    const message = isProjectRole(token.role)
      ? `is needed: a ${token.role} is bound to a project`
      : `is of a ${PROJECT_ROLES.join(' or ')} only; ${token.role} is of the whole installation`
    problems.push({ path: ['admin_tokens', name, 'project'], message })
  }
  return problems
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
