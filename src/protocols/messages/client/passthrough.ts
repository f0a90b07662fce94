/** Passthrough of Messages. Events keep their bytes, except for the model's name. */
import { isRecord, type JsonRecord, parseJson, parseJsonKeeping } from '../../../kit/json.ts'
import { closingQuote, withMember, withValueAt } from '../../../kit/json-span.ts'
import { createSseBlocks, readSseBlock } from '../../../kit/sse.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Usage } from '../../../spec/usage.ts'
import { payloadOf } from '../../shared/chunk-stream.ts'
import { fromBytes, nothingYet, pass, pushed, receiveText, stepOf, toBytes } from '../../shared/passthrough/events.ts'
import type {
  PassthroughParts,
  PassthroughStep,
  PassthroughStream,
  PassthroughWhole,
  ProtocolPassthrough,
  ResponseHead,
} from '../../shared/protocol.ts'
import { namedText } from '../../shared/upstream.ts'
import { answerOf, messageIn } from '../upstream/answer.ts'
import { ARGUMENTS, createEventReader, defaultStop } from '../upstream/events.ts'
import { countsOf, usageOf as usageIn } from '../upstream/usage.ts'
import { minimalRequestOf, passthroughBody } from './minimal-request.ts'
import { usageOf } from './response.ts'

export const messagesPassthrough: ProtocolPassthrough = {
  headers: ['anthropic-beta', 'anthropic-version'],
  body: passthroughBody,
  minimalRequest: minimalRequestOf,
  whole: (text, parts) => new WholeMessage(text, parts),
  stream: createMessagesStream,
}

/** A whole message, whose text passes with another model name. */
class WholeMessage implements PassthroughWhole {
  readonly #text: string
  readonly #head: ResponseHead
  readonly #payload: ReturnType<typeof messageIn>
  readonly usage: Usage | undefined

  constructor(text: string, { head, faults }: PassthroughParts) {
    this.#text = text
    this.#head = head
    this.#payload = messageIn(text, faults)
    this.usage = usageIn(countsOf(this.#payload.usage))
  }

  get choices() {
    return answerOf(this.#payload, this.#head).choices
  }

  encode(usage: Usage): string {
    const payload = this.#payload
    const { model } = this.#head
    // Client libraries write to `usage`, and agents decide by `stop_reason`.
    const stop = namedText(payload.stop_reason)
    if (isRecord(payload.usage) && stop !== undefined) {
      const name = JSON.stringify(model)
      return Object.hasOwn(payload, 'model')
        ? withValueAt(this.#text, ['model'], name)
        : withMember(this.#text, 'model', name)
    }
    const stop_reason = stop ?? defaultStop(hasCalls(this))
    return JSON.stringify({ ...payload, stop_reason, model, usage: payload.usage ?? usageOf(usage) })
  }
}

const hasCalls = ({ choices: [choice] }: { choices: { finish_reason?: unknown }[] }): boolean =>
  choice?.finish_reason === 'tool_calls'

/** The member that holds the text, for each type of delta. */
const TEXT_OF: Record<string, string> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  input_json_delta: 'partial_json',
}

function createMessagesStream({ head, faults }: PassthroughParts): PassthroughStream {
  const blocks = createSseBlocks()
  const reader = createEventReader(head)
  const model = toBytes(JSON.stringify(head.model))
  /** The bytes around the text in events that extend the same block as the last event. */
  let known: TextFrame | undefined
  let counts: JsonRecord = usageOf(undefined)

  /** The bytes for the client for one event. */
  function read(event: string, step: PassthroughStep, atEnd: boolean): string {
    const parsed = readSseBlock(event)
    if (!parsed) return ''
    const payload = payloadOf(
      { event: parsed.event, data: fromBytes(parsed.data) },
      { faults, atEnd, exact: ARGUMENTS },
    )
    if (payload === undefined) return ''
    if (payload instanceof GatewayError) {
      step.failure = payload
      return ''
    }
    const type = typeof payload.type === 'string' ? payload.type : parsed.event
    const wasFinished = reader.isFinished()
    const chunk = reader.take({ ...payload, type })
    if (chunk) step.received.push(chunk)
    if (isRecord(payload.usage)) counts = { ...counts, ...payload.usage }
    else if (isRecord(payload.message) && isRecord(payload.message.usage)) counts = payload.message.usage
    const isRepeated = wasFinished && type === 'message_delta' && chunk !== undefined
    // The message has ended before, or it has not: neither is what the client would take the event for.
    if (isRepeated || (type === 'message_stop' && !reader.isFinished())) return ''
    const missing = chunk && type === 'message_stop' && !wasFinished ? stopEvent(hasCalls(chunk)) : ''
    // From here on, only events that the reader counts as text may skip it.
    known = chunk && type === 'content_block_delta' && parsed.isPlain ? textFrameOf(event, payload) : undefined
    const data = withMissingMembers(parsed.data, payload, type)
    if (data === parsed.data && parsed.isPlain && parsed.event === type) return missing + event
    return `${missing}event: ${toBytes(type)}\ndata: ${data}\n\n`
  }

  /** The event with the stop reason that the provider left out. */
  function stopEvent(isCalling: boolean): string {
    const delta = { stop_reason: defaultStop(isCalling), stop_sequence: null }
    return `event: message_delta\ndata: ${toBytes(JSON.stringify({ type: 'message_delta', delta, usage: counts }))}\n\n`
  }

  function withMissingMembers(data: string, payload: JsonRecord, type: string): string {
    let text = data
    // Client libraries write to these members without checking that they exist.
    if (type === 'message_start' && isRecord(payload.message)) {
      if (!isRecord(payload.message.usage)) {
        text = toBytes(JSON.stringify({ ...payload, message: { ...payload.message, usage: usageOf(undefined) } }))
      }
      text = withValueAt(text, ['message', 'model'], model)
    }
    if (type === 'message_delta' && !isRecord(payload.usage)) {
      text = toBytes(JSON.stringify({ ...payload, usage: usageOf(undefined) }))
    }
    return payload.type === type
      ? text
      : toBytes(JSON.stringify({ type, ...(parseJsonKeeping(fromBytes(text), ARGUMENTS) as JsonRecord) }))
  }

  function take(texts: readonly string[], atEnd = false): PassthroughStep {
    const step = stepOf(texts, (text, taken) => takeEvents(text, taken, atEnd))
    if (reader.isFinished()) step.failure = undefined
    return step
  }

  function takeEvents(text: string, step: PassthroughStep, atEnd: boolean): void {
    const texts: string[] = []
    let copiedTo = 0
    let at = 0
    while (at < text.length && !step.isDone && !step.failure) {
      if (known && text.startsWith(known.before, at)) {
        const from = at + known.before.length
        const quote = closingQuote(text, from)
        if (quote !== -1 && text.startsWith(known.after, quote)) {
          texts.push(text.slice(from, quote))
          at = quote + known.after.length
          continue
        }
      }
      const end = text.indexOf('\n\n', at) + 2
      const event = text.slice(at, end)
      receiveText(step, texts)
      const rewritten = read(event, step, atEnd)
      if (rewritten !== event) {
        pass(step, text.slice(copiedTo, at))
        pass(step, rewritten)
        copiedTo = end
      }
      at = end
      step.isDone = reader.isDone()
    }
    pass(step, text.slice(copiedTo, at))
    receiveText(step, texts)
  }

  return {
    push: (bytes) => take(pushed(blocks, bytes, faults)),
    close() {
      const step: PassthroughStep = reader.isDone() ? { ...nothingYet(), isDone: true } : take([blocks.end()], true)
      if (!reader.isFinished()) step.failure ??= faults.cut()
      // The provider sent a stop reason but no `message_stop`, which clients wait for.
      else if (!reader.isDone()) pass(step, 'event: message_stop\ndata: {"type":"message_stop"}\n\n')
      return step
    },
    isFinished: reader.isFinished,
    includesUsage: false,
    end: () => '',
  }
}

type TextFrame = { before: string; after: string }

/** Returns undefined if the place of the text is not certain. */
function textFrameOf(event: string, { delta }: JsonRecord): TextFrame | undefined {
  const member = isRecord(delta) && typeof delta.type === 'string' ? TEXT_OF[delta.type] : undefined
  if (member === undefined) return undefined
  const found = new RegExp(`"${member}": ?"`).exec(event) // with and without a space after the colon
  if (!found) return undefined
  const from = found.index + found[0].length
  const [before, after] = [event.slice(0, from), event.slice(closingQuote(event, from))]
  const payload = parseJson(readSseBlock(before + PROBE + after)?.data ?? '')
  return isRecord(payload) && isRecord(payload.delta) && payload.delta[member] === PROBE ? { before, after } : undefined
}

const PROBE = 'gatehouse-text'
