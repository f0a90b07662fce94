/** The directives of requests without chat or orders: how long a response takes, and how it fails. */
import { type Clock, pause } from '../../../src/kit/clock.ts'
import type { SimulatedErrors } from '../../../src/providers/provider.ts'
import {
  extractDirectiveLines,
  MAX_MILLISECONDS,
  MAX_RETRY_SECONDS,
  type Rule,
  readDirectives,
  rejectDirectives,
} from './directives.ts'

export const TEXT_DIRECTIVES = {
  first_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  status: { minimum: 400, maximum: 599 },
  retry_after: { minimum: 0, maximum: MAX_RETRY_SECONDS },
  usage: { values: ['none'] },
} as const satisfies Record<string, Rule>

type TextDirectives = { first_ms?: number; status?: number; retry_after?: number; usage?: 'none' }

/** The texts without their directive lines, and the directives. Throws `upstream_invalid_request`. */
export function parseTextDirectives(
  texts: readonly string[],
  param: string,
): { rest: string[]; directives: TextDirectives } {
  const extracted = texts.map(extractDirectiveLines)
  const known = { rules: TEXT_DIRECTIVES, param }
  const values = readDirectives(
    extracted.flatMap(({ lines }) => lines),
    known,
  )
  if (values.retry_after !== undefined && values.status === undefined) {
    rejectDirectives('retry_after needs a status beside it.', known)
  }
  return { rest: extracted.map(({ rest }) => rest), directives: values as TextDirectives }
}

/** What the simulation of a provider needs. */
export type SimulationParts = { clock: Clock; errors: SimulatedErrors }

/** Waits, or throws an error, as the directives request. */
export async function applyDirectives(
  { first_ms = 0, status, retry_after }: TextDirectives,
  { model, clock, errors, signal }: SimulationParts & { model: string; signal: AbortSignal },
): Promise<void> {
  if (first_ms > 0) await pause(clock, first_ms, signal)
  if (status === undefined) return
  const message = 'The simulated provider rejected the request, as "@sandbox status" requested.'
  throw errors.fromResponse({ model, status, retry_after, message })
}
