/** The vendor's token counts, in which thoughts stand beside the answer, in the specification's form. */

import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import { count } from '../../usage.ts'

/** What is known by now: a stream tells its counts with each event, the later ones win. Other members are passed over. */
export const countsOf = (raw: unknown, before: JsonRecord): JsonRecord =>
  isRecord(raw)
    ? { ...before, ...Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null)) }
    : before

/** undefined where the vendor told nothing: no prompt is empty. */
export function usageOf(counts: JsonRecord): Usage | undefined {
  const prompt = count(counts.promptTokenCount) ?? 0
  // What the vendor's own tools found is read by the model like the rest of its prompt.
  const input = prompt + (count(counts.toolUsePromptTokenCount) ?? 0)
  const answer = count(counts.candidatesTokenCount) ?? 0
  const reasoning = count(counts.thoughtsTokenCount)
  const total = count(counts.totalTokenCount)
  const sum = answer + (reasoning ?? 0)
  // Imitators count the thoughts within the answer; the total shows it.
  const output = total !== undefined && total < input + sum ? Math.max(answer, total - input) : sum
  if (input === 0 && output === 0) return undefined
  return usageFrom({
    input,
    output,
    cached: count(counts.cachedContentTokenCount),
    reasoning,
    input_audio: modality(counts.promptTokensDetails, 'AUDIO'),
    input_image: modality(counts.promptTokensDetails, 'IMAGE'),
    output_audio: modality(counts.candidatesTokensDetails, 'AUDIO'),
  })
}

function modality(details: unknown, name: string): number | undefined {
  const found = Array.isArray(details) ? details.filter(isRecord).find((one) => one.modality === name) : undefined
  return count(found?.tokenCount)
}
