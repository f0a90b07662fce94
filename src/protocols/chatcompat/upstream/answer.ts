/**
 * Normalises whole responses of OpenAI-shaped providers, with what their chunks share with them, and converts between
 * both.
 */
import { asRecord, isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { Annotation, FinishReason } from '../../../spec/chat-completion.ts'
import type { AnswerMessage, ChatChunk, ChatCompletion, ChunkChoice, ToolCall } from '../../shared/canonical.ts'
import { argumentsOf } from '../../shared/custom-tools.ts'
import {
  argumentsText,
  type Fallback,
  type Faults,
  finishReasonOf,
  holdsError,
  namedText,
  newToolCallId,
  usageOf,
} from '../../shared/upstream.ts'

/** The completion in parsed JSON; undefined if the payload is not JSON. */
export function wholeIn(payload: unknown, fallback: Fallback, faults: Faults): ChatCompletion | undefined {
  if (!isRecord(payload) && !Array.isArray(payload)) return undefined
  const body = Array.isArray(payload) ? payload[0] : payload
  if (!isRecord(body) || holdsError(body)) throw faults.inAnswer(body)
  const answer = normaliseWhole(body, fallback)
  if (answer) return answer
  throw faults.notUnderstood('answered with JSON that is not a chat completion')
}

/**
 * Makes the parsed body of a provider a completion, in place. Returns undefined if it has no choices and so is no
 * completion. Keeps unknown members.
 */
export function normaliseWhole(payload: JsonRecord, fallback: Fallback): ChatCompletion | undefined {
  const { choices } = payload
  if (!Array.isArray(choices)) return undefined
  const records: JsonRecord[] = choices.every(isRecord) ? choices : choices.filter(isRecord)
  if (records.length === 0) return undefined
  for (let position = 0; position < records.length; position++) normaliseChoice(records[position] ?? {}, position)
  payload.choices = records
  payload.id = namedText(payload.id) ?? fallback.id
  payload.object = 'chat.completion'
  if (!Number.isInteger(payload.created)) payload.created = fallback.created
  payload.model = namedText(payload.model) ?? fallback.model
  const usage = usageOf(payload.usage)
  if (usage) payload.usage = usage
  else delete payload.usage
  return payload as unknown as ChatCompletion
}

function normaliseChoice(choice: JsonRecord, position: number): void {
  const { message: raw, delta } = choice
  const message = normaliseMessage(isRecord(raw) ? raw : isRecord(delta) ? delta : { content: choice.text })
  if (!Number.isInteger(choice.index)) choice.index = position
  choice.message = message
  const hasToolCalls = message.tool_calls !== undefined
  // A whole response has ended, even if the provider gives no finish reason.
  choice.finish_reason = finishReasonOf(choice.finish_reason, hasToolCalls) ?? (hasToolCalls ? 'tool_calls' : 'stop')
  if (delta !== undefined) delete choice.delta
}

/** Members of a message that are normalised; the others are kept. Assigning `__proto__` would replace the prototype. */
const NORMALISED = new Set([
  'role',
  'content',
  'reasoning',
  'reasoning_content',
  'function_call',
  'tool_calls',
  '__proto__',
])

function normaliseMessage(raw: JsonRecord): AnswerMessage {
  const parts = typeof raw.content === 'string' ? undefined : contentOf(raw.content)
  const message: AnswerMessage = { role: 'assistant', content: parts ? parts.content : (raw.content as string) }
  const others: JsonRecord = message
  for (const name in raw) if (raw[name] !== null && !NORMALISED.has(name)) others[name] = raw[name]
  if (raw.refusal === null) message.refusal = null
  // Assigned to the member that is there, so that the order of the provider stays.
  if (Array.isArray(raw.annotations)) message.annotations = annotationsOf(raw.annotations)
  else if (raw.annotations !== undefined) delete message.annotations
  const reasoning = textIn(raw.reasoning_content) ?? textIn(raw.reasoning) ?? textIn(parts?.reasoning)
  if (reasoning !== undefined) message.reasoning_content = reasoning
  const calls = toolCallsIn(raw)
  if (calls) message.tool_calls = calls
  return message
}

const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

function toolCallsIn({ tool_calls, function_call }: JsonRecord): ToolCall[] | undefined {
  if (!Array.isArray(tool_calls) && !isRecord(function_call)) return undefined
  const given = Array.isArray(tool_calls) ? tool_calls : [{ function: function_call }]
  const calls = given.map(normaliseToolCall).filter((call) => call !== undefined)
  return calls.length > 0 ? calls : undefined
}

function normaliseToolCall(raw: unknown): ToolCall | undefined {
  if (!isRecord(raw)) return undefined
  const { index: _, custom, ...extras } = raw
  const called = isRecord(raw.function) ? raw.function : asRecord(custom)
  const name = namedText(called.name)
  if (name === undefined) return undefined
  // A call without arguments takes none. Clients parse the text in any case.
  const text = typeof called.input === 'string' ? argumentsOf(called.input) : argumentsText(called.arguments) || '{}'
  return { ...extras, id: namedText(raw.id) ?? newToolCallId(), type: 'function', function: { name, arguments: text } }
}

/** The chunks of a whole response, for providers that answer a streaming request with one. */
export function chunksOf(answer: ChatCompletion): ChatChunk[] {
  const { choices: _, usage, ...head } = answer
  const chunk = (choices: ChunkChoice[]): ChatChunk => ({ ...head, object: 'chat.completion.chunk', choices })
  const chunks: ChatChunk[] = []
  for (const { index, message, finish_reason, logprobs } of answer.choices) {
    const { tool_calls, ...fields } = message
    const delta: ChunkChoice['delta'] = { ...fields, content: fields.content ?? '' }
    if (tool_calls) delta.tool_calls = tool_calls.map((call, position) => ({ ...call, index: position }))
    chunks.push(chunk([{ index, delta, finish_reason: null, ...(logprobs === undefined ? {} : { logprobs }) }]))
    chunks.push(chunk([{ index, delta: {}, finish_reason }]))
  }
  if (usage) chunks.push({ ...chunk([]), usage })
  return chunks
}

/** Combines chunks, for providers that stream although a whole response was requested. */
export function createFold(): { add(chunk: ChatChunk): void; whole(): ChatCompletion | undefined } {
  let head: ChatChunk | undefined
  let usage: ChatChunk['usage']
  const choices = new Map<number, { message: AnswerMessage; finish_reason: FinishReason; tokens: unknown[] }>()

  function addChoice({ index, delta, finish_reason, logprobs }: ChunkChoice): void {
    let choice = choices.get(index)
    if (!choice) {
      choice = { message: { role: 'assistant', content: null }, finish_reason: 'stop', tokens: [] }
      choices.set(index, choice)
    }
    const { message } = choice
    const { role: _, content, reasoning_content, tool_calls, audio, ...more } = delta
    if (typeof content === 'string') message.content = (message.content ?? '') + content
    if (reasoning_content) message.reasoning_content = (message.reasoning_content ?? '') + reasoning_content
    for (const call of tool_calls ?? []) {
      message.tool_calls ??= []
      const known = message.tool_calls[call.index ?? 0]
      if (known) known.function.arguments += call.function.arguments
      else {
        const { index: _, ...first } = call
        message.tool_calls.push({ ...first, type: 'function', function: { ...call.function } })
      }
    }
    if (audio) message.audio = joinedAudio(message.audio, audio)
    Object.assign(message, more)
    if (isRecord(logprobs) && Array.isArray(logprobs.content)) choice.tokens.push(...logprobs.content)
    if (finish_reason) choice.finish_reason = finish_reason
  }

  return {
    add(chunk) {
      head ??= chunk
      if (chunk.usage) usage = chunk.usage
      for (const choice of chunk.choices) addChoice(choice)
    },
    whole() {
      if (!head || choices.size === 0) return undefined
      const { usage: _, choices: __, ...rest } = head
      return {
        ...rest,
        object: 'chat.completion',
        choices: [...choices]
          .sort(([left], [right]) => left - right)
          .map(([index, { message, finish_reason, tokens }]) => ({
            index,
            message,
            finish_reason,
            logprobs: tokens.length > 0 ? { content: tokens } : null,
          })),
        ...(usage ? { usage } : {}),
      }
    },
  }
}

type Audio = NonNullable<AnswerMessage['audio']>
const joinedAudio = (before: Audio = {}, part: Audio): Audio => ({
  ...before,
  ...part,
  ...(before.data !== undefined && { data: before.data + (part.data ?? '') }),
  ...(before.transcript !== undefined && { transcript: before.transcript + (part.transcript ?? '') }),
})

/** Splits content (a text, or an array of parts that may include `thinking` parts) into text and reasoning. */
export function contentOf(value: unknown): { content: string | null; reasoning: string } {
  if (typeof value === 'string') return { content: value, reasoning: '' }
  if (!Array.isArray(value)) return { content: null, reasoning: '' }
  let content = ''
  let reasoning = ''
  for (const part of value) {
    if (typeof part === 'string') content += part
    else if (!isRecord(part)) continue
    else if (part.type === 'thinking' || part.type === 'reasoning') {
      const inner = contentOf(part.thinking ?? part.reasoning ?? part.text)
      reasoning += inner.content ?? ''
    } else if (typeof part.text === 'string') content += part.text
  }
  return { content, reasoning }
}

/** The citations of URLs among a provider's annotations; others have no place in another API. */
export const annotationsOf = (values: unknown[]): Annotation[] =>
  values.every(isUrlCitation) ? values : values.filter(isUrlCitation)

const isUrlCitation = (item: unknown): item is Annotation =>
  isRecord(item) && isRecord(item.url_citation) && typeof item.url_citation.url === 'string'
