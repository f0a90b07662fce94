/** Encodes chat-completions responses, whole (specification 2.4) and as a stream of events. */
import { inOneLine } from '../../../kit/sse.ts'
import type { Delta as PublicDelta } from '../../../spec/chat-completion.ts'
import { errorBody, type GatewayError } from '../../../spec/error.ts'
import type { Usage } from '../../../spec/usage.ts'
import {
  type AnswerMessage,
  type ChatChunk,
  type ChatCompletion,
  type ChatRequest,
  type ChunkChoice,
  type Delta,
  OPENROUTER,
} from '../../shared/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../../shared/protocol.ts'
import { createCustomCalls, customNames, publicCall } from './custom-calls.ts'
import { createOpenRouterPieces, withOpenRouterReasoning } from './openrouter.ts'
import { createReasoningPieces } from './reasoning-pieces.ts'

/**
 * A whole response. With `delta_mirror`, each choice has `delta` with the content of `message`, as section 2.4 is
 * written. The answer itself becomes the response: a copy of it would cost more than the rest.
 */
export function encodeWhole(
  answer: ChatCompletion,
  head: ResponseHead,
  options: EncoderOptions & { usage: Usage; delta_mirror: boolean },
): EncodedCompletion {
  const { usage, delta_mirror, customs, openrouter } = options
  for (const choice of answer.choices) {
    const reasoned = openrouter ? withOpenRouterReasoning(choice.message) : choice.message
    const message: EncodedMessage = customs ? withCustomCalls(reasoned, customs) : reasoned
    const encoded = choice as EncodedChoice
    if (delta_mirror) encoded.delta = mirrorOf(message)
    message.refusal ??= null
    encoded.message = message
    encoded.logprobs ??= null
  }
  const response = answer as EncodedCompletion
  response.id = head.id
  response.object = 'chat.completion'
  response.created = head.created
  response.model = head.model
  response.system_fingerprint ??= null
  response.usage = usage
  return response
}

/**
 * `customs`: the names of the custom tools of the request, if it has any. `openrouter`: the client expects reasoning in
 * the form of OpenRouter.
 */
type EncoderOptions = { customs?: ReadonlySet<string> | undefined; openrouter?: boolean | undefined }

type EncodedMessage = Omit<AnswerMessage, 'tool_calls'> & Pick<PublicDelta, 'tool_calls'>
type EncodedDelta = Omit<Delta, 'tool_calls'> & Pick<PublicDelta, 'tool_calls'>
type EncodedChoice = Omit<ChatCompletion['choices'][number], 'message' | 'delta'> & {
  message: EncodedMessage
  delta?: EncodedDelta
}

type EncodedCompletion = Omit<ChatCompletion, 'choices' | 'usage'> & { choices: EncodedChoice[]; usage: Usage }

function withCustomCalls(message: AnswerMessage, customs: ReadonlySet<string>): EncodedMessage {
  const { tool_calls: calls } = message
  return calls ? { ...message, tool_calls: calls.map((call) => publicCall(call, customs)) } : message
}

function mirrorOf(message: EncodedMessage): EncodedDelta {
  const delta: EncodedDelta = { ...message }
  if (message.content === null) delete delta.content
  if (message.tool_calls) delta.tool_calls = message.tool_calls.map((call, index) => ({ index, ...call }))
  return delta
}

type ChunkEncoder = Omit<ResponseEncoder, 'whole'> & {
  /** Whether the client has received an event for this choice. */
  isOpen(index: number): boolean
  /** Marks the choice as open because another encoder sent its first event. */
  open(index: number): void
}

/**
 * Encodes chunks. All have the same id, created and model. Each choice starts with one chunk that holds only its
 * role. `finish_reason` and `logprobs` are always present. Usage is sent only on request, in a last chunk of its own.
 */
export function createChunkEncoder(
  head: ResponseHead,
  { include_usage, customs, openrouter }: EncoderOptions & { include_usage: boolean },
): ChunkEncoder {
  const customCalls = customs && createCustomCalls(customs)
  const opened = new Set<number>()
  let reasoning = openrouter ? createOpenRouterPieces() : undefined
  const object = 'chat.completion.chunk' as const

  function roleEvent(index: number): string {
    opened.add(index)
    const delta: Delta = { role: 'assistant', content: '' }
    const choices: ChunkChoice[] = [{ index, delta, logprobs: null, finish_reason: null }]
    const usage = include_usage ? { usage: null } : {}
    return event({
      id: head.id,
      object,
      created: head.created,
      model: head.model,
      system_fingerprint: null,
      choices,
      ...usage,
    })
  }

  function write(batch: ChatChunk[]): string {
    let text = ''
    for (const chunk of batch) {
      if (chunk.choices.length === 0) continue
      for (const choice of chunk.choices) {
        if (!opened.has(choice.index)) text += roleEvent(choice.index)
        if (choice.delta.role !== undefined) delete choice.delta.role
        choice.finish_reason ??= null
        choice.logprobs ??= null
        if (choice.delta.reasoning_content || choice.delta.reasoning_details) reasoning ??= createReasoningPieces()
        reasoning?.take(choice)
        customCalls?.take(choice)
      }
      if (isHollow(chunk)) continue
      chunk.id = head.id
      chunk.object = object
      chunk.created = head.created
      chunk.model = head.model
      chunk.system_fingerprint ??= null
      if (include_usage) chunk.usage = null
      else if (chunk.usage !== undefined) delete chunk.usage
      text += event(chunk)
    }
    return inOneLine(text)
  }

  return {
    encode: write,
    isOpen: (index) => opened.has(index),
    open: (index) => void opened.add(index),
    includesUsage: include_usage,
    end(usage) {
      const last = { ...head, object, system_fingerprint: null, choices: [], usage }
      return `${usage ? event(last) : ''}data: [DONE]\n\n`
    },
    fail: failEvent,
  }
}

const event = (chunk: unknown): string => `data: ${JSON.stringify(chunk)}\n\n`

/** The end of a failed stream. */
const failEvent = (error: GatewayError): string => inOneLine(event(errorBody(error)))

/** Whether a chunk has no content except the role. */
export function isHollow(chunk: ChatChunk): boolean {
  const [choice] = chunk.choices
  if (!choice || chunk.choices.length > 1 || choice.finish_reason !== null || choice.logprobs !== null) return false
  for (const name in choice.delta) {
    const value = choice.delta[name as keyof Delta]
    if (value !== '' && value !== null && value !== undefined) return false
  }
  return true
}

type Settings = { delta_mirror: boolean }

/** `settings` are read for each answer, so that a reload applies. */
export const chatcompatWriter =
  (settings: Settings) =>
  (head: ResponseHead, request: ChatRequest): ResponseEncoder =>
    new ChatcompatEncoder(head, request, settings)

/** The encoder of a stream is created with its first use: a whole response needs none. */
class ChatcompatEncoder implements ResponseEncoder {
  readonly #head: ResponseHead
  readonly #request: ChatRequest
  readonly #settings: Settings
  #stream: ReturnType<typeof createChunkEncoder> | undefined

  constructor(head: ResponseHead, request: ChatRequest, settings: Settings) {
    this.#head = head
    this.#request = request
    this.#settings = settings
  }

  whole(answer: ChatCompletion, usage: Usage): unknown {
    const { delta_mirror } = this.#settings
    const { tools, [OPENROUTER]: openrouter } = this.#request
    return encodeWhole(answer, this.#head, { usage, delta_mirror, customs: tools && customNames(tools), openrouter })
  }

  get encode() {
    return this.#chunks.encode
  }

  get includesUsage() {
    return this.#chunks.includesUsage
  }

  get end() {
    return this.#chunks.end
  }

  /** A stream that passes has no other encoder. */
  readonly fail = failEvent

  get #chunks() {
    const { stream_options, tools, [OPENROUTER]: openrouter } = this.#request
    this.#stream ??= createChunkEncoder(this.#head, {
      include_usage: stream_options?.include_usage === true,
      customs: tools && customNames(tools),
      openrouter,
    })
    return this.#stream
  }
}
