/** Decodes one candidate as it arrives. Unknown kinds of parts are ignored. */
import { byName } from '../../../kit/by-name.ts'
import { asRecord, isRecord, type JsonRecord, memberOf, recordsIn } from '../../../kit/json.ts'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import type { Delta, Opaque } from '../../shared/canonical.ts'
import { namedText, newToolCallId } from '../../shared/upstream.ts'
import { createGrounding } from './grounding.ts'

/** The member of a call that holds its arguments. */
export const ARGUMENTS = ['args']

export type Candidate = ReturnType<typeof createCandidate>

/** `one_call`: only the first of several calls is sent. After its result the model makes the next calls itself. */
export function createCandidate({ one_call }: { one_call: boolean }) {
  const grounding = createGrounding()
  const ids = new Set<string>()
  const starts: number[] = []
  let text = ''
  let bytes = 0
  let reason: unknown
  /** Whether text or a call arrived without a finish reason. */
  let isOpen = false
  /** Whether thought text was sent whose piece has not ended. */
  let isThinking = false

  /** A signature ends the current piece of reasoning, or is a hidden piece of its own. */
  function signature(part: JsonRecord): Delta[] {
    const opaque = opaqueIn(part)
    if (!opaque) return []
    const wasThinking = isThinking
    isThinking = false
    if (part.thought === true) return [{ reasoning_details: [wasThinking ? { opaque } : { text: '', opaque }] }]
    return [{ reasoning_details: wasThinking ? [{}, { opaque }] : [{ opaque }] }]
  }

  function takeText(value: string): Delta[] {
    starts.push(bytes)
    if (value === '') return []
    text += value
    bytes += Buffer.byteLength(value)
    return [{ content: value }]
  }

  function takeThought(value: string): Delta[] {
    if (value === '') return []
    isThinking = true
    return [{ reasoning_content: value }]
  }

  function call(raw: JsonRecord, part: JsonRecord): Delta[] {
    const name = namedText(raw.name)
    if (name === undefined || (one_call && ids.size > 0)) return []
    const given = namedText(raw.id)
    const id = given === undefined || ids.has(given) ? newToolCallId() : given
    const index = ids.size
    ids.add(id)
    const opaque = opaqueIn(part)
    const called = { name, arguments: JSON.stringify(asRecord(raw.args)) }
    return [{ tool_calls: [{ index, id, type: 'function', function: called, ...(opaque && { opaque }) }] }]
  }

  function image({ mimeType, data }: JsonRecord, part: JsonRecord): Delta[] {
    if (typeof data !== 'string' || typeof mimeType !== 'string' || !mimeType.startsWith('image/')) return []
    // Drafts that a model produces while it thinks.
    if (part.thought === true) return []
    const opaque = opaqueIn(part)
    const url = `data:${mimeType};base64,${data}`
    return [{ images: [{ type: 'image_url', image_url: { url }, ...(opaque && { opaque }) }] }]
  }

  function partDeltas(part: JsonRecord): Delta[] {
    if (isRecord(part.functionCall)) return call(part.functionCall, part)
    if (isRecord(part.inlineData)) return image(part.inlineData, part)
    if (typeof part.text === 'string') {
      return [...(part.thought === true ? takeThought(part.text) : takeText(part.text)), ...signature(part)]
    }
    // The vendor's own tools: the code that they ran and its output become part of the text.
    const { executableCode: code, codeExecutionResult: result } = part
    if (isRecord(code) && typeof code.code === 'string') return takeText(fenced(code.code, String(code.language ?? '')))
    if (isRecord(result) && typeof result.output === 'string') return takeText(fenced(result.output, ''))
    return signature(part)
  }

  /** Whether a finish reason has ended it: some providers send one with every event, and continue. */
  const hasEnded = () => isOpen && reason !== undefined

  return {
    take(raw: JsonRecord): Delta[] {
      grounding.take(raw.groundingMetadata)
      // Some providers repeat the whole text after the end.
      if (hasEnded()) return []
      if (typeof raw.finishReason === 'string') reason = raw.finishReason
      const deltas = partsOf(raw).flatMap(partDeltas)
      isOpen ||= reason === undefined && (text !== '' || ids.size > 0)
      return deltas
    },
    hasEnded,
    /** The finish reason; null if the provider has not sent one. */
    finish: () => finishOf(reason, ids.size > 0),
    /** The provider's own finish reason. */
    reason: () => String(reason),
    annotations: () => grounding.annotations(text, starts),
  }
}

const partsOf = ({ content }: JsonRecord): JsonRecord[] => recordsIn(memberOf(content, 'parts'))

const opaqueIn = ({ thoughtSignature: value }: JsonRecord): Opaque | undefined =>
  typeof value === 'string' && value !== '' ? { origin: 'contentgen-compat', value } : undefined

const fenced = (text: string, language: string) =>
  `\n\`\`\`${/^[A-Z]+$/.test(language) ? language.toLowerCase() : ''}\n${text.replace(/\n$/, '')}\n\`\`\`\n` // language names are in upper case

/** The vendor's finish reasons as the four of the specification, or as a failure. */
const FINISH_REASONS = byName<FinishReason | 'failed' | null>(
  // The default value, which means nothing.
  [null, 'FINISH_REASON_UNSPECIFIED'],
  ['stop', 'STOP'],
  // CONTINUATION: the response exceeds what one request may return.
  ['length', 'MAX_TOKENS CONTINUATION'],
  ['content_filter', 'SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR'],
  ['content_filter', 'IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION'],
  // The model generated something that is not a response.
  ['failed', 'MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS'],
  ['failed', 'MISSING_THOUGHT_SIGNATURE'],
)

/** Returns null if the response has not ended. An unknown reason counts as a normal stop. */
function finishOf(value: unknown, hasCalls: boolean): FinishReason | 'failed' | null {
  if (typeof value !== 'string' || value === '') return null
  const reason = Object.hasOwn(FINISH_REASONS, value) ? (FINISH_REASONS[value] ?? null) : 'stop'
  return hasCalls && reason === 'stop' ? 'tool_calls' : reason
}
