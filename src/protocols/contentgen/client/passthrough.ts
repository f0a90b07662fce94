/** Passthrough of contentgen. Events keep their bytes, except for the model's name. */
import { asRecord, isRecord, type JsonRecord, parseJson, parseJsonKeeping } from '../../../kit/json.ts'
import { withValueAt } from '../../../kit/json-span.ts'
import { createSseBlocks, readSseBlock } from '../../../kit/sse.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Usage } from '../../../spec/usage.ts'
import type { ChatChunk, ChatCompletion } from '../../shared/canonical.ts'
import { payloadOf } from '../../shared/chunk-stream.ts'
import { createSlots, type Member, type Slots } from '../../shared/passthrough/event-slots.ts'
import { fromBytes, pass, pushed, stepOf, toBytes } from '../../shared/passthrough/events.ts'
import type {
  PassthroughParts,
  PassthroughStep,
  PassthroughStream,
  PassthroughWhole,
  ProtocolPassthrough,
} from '../../shared/protocol.ts'
import { holdsError } from '../../shared/upstream.ts'
import { createAnswerReader } from '../upstream/answer.ts'
import { ARGUMENTS } from '../upstream/candidate.ts'
import { errorIn } from '../upstream/stream.ts'
import { countsOf, usageOf as usageIn } from '../upstream/usage.ts'
import { wholeOf } from '../upstream/whole.ts'
import { passthroughBody } from './minimal-request.ts'
import { usageOf } from './response.ts'

/** What the encoder of an error must know: whether an event was sent before it. */
type PassthroughState = { hasStarted: boolean }

export const contentgenPassthrough = (state: PassthroughState): ProtocolPassthrough => ({
  headers: [],
  body: passthroughBody,
  whole: (text, parts) => new WholeContents(text, parts),
  stream: (parts) => createContentgenStream(parts, state),
})

/** A whole response, whose text passes with another model name. */
class WholeContents implements PassthroughWhole {
  readonly #text: string
  readonly #parts: PassthroughParts
  readonly #payload: unknown
  #answer: ChatCompletion | undefined
  readonly usage: Usage | null | undefined

  constructor(text: string, parts: PassthroughParts) {
    this.#text = text
    this.#parts = parts
    this.#payload = parseJsonKeeping(text, ARGUMENTS)
    if (isRecord(this.#payload) && isPlain(this.#payload)) {
      const { usageMetadata: counts } = this.#payload
      this.usage = isRecord(counts) ? usageIn(counts) : undefined
    } else {
      this.#answer = this.#read()
      this.usage = this.#answer.usage
    }
  }

  get choices() {
    this.#answer ??= this.#read()
    return this.#answer.choices
  }

  /** Throws where the body is no response. */
  #read(): ChatCompletion {
    const { head, faults } = this.#parts
    const pieces = [this.#payload].flat()
    if (pieces.length === 0 || !pieces.every(isRecord)) {
      throw faults.notUnderstood('answered with something that is not a JSON object')
    }
    const failed = pieces.find(holdsError)
    if (failed) throw faults.inAnswer(failed)
    const counter = createCounter(this.#parts)
    const chunks = pieces.flatMap(counter.take)
    if (!counter.hasCandidates()) throw faults.notUnderstood('answered with JSON that holds no response')
    return wholeOf([...chunks, counter.end()], head)
  }

  encode(usage: Usage): unknown {
    const payload = this.#payload
    const { head, writer } = this.#parts
    // The provider sent the pieces of a stream although a whole response was requested.
    if (!isRecord(payload)) return writer.whole(this.#answer ?? this.#read(), usage)
    return isRecord(payload.usageMetadata)
      ? withValueAt(this.#text, ['modelVersion'], JSON.stringify(head.model))
      : JSON.stringify({ ...payload, usageMetadata: usageOf(usage), modelVersion: head.model })
  }
}

/** Whether a body certainly is a response, so that only its usage need be read. */
const isPlain = (payload: JsonRecord): boolean =>
  Array.isArray(payload.candidates) &&
  payload.candidates.length > 0 &&
  payload.candidates.every(isRecord) &&
  !holdsError(payload)

/** Extracts what the meter needs. The provider's own refusals and failures pass, and count as an end. */
function createCounter({ head, faults }: PassthroughParts) {
  const reader = createAnswerReader({
    fallback: head,
    // A blocked prompt is handled before the reader.
    faults: {
      inAnswer: (payload) => faults.inAnswer(payload),
      notUnderstood: (what, status) => faults.notUnderstood(what, status),
      cut: () => faults.cut(),
      blocked: (reason) => faults.notUnderstood(reason),
    },
    one_call: false,
  })
  let counts: JsonRecord = {}
  let isBlocked = false
  let hasCandidates = false
  return {
    take(payload: JsonRecord): ChatChunk[] {
      counts = countsOf(payload.usageMetadata, counts)
      if (!Array.isArray(payload.candidates) || payload.candidates.length === 0) {
        isBlocked ||= !hasCandidates && isRecord(payload.promptFeedback) && Boolean(payload.promptFeedback.blockReason)
        return []
      }
      hasCandidates = true
      return reader.take(payload)
    },
    hasCandidates: () => hasCandidates || isBlocked,
    isFinished: () => isBlocked || reader.isFinished(),
    hasEnded: reader.hasEnded,
    /** What an event has besides the content of candidates that have ended: the same object where they have not. */
    beforeEnd(payload: JsonRecord): JsonRecord | undefined {
      const list = Array.isArray(payload.candidates) ? payload.candidates : []
      const isAfterEnd = (one: unknown, at: number) => isRecord(one) && reader.isAfterEnd(one, at)
      if (!list.some(isAfterEnd)) return payload
      const candidates = list.flatMap((one, at) => (isAfterEnd(one, at) ? metadataOf(one) : [one]))
      if (candidates.length > 0) return { ...payload, candidates }
      const { candidates: _, ...rest } = payload
      return isRecord(rest.usageMetadata) ? rest : undefined
    },
    /** The chunk that ends the response, with its usage. */
    end(): ChatChunk {
      const usage = usageIn(counts)
      const choices = [{ index: 0, delta: {}, finish_reason: 'stop' as const }]
      return { ...head, object: 'chat.completion.chunk', choices, ...(usage ? { usage } : {}) }
    },
  }
}

/** Sources may come with the end, and after it. */
function metadataOf(candidate: JsonRecord): JsonRecord[] {
  const metadata = Object.entries(candidate).filter(([name]) => name.endsWith('Metadata'))
  return metadata.length > 0 ? [{ index: candidate.index ?? 0, ...Object.fromEntries(metadata) }] : []
}

const COUNTS = ['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'totalTokenCount']
const countsIn = ({ usageMetadata: counts }: JsonRecord): JsonRecord => asRecord(counts)
const MODEL = '"modelVersion"'

/** The members that differ from event to event. */
const MEMBERS: Member[] = [
  { name: 'text', kind: 'text', pattern: /"text": ?"/, of: (one) => textIn(one), isNeeded: true },
  ...COUNTS.map(
    (name): Member => ({
      name,
      kind: 'number',
      pattern: new RegExp(`"${name}": ?(?=\\d)`), // followed by a number
      of: (one) => countsIn(one)[name],
    }),
  ),
]

/** The only part of the only candidate of an event, if it is a text. */
function partIn({
  candidates,
}: JsonRecord): { candidate: JsonRecord; content: JsonRecord; part: JsonRecord } | undefined {
  const [candidate, another] = Array.isArray(candidates) ? candidates : []
  const content = isRecord(candidate) && !another && isRecord(candidate.content) ? candidate.content : {}
  const [part, next] = Array.isArray(content.parts) ? content.parts : []
  return isRecord(part) && !next && typeof part.text === 'string' ? { candidate, content, part } : undefined
}

const textIn = (payload: JsonRecord): unknown => partIn(payload)?.part.text

/** Events that passed without parsing: their texts, and the members of the last one. */
type UnparsedEvents = { slots: Slots; texts: string[]; last: string[] }

/** One event with the same content. */
function joined({ slots, texts, last }: UnparsedEvents): JsonRecord {
  const { payload } = slots
  const { candidate, content, part } = partIn(payload) ?? { candidate: {}, content: {}, part: {} }
  const text = parseJson(`"${fromBytes(texts.join(''))}"`)
  const usageMetadata: JsonRecord = { ...countsIn(payload) }
  for (const name of COUNTS) {
    const place = slots.place(name)
    if (place !== -1) usageMetadata[name] = Number(last[place])
  }
  return {
    ...payload,
    usageMetadata,
    candidates: [{ ...candidate, content: { ...content, parts: [{ ...part, text }] } }],
  }
}

function createContentgenStream(parts: PassthroughParts, state: PassthroughState): PassthroughStream {
  const { head, faults } = parts
  const blocks = createSseBlocks()
  const counter = createCounter(parts)
  const model = toBytes(JSON.stringify(head.model))
  let known = createSlots(MEMBERS)
  /** The last block that was not a plain event: the vendor may end a stream with an error as bare JSON. */
  let lastOther = ''

  /** The bytes for the client for one event. */
  function read(event: string, step: PassthroughStep, atEnd: boolean): string {
    const parsed = readSseBlock(event)
    if (!parsed?.isPlain) lastOther = event
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
    const rest = counter.beforeEnd(payload)
    step.received.push(...counter.take(payload))
    const isOfEnded = counter.beforeEnd(payload) !== payload
    // Events of a candidate that has ended must not pass unread while another one continues.
    if (isOfEnded) known = createSlots(MEMBERS)
    if (rest !== payload) {
      return rest ? `data: ${toBytes(JSON.stringify({ ...rest, modelVersion: head.model }))}\n\n` : ''
    }
    const isItself = !parsed.data.trimStart().startsWith('[') // a list around the object is removed
    if (!isOfEnded && isItself && parsed.isPlain && parsed.event === '' && textIn(payload)) learn(event, payload)
    const data = withValueAt(isItself ? parsed.data : toBytes(JSON.stringify(payload)), ['modelVersion'], model)
    return isItself && data === parsed.data && parsed.isPlain ? event : `data: ${data}\n\n`
  }

  function learn(event: string, payload: JsonRecord): void {
    const vendorModel = /"modelVersion": ?"(?:[^"\\]|\\.)*"/ // the member with its value, which may hold escapes
    known.learn(event, payload, (fixed) =>
      fixed.replace(vendorModel, (member) => member.slice(0, member.indexOf('"', MODEL.length)) + model),
    )
  }

  /** Passes the texts of unparsed events to the reader as one event, with the counts of the last one. */
  function flush(step: PassthroughStep, unparsed: UnparsedEvents | undefined): undefined {
    if (unparsed) step.received.push(...counter.take(joined(unparsed)))
  }

  function take(texts: readonly string[], atEnd = false): PassthroughStep {
    const step = stepOf(texts, (text, taken) => takeEvents(text, taken, atEnd))
    state.hasStarted ||= step.events.length > 0
    return step
  }

  function takeEvents(text: string, step: PassthroughStep, atEnd: boolean): void {
    let unparsed: UnparsedEvents | undefined
    let at = 0
    while (at < text.length && !step.failure) {
      const found = counter.hasEnded() ? undefined : known.match(text, at)
      if (found) {
        const { slots, matched } = found
        if (unparsed?.slots !== slots) unparsed = flush(step, unparsed) ?? { slots, texts: [], last: [] }
        unparsed.texts.push(matched.values[slots.place('text')] ?? '')
        unparsed.last = matched.values
        pass(step, matched.rewritten ?? text.slice(at, matched.end))
        at = matched.end
        continue
      }
      unparsed = flush(step, unparsed)
      const end = text.indexOf('\n\n', at) + 2
      pass(step, read(text.slice(at, end), step, atEnd))
      at = end
    }
    flush(step, unparsed)
  }

  return {
    push: (bytes) => take(pushed(blocks, bytes, faults)),
    close() {
      const step = take([blocks.end()], true)
      if (step.failure) return step
      if (counter.isFinished()) step.received.push(counter.end())
      else {
        const error = errorIn(fromBytes(lastOther))
        step.failure = error === undefined ? faults.cut() : faults.inAnswer(error)
      }
      return step
    },
    isFinished: counter.isFinished,
    includesUsage: false,
    end: () => '',
  }
}
