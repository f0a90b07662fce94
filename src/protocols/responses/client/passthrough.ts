/** Passthrough of responses. Events keep their bytes, except for the model's name and the ids of stored responses. */
import { isRecord, type JsonRecord, parseJson, parseJsonKeeping } from '../../../kit/json.ts'
import { withValueAt } from '../../../kit/json-span.ts'
import { createSseBlocks, escapeLineEnds, readSseBlock } from '../../../kit/sse.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Usage } from '../../../spec/usage.ts'
import { payloadOf } from '../../shared/chunk-stream.ts'
import { createSlots, type Member, type Slots } from '../../shared/passthrough/event-slots.ts'
import { fromBytes, nothingYet, pass, pushed, stepOf, toBytes } from '../../shared/passthrough/events.ts'
import type {
  PassthroughParts,
  PassthroughStep,
  PassthroughStream,
  PassthroughWhole,
  ProtocolPassthrough,
  ResponseHead,
} from '../../shared/protocol.ts'
import { usageOf as usageIn } from '../../shared/upstream.ts'
import { answerOf, responseIn } from '../upstream/answer.ts'
import { ARGUMENTS, createEventReader, ENDS, isFailure } from '../upstream/events.ts'
import { usageOf } from './answer.ts'
import type { OutputItem } from './items.ts'
import { createResponseRewriter, type PassthroughExchange, passthroughBody } from './passthrough-items.ts'

export const responsesPassthrough = (exchange: PassthroughExchange): ProtocolPassthrough => ({
  headers: ['openai-beta'],
  body: () => passthroughBody(exchange),
  whole: (text, parts) => new WholeResponse(text, parts, exchange),
  stream: (parts) => createResponsesStream(parts, exchange),
})

/** A whole response, whose text passes with another model name where nothing else in it must change. */
class WholeResponse implements PassthroughWhole {
  readonly #text: string
  readonly #head: ResponseHead
  readonly #exchange: PassthroughExchange
  readonly #response: JsonRecord
  readonly usage: Usage | undefined

  constructor(text: string, { head, faults }: PassthroughParts, exchange: PassthroughExchange) {
    this.#text = text
    this.#head = head
    this.#exchange = exchange
    this.#response = responseIn(text, faults)
    this.usage = usageIn(this.#response.usage)
  }

  get choices() {
    return answerOf(this.#response, this.#head)?.choices ?? []
  }

  encode(usage: Usage): string {
    const { model, id, created } = this.#head
    const rewriter = createResponseRewriter(this.#exchange, this.#head)
    const whole = withUsage(rewriter.response(this.#response), usage)
    if (whole === this.#response) return withValueAt(this.#text, ['model'], JSON.stringify(model))
    const forClient = { ...whole, model }
    this.#exchange.state.final = { ...forClient, id, created_at: created }
    return JSON.stringify(rewriter.visible(forClient))
  }
}

const typeOf = ({ type }: JsonRecord, event: string): string => (typeof type === 'string' ? type : event)

const withUsage = (response: JsonRecord, usage: Usage | undefined): JsonRecord =>
  isRecord(response.usage) || !usage ? response : { ...response, usage: usageOf(usage) }

/** Events that only announce the start. Until more arrives, another target can still be tried. */
const START_EVENTS = ['response.created', 'response.queued', 'response.in_progress']
const NUMBER = 'sequence_number'
/**
 * The members that differ from event to event. The provider's padding prevents guessing a text from the length of its
 * events.
 */
const MEMBERS: Member[] = [
  { name: NUMBER, kind: 'number', pattern: /"sequence_number": ?(?=\d)/, of: (one) => one[NUMBER], isNeeded: true },
  { name: 'delta', kind: 'text', pattern: /"delta": ?"/, of: ({ delta }) => delta, isNeeded: true },
  { name: 'obfuscation', kind: 'text', pattern: /"obfuscation": ?"/, of: ({ obfuscation }) => obfuscation },
]

function createResponsesStream({ head, faults }: PassthroughParts, exchange: PassthroughExchange): PassthroughStream {
  const { state: passed, isStored } = exchange
  const blocks = createSseBlocks()
  const reader = createEventReader(head)
  const rewriter = createResponseRewriter(exchange, head)
  const model = toBytes(JSON.stringify(head.model))
  const known = createSlots(MEMBERS)
  /** The provider's items that are complete. */
  const done: JsonRecord[] = []
  let held = ''
  let hasSent = false
  let last: { event: string; data: string; payload: JsonRecord } | undefined

  /** The event for the client, except for the model's name. Returns the same payload if nothing changes. */
  function eventForClient(payload: JsonRecord, type: string): JsonRecord {
    const changes: JsonRecord = {}
    if (payload.type !== type) changes.type = type
    if (typeof payload.sequence_number !== 'number') changes.sequence_number = passed.next_number
    if (isRecord(payload.response)) {
      const response = rewriter.visible(rewriter.response(payload.response, done))
      if (response !== payload.response) changes.response = response
    }
    if (isStored) {
      const { item, item_id, output_index } = payload
      if (isRecord(item)) changes.item = rewriter.item(item, output_index)
      if (typeof item_id === 'string') changes.item_id = rewriter.idOf(item_id, undefined, output_index)
    }
    return Object.keys(changes).length === 0 ? payload : { ...payload, ...changes }
  }

  function recordEvent(event: JsonRecord, type: string): void {
    if (isRecord(event.response) && typeof event.response.id === 'string') passed.id = event.response.id
    passed.next_number = Number(event.sequence_number) + 1
    if (type === 'response.output_item.done' && isRecord(event.item)) {
      passed.output.push(event.item as unknown as OutputItem)
    }
  }

  /** The bytes for the client for one event. */
  function read(original: string, step: PassthroughStep, atEnd: boolean): string {
    const parsed = readSseBlock(original)
    if (!parsed) return ''
    const payload = payloadOf(
      { event: parsed.event, data: fromBytes(parsed.data) },
      { faults, atEnd, exact: ARGUMENTS, isFailure: (one, event) => isFailure({ ...one, type: typeOf(one, event) }) },
    )
    if (payload === undefined) return ''
    if (payload instanceof GatewayError) {
      step.failure = payload
      return ''
    }
    const type = typeOf(payload, parsed.event)
    const chunk = reader.take({ ...payload, type })
    if (reader.isEmpty?.()) {
      step.failure = faults.notUnderstood('answered with an empty response')
      return ''
    }
    if (chunk) step.received.push(chunk)
    const event = eventForClient(payload, type)
    if (type === 'response.output_item.done' && isRecord(payload.item)) done.push(payload.item)
    recordEvent(event, type)
    const own = event === payload ? parsed.data : toBytes(JSON.stringify(event))
    const data = withValueAt(own, ['response', 'model'], model)
    if (ENDS.some((end) => end === type)) {
      last = { event: type, data, payload }
      return ''
    }
    const isItself = data === parsed.data && parsed.isPlain && parsed.event === type
    const rewritten = isItself ? original : `event: ${toBytes(type)}\ndata: ${data}\n\n`
    if (!hasSent && START_EVENTS.includes(type)) {
      held += rewritten
      return ''
    }
    if (chunk && parsed.isPlain && parsed.event === type && payload.type === type) learn(original, payload)
    hasSent = true
    const before = held
    held = ''
    return before + rewritten
  }

  /** From here on, only events that the reader counts as text may skip it. */
  function learn(original: string, payload: JsonRecord): void {
    if (typeof payload.delta !== 'string') return
    const { item_id, output_index } = payload
    const id = isStored && typeof item_id === 'string' ? rewriter.idOf(item_id, undefined, output_index) : undefined
    const itemId = id === undefined ? '' : `"item_id":${JSON.stringify(id)}`
    const vendorItemId = /"item_id": ?"(?:[^"\\]|\\.)*"/ // the member with its value, which may hold escapes
    known.learn(original, payload, (fixed) => (itemId === '' ? fixed : fixed.replace(vendorItemId, () => itemId)))
  }

  /** Passes the texts of unparsed events to the reader as one event, which keeps its count of the text. */
  function flush(step: PassthroughStep, unparsed: { slots: Slots; texts: string[] } | undefined): undefined {
    if (!unparsed) return
    const delta = parseJson(`"${fromBytes(unparsed.texts.join(''))}"`)
    const chunk = reader.take({ ...unparsed.slots.payload, delta })
    if (chunk) step.received.push(chunk)
  }

  function take(texts: readonly string[], atEnd = false): PassthroughStep {
    const step = stepOf(texts, (text, taken) => takeEvents(text, taken, atEnd))
    step.isDone = last !== undefined
    if (last) {
      pass(step, escapeLineEnds(held))
      held = ''
    }
    passed.hasStarted ||= step.events.length > 0
    return step
  }

  function takeEvents(text: string, step: PassthroughStep, atEnd: boolean): void {
    let unparsed: { slots: Slots; texts: string[] } | undefined
    let number = ''
    const count = () => {
      if (number !== '') passed.next_number = Number(number) + 1
      number = ''
    }
    let unread = 0
    let at = 0
    while (at < text.length && !last && !step.failure) {
      const found = known.match(text, at)
      if (found) {
        const { slots, matched } = found
        if (unparsed?.slots !== slots) flush(step, unparsed)
        unparsed = unparsed?.slots === slots ? unparsed : { slots, texts: [] }
        unparsed.texts.push(matched.values[slots.place('delta')] ?? '')
        number = matched.values[slots.place(NUMBER)] ?? ''
        if (matched.rewritten !== undefined) {
          pass(step, text.slice(unread, at))
          pass(step, matched.rewritten)
          unread = matched.end
        }
        at = matched.end
        continue
      }
      unparsed = flush(step, unparsed)
      count()
      const end = text.indexOf('\n\n', at) + 2
      const event = text.slice(at, end)
      const rewritten = read(event, step, atEnd)
      if (rewritten !== event) {
        pass(step, text.slice(unread, at))
        pass(step, rewritten)
        unread = end
      }
      at = end
    }
    flush(step, unparsed)
    count()
    pass(step, text.slice(unread, at))
  }

  return {
    push: (bytes) => take(pushed(blocks, bytes, faults)),
    close() {
      const step = last ? { ...nothingYet(), isDone: true } : take([blocks.end()], true)
      if (!last) step.failure ??= faults.cut()
      return step
    },
    isFinished: reader.isFinished,
    includesUsage: true,
    /** The last event is sent after its response was counted and stored. */
    end(usage) {
      if (!last) return ''
      const { event, payload } = last
      let { data } = last
      if (isRecord(payload.response)) {
        const response = withUsage(rewriter.response(payload.response, done), usage)
        passed.final = { ...response, model: head.model, id: head.id, created_at: head.created }
        if (!isRecord(payload.response.usage)) {
          const completed = {
            ...(parseJsonKeeping(fromBytes(data), ARGUMENTS) as JsonRecord),
            response: rewriter.visible({ ...response, model: head.model }),
          }
          data = toBytes(JSON.stringify(completed))
        }
      }
      return fromBytes(escapeLineEnds(`event: ${toBytes(event)}\ndata: ${data}\n\n`))
    },
  }
}
