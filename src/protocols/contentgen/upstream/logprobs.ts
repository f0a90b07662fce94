/** How sure the model was of its words: the vendor's lists in the form that chat clients read. */
import { isRecord } from '../../../kit/json.ts'

type Token = { token: string; logprob: number; bytes: number[] }

/** undefined where the vendor tells none. */
export function logprobsOf(result: unknown): { content: object[]; refusal: null } | undefined {
  if (!isRecord(result) || !Array.isArray(result.chosenCandidates)) return undefined
  const tops = Array.isArray(result.topCandidates) ? result.topCandidates : []
  const content = result.chosenCandidates.flatMap((chosen, index) => {
    const token = tokenOf(chosen)
    const top: unknown = tops[index]
    const others =
      isRecord(top) && Array.isArray(top.candidates) ? top.candidates.flatMap((one) => tokenOf(one) ?? []) : []
    return token ? [{ ...token, top_logprobs: others }] : []
  })
  return { content, refusal: null }
}

function tokenOf(raw: unknown): Token | undefined {
  if (!isRecord(raw) || typeof raw.token !== 'string') return undefined
  // The vendor leaves out a zero, which stands for certainty.
  const logprob = typeof raw.logProbability === 'number' ? raw.logProbability : 0
  return { token: raw.token, logprob, bytes: [...Buffer.from(raw.token)] }
}
