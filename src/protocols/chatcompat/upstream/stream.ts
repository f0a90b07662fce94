/**
 * Decodes responses of OpenAI-shaped providers: a body to a whole response, or events to chunks, and detects a cut
 * stream.
 */
import { isRecord, type JsonRecord, parseJsonKeeping } from '../../../kit/json.ts'
import { createSseParser } from '../../../kit/sse.ts'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ChatChunk, ChatCompletion, ChunkChoice, Delta } from '../../shared/canonical.ts'
import { type ChunkDecoder, eventsIn, isDoneMark, payloadOf } from '../../shared/chunk-stream.ts'
import { PlainEvents } from '../../shared/plain-events.ts'
import { type Fallback, type Faults, finishReasonOf, holdsError, usageOf } from '../../shared/upstream.ts'
import { annotationsOf, contentOf, createFold, wholeIn } from './answer.ts'
import { ARGUMENTS, createToolCallDeltas, type ToolCallDeltas } from './tool-call.ts'

/** Decodes a whole response from a body. Some providers stream it although no stream was requested. */
export function readWhole(text: string, fallback: Fallback, faults: Faults): ChatCompletion {
  return wholeIn(parseJsonKeeping(text, ARGUMENTS), fallback, faults) ?? foldedFrom(text, fallback, faults)
}

function foldedFrom(text: string, fallback: Fallback, faults: Faults): ChatCompletion {
  // A stream starts with a field or a comment, possibly after a BOM.
  if (!/^\uFEFF?\s*(data:|event:|:)/.test(text)) throw faults.notUnderstood('answered with something that is not JSON')
  const parser = createSseParser()
  const reading = createChunkDecoder(fallback, faults)
  const bytes = new TextEncoder().encode(text)
  const step = reading.take([...eventsIn(parser, bytes, faults), ...parser.end()], bytes)
  if (step.failure) throw step.failure
  const fold = createFold()
  for (const chunk of [...step.chunks, ...reading.end()]) fold.add(chunk)
  const answer = fold.whole()
  if (answer) return answer
  throw faults.notUnderstood('answered with an empty stream')
}

/** The state of one stream: it turns events into chunks and checks the end. */
export function createChunkDecoder(fallback: Fallback, faults: Faults): ChunkDecoder {
  const normaliser = new ChunkNormaliser(fallback)
  const plain = new PlainEvents()
  let isDone = false
  return {
    take(events, bytes) {
      const chunks: ChatChunk[] = []
      const parts = { faults, atEnd: !bytes, isFailure: hasHiddenError }
      for (const event of events) {
        if (isDoneMark(event.data)) {
          isDone = true
          break
        }
        let payload = event.event === '' ? plain.parse(event.data) : undefined
        if (!payload) {
          const read = payloadOf(event, parts)
          if (read === undefined) continue
          if (read instanceof GatewayError) return { chunks, failure: read, isDone: true }
          payload = read
          plain.learn(event.data, payload)
        }
        const chunk = normaliser.take(payload)
        if (chunk) chunks.push(chunk)
      }
      return { chunks, failure: undefined, isDone }
    },
    isFinished: () => normaliser.isFinished(),
    /** Also returns the finish chunk that the provider left out. */
    end() {
      if (normaliser.isFinished()) return []
      if (!isDone) throw faults.cut()
      if (!normaliser.hasStarted()) throw faults.notUnderstood('answered with an empty stream')
      const missing = normaliser.missingFinish()
      return missing ? [missing] : []
    },
  }
}

/** Groq reports an error during a stream beside the choices. */
export const hasHiddenError = (payload: Record<string, unknown>): boolean =>
  payload.x_groq !== undefined && isRecord(payload.x_groq) && holdsError(payload.x_groq)

type Choice = { started: boolean; finished: FinishReason | undefined; toolCalls: ToolCallDeltas | undefined }

export class ChunkNormaliser {
  readonly #choices = new Map<number, Choice>()
  /** Choice 0 is almost always the only one. */
  #zero: Choice | undefined
  #last: Fallback

  /** `fallback` replaces an id, model or time that the provider leaves out. */
  constructor(fallback: Fallback) {
    this.#last = fallback
  }

  /** The chunk for the data of one event; undefined if the event has no content. */
  take(payload: JsonRecord): ChatChunk | undefined {
    const list = payload.choices
    const zero = this.#zero
    if (Array.isArray(list) && list.length === 1 && zero?.started && !zero.finished && isPlain(payload, list[0])) {
      this.#last = payload as Fallback & JsonRecord
      return payload as ChatChunk
    }
    this.#head(payload)
    const normalised: ChunkChoice[] = []
    for (const raw of Array.isArray(list) ? list : []) {
      const choice = this.#normaliseChoice(raw)
      if (choice) normalised.push(choice)
    }
    const groq = payload.x_groq
    const usage = usageOf(payload.usage) ?? (isRecord(groq) ? usageOf(groq.usage) : undefined)
    if (normalised.length === 0 && !usage) return undefined
    payload.choices = normalised
    if (usage) payload.usage = usage
    else if (payload.usage !== undefined) payload.usage = null
    return payload as ChatChunk
  }

  hasStarted(): boolean {
    return this.#choices.size > 0
  }

  isFinished(): boolean {
    for (const choice of this.#choices.values()) if (!choice.finished) return false
    return this.#choices.size > 0
  }

  /** The finish chunk that the provider left out, if one is missing. */
  missingFinish(): ChatChunk | undefined {
    const open: ChunkChoice[] = []
    for (const [index, choice] of this.#choices) {
      if (choice.finished) continue
      choice.finished = hasToolCalls(choice) ? 'tool_calls' : 'stop'
      const ends = choice.toolCalls?.close() ?? []
      open.push({ index, delta: ends.length > 0 ? { tool_calls: ends } : {}, finish_reason: choice.finished })
    }
    if (open.length === 0) return undefined
    const { id, created, model } = this.#last
    return { id, object: 'chat.completion.chunk', created, model, choices: open }
  }

  #choiceAt(index: number): Choice {
    if (index === 0 && this.#zero) return this.#zero
    let choice = this.#choices.get(index)
    if (!choice) {
      choice = { started: false, finished: undefined, toolCalls: undefined }
      this.#choices.set(index, choice)
      if (index === 0) this.#zero = choice
    }
    return choice
  }

  #head(payload: JsonRecord): void {
    if (typeof payload.id !== 'string' || payload.id === '') payload.id = this.#last.id
    if (typeof payload.model !== 'string' || payload.model === '') payload.model = this.#last.model
    if (!Number.isInteger(payload.created)) payload.created = this.#last.created
    payload.object = 'chat.completion.chunk'
    if (payload.obfuscation !== undefined) payload.obfuscation = undefined
    this.#last = payload as Fallback & JsonRecord
  }

  #normaliseChoice(raw: unknown): ChunkChoice | undefined {
    if (!isRecord(raw)) return undefined
    const index = Number.isInteger(raw.index) && Number(raw.index) >= 0 ? Number(raw.index) : 0
    const choice = this.#choiceAt(index)
    const delta = normaliseDelta(raw, choice)
    const reason = finishReasonOf(raw.finish_reason, hasToolCalls(choice))
    const finish = choice.finished ? null : reason
    // After the finish, chunks without content (a repeated finish, an empty delta beside the usage) are dropped.
    if (choice.finished && isEmpty(delta)) return undefined
    if (!choice.started) {
      choice.started = true
      delta.role = 'assistant'
    }
    if (finish) {
      choice.finished = finish
      const ends = choice.toolCalls?.close() ?? []
      if (ends.length > 0) delta.tool_calls = [...(delta.tool_calls ?? []), ...ends]
    }
    const { message: _, ...rest } = raw
    return { ...rest, index, delta, finish_reason: finish }
  }
}

/** Whether a chunk needs no change: one piece of text for choice 0 and nothing else. Makes no copies. */
function isPlain(payload: JsonRecord, choice: unknown): boolean {
  if (
    !isRecord(choice) ||
    payload.object !== 'chat.completion.chunk' ||
    (payload.usage !== undefined && payload.usage !== null) ||
    payload.obfuscation !== undefined ||
    payload.x_groq !== undefined ||
    typeof payload.id !== 'string' ||
    payload.id === '' ||
    typeof payload.model !== 'string' ||
    payload.model === '' ||
    typeof payload.created !== 'number'
  ) {
    return false
  }
  const { index, finish_reason, delta, message } = choice
  if (index !== 0 || (finish_reason !== null && finish_reason !== undefined) || message !== undefined) return false
  if (typeof delta !== 'object' || delta === null) return false
  for (const name in delta) {
    const value = (delta as JsonRecord)[name]
    if (name === 'content' || name === 'reasoning_content') {
      if (typeof value !== 'string') return false
    } else if (name !== 'role' || value !== 'assistant') return false
  }
  return true
}

const hasToolCalls = (choice: Choice): boolean => (choice.toolCalls?.count() ?? 0) > 0

const isEmpty = (delta: Delta): boolean =>
  !delta.content &&
  !delta.reasoning_content &&
  !delta.refusal &&
  delta.tool_calls === undefined &&
  delta.annotations === undefined

/** A normalised delta: no nulls, reasoning under one name, clean tool calls. Keeps unknown members. */
function normaliseDelta(raw: JsonRecord, choice: Choice): Delta {
  // Some providers send a `message` at the end, or in every chunk.
  const source = isRecord(raw.delta) ? raw.delta : !choice.started && isRecord(raw.message) ? raw.message : {}
  const delta: JsonRecord = {}
  let reasoning = ''
  for (const name in source) {
    const value = source[name]
    if (value === null || value === undefined) continue
    if (name === 'content') {
      if (typeof value === 'string') {
        delta.content = value
        continue
      }
      const read = contentOf(value)
      if (read.content !== null && (read.content !== '' || read.reasoning === '')) delta.content = read.content
      reasoning += read.reasoning
    } else if (name === 'reasoning_content') {
      if (typeof value === 'string') delta.reasoning_content = value
    } else if (name === 'reasoning') {
      if (typeof value === 'string') reasoning += value
    } else if (name === 'role') {
      if (value === 'assistant') delta.role = value
    } else if (name === 'tool_calls' || name === 'function_call') {
      // The older form streams one call, without an index or an id.
      const calls = name === 'tool_calls' ? value : [{ index: 0, function: value }]
      if (!Array.isArray(calls)) continue
      choice.toolCalls ??= createToolCallDeltas()
      const deltas = choice.toolCalls.take(calls)
      if (deltas.length > 0) delta.tool_calls = deltas
    } else if (name === 'annotations') {
      if (Array.isArray(value)) delta.annotations = annotationsOf(value)
    } else delta[name] = value
  }
  if (reasoning !== '' && !delta.reasoning_content) delta.reasoning_content = reasoning
  return delta
}
