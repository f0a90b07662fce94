/** Encodes the items of a streamed response and their events, in whatever order the provider sends deltas. */
import { randomAlphanumerics } from '../../../kit/secret.ts'
import type { Annotation } from '../../../spec/chat-completion.ts'
import type { Delta, GeneratedImage, Opaque, Reasoning, ToolCall } from '../../shared/canonical.ts'
import { createCallStream } from './calls.ts'
import {
  createItemEvents,
  encodeEncrypted,
  type ItemEventParts,
  type MessageItem,
  type Open,
  type ReasoningItem,
  type RefusalPart,
  type Status,
  type TextPart,
} from './items.ts'
import { createMcpItems, type McpNeeds } from './mcp-items.ts'
import type { ToolNames } from './tool-names.ts'

export type ItemStream = ReturnType<typeof createItemStream>

/** `names`: the providers' names of the client's tools. */
type StreamParts = ItemEventParts & { names: ToolNames; needs: McpNeeds | undefined }

/**
 * Several calls may be open at once, each named by its place in the output. All other items are sent one after the
 * other.
 */
export function createItemStream({ names, needs, ...parts }: StreamParts) {
  const itemEvents = createItemEvents(parts)
  const { event, added, done, newId, output, includes_encrypted } = itemEvents
  const mcp = createMcpItems(itemEvents, needs)
  let calls = createCallStream(itemEvents, names, mcp)
  let message: Open<MessageItem> | undefined
  let reasoning: Open<ReasoningItem> | undefined
  /** The length of the text before the open text part: citations count from the start of the response. */
  let before = 0
  let textLength = 0

  /** The place of the last part, which is the open one. */
  const partPlace = ({ place, item }: Open<MessageItem>): string =>
    `${place},"content_index":${item.content.length - 1}`

  const partEvent = (at: Open<MessageItem>, type: 'added' | 'done'): string =>
    event(`response.content_part.${type}`, `${partPlace(at)},"part":${JSON.stringify(at.item.content.at(-1))}`)

  function closePart(at: Open<MessageItem>): string {
    const part = at.item.content.at(-1)
    if (!part) return ''
    const place = partPlace(at)
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

  /** Opens a part of this type, unless the open message already ends with one. */
  function openPart(part: TextPart | RefusalPart): string {
    let events = closeReasoning() + calls.closeComplete()
    if (!message) {
      const id = newId('message', output.length)
      message = itemEvents.open<MessageItem>({
        type: 'message',
        id,
        role: 'assistant',
        status: 'in_progress',
        content: [],
      })
      events += added(message, { content: [] })
    }
    const last = message.item.content.at(-1)
    if (last?.type === part.type) return events
    if (last) events += closePart(message)
    message.item.content.push(part)
    before = textLength
    return events + partEvent(message, 'added')
  }

  function takeText(delta: string, logprobs: unknown[] = []): string {
    const events = openPart({ type: 'output_text', text: '', annotations: [], logprobs: [] })
    const part = message?.item.content.at(-1)
    if (!message || part?.type !== 'output_text') return events
    part.text += delta
    part.logprobs.push(...logprobs)
    textLength += delta.length
    const encodedLogprobs = logprobs.length === 0 ? '[]' : JSON.stringify(logprobs)
    const fields = `${partPlace(message)},"delta":${JSON.stringify(delta)},"logprobs":${encodedLogprobs}`
    return events + event('response.output_text.delta', fields)
  }

  function takeRefusal(delta: string): string {
    const events = openPart({ type: 'refusal', refusal: '' })
    const part = message?.item.content.at(-1)
    if (!message || part?.type !== 'refusal') return events
    part.refusal += delta
    return events + event('response.refusal.delta', `${partPlace(message)},"delta":${JSON.stringify(delta)}`)
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
    const place = `${partPlace(message)},"annotation_index":${part.annotations.length - 1}`
    return (
      events + event('response.output_text.annotation.added', `${place},"annotation":${JSON.stringify(annotation)}`)
    )
  }

  function openReasoning(opaque?: Opaque): string {
    const events = closeMessage() + closeReasoning() + calls.closeComplete()
    const id = newId('reasoning', output.length, opaque?.id)
    reasoning = itemEvents.open<ReasoningItem>({ type: 'reasoning', id, summary: [], status: 'in_progress' })
    return events + added(reasoning)
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
    if (includes_encrypted) at.item.encrypted_content ??= encodeEncrypted({}, at.item.id)
    const [part] = at.item.summary
    if (!part) return done(at)
    const place = `${at.place},"summary_index":0`
    const text = event('response.reasoning_summary_text.done', `${place},"text":${JSON.stringify(part.text)}`)
    const whole = event('response.reasoning_summary_part.done', `${place},"part":${JSON.stringify(part)}`)
    return text + whole + done(at)
  }

  /** Ends a piece of reasoning: the one being streamed, or one that arrives whole. */
  function endThought({ text, opaque }: Reasoning, owner?: string): string {
    let events = ''
    if (!reasoning) {
      if (text === undefined && !opaque) return ''
      events += openReasoning(opaque)
      if (text) events += takeThought(text)
    }
    if (reasoning && opaque) reasoning.item.encrypted_content = encodeEncrypted({ opaque, owner }, reasoning.item.id)
    return events + closeReasoning()
  }

  function takeCall({ index = 0, id, function: part, opaque }: ToolCall): string {
    if (calls.isClosed(index)) return ''
    let events = ''
    if (!calls.isOpen(index)) {
      events += closeMessage() + closeReasoning() + calls.closeComplete()
      // A reasoning item before the call holds its signature.
      const call_id = mcp.idOf(names.toolOf(part.name ?? ''), opaque ? 1 : 0) ?? id ?? `call_${randomAlphanumerics(24)}`
      if (opaque) events += endThought({ opaque }, call_id)
      events += calls.open(index, call_id, part.name ?? '')
    } else if (opaque) events += endThought({ opaque }, calls.callId(index))
    return events + calls.add(index, part.arguments)
  }

  function takeImage({ image_url: { url }, opaque }: GeneratedImage): string {
    const [, format, result] = IMAGE.exec(url) ?? []
    if (format === undefined || result === undefined) return ''
    let events = closeMessage() + closeReasoning() + calls.closeComplete()
    // A reasoning item before the image holds its signature and refers to the image's id.
    const id = newId('image_generation_call', output.length + (opaque ? 1 : 0))
    if (opaque) events += endThought({ opaque }, id)
    const image = { id, status: 'completed', result, output_format: format } as const
    const at = itemEvents.open({ type: 'image_generation_call', ...image })
    events += added(at, { status: 'in_progress', result: null })
    return events + event('response.image_generation_call.completed', at.place) + done(at)
  }

  return {
    /** All items so far, in order. */
    output,
    mcp,
    /** The model is called once more: its calls are counted from 0 again. */
    nextRound() {
      calls = createCallStream(itemEvents, names, mcp)
      textLength = 0
    },
    /** The events for one delta. `logprobs` belong to its text. */
    take(
      { content, refusal, reasoning_content, reasoning_details = [], ...delta }: Delta,
      logprobs?: unknown[],
    ): string {
      let events = ''
      // A whole piece of reasoning repeats its text as plain text.
      const isRepeated = !reasoning && reasoning_details.some((piece) => piece.text !== undefined)
      if (reasoning_content && !isRepeated) events += takeThought(reasoning_content)
      for (const piece of reasoning_details) events += endThought(piece)
      if (content) events += takeText(content, logprobs)
      if (refusal) events += takeRefusal(refusal)
      for (const annotation of delta.annotations ?? []) events += takeCitation(annotation)
      for (const call of delta.tool_calls ?? []) events += takeCall(call)
      for (const image of delta.images ?? []) events += takeImage(image)
      return events
    },
    /** The events that close what is open. */
    end(status: 'completed' | 'incomplete'): string {
      return closeReasoning(status) + closeMessage(status) + calls.closeAll(status)
    },
  }
}

/** A generated image: its format and its data. */
const IMAGE = /^data:image\/([\w.+-]+);base64,(.+)$/s
