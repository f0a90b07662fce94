/** Decodes the events of a Messages stream to chunks. Unknown blocks and events are ignored. */
import { asRecord, isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { Annotation, FinishReason } from '../../../spec/chat-completion.ts'
import type { ChatChunk, Delta, Opaque } from '../../shared/canonical.ts'
import type { EventReader } from '../../shared/chunk-stream.ts'
import { type Fallback, namedText } from '../../shared/upstream.ts'
import { type Counts, countsOf, usageOf } from './usage.ts'

type Open = {
  type: unknown
  /** For a call: its position, and whether its arguments have arrived. */
  call: number
  hasContent: boolean
  input: unknown
  /** For reasoning. */
  signature: string
  /** For text: its start in the whole text of the response. */
  start: number
}

/** The members of blocks that hold the arguments of a tool. */
export const ARGUMENTS = ['input']

/** `fallback` replaces an id or a model that the provider leaves out. */
export function createEventReader(fallback: Fallback): EventReader {
  let head: Fallback = fallback
  let counts: Counts | undefined
  let finished: FinishReason | null = null
  let done = false
  let calls = 0
  let textLength = 0
  let hasStarted = false
  /** Whether anything of a block has arrived. */
  let hasContent = false
  const open = new Map<unknown, Open>()

  function chunk(delta: Delta | undefined, more: Partial<ChatChunk> = {}): ChatChunk | undefined {
    if (!delta) return undefined
    if (!hasStarted) delta.role = 'assistant'
    hasStarted = true
    const choices = [{ index: 0, delta, finish_reason: null }]
    return { ...head, object: 'chat.completion.chunk', choices, ...more }
  }

  function start(event: JsonRecord): Delta | undefined {
    const block = event.content_block
    if (!isRecord(block)) return undefined
    const one: Open = {
      type: block.type,
      call: -1,
      hasContent: false,
      input: block.input,
      signature: '',
      start: textLength,
    }
    open.set(event.index, one)
    if (block.type === 'text') return textDelta(block.text)
    if (block.type === 'thinking') {
      if (typeof block.signature === 'string') one.signature = block.signature
      return thoughtDelta(one, block.thinking)
    }
    if (block.type === 'redacted_thinking' && typeof block.data === 'string') {
      return { reasoning_details: [{ opaque: opaqueOf(block.data) }] }
    }
    const id = namedText(block.id)
    const name = namedText(block.name)
    if (block.type !== 'tool_use' || id === undefined || name === undefined) return undefined
    one.call = calls++
    return { tool_calls: [{ index: one.call, id, type: 'function', function: { name, arguments: '' } }] }
  }

  function textDelta(text: unknown): Delta | undefined {
    if (typeof text !== 'string' || text === '') return undefined
    textLength += text.length
    return { content: text }
  }

  function thoughtDelta(one: Open, text: unknown): Delta | undefined {
    if (typeof text !== 'string' || text === '') return undefined
    one.hasContent = true
    return { reasoning_content: text }
  }

  function argumentsDelta(one: Open, text: unknown): Delta | undefined {
    if (one.call === -1 || typeof text !== 'string' || text === '') return undefined
    one.hasContent = true
    return { tool_calls: [{ index: one.call, function: { arguments: text } }] }
  }

  function takeDelta(event: JsonRecord): Delta | undefined {
    const { delta } = event
    const one = open.get(event.index)
    if (!isRecord(delta) || !one) return undefined
    if (delta.type === 'text_delta' && one.type === 'text') return textDelta(delta.text)
    if (delta.type === 'thinking_delta') return thoughtDelta(one, delta.thinking)
    if (delta.type === 'input_json_delta') return argumentsDelta(one, delta.partial_json)
    if (delta.type === 'signature_delta' && typeof delta.signature === 'string') one.signature = delta.signature
    if (delta.type !== 'citations_delta') return undefined
    const annotation = citationOf(delta.citation, one.start, textLength)
    return annotation && { annotations: [annotation] }
  }

  function stop(event: JsonRecord): Delta | undefined {
    const one = open.get(event.index)
    open.delete(event.index)
    if (one?.type === 'thinking') {
      const opaque = one.signature === '' ? {} : { opaque: opaqueOf(one.signature) }
      // Without text it is hidden, but it is still a thinking block.
      return { reasoning_details: [one.hasContent ? opaque : { text: '', ...opaque }] }
    }
    // Arguments that came with the start, or not at all. Clients parse the text in any case.
    return one && one.call !== -1 && !one.hasContent ? argumentsDelta(one, JSON.stringify(one.input ?? {})) : undefined
  }

  /** The stop reason of the message, and its usage. Of a repeated one only the usage counts. */
  function end(event: JsonRecord): ChatChunk | undefined {
    const delta = asRecord(event.delta)
    counts = countsOf(event.usage, counts)
    const finish = finishOf(delta.stop_reason, calls > 0)
    if (!finish) return undefined
    const usage = usageOf(counts)
    if (finished !== null) return usage && { ...head, object: 'chat.completion.chunk', choices: [], usage }
    finished = finish
    const refusal = refusalOf(delta.stop_details)
    const choice = {
      index: 0,
      delta: { ...(hasStarted ? {} : { role: 'assistant' as const }), ...refusal },
      finish_reason: finish,
      ...(typeof delta.stop_sequence === 'string' ? { stop_sequence: delta.stop_sequence } : {}),
      ...pauseOf(delta.stop_reason),
    }
    return { ...head, object: 'chat.completion.chunk', choices: [choice], ...(usage ? { usage } : {}) }
  }

  /** Some providers end a message without a stop reason. Without content too, it is not complete. */
  function stopMessage(): ChatChunk | undefined {
    done = true
    return finished === null && hasContent ? end({ delta: { stop_reason: defaultStop(calls > 0) } }) : undefined
  }

  function startMessage({ message }: JsonRecord): ChatChunk | undefined {
    if (!isRecord(message)) return undefined
    head = { ...head, id: namedText(message.id) ?? head.id, model: namedText(message.model) ?? head.model }
    counts = countsOf(message.usage)
    const usage = usageOf(counts)
    return chunk({ content: '' }, usage ? { usage } : {})
  }

  return {
    take(event) {
      if (event.type === 'content_block_delta') {
        hasContent = true
        return chunk(takeDelta(event))
      }
      if (event.type === 'content_block_start') {
        hasContent = true
        return chunk(start(event))
      }
      if (event.type === 'content_block_stop') return chunk(stop(event))
      if (event.type === 'message_start') return startMessage(event)
      if (event.type === 'message_delta') return end(event)
      return event.type === 'message_stop' ? stopMessage() : undefined
    },
    isFinished: () => finished !== null,
    isDone: () => done,
    exact: ARGUMENTS,
  }
}

export const opaqueOf = (value: string): Opaque => ({ origin: 'messages-compat', value })

/** The reason for a refusal, if the provider explains it. */
export function refusalOf(details: unknown): { refusal?: string } {
  return isRecord(details) && typeof details.explanation === 'string' && details.explanation !== ''
    ? { refusal: details.explanation }
    : {}
}

/**
 * Converts a citation to an annotation if it has a URL. `start` and `end` delimit the text that it supports.
 * Citations of the client's own documents have no URL.
 */
export function citationOf(raw: unknown, start: number, end: number): Annotation | undefined {
  if (!isRecord(raw)) return undefined
  const url = typeof raw.url === 'string' ? raw.url : raw.source
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url)) return undefined
  const title = typeof raw.title === 'string' ? raw.title : url
  return { type: 'url_citation', url_citation: { start_index: start, end_index: end, url, title } }
}

/** The stop reason of a message that ended without one. */
export const defaultStop = (hasCalls: boolean): string => (hasCalls ? 'tool_use' : 'end_turn')

const PAUSED = 'pause_turn'
export const pauseOf = (stop_reason: unknown): { is_paused?: true } =>
  stop_reason === PAUSED ? { is_paused: true } : {}

const FINISH_REASONS: Record<string, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  // The vendor's own tools took too long, and a further request continues the turn. No limit was reached, so it is not
  // `length`, which makes clients report a limit or drop the response.
  [PAUSED]: 'stop',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
}

/** Returns null if the response has not ended. An unknown reason counts as a normal stop. */
export function finishOf(value: unknown, hasCalls: boolean): FinishReason | null {
  if (typeof value !== 'string' || value === '') return null
  const reason = FINISH_REASONS[value] ?? 'stop'
  return hasCalls && reason === 'stop' && value !== 'stop_sequence' ? 'tool_calls' : reason
}
