/** Tracks the items of a response: how much of each was sent, and what remains when it arrives whole. */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { Annotation } from '../../../spec/chat-completion.ts'
import type { Delta, Reasoning } from '../../shared/canonical.ts'
import { ARGUMENTS_END, ARGUMENTS_START, argumentsPiece } from '../../shared/custom-tools.ts'
import { argumentsText, namedText, newToolCallId } from '../../shared/upstream.ts'
import { citationOf, logprobsOf, SUMMARY_GAP, thoughtTextOf } from './annotations.ts'

/** The delta of the only choice. */
export type ChoiceDelta = { delta: Delta; logprobs?: JsonRecord[] | undefined }

type Part = {
  /** The number of its characters that were sent. */
  sent: number
  /** Its start in the whole text of the response. */
  start: number
  annotations: number
}

type Item = {
  parts: Map<unknown, Part>
  /** For a call: its position once it was sent, and the number of characters of its text that were sent. */
  call: number | undefined
  sent: number
  /** Of a custom tool: its free text becomes the argument of a function. */
  isCustom: boolean
  /** For reasoning: the source that is sent, and the last part. */
  thought: { from: 'summary' | 'content'; part: unknown } | undefined
  isSettled: boolean
}

/** An event identifies its item by `item_id` and `output_index`. Some providers send only one of them correctly. */
export function createItems() {
  const byIndex = new Map<unknown, Item>()
  const byId = new Map<string, Item>()
  /** The length of the text that was sent. */
  let textLength = 0
  let lastItem: Item | undefined
  let calls = 0

  function itemOf({ output_index, item_id, item }: JsonRecord, isAnother?: (known: Item) => boolean): Item {
    const id = namedText(item_id) ?? (isRecord(item) ? namedText(item.id) : undefined)
    const same = id === undefined ? undefined : byId.get(id)
    if (same) return same
    const known = byIndex.get(output_index)
    if (known && !isAnother?.(known)) {
      if (id !== undefined) byId.set(id, known)
      return known
    }
    const found: Item = {
      parts: new Map(),
      call: undefined,
      sent: 0,
      isCustom: false,
      thought: undefined,
      isSettled: false,
    }
    if (id !== undefined) byId.set(id, found)
    if (output_index !== undefined) byIndex.set(output_index, found)
    return found
  }

  function partOf(item: Item, index: unknown): Part {
    let part = item.parts.get(index ?? 0)
    if (!part) {
      part = { sent: 0, start: textLength, annotations: 0 }
      item.parts.set(index ?? 0, part)
    }
    return part
  }

  /** Text of the response. Several messages become paragraphs. */
  function addText(item: Item, part: Part, text: string): string {
    const separator = lastItem && lastItem !== item && textLength > 0 ? '\n\n' : ''
    lastItem = item
    if (part.sent === 0) part.start = textLength + separator.length
    part.sent += text.length
    textLength += separator.length + text.length
    return separator + text
  }

  function cite(part: Part, raw: unknown): Annotation[] {
    part.annotations++
    const annotation = citationOf(raw, part.start)
    return annotation ? [annotation] : []
  }

  /** The first delta of a call holds its name. Later ones extend its arguments. */
  function callDelta(item: Item, raw: JsonRecord): Delta {
    item.isCustom = raw.type === 'custom_tool_call'
    const text = argumentsText(item.isCustom ? raw.input : raw.arguments)
    const name = namedText(raw.name)
    if (item.call === undefined) {
      // A call without a name is not sent to clients.
      if (name === undefined) return {}
      item.call = calls++
      item.sent = text.length
      const id = namedText(raw.call_id) ?? namedText(raw.id) ?? newToolCallId()
      const started = item.isCustom ? ARGUMENTS_START + argumentsPiece(text) : text
      return { tool_calls: [{ index: item.call, id, type: 'function', function: { name, arguments: started } }] }
    }
    return argumentsDelta(item, text.slice(item.sent))
  }

  /** The rest of a call that arrived whole. */
  function settleCall(item: Item, raw: JsonRecord): Delta {
    if (raw.type === 'custom_tool_call') {
      const { tool_calls: [rest] = [] } = callDelta(item, raw)
      if (item.call === undefined) return {}
      const call = rest ?? { index: item.call, function: { arguments: '' } }
      call.function.arguments += ARGUMENTS_END
      return { tool_calls: [call] }
    }
    // Clients parse the text in any case.
    const isEmpty = item.sent === 0 && argumentsText(raw.arguments) === '' && raw.status !== 'incomplete'
    return callDelta(item, isEmpty ? { ...raw, arguments: '{}' } : raw)
  }

  function argumentsDelta(item: Item, text: string): Delta {
    if (text === '' || item.call === undefined) return {}
    item.sent += text.length
    const piece = item.isCustom ? argumentsPiece(text) : text
    return { tool_calls: [{ index: item.call, function: { arguments: piece } }] }
  }

  /** The rest of a message that arrived whole. */
  function settleMessage(item: Item, content: unknown): ChoiceDelta {
    let text = ''
    let refusal = ''
    const annotations: Annotation[] = []
    const tokens: JsonRecord[] = []
    for (const [index, raw] of (Array.isArray(content) ? content : []).entries()) {
      if (!isRecord(raw)) continue
      const part = partOf(item, index)
      const whole = raw.type === 'refusal' ? raw.refusal : raw.type === 'output_text' ? raw.text : undefined
      if (typeof whole !== 'string') continue
      const isFresh = part.sent === 0
      const rest = whole.slice(part.sent)
      if (raw.type === 'refusal') {
        part.sent = whole.length
        refusal += rest
        continue
      }
      if (rest !== '') text += addText(item, part, rest)
      if (isFresh) tokens.push(...(logprobsOf(raw.logprobs) ?? []))
      const list = Array.isArray(raw.annotations) ? raw.annotations : []
      for (const one of list.slice(part.annotations)) annotations.push(...cite(part, one))
    }
    return {
      delta: {
        ...(text === '' ? {} : { content: text }),
        ...(refusal === '' ? {} : { refusal }),
        ...(annotations.length === 0 ? {} : { annotations }),
      },
      ...(tokens.length === 0 ? {} : { logprobs: tokens }),
    }
  }

  /** Ends a piece of reasoning. Its encrypted content arrives only now. */
  function settleThought(item: Item, raw: JsonRecord): Delta {
    const value = namedText(raw.encrypted_content)
    const id = namedText(raw.id)
    const piece: Reasoning =
      value === undefined
        ? {}
        : { opaque: { origin: 'chatcompat-response', value, ...(id === undefined ? {} : { id }) } }
    if (item.thought) return { reasoning_details: [piece] }
    const text = thoughtTextOf(raw)
    if (text !== '') return { reasoning_content: text, reasoning_details: [{ text, ...piece }] }
    return piece.opaque ? { reasoning_details: [piece] } : {}
  }

  function settle(raw: unknown, item: Item): ChoiceDelta {
    if (!isRecord(raw)) return { delta: {} }
    if (item.isSettled) return { delta: {} }
    item.isSettled = true
    if (raw.type === 'message') return settleMessage(item, raw.content)
    if (raw.type === 'reasoning') return { delta: settleThought(item, raw) }
    return { delta: isCall(raw) ? settleCall(item, raw) : {} }
  }

  return {
    calls: () => calls,

    open(event: JsonRecord): Delta {
      const { item: raw } = event
      if (!isRecord(raw)) return {}
      // Some providers give every item the same index.
      const item = itemOf(event, () => true)
      return isCall(raw) ? callDelta(item, raw) : {}
    },

    text(event: JsonRecord, member: 'content' | 'refusal'): Delta {
      const { delta: text } = event
      if (typeof text !== 'string' || text === '') return {}
      const item = itemOf(event)
      const part = partOf(item, event.content_index)
      if (member === 'content') return { content: addText(item, part, text) }
      part.sent += text.length
      return { refusal: text }
    },

    /** Some providers stream both the reasoning and a summary of it. Only the first one is sent. */
    thought(event: JsonRecord, from: 'summary' | 'content'): Delta {
      const { delta: text } = event
      if (typeof text !== 'string' || text === '') return {}
      const item = itemOf(event)
      const part = from === 'summary' ? event.summary_index : event.content_index
      item.thought ??= { from, part }
      if (item.thought.from !== from) return {}
      const separator = from === 'summary' && item.thought.part !== part ? SUMMARY_GAP : ''
      item.thought.part = part
      return { reasoning_content: separator + text }
    },

    argumentsOf: (event: JsonRecord, text: unknown): Delta =>
      typeof text === 'string' ? argumentsDelta(itemOf(event), text) : {},

    annotation(event: JsonRecord): Delta {
      const annotations = cite(partOf(itemOf(event), event.content_index), event.annotation)
      return annotations.length === 0 ? {} : { annotations }
    },

    settle: (event: JsonRecord): ChoiceDelta =>
      settle(
        event.item,
        itemOf(event, ({ isSettled }) => isSettled),
      ),

    /** The whole output, of which usually everything was sent. */
    settleAll(output: unknown[]): ChoiceDelta {
      const all: ChoiceDelta = { delta: {} }
      for (const [output_index, raw] of output.entries()) join(all, settle(raw, itemOf({ output_index, item: raw })))
      return all
    },
  }
}

const isCall = ({ type }: JsonRecord): boolean => type === 'function_call' || type === 'custom_tool_call'

function join(all: ChoiceDelta, { delta, logprobs }: ChoiceDelta): void {
  const { content, refusal, reasoning_content, reasoning_details, tool_calls, annotations } = delta
  const sum = all.delta
  if (content) sum.content = (sum.content ?? '') + content
  if (refusal) sum.refusal = (sum.refusal ?? '') + refusal
  if (reasoning_content) sum.reasoning_content = (sum.reasoning_content ?? '') + reasoning_content
  if (reasoning_details) sum.reasoning_details = [...(sum.reasoning_details ?? []), ...reasoning_details]
  if (tool_calls) sum.tool_calls = [...(sum.tool_calls ?? []), ...tool_calls]
  if (annotations) sum.annotations = [...(sum.annotations ?? []), ...annotations]
  if (logprobs) all.logprobs = [...(all.logprobs ?? []), ...logprobs]
}
