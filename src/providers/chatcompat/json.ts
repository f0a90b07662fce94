/** What is read from vendors is looked at member by member, and believed in nothing. */
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { FinishReason } from '../../spec/chat-completion.ts'

export type JsonRecord = Record<string, unknown>

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Members whose text says nothing: vendors write a missing id or name in these ways. */
export const namedText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value !== 'null' && value !== 'None' ? value : undefined

export const newToolCallId = () => `call_${randomAlphanumerics(24)}`

/** A tool call's arguments as JSON text; some vendors send the object itself. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

const FINISH_WORDS: Record<string, FinishReason> = {
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

/** A vendor's word for the end, in the specification's four; null where it says that there is none yet. */
export function finishReasonOf(word: unknown, hasToolCalls: boolean): FinishReason | null {
  if (typeof word !== 'string' || word === '' || word === 'null') return null
  const reason = FINISH_WORDS[word] ?? FINISH_WORDS[word.toLowerCase()] ?? 'stop'
  // Clients look for tool calls only under this word, and some vendors say `stop` after them.
  return hasToolCalls && reason === 'stop' ? 'tool_calls' : reason
}

/** Content as vendors send it (text, an array of parts, `thinking` parts among them), as text and reasoning. */
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

/** The parsed text; undefined where it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Stands in for what a vendor leaves out of its answer. */
export type Fallback = { id: string; model: string; created: number }
