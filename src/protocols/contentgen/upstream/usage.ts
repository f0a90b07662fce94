/** Converts the vendor's token counts, which separate thoughts from the response. */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import { count } from '../../shared/upstream.ts'

/** The counts so far. A stream reports them with each event, and the last value wins. Other members are ignored. */
export const countsOf = (raw: unknown, before: JsonRecord): JsonRecord =>
  isRecord(raw)
    ? { ...before, ...Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null)) }
    : before

/** Returns undefined if the vendor reported nothing: no prompt is empty. */
export function usageOf(counts: JsonRecord): Usage | undefined {
  const prompt = count(counts.promptTokenCount) ?? 0
  // The model reads results of the vendor's own tools like the rest of its prompt.
  const input = prompt + (count(counts.toolUsePromptTokenCount) ?? 0)
  const answer = count(counts.candidatesTokenCount) ?? 0
  const reasoning = count(counts.thoughtsTokenCount)
  const total = count(counts.totalTokenCount)
  const sum = answer + (reasoning ?? 0)
  // Some imitations of the API count the thoughts in the response. The total shows it.
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
