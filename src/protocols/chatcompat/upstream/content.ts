/** Content and finish reasons of OpenAI-shaped providers. */
import { isRecord } from '../../../kit/json.ts'
import type { Annotation, FinishReason } from '../../../spec/chat-completion.ts'

const FINISH_REASONS: Record<string, FinishReason> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  content_filter: 'content_filter',
  max_tokens: 'length',
  max_output_tokens: 'length',
  model_length: 'length',
  tool_use: 'tool_calls',
  tool_call: 'tool_calls',
  function_call: 'tool_calls',
  safety: 'content_filter',
  sensitive: 'content_filter',
  recitation: 'content_filter',
  prohibited_content: 'content_filter',
  refusal: 'content_filter',
}

/** Maps a provider's finish reason to one of the four of the specification; null if the response has not ended. */
export function finishReasonOf(value: unknown, hasToolCalls: boolean): FinishReason | null {
  if (typeof value !== 'string' || value === '' || value === 'null') return null
  const reason = FINISH_REASONS[value] ?? FINISH_REASONS[value.toLowerCase()] ?? 'stop'
  // Clients look for tool calls only with this reason, and some providers send `stop` after them.
  return hasToolCalls && reason === 'stop' ? 'tool_calls' : reason
}

/** Splits content (a text, or an array of parts that may include `thinking` parts) into text and reasoning. */
export function contentOf(value: unknown): { content: string | null; reasoning: string } {
  if (typeof value === 'string') return { content: value, reasoning: '' }
  if (!Array.isArray(value)) return { content: null, reasoning: '' }
  let content = ''
  let reasoning = ''
  for (const part of value) {
    if (typeof part === 'string') content += part
    else if (!isRecord(part)) continue
    else if (part.type === 'thinking' || part.type === 'reasoning') {
      const inner = contentOf(part.thinking ?? part.reasoning ?? part.text)
      reasoning += inner.content ?? ''
    } else if (typeof part.text === 'string') content += part.text
  }
  return { content, reasoning }
}

/** The citations of URLs among a provider's annotations; others have no place in another API. */
export const annotationsOf = (values: unknown[]): Annotation[] =>
  values.every(isUrlCitation) ? values : values.filter(isUrlCitation)

const isUrlCitation = (item: unknown): item is Annotation =>
  isRecord(item) && isRecord(item.url_citation) && typeof item.url_citation.url === 'string'
