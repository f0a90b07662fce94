/**
 * Encodes the blocks of a streamed message. One block is open at a time, counted from 0, in whatever order the
 * provider sends deltas.
 */
import { randomAlphanumerics } from '../../../kit/secret.ts'
import type { Annotation } from '../../../spec/chat-completion.ts'
import type { Delta, Reasoning, ToolCall } from '../../shared/canonical.ts'
import { isWholeObject } from '../../shared/upstream.ts'
import { encodeSignature } from './signature.ts'

type Item =
  | { kind: 'text'; text: string; cited: Annotation[] }
  | { kind: 'thinking'; text: string; signature: string }
  | { kind: 'redacted'; data: string }
  | { kind: 'tool'; call: number; id: string; name: string; arguments: string }
type Tool = Extract<Item, { kind: 'tool' }>

export const event = (type: string, members: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

/**
 * Items after a tool call wait until its arguments are complete. So interleaved parallel calls leave one after the
 * other.
 */
export function createBlockStream() {
  let index = -1
  let live: Item | undefined
  let waiting: Item[] = []
  /** Calls whose block is closed. */
  const closedCalls = new Set<number>()
  /** The text so far, which citations quote. */
  let fullText = ''
  /** Whether text of the current piece of reasoning has been sent. */
  let isReasoning = false

  const add = (delta: object): string => event('content_block_delta', { index, delta })

  function open(item: Item): string {
    live = item
    index++
    return event('content_block_start', { index, content_block: startOf(item) }) + contentOf(item)
  }

  function contentOf(item: Item): string {
    if (item.kind === 'text') return textDelta(item.text) + item.cited.map(citation).join('')
    if (item.kind === 'tool') return item.arguments === '' ? '' : add(inputDelta(item.arguments))
    if (item.kind === 'redacted') return ''
    return item.text === '' ? '' : add({ type: 'thinking_delta', thinking: item.text })
  }

  /** The most common event, encoded without building an object. */
  const textDelta = (text: string): string =>
    text === ''
      ? ''
      : `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"text_delta","text":${JSON.stringify(text)}}}\n\n`

  const citation = (annotation: Annotation): string =>
    add({ type: 'citations_delta', citation: citationOf(annotation, fullText) })

  function close(): string {
    if (!live) return ''
    if (live.kind === 'tool') closedCalls.add(live.call)
    const signature = live.kind === 'thinking' ? add({ type: 'signature_delta', signature: live.signature }) : ''
    live = undefined
    return signature + event('content_block_stop', { index })
  }

  /** Starts an item, at once if nothing else is open or waiting. */
  function start(item: Item): string {
    if (waiting.length === 0 && (!live || isComplete(live))) return close() + open(item)
    waiting.push(item)
    return ''
  }

  /** Sends waiting items as far as possible once the open call is complete. */
  function advance(): string {
    let events = ''
    while (live && waiting.length > 0 && isComplete(live)) {
      const [next, ...rest] = waiting
      waiting = rest
      if (next) events += close() + open(next)
    }
    return events
  }

  /** The last item. Deltas of the same kind extend it. */
  const current = (): Item | undefined => waiting.at(-1) ?? live

  function takeText(text: string): string {
    fullText += text
    const item = current()
    if (item?.kind !== 'text') return start({ kind: 'text', text, cited: [] })
    if (item === live) return textDelta(text)
    item.text += text
    return ''
  }

  function takeCitation(annotation: Annotation): string {
    const item = current()
    if (item?.kind !== 'text') return start({ kind: 'text', text: '', cited: [annotation] })
    if (item === live) return citation(annotation)
    item.cited.push(annotation)
    return ''
  }

  function takeReasoning(text: string): string {
    const item = current()
    const isOpen = isReasoning && item?.kind === 'thinking'
    isReasoning = true
    if (!isOpen) return start({ kind: 'thinking', text, signature: encodeSignature({}) })
    if (item === live) return add({ type: 'thinking_delta', thinking: text })
    item.text += text
    return ''
  }

  /** Ends a piece of reasoning: the one being streamed, or one that arrives whole. */
  function endReasoning({ text, opaque }: Reasoning): string {
    const signature = encodeSignature({ opaque })
    const item = current()
    const isOpen = isReasoning && item?.kind === 'thinking'
    isReasoning = false
    if (!isOpen) {
      if (text !== undefined) return start({ kind: 'thinking', text, signature })
      return opaque ? start({ kind: 'redacted', data: signature }) : ''
    }
    item.signature = signature
    return item === live ? close() : ''
  }

  function takeCall({ index: call = 0, id, function: part, opaque }: ToolCall): string {
    let events = ''
    let item = [live, ...waiting].find((one): one is Tool => one?.kind === 'tool' && one.call === call)
    if (!item && !closedCalls.has(call)) {
      item = { kind: 'tool', call, id: id ?? newId(), name: part.name ?? '', arguments: part.arguments }
      if (opaque) events += start(signed(opaque, item.id))
      events += start(item)
      return events + advance()
    }
    if (!item) return ''
    item.arguments += part.arguments
    if (item === live && part.arguments !== '') events += add(inputDelta(part.arguments))
    if (opaque) events += start(signed(opaque, item.id))
    return events + advance()
  }

  return {
    // Most deltas have one member: nothing is made for those that are absent.
    take({ content, refusal, reasoning_content, reasoning_details, tool_calls, annotations }: Delta): string {
      let events = ''
      // A whole piece of reasoning repeats its text as plain text.
      const isRepeated = !isReasoning && reasoning_details && hasText(reasoning_details)
      if (reasoning_content && !isRepeated) events += takeReasoning(reasoning_content)
      if (reasoning_details) for (const piece of reasoning_details) events += endReasoning(piece)
      if (content) events += takeText(content)
      if (refusal) events += takeText(refusal)
      if (annotations) for (const annotation of annotations) events += takeCitation(annotation)
      if (tool_calls) for (const call of tool_calls) events += takeCall(call)
      return events
    },
    /** The events that close the open block and send the waiting ones. */
    end(): string {
      let events = close()
      for (const item of waiting) events += open(item) + close()
      waiting = []
      return events
    },
  }
}

const hasText = (pieces: Reasoning[]): boolean => pieces.some(({ text }) => text !== undefined)

/** A tool_use block has no field for a signature. A thinking block without text holds it. */
const signed = (opaque: NonNullable<ToolCall['opaque']>, call: string): Item => ({
  kind: 'thinking',
  text: '',
  signature: encodeSignature({ opaque, owner: call }),
})

export const newId = () => `toolu_${randomAlphanumerics(24)}`

const inputDelta = (partial_json: string) => ({ type: 'input_json_delta', partial_json })

function startOf(item: Item): object {
  if (item.kind === 'text') return { type: 'text', text: '' }
  if (item.kind === 'thinking') return { type: 'thinking', thinking: '', signature: '' }
  if (item.kind === 'redacted') return { type: 'redacted_thinking', data: item.data }
  return { type: 'tool_use', id: item.id, name: item.name, input: {}, caller: { type: 'direct' } }
}

/** Only a call can be split by what follows it. It is complete when its arguments are. */
const isComplete = (item: Item): boolean => item.kind !== 'tool' || isWholeObject(item.arguments)

/** A citation in the format of the client libraries. `cited_text` is the text that it supports. */
export function citationOf({ url_citation: { url, title, start_index, end_index } }: Annotation, fullText: string) {
  return {
    type: 'web_search_result_location',
    url,
    title,
    cited_text: fullText.slice(start_index, end_index),
    encrypted_index: '',
  }
}
