/** Decodes contentgen responses, event by event. */
import { isRecord, type JsonRecord, memberOf, recordsIn } from '../../../kit/json.ts'
import type { GatewayError } from '../../../spec/error.ts'
import type { Usage } from '../../../spec/usage.ts'
import type { ChatChunk, Delta } from '../../shared/canonical.ts'
import { type Fallback, type Faults, namedText } from '../../shared/upstream.ts'
import { type Candidate, createCandidate } from './candidate.ts'
import { countsOf, usageOf } from './usage.ts'

export type ContentgenFaults = Faults & {
  /** The provider blocked the prompt; `reason` is its block reason. */
  blocked(reason: string): GatewayError
}

export type AnswerReader = ReturnType<typeof createAnswerReader>

type ReaderParts = { fallback: Fallback; faults: ContentgenFaults; one_call: boolean }

/** The provider may send a finish reason with every event and continue, so the finish is sent only at the end. */
export function createAnswerReader({ fallback, faults, one_call }: ReaderParts) {
  const candidates = new Map<number, Candidate>()
  let head: Fallback = fallback
  let counts: JsonRecord = {}

  const chunkOf = (choice: ChatChunk['choices'][number]): ChatChunk => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [choice],
  })

  const indexOf = (raw: JsonRecord, place: number) => (Number.isInteger(raw.index) ? Number(raw.index) : place)

  function takeCandidate(raw: JsonRecord, place: number): ChatChunk[] {
    const index = indexOf(raw, place)
    let candidate = candidates.get(index)
    const deltas: Delta[] = candidate ? [] : [{ role: 'assistant', content: '' }]
    candidate ??= createCandidate({ one_call })
    candidates.set(index, candidate)
    deltas.push(...candidate.take(raw))
    const logprobs = logprobsOf(raw.logprobsResult)
    if (logprobs && deltas.length === 0) deltas.push({})
    return deltas.map((delta, at) =>
      chunkOf({
        index,
        delta,
        finish_reason: null,
        ...(logprobs && at === deltas.length - 1 ? { logprobs } : {}),
      }),
    )
  }

  function lastOf([index, candidate]: [number, Candidate]): ChatChunk {
    const finish_reason = candidate.finish()
    if (finish_reason === 'failed') {
      throw faults.notUnderstood(`failed to generate a response (${candidate.reason()}); a retry may help`)
    }
    const annotations = candidate.annotations()
    return chunkOf({ index, delta: annotations.length > 0 ? { annotations } : {}, finish_reason })
  }

  const isFinished = () => candidates.size > 0 && [...candidates.values()].every((one) => one.finish() !== null)

  return {
    /** The chunks of one event. Throws the error that it reports, if any. */
    take(payload: JsonRecord): ChatChunk[] {
      head = {
        ...head,
        id: namedText(payload.responseId) ?? head.id,
        model: namedText(payload.modelVersion) ?? head.model,
      }
      counts = countsOf(payload.usageMetadata, counts)
      const list = recordsIn(payload.candidates)
      const blocked = candidates.size === 0 && list.length === 0 ? blockOf(payload.promptFeedback) : undefined
      if (blocked !== undefined) throw faults.blocked(blocked)
      const chunks = list.flatMap(takeCandidate)
      const usage = isRecord(payload.usageMetadata) ? usageOf(counts) : undefined
      return withUsage(chunks, usage)
    },
    isFinished,
    hasEnded: () => candidates.size > 0 && [...candidates.values()].every((one) => one.hasEnded()),
    /** Whether an event is about a candidate that has ended: `take` ignores its content. */
    isAfterEnd: (raw: JsonRecord, place: number) => candidates.get(indexOf(raw, place))?.hasEnded() ?? false,
    /** The last chunks. Throws if the stream was cut. */
    end(): ChatChunk[] {
      if (!isFinished()) throw faults.cut()
      return withUsage([...candidates].map(lastOf), usageOf(counts))
    },
  }
}

function withUsage(chunks: ChatChunk[], usage: Usage | undefined): ChatChunk[] {
  const last = chunks.at(-1)
  return usage && last ? [...chunks.slice(0, -1), { ...last, usage }] : chunks
}

function blockOf(feedback: unknown): string | undefined {
  const reason = memberOf(feedback, 'blockReason')
  return typeof reason === 'string' && reason !== '' && reason !== 'BLOCK_REASON_UNSPECIFIED' ? reason : undefined
}

type Token = { token: string; logprob: number; bytes: number[] }

/** The log probability of each token, in the format of chat completions; undefined if the provider returned none. */
function logprobsOf(result: unknown): { content: object[]; refusal: null } | undefined {
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
  // The provider leaves out zero, which means certainty.
  const logprob = typeof raw.logProbability === 'number' ? raw.logProbability : 0
  return { token: raw.token, logprob, bytes: [...Buffer.from(raw.token)] }
}
