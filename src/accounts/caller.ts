/** The rights of a token, as other modules check them: what its project may not do, it may not do either. */
import { matchesGlob } from '../kit/glob.ts'
import type { CallFamily } from '../spec/endpoint-family.ts'
import type { AccountLimits, Caller, Project, Token } from '../spec/token.ts'

/** Ids and addresses come from requests, so the cache of answers is bounded. */
const MAX_REMEMBERED = 1_000

export function callerOf(token: Token, project?: Project): Caller {
  const accounts = project ? [token, project] : [token]
  const patterns = accounts.map(({ models }) => models).filter((models) => !models.includes('*'))
  const families = accounts.flatMap((account) => (account.families ? [new Set<CallFamily>(account.families)] : []))
  return {
    token_id: token.token_id,
    name: token.name,
    ...(token.playground !== undefined && { playground: token.playground }),
    ...limitsOf(token),
    ...(project && {
      project_id: project.project_id,
      project: {
        project_id: project.project_id,
        name: project.name,
        ...limitsOf(project),
        ...(project.log_contents && { log_contents: project.log_contents }),
      },
    }),
    is_limited: patterns.length > 0 || families.length > 0,
    mayUseModel:
      patterns.length === 0
        ? () => true
        : rememberAnswers((id) => patterns.every((models) => models.some((glob) => matchesGlob(glob, id)))),
    mayUseFamily: families.length === 0 ? () => true : (family) => families.every((allowed) => allowed.has(family)),
  }
}

function limitsOf({ rate_limits, budgets, end_users, guards }: Token | Project): AccountLimits {
  return {
    ...(hasFields(rate_limits) && { rate_limits }),
    ...(budgets.length > 0 && { budgets }),
    ...(guards.length > 0 && { guards }),
    ...((hasFields(end_users.rate_limits ?? {}) || (end_users.budgets ?? []).length > 0) && { end_users }),
  }
}

const hasFields = (fields: object): boolean => Object.keys(fields).length > 0

/** For answers that take longer than a look-up. */
export function rememberAnswers(ask: (id: string) => boolean): (id: string) => boolean {
  const answers = new Map<string, boolean>()
  return (id) => {
    const known = answers.get(id)
    if (known !== undefined) return known
    if (answers.size >= MAX_REMEMBERED) answers.clear()
    const answer = ask(id)
    answers.set(id, answer)
    return answer
  }
}
