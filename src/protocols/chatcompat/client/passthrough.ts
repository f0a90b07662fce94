/** Passthrough of chat completions. An event keeps its bytes wherever section 2.4 of the specification allows it. */

import { isDeepStrictEqual } from 'node:util'
import { isRecord, type JsonRecord, memberOf, parseJson, parseJsonKeeping } from '../../../kit/json.ts'
import { withMember, withoutMember, withValueAt } from '../../../kit/json-span.ts'
import { createSseBlocks, escapeLineEnds, readSseBlock } from '../../../kit/sse.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Usage } from '../../../spec/usage.ts'
import { type ChatChunk, type ChatCompletion, type ChunkChoice, OPENROUTER } from '../../shared/canonical.ts'
import { isDoneMark, payloadOf } from '../../shared/chunk-stream.ts'
import { fromBytes, nothingYet, pushed, receiveText, toBytes } from '../../shared/passthrough/bytes.ts'
import { createTemplates } from '../../shared/passthrough/event-template.ts'
import type {
  PassthroughParts,
  PassthroughStep,
  PassthroughStream,
  PassthroughWhole,
  ProtocolPassthrough,
  ResponseEncoder,
  ResponseHead,
} from '../../shared/protocol.ts'
import { wholeIn } from '../upstream/answer.ts'
import { createChunkNormaliser, hasHiddenError, readWhole } from '../upstream/stream.ts'
import { ARGUMENTS } from '../upstream/tool-call.ts'
import { customNames } from './custom-calls.ts'
import { createChunkEncoder, isHollow } from './response.ts'

export const chatcompatPassthrough: ProtocolPassthrough = {
  headers: ['openai-beta'],
  body: (body) => body,
  whole: (text, parts) => new WholeCompletion(text, parts),
  stream: createChatcompatStream,
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

function createChatcompatStream({ head, request, faults }: PassthroughParts): PassthroughStream {
  const include_usage = request.stream_options?.include_usage === true
  const blocks = createSseBlocks()
  const normaliser = createChunkNormaliser(head)
  const templates = createTemplates()
  const customs = request.tools && customNames(request.tools)
  const openrouter = request[OPENROUTER]
  const writer = createChunkEncoder(head, { include_usage, customs, openrouter })
  const headValues = Object.entries(head).map(([name, value]) => [name, toBytes(JSON.stringify(value))] as const)
  let usage: JsonRecord = {}
  let isDone = false

  /**
   * The event for the client, and its chunk. If the event may pass, only its head changes; otherwise it is encoded
   * again.
   */
  function rewrite(data: string, payload: JsonRecord): { text: string; chunk: ChatChunk | undefined } {
    const original = { ...payload }
    const chunk = normaliser.take(payload)
    if (!chunk) return { text: '', chunk }
    const reported = clientUsage(isRecord(original.usage) ? { ...original.usage } : undefined)
    if (Object.keys(reported).length > 0) usage = reported
    const counted = chunk.usage
    if (isUnchanged(original, chunk)) return { text: withClientHead(data, original), chunk }
    // The encoder replaces calls of custom tools and reasoning, which the meter has to see.
    const encoded = customs || openrouter ? { ...chunk, choices: chunk.choices.map(copyOf) } : { ...chunk }
    return { text: toBytes(writer.encode([encoded])), chunk: counted ? { ...chunk, usage: counted } : chunk }
  }

  function withClientHead(data: string, original: JsonRecord): string {
    let text = data
    for (const [name, value] of headValues) text = withValueAt(text, [name], value)
    if (include_usage && original.usage === undefined) text = withMember(text, 'usage', 'null')
    else if (!include_usage && original.usage !== undefined) text = withoutMember(text, 'usage')
    return `data: ${text}\n\n`
  }

  /** Whether the event already conforms to section 2.4: translating it would produce the same event. */
  function isUnchanged(original: JsonRecord, chunk: ChatChunk): boolean {
    if (original.object !== 'chat.completion.chunk' || original.x_groq !== undefined || chunk.usage) return false
    if (Object.keys(HEAD).some((name) => typeof original[name] !== HEAD[name as keyof ResponseHead])) return false
    // With custom tools the encoder decides about calls, and their ends come with the finish.
    if (customs && chunk.choices.some(({ delta, finish_reason }) => delta.tool_calls || finish_reason)) return false
    if (openrouter && chunk.choices.some(({ delta }) => delta.reasoning_content || delta.reasoning_details))
      return false
    const raw = original.choices as JsonRecord[]
    if (raw.length === 0 || raw.length !== chunk.choices.length) return false
    if (!chunk.choices.every((choice, at) => isSameChoice(raw[at] ?? {}, choice))) return false
    // Each choice starts with one event that holds only its role. No later event has a role.
    const isOpening = chunk.choices.some(({ index }) => !writer.isOpen(index))
    if (!isOpening) return chunk.choices.every(({ delta }) => delta.role === undefined)
    if (!isHollow({ ...chunk, choices: chunk.choices.map(withoutRole) })) return false
    for (const { index } of chunk.choices) writer.open(index)
    return true
  }

  function read(block: string, step: PassthroughStep, atEnd: boolean): void {
    const parsed = readSseBlock(block)
    if (!parsed) return
    const { event, data } = parsed
    if (isDoneMark(data)) {
      isDone = true
      return
    }
    const payload = payloadOf({ event, data: fromBytes(data) }, { faults, atEnd, isFailure: hasHiddenError })
    if (payload === undefined) return
    if (payload instanceof GatewayError) {
      step.failure = payload
      return
    }
    const { text, chunk } = rewrite(data, payload)
    step.events += text
    if (!chunk) return
    step.received.push(chunk)
    if (parsed.isPlain && text !== '') learn(block, chunk)
  }

  /** Later events that differ from this one only in a piece of text need no parsing. */
  function learn(block: string, { choices, usage: counted }: ChatChunk): void {
    const [choice, another] = choices
    if (!choice || another || choice.finish_reason || counted) {
      templates.forget() // after a finish, an equal event has another meaning
      return
    }
    // A repeated start of a call would be a second call.
    const { content, reasoning_content, tool_calls: [call] = [] } = choice.delta
    if (!content && !reasoning_content && (!call || call.id !== undefined)) return
    // The pieces of a custom call depend on those before.
    if (call && customs) return
    templates.learn(block, (data) => {
      const payload = parseJson(fromBytes(data))
      return isRecord(payload) ? rewrite(data, payload).text : ''
    })
  }

  function take(text: string, atEnd: boolean): PassthroughStep {
    const step: PassthroughStep = nothingYet()
    const texts: string[] = []
    let at = 0
    while (at < text.length && !isDone && !step.failure) {
      const match = templates.match(text, at)
      if (match) {
        step.events += match.text
        texts.push(match.received)
        at = match.end
        continue
      }
      const end = text.indexOf('\n\n', at) + 2
      receiveText(step, texts)
      read(text.slice(at, end - 2), step, atEnd)
      at = end
    }
    step.events = escapeLineEnds(step.events)
    receiveText(step, texts)
    step.isDone = isDone
    return step
  }

  return {
    push: (bytes) => take(pushed(blocks, bytes, faults), false),
    close() {
      const step = isDone ? { ...nothingYet(), isDone } : take(blocks.end(), true)
      if (normaliser.isFinished() || step.failure) return step
      if (!isDone) return { ...step, failure: faults.cut() }
      const missing = normaliser.missingFinish()
      if (!missing) return { ...step, failure: faults.notUnderstood('answered with an empty stream') }
      step.received.push(missing)
      step.events += toBytes(writer.encode([{ ...missing }]))
      return step
    },
    isFinished: normaliser.isFinished,
    includesUsage: include_usage,
    end: (counted) => writer.end(counted && { ...usage, ...counted }),
  }
}

/** The members that all events of a stream share, with their types. */
const HEAD = { id: 'string', created: 'number', model: 'string' }

const copyOf = (choice: ChunkChoice): ChunkChoice => ({ ...choice, delta: { ...choice.delta } })
const withoutRole = ({ delta: { role: _, ...delta }, ...choice }: ChunkChoice): ChunkChoice => ({ ...choice, delta })

/** Vendor-specific members may be `null`. Section 2.4 promises that these are not. */
const NEVER_NULL = new Set(['content', 'reasoning', 'reasoning_content', 'role', 'tool_calls', 'function_call'])

function isSameChoice(raw: JsonRecord, choice: ChunkChoice): boolean {
  if (!isRecord(raw.delta) || raw.finish_reason === undefined || raw.logprobs === undefined) return false
  const delta = Object.fromEntries(
    Object.entries(raw.delta).filter(([name, value]) => value !== null || NEVER_NULL.has(name)),
  )
  return isDeepStrictEqual({ ...raw, delta }, choice)
}
