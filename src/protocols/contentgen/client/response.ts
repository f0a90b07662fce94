/** Encodes contentgen responses: whole, or as a stream of events or of items of a JSON array. */
import { inOneLine } from '../../../kit/sse.ts'
import { contentgenErrorBody } from '../../../spec/contentgen-error.ts'
import type { ErrorCode, GatewayError } from '../../../spec/error.ts'
import type { Usage } from '../../../spec/usage.ts'
import type { ChatChunk } from '../../shared/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../../shared/protocol.ts'
import { type AnswerPart, type Candidate, createCandidate } from './candidate.ts'
import { createEnumStream, unwrapWhole } from './enum-text.ts'
import { logprobsOf } from './grounding.ts'

type EncoderOptions = {
  head: ResponseHead
  shows_thoughts: boolean
  /** `array`: the pieces of a stream are the items of one JSON array. */
  form: 'events' | 'array'
  /** The request was for `text/x.enum`. */
  is_enum?: boolean
  /** Whether another encoder sent events before. */
  passthroughState?: { readonly hasStarted: boolean }
}

export function createContentgenEncoder({
  head,
  shows_thoughts,
  form,
  is_enum,
  passthroughState: state,
}: EncoderOptions): ResponseEncoder {
  const candidates = new Map<number, Candidate>()
  const names = { modelVersion: head.model, responseId: head.id }
  const enums = is_enum ? createEnumStream() : undefined
  let hasStarted = false

  const candidateAt = (index: number): Candidate => {
    const candidate = candidates.get(index) ?? createCandidate({ shows_thoughts })
    candidates.set(index, candidate)
    return candidate
  }

  function piece(body: object): string {
    const json = JSON.stringify(body)
    const start = hasStarted ? ',\n' : '['
    hasStarted = true
    return inOneLine(form === 'array' ? start + json : `data: ${json}\n\n`)
  }

  /** One batch becomes one piece. */
  function encode(batch: ChatChunk[]): string {
    const logprobs = new Map<number, unknown[]>()
    for (const { choices } of enums?.take(batch) ?? batch) {
      for (const choice of choices) {
        const candidate = candidateAt(choice.index)
        candidate.take(choice.delta)
        if (choice.logprobs) logprobs.set(choice.index, [...(logprobs.get(choice.index) ?? []), ...tokensOf(choice)])
        // Sent now, so that a client can run its tools. The token counts may arrive later.
        if (choice.finish_reason) candidate.finish(choice.finish_reason)
      }
    }
    const contents = [...candidates].flatMap(([index, candidate]) => {
      const parts = candidate.parts()
      const logprobsResult = logprobsOf({ content: logprobs.get(index) })
      if (parts.length === 0 && !logprobsResult) return []
      return [{ ...contentOf(parts), index, ...(logprobsResult ? { logprobsResult } : {}) }]
    })
    return contents.length === 0 ? '' : piece({ candidates: contents, ...names })
  }

  return {
    whole(answer, usage) {
      const { choices } = is_enum ? unwrapWhole(answer) : answer
      const finished = choices.map(({ index, message, finish_reason, logprobs }) => {
        const candidate = createCandidate({ shows_thoughts })
        candidate.take(message)
        candidate.finish(finish_reason ?? 'stop')
        const parts = candidate.parts()
        const text_at = parts.findIndex((part) => part.text !== undefined && !part.thought)
        return {
          ...contentOf(parts),
          ...candidate.closing(Math.max(0, text_at)),
          index,
          ...logprobsFields(logprobs),
        }
      })
      return { candidates: finished, usageMetadata: usageOf(usage), ...names }
    },
    encode,
    includesUsage: true,
    end(usage) {
      for (const { index, content } of enums?.rest() ?? []) candidateAt(index).take({ content })
      if (candidates.size === 0) candidateAt(0).finish('stop')
      const finished = [...candidates].map(([index, candidate]) => ({
        ...contentOf(candidate.parts()),
        ...candidate.closing(),
        index,
      }))
      const last = piece({ candidates: finished, ...(usage ? { usageMetadata: usageOf(usage) } : {}), ...names })
      return form === 'array' ? `${last}]\n` : last
    },
    fail(error) {
      const isPrompt = !hasStarted && !state?.hasStarted && isBlocked(error)
      const last = piece(isPrompt ? blockedAnswer(error, head) : contentgenErrorBody(error))
      return form === 'array' ? `${last}]\n` : last
    },
  }
}

/** The client libraries treat a response without parts as broken, and drop the whole turn. */
const contentOf = (parts: AnswerPart[]) => ({
  content: { role: 'model', parts: parts.length === 0 ? [{ text: '' }] : parts },
})

/** By the provider, or by a guard of the gateway (https://ai.google.dev/api/generate-content, BlockReason). */
const BLOCK_REASONS: ReadonlyMap<ErrorCode, string> = new Map([
  ['content_policy_violation', 'SAFETY'],
  ['content_blocked', 'BLOCKLIST'],
])

export const isBlocked = ({ code }: GatewayError): boolean => BLOCK_REASONS.has(code)

/** In this API a blocked prompt is a response, not an error. */
export const blockedAnswer = ({ code, message }: GatewayError, { id, model }: Pick<ResponseHead, 'id' | 'model'>) => ({
  promptFeedback: { blockReason: BLOCK_REASONS.get(code) ?? 'SAFETY', blockReasonMessage: message },
  modelVersion: model,
  responseId: id,
})

/** Thought tokens are counted separately from the tokens of the response. */
export function usageOf(usage: Usage) {
  const { prompt_tokens, completion_tokens, prompt_tokens_details: prompt, completion_tokens_details: answer } = usage
  const { reasoning_tokens } = answer
  const modalities = [
    { modality: 'TEXT', tokenCount: prompt.text_tokens },
    { modality: 'IMAGE', tokenCount: prompt.image_tokens },
    { modality: 'AUDIO', tokenCount: prompt.audio_tokens },
  ].filter(({ tokenCount }) => tokenCount > 0)
  return {
    promptTokenCount: prompt_tokens,
    candidatesTokenCount: Math.max(0, completion_tokens - reasoning_tokens),
    ...(reasoning_tokens > 0 ? { thoughtsTokenCount: reasoning_tokens } : {}),
    ...(prompt.cached_tokens > 0 ? { cachedContentTokenCount: prompt.cached_tokens } : {}),
    totalTokenCount: usage.total_tokens,
    ...(modalities.length > 0 ? { promptTokensDetails: modalities } : {}),
  }
}

function tokensOf({ logprobs }: { logprobs?: unknown }): unknown[] {
  const content = typeof logprobs === 'object' && logprobs !== null && 'content' in logprobs ? logprobs.content : []
  return Array.isArray(content) ? content : []
}

function logprobsFields(logprobs: unknown): object {
  const logprobsResult = logprobsOf(logprobs)
  if (!logprobsResult) return {}
  const chosen = logprobsResult.chosenCandidates
  const sum = chosen.reduce((total, { logProbability }) => total + logProbability, 0)
  return { avgLogprobs: sum / chosen.length, logprobsResult }
}
