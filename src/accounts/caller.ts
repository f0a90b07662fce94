/** The rights of a token, as other modules check them. */
import { matchesGlob } from '../kit/glob.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { Caller, Token } from '../spec/token.ts'

/** Ids come from requests, so the cache of answers is bounded. */
const MAX_REMEMBERED_MODELS = 1_000

export function callerOf({ token_id, models, families }: Token): Caller {
  const allowed = families && new Set<EndpointFamily>(families)
  return {
    token_id,
    is_limited: families !== null || !models.includes('*'),
    mayUseModel: models.includes('*')
      ? () => true
      : rememberAnswers((id) => models.some((glob) => matchesGlob(glob, id))),
    mayUseFamily: allowed ? (family) => allowed.has(family) : () => true,
  }
}

function rememberAnswers(ask: (id: string) => boolean): (id: string) => boolean {
  const answers = new Map<string, boolean>()
  return (id) => {
    const known = answers.get(id)
    if (known !== undefined) return known
    if (answers.size >= MAX_REMEMBERED_MODELS) answers.clear()
    const answer = ask(id)
    answers.set(id, answer)
    return answer
  }
}
