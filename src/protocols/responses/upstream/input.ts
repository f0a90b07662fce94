/** Encodes canonical messages as input items. */
import type { JsonRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import { assertAnswerable } from '../../shared/answerable.ts'
import { CUSTOM, type HistoryCall, type Message, type Reasoning } from '../../shared/canonical.ts'
import { freeText } from '../../shared/custom-tools.ts'
import { refusedPart } from '../../shared/request-error.ts'
import { type Part, partOf, refused } from './parts.ts'

export type Item = { type: string } & JsonRecord

type CallIds = (id: string) => string
type InputSupport = {
  developer_role: boolean
  custom_tools: boolean
  audio: boolean
  reasoning: boolean
}
type Place = InputSupport & {
  at: string
  callId: CallIds
  /** The ids of the calls of custom tools so far, whose results have a type of their own. */
  customIds: Set<string>
}

/** One item per message. An earlier response becomes its reasoning, its text and its calls. */
export function inputOf(messages: Message[], support: InputSupport): Item[] {
  const callId = createCallIds()
  const customIds = new Set<string>()
  const items = messages.flatMap((message, index) => {
    const place = { ...support, at: `messages[${index}]`, callId, customIds }
    if (message.role === 'assistant') return answerOf(message, place)
    if (message.role === 'tool') return [resultOf(message, place)]
    if (message.role === 'function') throw refused(`${place.at}.role`, 'must not be "function"; use the role "tool"')
    const role = message.role === 'developer' && !support.developer_role ? 'system' : message.role
    return [{ type: 'message', role, content: contentOf(message, place) }]
  })
  // Without messages only the defaults of a body are made.
  assertAnswerable(messages, items.length > 0 || messages.length === 0)
  return items
}

function contentOf({ content }: Message, { at, audio }: Place): string | Part[] {
  if (!Array.isArray(content)) return content ?? ''
  return content.map((part, index) => partOf(part, `${at}.content[${index}]`, audio))
}

function resultOf(message: Message, place: Place): Item {
  const { tool_call_id } = message
  if (tool_call_id === undefined) {
    const param = `${place.at}.tool_call_id`
    throw new GatewayError('missing_required_parameter', `"${param}" is required.`, { param, accepted: 'no' })
  }
  const type = place.customIds.has(tool_call_id) ? 'custom_tool_call_output' : 'function_call_output'
  return { type, call_id: place.callId(tool_call_id), output: contentOf(message, place) }
}

function callOf(call: HistoryCall, { callId, custom_tools, customIds }: Place): Item {
  const { id, function: called } = call
  const named = { call_id: callId(id), name: called.name }
  if (!custom_tools || !call[CUSTOM]) return { type: 'function_call', ...named, arguments: called.arguments }
  customIds.add(id)
  return { type: 'custom_tool_call', ...named, input: freeText(called.arguments) }
}

function answerOf(message: Message, place: Place): Item[] {
  const { at, reasoning } = place
  if (message.function_call) throw refused(`${at}.function_call`, 'is not supported by the vendor; use "tool_calls"')
  const items: Item[] = []
  const content = textContent(message, at)
  if (content !== '') items.push({ type: 'message', role: 'assistant', content })
  for (const call of message.tool_calls ?? []) items.push(callOf(call, place))
  // The vendor refuses reasoning without a following item, as in a response that was cut by its limit.
  if (!reasoning || items.length === 0) return items
  return [...(message.reasoning_details ?? []).flatMap(reasoningItems), ...items]
}

/** Plain text is sent as a string, which every imitation of the API understands. */
function textContent({ content, refusal }: Message, at: string): string | Part[] {
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? [])
  let text = ''
  let refused_with = refusal ?? ''
  for (const [index, part] of parts.entries()) {
    if (part.type === 'text') text += part.text
    else if (part.type === 'refusal') refused_with += part.refusal
    else throw refusedPart(`${at}.content[${index}].type`, 'must be "text" or "refusal" in an assistant message')
  }
  if (refused_with === '') return text
  const texts = text === '' ? [] : [{ type: 'output_text', text, annotations: [] }]
  return [...texts, { type: 'refusal', refusal: refused_with }]
}

/** Only reasoning that a provider of this API encrypted can be sent back to it. */
function reasoningItems({ text, opaque }: Reasoning): Item[] {
  if (opaque?.origin !== 'chatcompat-response') return []
  return [
    {
      type: 'reasoning',
      ...(opaque.id === undefined ? {} : { id: opaque.id }),
      summary: text ? [{ type: 'summary_text', text }] : [],
      encrypted_content: opaque.value,
    },
  ]
}

/** The vendor refuses longer call ids. */
const MAX_ID_CHARACTERS = 64

/** Longer ids of other vendors are cut and numbered. The result is the same in each turn of a conversation. */
function createCallIds(): CallIds {
  const known = new Map<string, string>()
  let cut = 0
  return (id) => {
    if (id.length <= MAX_ID_CHARACTERS) return id
    let short = known.get(id)
    if (short === undefined) {
      cut++
      short = `${id.slice(0, 48)}_cut_${cut}` // 48 characters and the number stay below the limit
      known.set(id, short)
    }
    return short
  }
}
