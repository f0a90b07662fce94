/** Checks of declared projects and tokens that a schema cannot express. */
import { budgetProblems } from './budget-checks.ts'
import { nearest } from './nearest.ts'
import type { Path } from './read-yaml.ts'
import type { FileConfig } from './schema.ts'

type Problem = { path: Path; message: string; part?: 'value' }

const SECRET = /^[\x21-\x7e]{20,512}$/

/** `patternProblem`: what is wrong with a pattern of model ids. Members that failed the schema are undefined, and skipped. */
export function declaredProblems(
  { projects = {}, api_tokens = {} }: FileConfig,
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
  for (const [name, token] of Object.entries(api_tokens)) {
    if (token === undefined) continue
    const { secret, project } = token
    if (secret !== undefined && !SECRET.test(secret)) {
      const message = 'must have 20 to 512 visible ASCII characters and no spaces'
      problems.push({ path: ['api_tokens', name, 'secret'], message })
    }
    const same = secret === undefined ? undefined : bySecret.get(secret)
    if (same !== undefined) {
      problems.push({ path: ['api_tokens', name, 'secret'], message: `is that of api_tokens.${same} as well` })
    }
    if (secret !== undefined) bySecret.set(secret, name)
    if (project !== undefined && !Object.hasOwn(projects, project)) {
      const near = nearest(project, Object.keys(projects))
      const hint = near === undefined ? 'declare it there' : `did you mean ${JSON.stringify(near)}?`
      const message = `found ${JSON.stringify(project)}, which is not a key of projects; ${hint}`
      problems.push({ path: ['api_tokens', name, 'project'], message })
    }
  }
  return problems
}
