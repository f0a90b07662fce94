/** Tells the client of a call that a budget refuses how short its answer would have to be. */
import { mostOf } from '../models/prices.ts'
import type { CallFamily } from '../spec/endpoint-family.ts'
import type { Units } from '../spec/usage.ts'
import { BudgetRefusal } from './budgets/budget-refusal.ts'
import type { AdmissionRequest } from './call.ts'

/** The field that limits the tokens of an answer, in each API that has one. */
const LIMIT_FIELDS: Partial<Record<CallFamily, string>> = {
  chatcompat: 'max_tokens',
  'chatcompat-response': 'max_output_tokens',
  'messages-compat': 'max_tokens',
  'contentgen-compat': 'generationConfig.maxOutputTokens',
}

type Refused = { request: AdmissionRequest; units: Units; at: number }

/** The same error, with the greatest limit with which the call would be admitted now, where there is one. `units`: the most. */
export function withShorterAnswer(thrown: unknown, refused: Refused): unknown {
  const field = LIMIT_FIELDS[refused.request.family]
  if (!(thrown instanceof BudgetRefusal) || field === undefined) return thrown
  const tokens = tokensWithin(thrown.left, refused)
  if (tokens === 0) return thrown
  const message = `${thrown.message} With a smaller ${field} it would pass: at most ${tokens} tokens of output can be paid now.`
  return new BudgetRefusal(message, thrown.detail, thrown.left)
}

/** The output that an amount pays for, besides the input; 0 where it pays for none. */
function tokensWithin(amount: number, { request: { model }, units, at }: Refused): number {
  const costWith = (output_tokens: number) => mostOf({ model, units: withOutput(units, output_tokens), at })
  const [none, most] = [costWith(0), costWith(units.output_tokens)]
  if (none === null || most === null || none >= most || none > amount) return 0
  const tokens = Math.floor(((amount - none) / (most - none)) * units.output_tokens)
  const cost = costWith(tokens)
  return cost !== null && cost <= amount ? tokens : Math.max(0, tokens - 1) // amounts are rounded to whole nano-units
}

/** The same call with at most so many tokens of output. */
export const withOutput = (units: Units, output_tokens: number): Units => ({
  ...units,
  output_tokens,
  output_audio_tokens: Math.min(units.output_audio_tokens ?? 0, output_tokens),
})
