/** The directive lines of a request that holds texts only: how long it takes, how it fails. */
import { type Clock, pause } from '../../../src/kit/clock.ts'
import type { SimulatedErrors } from '../../../src/providers/provider.ts'
import {
  MAX_MILLISECONDS,
  MAX_RETRY_SECONDS,
  type Rule,
  readDirectives,
  refuseDirectives,
  takeDirectiveLines,
} from './directives.ts'

const RULES = {
  first_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  status: { minimum: 400, maximum: 599 },
  retry_after: { minimum: 0, maximum: MAX_RETRY_SECONDS },
  usage: { values: ['none'] },
} as const satisfies Record<string, Rule>

type TextDirectives = { first_ms?: number; status?: number; retry_after?: number; usage?: 'none' }

/** The texts without their directive lines, and what those ask for. Throws `upstream_invalid_request`. */
export function takeTextDirectives(
  texts: readonly string[],
  param: string,
): { rest: string[]; directives: TextDirectives } {
  const taken = texts.map(takeDirectiveLines)
  const known = { rules: RULES, param }
  const given = readDirectives(
    taken.flatMap(({ lines }) => lines),
    known,
  )
  if (given.retry_after !== undefined && given.status === undefined) {
    refuseDirectives('retry_after needs a status beside it.', known)
  }
  return { rest: taken.map(({ rest }) => rest), directives: given as TextDirectives }
}

type Asked = { model: string; clock: Clock; errors: SimulatedErrors; signal: AbortSignal }

/** Waits as told, and refuses as told. */
export async function obey({ first_ms = 0, status, retry_after }: TextDirectives, asked: Asked): Promise<void> {
  const { model, clock, errors, signal } = asked
  if (first_ms > 0) await pause(clock, first_ms, signal)
  if (status === undefined) return
  const message = 'The simulated vendor refused the request, as "@sandbox status" asked it to.'
  throw errors.fromResponse({ model, status, retry_after, message })
}
