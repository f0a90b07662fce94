/** The items of a streamed response, and the events that build them, whatever order the vendor speaks in. */
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { Annotation, Delta, ToolCall } from '../../spec/chat-completion.ts'
import type { Opaque, Reasoning } from '../../spec/message.ts'
import { carry } from './responses-carry.ts'

export type TextPart = { type: 'output_text'; text: string; annotations: object[]; logprobs: unknown[] }
export type RefusalPart = { type: 'refusal'; refusal: string }
type Status = 'in_progress' | 'completed' | 'incomplete'
export type MessageItem = {
  type: 'message'
  id: string
  role: 'assistant'
  status: Status
  content: (TextPart | RefusalPart)[]
}
export type CallItem = {
  type: 'function_call'
  id: string
  call_id: string
  name: string
  arguments: string
  status: Status
}
export type ReasoningItem = {
  type: 'reasoning'
  id: string
  summary: { type: 'summary_text'; text: string }[]
  encrypted_content?: string
  status: Status
}
export type OutputItem = MessageItem | CallItem | ReasoningItem

export type ItemStream = {
  /** The events that one delta makes. `logprobs` are those of its words. */
  take(delta: Delta, logprobs?: unknown[]): string
  /** The events that close what is open. */
  end(status: 'completed' | 'incomplete'): string
  /** All items so far, in order. */
  output: OutputItem[]
}

type StreamParts = {
  /** The id of the next item: of which kind, and what its vendor calls it where that is known. */
  newId(kind: 'msg' | 'fc' | 'rs', index: number, vendors?: string): string
  /** One event, numbered. `fields` is JSON text without its braces. */
  event(type: string, fields: string): string
  /** Whether the client wants what the vendor wants back. */
  tells_encrypted: boolean
}

/** `place`: where an event stands, as JSON text. */
type Open<T extends OutputItem> = { item: T; index: number; place: string }

/** Calls may be open side by side, each named by its place in the output; everything else is told one after the other. */
export function createItemStream({ newId, event, tells_encrypted }: StreamParts): ItemStream {
  const output: OutputItem[] = []
  const calls = new Map<number, Open<CallItem>>()
  /** Calls that were told to their end. */
  const told = new Set<number>()
  let message: Open<MessageItem> | undefined
  let reasoning: Open<ReasoningItem> | undefined
  /** How much of the answer's text stands before the open text part: citations count from the answer's beginning. */
  let before = 0
  let said = 0

  function open<T extends OutputItem>(item: T): Open<T> {
    const index = output.length
    output.push(item)
    return { item, index, place: `"item_id":${JSON.stringify(item.id)},"output_index":${index}` }
  }
  const added = ({ item, index }: Open<OutputItem>, start: object): string =>
    event('response.output_item.added', `"output_index":${index},"item":${JSON.stringify({ ...item, ...start })}`)
  const done = ({ item, index }: Open<OutputItem>): string =>
    event('response.output_item.done', `"output_index":${index},"item":${JSON.stringify(shown(item, tells_encrypted))}`)

  function partEvent(at: Open<MessageItem>, type: 'added' | 'done'): string {
    const content_index = at.item.content.length - 1
    const part = at.item.content[content_index]
    const fields = `${at.place},"content_index":${content_index},"part":${JSON.stringify(part)}`
    return event(`response.content_part.${type}`, fields)
  }

  function closePart(at: Open<MessageItem>): string {
    const content_index = at.item.content.length - 1
    const part = at.item.content[content_index]
    if (!part) return ''
    const place = `${at.place},"content_index":${content_index}`
    const end =
      part.type === 'refusal'
        ? event('response.refusal.done', `${place},"refusal":${JSON.stringify(part.refusal)}`)
        : event(
            'response.output_text.done',
            `${place},"text":${JSON.stringify(part.text)},"logprobs":${JSON.stringify(part.logprobs)}`,
          )
    return end + partEvent(at, 'done')
  }

  function closeMessage(status: Status = 'completed'): string {
    if (!message) return ''
    const at = message
    message = undefined
    at.item.status = status
    return closePart(at) + done(at)
  }

  /** The open part of this type in the open message, begun where there is none. */
  function openPart(part: TextPart | RefusalPart): string {
    let events = closeReasoning() + closeCompleteCalls()
    if (!message) {
      const id = newId('msg', output.length)
      message = open<MessageItem>({ type: 'message', id, role: 'assistant', status: 'in_progress', content: [] })
      events += added(message, {})
    }
    const last = message.item.content.at(-1)
    if (last?.type === part.type) return events
    if (last) events += closePart(message)
    message.item.content.push(part)
    before = said
    return events + partEvent(message, 'added')
  }

  function takeText(delta: string, logprobs: unknown[] = []): string {
    const events = openPart({ type: 'output_text', text: '', annotations: [], logprobs: [] })
    const part = message?.item.content.at(-1)
    if (!message || part?.type !== 'output_text') return events
    part.text += delta
    part.logprobs.push(...logprobs)
    said += delta.length
    const content_index = message.item.content.length - 1
    const odds = logprobs.length === 0 ? '[]' : JSON.stringify(logprobs)
    const fields = `${message.place},"content_index":${content_index},"delta":${JSON.stringify(delta)},"logprobs":${odds}`
    return events + event('response.output_text.delta', fields)
  }

  function takeRefusal(delta: string): string {
    const events = openPart({ type: 'refusal', refusal: '' })
    const part = message?.item.content.at(-1)
    if (!message || part?.type !== 'refusal') return events
    part.refusal += delta
    const content_index = message.item.content.length - 1
    const fields = `${message.place},"content_index":${content_index},"delta":${JSON.stringify(delta)}`
    return events + event('response.refusal.delta', fields)
  }

  function takeCitation({ url_citation }: Annotation): string {
    const events = openPart({ type: 'output_text', text: '', annotations: [], logprobs: [] })
    const part = message?.item.content.at(-1)
    if (!message || part?.type !== 'output_text') return events
    const { start_index, end_index, ...named } = url_citation
    const annotation = {
      type: 'url_citation',
      start_index: Math.max(0, start_index - before),
      end_index: Math.max(0, end_index - before),
      ...named,
    }
    part.annotations.push(annotation)
    const content_index = message.item.content.length - 1
    const place = `${message.place},"content_index":${content_index},"annotation_index":${part.annotations.length - 1}`
    return (
      events + event('response.output_text.annotation.added', `${place},"annotation":${JSON.stringify(annotation)}`)
    )
  }

  function openReasoning(opaque?: Opaque): string {
    const events = closeMessage() + closeReasoning() + closeCompleteCalls()
    const id = newId('rs', output.length, opaque?.id)
    reasoning = open<ReasoningItem>({ type: 'reasoning', id, summary: [], status: 'in_progress' })
    return events + added(reasoning, {})
  }

  function takeThought(delta: string): string {
    let events = reasoning ? '' : openReasoning()
    if (!reasoning) return events
    const [part] = reasoning.item.summary
    if (part) part.text += delta
    else {
      reasoning.item.summary.push({ type: 'summary_text', text: delta })
      const start = '"summary_index":0,"part":{"type":"summary_text","text":""}'
      events += event('response.reasoning_summary_part.added', `${reasoning.place},${start}`)
    }
    const fields = `${reasoning.place},"summary_index":0,"delta":${JSON.stringify(delta)}`
    return events + event('response.reasoning_summary_text.delta', fields)
  }

  function closeReasoning(status: Status = 'completed'): string {
    if (!reasoning) return ''
    const at = reasoning
    reasoning = undefined
    at.item.status = status
    const [part] = at.item.summary
    if (!part) return done(at)
    const place = `${at.place},"summary_index":0`
    const text = event('response.reasoning_summary_text.done', `${place},"text":${JSON.stringify(part.text)}`)
    const whole = event('response.reasoning_summary_part.done', `${place},"part":${JSON.stringify(part)}`)
    return text + whole + done(at)
  }

  /** The end of one piece: of the one whose words were told, else of one that comes whole. */
  function endThought({ text, opaque }: Reasoning, call?: string): string {
    let events = ''
    if (!reasoning) {
      if (text === undefined && !opaque) return ''
      events += openReasoning(opaque)
      if (text) events += takeThought(text)
    }
    if (reasoning && opaque) reasoning.item.encrypted_content = carry({ opaque, call }, reasoning.item.id)
    return events + closeReasoning()
  }

  function takeCall({ index = 0, id, function: part, opaque }: ToolCall): string {
    if (told.has(index)) return ''
    let at = calls.get(index)
    let events = ''
    if (!at) {
      const call_id = id ?? `call_${randomAlphanumerics(24)}`
      events += closeMessage() + closeReasoning() + closeCompleteCalls()
      if (opaque) events += endThought({ opaque }, call_id)
      const made = { call_id, name: part.name ?? '', arguments: '', status: 'in_progress' } as const
      at = open<CallItem>({ type: 'function_call', id: newId('fc', output.length), ...made })
      calls.set(index, at)
      events += added(at, {})
    } else if (opaque) events += endThought({ opaque }, at.item.call_id)
    return events + takeArguments(at, part.arguments)
  }

  function takeArguments(at: Open<CallItem>, delta: string): string {
    if (delta === '') return ''
    at.item.arguments += delta
    return event('response.function_call_arguments.delta', `${at.place},"delta":${JSON.stringify(delta)}`)
  }

  function closeCall(index: number, at: Open<CallItem>, status: Status): string {
    calls.delete(index)
    told.add(index)
    at.item.status = status
    // Clients parse the text in any case.
    const filled = at.item.arguments.trim() === '' ? takeArguments(at, '{}') : ''
    const text = `"arguments":${JSON.stringify(at.item.arguments)}`
    const fields = `${at.place},"name":${JSON.stringify(at.item.name)},${text}`
    return filled + event('response.function_call_arguments.done', fields) + done(at)
  }

  /** A client can run these now: their arguments are whole. */
  function closeCompleteCalls(): string {
    let events = ''
    for (const [index, at] of calls) if (isComplete(at.item)) events += closeCall(index, at, 'completed')
    return events
  }

  return {
    output,
    take({ content, refusal, reasoning_content, reasoning_details = [], tool_calls, annotations }, logprobs) {
      let events = ''
      // Pieces that come whole say the same again as plain text.
      const isTwice = !reasoning && reasoning_details.some((piece) => piece.text !== undefined)
      if (reasoning_content && !isTwice) events += takeThought(reasoning_content)
      for (const piece of reasoning_details) events += endThought(piece)
      if (content) events += takeText(content, logprobs)
      if (refusal) events += takeRefusal(refusal)
      for (const annotation of annotations ?? []) events += takeCitation(annotation)
      for (const call of tool_calls ?? []) events += takeCall(call)
      return events
    },
    end(status) {
      let events = closeReasoning(status) + closeMessage(status)
      for (const [index, at] of calls) events += closeCall(index, at, isComplete(at.item) ? 'completed' : status)
      return events
    },
  }
}

/** An item as the client sees it: without what it did not ask for. */
export function shown(item: OutputItem, tells_encrypted: boolean): object {
  if (item.type !== 'reasoning' || tells_encrypted) return item
  const { encrypted_content: _, ...rest } = item
  return rest
}

function isComplete({ arguments: text }: CallItem): boolean {
  if (!text.trimEnd().endsWith('}')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
