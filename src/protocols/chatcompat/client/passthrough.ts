/** Passthrough of chat completions. An event keeps its bytes wherever section 2.4 of the specification allows it. */
import { isDeepStrictEqual } from 'node:util'
import { isRecord, type JsonRecord, memberOf, parseJson, parseJsonKeeping } from '../../../kit/json.ts'
import { withMember, withoutMember, withValues } from '../../../kit/json-span.ts'
import { createSseBlocks, readSseBlock } from '../../../kit/sse.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Usage } from '../../../spec/usage.ts'
import { type ChatChunk, type ChatCompletion, type ChunkChoice, OPENROUTER } from '../../shared/canonical.ts'
import { isDoneMark, payloadOf } from '../../shared/chunk-stream.ts'
import {
  fromBytes,
  nothingYet,
  pass,
  pushed,
  receiveText,
  stepOf,
  Templates,
  toBytes,
} from '../../shared/passthrough/events.ts'
import type {
  PassthroughParts,
  PassthroughStep,
  PassthroughStream,
  PassthroughWhole,
  ProtocolPassthrough,
  ResponseEncoder,
  ResponseHead,
} from '../../shared/protocol.ts'
import type { Faults } from '../../shared/upstream.ts'
import { wholeIn } from '../upstream/answer.ts'
import { ChunkNormaliser, hasHiddenError, readWhole } from '../upstream/stream.ts'
import { ARGUMENTS } from '../upstream/tool-call.ts'
import { customNames } from './custom-calls.ts'
import { createChunkEncoder, isHollow } from './response.ts'

export const chatcompatPassthrough: ProtocolPassthrough = {
  headers: ['openai-beta'],
  body: (body) => body,
  whole: (text, parts) => new WholeCompletion(text, parts),
  stream: (parts) => new ChatcompatStream(parts),
}

/** A whole completion, normalised and encoded in place. */
class WholeCompletion implements PassthroughWhole {
  readonly #answer: ChatCompletion
  readonly #reported: unknown
  readonly #writer: ResponseEncoder

  constructor(text: string, { head, writer, faults }: PassthroughParts) {
    const payload = parseJsonKeeping(text, ARGUMENTS)
    this.#reported = memberOf(payload, 'usage')
    this.#answer = wholeIn(payload, head, faults) ?? readWhole(text, head, faults)
    this.#writer = writer
  }

  get usage() {
    return this.#answer.usage
  }

  get choices() {
    return this.#answer.choices
  }

  encode(usage: Usage): unknown {
    return this.#writer.whole(this.#answer, Object.assign(clientUsage(this.#reported), usage))
  }
}

/** Without what the provider charges, in place: the caller is charged by other prices. */
function clientUsage(usage: unknown): JsonRecord {
  if (!isRecord(usage)) return {}
  for (const name of OF_THE_PROVIDER) if (usage[name] !== undefined) delete usage[name]
  return usage
}

const OF_THE_PROVIDER = ['cost', 'cost_details', 'is_byok']

class ChatcompatStream implements PassthroughStream {
  readonly includesUsage: boolean
  readonly #blocks = createSseBlocks()
  readonly #templates = new Templates()
  readonly #normaliser: ChunkNormaliser
  readonly #writer: ReturnType<typeof createChunkEncoder>
  readonly #faults: Faults
  /** The names of the custom tools of the request, if it has any. */
  readonly #customs: ReadonlySet<string> | undefined
  readonly #openrouter: boolean | undefined
  /** As JSON text. */
  readonly #head: Record<keyof ResponseHead, string>
  #usage: JsonRecord | undefined
  #isDone = false

  constructor({ head, request, faults }: PassthroughParts) {
    this.includesUsage = request.stream_options?.include_usage === true
    this.#normaliser = new ChunkNormaliser(head)
    this.#customs = request.tools && customNames(request.tools)
    this.#openrouter = request[OPENROUTER]
    const options = { include_usage: this.includesUsage, customs: this.#customs, openrouter: this.#openrouter }
    this.#writer = createChunkEncoder(head, options)
    const { id, created, model } = head
    this.#head = { id: inJson(id), created: inJson(created), model: inJson(model) }
    this.#faults = faults
  }

  push(bytes: Uint8Array): PassthroughStep {
    return this.#take(pushed(this.#blocks, bytes, this.#faults))
  }

  close(): PassthroughStep {
    const step = this.#isDone ? { ...nothingYet(), isDone: true } : this.#take([this.#blocks.end()], true)
    if (this.#normaliser.isFinished() || step.failure) return step
    if (!this.#isDone) return { ...step, failure: this.#faults.cut() }
    const missing = this.#normaliser.missingFinish()
    if (!missing) return { ...step, failure: this.#faults.notUnderstood('answered with an empty stream') }
    step.received.push(missing)
    pass(step, toBytes(this.#writer.encode([{ ...missing }])))
    return step
  }

  isFinished(): boolean {
    return this.#normaliser.isFinished()
  }

  end(counted: Usage | undefined): string {
    return this.#writer.end(counted && { ...this.#usage, ...counted })
  }

  /**
   * The event for the client, and its chunk. If the event may pass, only its head changes; otherwise it is encoded
   * again.
   */
  #rewrite(data: string, payload: JsonRecord): { text: string; chunk: ChatChunk | undefined } {
    const original = { ...payload }
    const chunk = this.#normaliser.take(payload)
    if (!chunk) return { text: '', chunk }
    const reported = clientUsage(isRecord(original.usage) ? { ...original.usage } : undefined)
    if (Object.keys(reported).length > 0) this.#usage = reported
    const counted = chunk.usage
    if (this.#isUnchanged(original, chunk)) return { text: this.#withClientHead(data, original), chunk }
    // The encoder replaces calls of custom tools and reasoning, which the meter has to see.
    const encoded = this.#customs || this.#openrouter ? { ...chunk, choices: chunk.choices.map(copyOf) } : { ...chunk }
    return { text: toBytes(this.#writer.encode([encoded])), chunk: counted ? { ...chunk, usage: counted } : chunk }
  }

  #withClientHead(data: string, original: JsonRecord): string {
    let text = withValues(data, this.#head)
    if (this.includesUsage && original.usage === undefined) text = withMember(text, 'usage', 'null')
    else if (!this.includesUsage && original.usage !== undefined) text = withoutMember(text, 'usage')
    return `data: ${text}\n\n`
  }

  /** Whether the event already conforms to section 2.4: translating it would produce the same event. */
  #isUnchanged(original: JsonRecord, chunk: ChatChunk): boolean {
    if (original.object !== 'chat.completion.chunk' || original.x_groq !== undefined || chunk.usage) return false
    if (Object.keys(HEAD).some((name) => typeof original[name] !== HEAD[name as keyof ResponseHead])) return false
    // With custom tools the encoder decides about calls, and their ends come with the finish.
    if (this.#customs && chunk.choices.some(({ delta, finish_reason }) => delta.tool_calls || finish_reason))
      return false
    if (this.#openrouter && chunk.choices.some(({ delta }) => delta.reasoning_content || delta.reasoning_details))
      return false
    const raw = original.choices as JsonRecord[]
    if (raw.length === 0 || raw.length !== chunk.choices.length) return false
    if (!chunk.choices.every((choice, at) => isSameChoice(raw[at] ?? {}, choice))) return false
    // Each choice starts with one event that holds only its role. No later event has a role.
    const isOpening = chunk.choices.some(({ index }) => !this.#writer.isOpen(index))
    if (!isOpening) return chunk.choices.every(({ delta }) => delta.role === undefined)
    if (!isHollow({ ...chunk, choices: chunk.choices.map(withoutRole) })) return false
    for (const { index } of chunk.choices) this.#writer.open(index)
    return true
  }

  #read(block: string, step: PassthroughStep, atEnd: boolean): void {
    const parsed = readSseBlock(block)
    if (!parsed) return
    const { event, data } = parsed
    if (isDoneMark(data)) {
      this.#isDone = true
      return
    }
    const payload = payloadOf(
      { event, data: fromBytes(data) },
      { faults: this.#faults, atEnd, isFailure: hasHiddenError },
    )
    if (payload === undefined) return
    if (payload instanceof GatewayError) {
      step.failure = payload
      return
    }
    const { text, chunk } = this.#rewrite(data, payload)
    pass(step, text)
    if (!chunk) return
    step.received.push(chunk)
    if (parsed.isPlain && text !== '') this.#learn(block, chunk)
  }

  /** Later events that differ from this one only in a piece of text need no parsing. */
  #learn(block: string, { choices, usage: counted }: ChatChunk): void {
    const [choice, another] = choices
    if (!choice || another || choice.finish_reason || counted) {
      this.#templates.forget() // after a finish, an equal event has another meaning
      return
    }
    // A repeated start of a call would be a second call.
    const { content, reasoning_content, tool_calls: [call] = [] } = choice.delta
    if (!content && !reasoning_content && (!call || call.id !== undefined)) return
    // The pieces of a custom call depend on those before.
    if (call && this.#customs) return
    this.#templates.learn(block, (data) => {
      const payload = parseJson(fromBytes(data))
      return isRecord(payload) ? this.#rewrite(data, payload).text : ''
    })
  }

  #take(texts: readonly string[], atEnd = false): PassthroughStep {
    const step = stepOf(texts, (text, taken) => this.#takeEvents(text, taken, atEnd))
    step.isDone = this.#isDone
    return step
  }

  #takeEvents(text: string, step: PassthroughStep, atEnd: boolean): void {
    const texts: string[] = []
    let at = 0
    while (at < text.length && !this.#isDone && !step.failure) {
      const match = this.#templates.match(text, at)
      if (match) {
        pass(step, match.text)
        texts.push(match.received)
        at = match.end
        continue
      }
      const end = text.indexOf('\n\n', at) + 2
      receiveText(step, texts)
      this.#read(text.slice(at, end - 2), step, atEnd)
      at = end
    }
    receiveText(step, texts)
  }
}

const inJson = (value: unknown): string => toBytes(JSON.stringify(value))

/** The members that all events of a stream share, with their types. */
const HEAD = { id: 'string', created: 'number', model: 'string' }

const copyOf = (choice: ChunkChoice): ChunkChoice => ({ ...choice, delta: { ...choice.delta } })
const withoutRole = ({ delta: { role: _, ...delta }, ...choice }: ChunkChoice): ChunkChoice => ({ ...choice, delta })

/** Vendor-specific members may be `null`. Section 2.4 promises that these are not. */
const NEVER_NULL = new Set(['content', 'reasoning', 'reasoning_content', 'role', 'tool_calls', 'function_call'])

function isSameChoice(raw: JsonRecord, choice: ChunkChoice): boolean {
  const { delta } = raw
  if (!isRecord(delta) || raw.finish_reason === undefined || raw.logprobs === undefined) return false
  const isKept = (name: string) => delta[name] !== null || NEVER_NULL.has(name)
  if (raw === choice) return Object.keys(delta).every(isKept)
  const kept = Object.fromEntries(Object.entries(delta).filter(([name]) => isKept(name)))
  return isDeepStrictEqual({ ...raw, delta: kept }, choice)
}
