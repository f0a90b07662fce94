/**
 * Reasoning as OpenRouter has it, for clients made for it: the request's `reasoning`, and `reasoning` with typed
 * `reasoning_details` in messages. https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
 */
import Type from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord } from '../../../kit/json.ts'
import {
  type AnswerMessage,
  type ChatRequest,
  ChatRequest as ChatRequestSchema,
  type ChunkChoice,
  type Message,
  OPENROUTER,
  type Opaque,
  type Reasoning,
  type ToolCall,
} from '../../shared/canonical.ts'
import { refusalOf } from '../../shared/request-error.ts'
import { decodeSigned, encodeSigned, isEncoded } from '../../shared/signed-content.ts'

type Body = Readonly<Record<string, unknown>>

const { reasoning_effort, reasoning_budget } = ChatRequestSchema.properties
/** What the gateway reads of it; its other members are forwarded like unknown fields. */
const Requested = Type.Object({
  reasoning: Type.Object({
    effort: reasoning_effort,
    max_tokens: reasoning_budget,
    enabled: Type.Optional(Type.Boolean()),
  }),
})
const check = checker(Requested)

/** Marks the request, whose stream then always has its usage, and reads its `reasoning`. Changes the request. */
export function readAsOpenRouter(request: ChatRequest, { reasoning }: Body): void {
  request[OPENROUTER] = true
  if (request.stream) request.stream_options = { ...request.stream_options, include_usage: true }
  if (!isRecord(reasoning)) return
  const requested = requestedReasoning(reasoning)
  if (request.reasoning_effort === undefined) Object.assign(request, requested)
}

/** Throws GatewayError that names the member and its rule. */
function requestedReasoning(reasoning: Body): Partial<ChatRequest> {
  const given = { reasoning: Object.fromEntries(Object.entries(reasoning).filter(([, value]) => value !== null)) }
  if (!check.Check(given)) throw refusalOf(diagnose(Requested, given))
  const { effort, max_tokens, enabled } = given.reasoning
  if (effort !== undefined) return { reasoning_effort: effort }
  if (max_tokens !== undefined) return { thinking_enabled: true, reasoning_budget: max_tokens }
  if (enabled) return { thinking_enabled: true, reasoning_effort: 'medium' }
  return enabled === false ? { thinking_enabled: false, reasoning_effort: 'none' } : {}
}

type Detail = { type: string; text?: string; data?: string; id?: string; format: 'unknown'; index: 0 }
/** Clients keep a text of this format without a signature. */
const FORMAT = { format: 'unknown', index: 0 } as const
const HOLDER = { home: 'chatcompat' } as const

const textDetail = (text: string): Detail => ({ type: 'reasoning.text', text, ...FORMAT })

/** Clients join consecutive texts and keep one signature of them, so each signature is a piece of its own. */
const signedDetail = (opaque: Opaque, owner?: string): Detail => ({
  type: 'reasoning.encrypted',
  data: encodeSigned({ opaque, owner }, HOLDER),
  ...(owner === undefined ? {} : { id: owner }),
  ...FORMAT,
})

/** Pieces in a provider's own format, such as OpenRouter's. */
export const isOfProvider = (piece: Reasoning): boolean =>
  !Object.keys(piece).every((name) => name === 'text' || name === 'opaque')

type Reasoned = Pick<AnswerMessage, 'reasoning_content' | 'reasoning_details'> & { tool_calls?: ToolCall[] | undefined }

/** Creates the encoder of one choice, whole or streamed: it adds the members of a message or delta. */
function createOpenRouterReasoning(): (message: Reasoned) => void {
  /** Whether text of the current piece has been sent. */
  let isOpen = false
  return (message) => {
    const { reasoning_content, reasoning_details = [], tool_calls = [] } = message
    if (reasoning_content) Object.assign(message, { reasoning: reasoning_content })
    if (reasoning_details.some(isOfProvider)) return
    const details: Detail[] = []
    // A whole piece of reasoning repeats its text as plain text.
    const isRepeated = !isOpen && reasoning_details.some(({ text }) => text !== undefined)
    if (reasoning_content && !isRepeated) details.push(textDetail(reasoning_content))
    for (const { text, opaque } of reasoning_details) {
      if (text && isRepeated) details.push(textDetail(text))
      if (opaque) details.push(signedDetail(opaque))
    }
    if (reasoning_content || reasoning_details.length > 0) isOpen = reasoning_details.length === 0
    for (const { id, opaque } of tool_calls) if (opaque && id !== undefined) details.push(signedDetail(opaque, id))
    if (details.length > 0) Object.assign(message, { reasoning_details: details })
    else delete message.reasoning_details
  }
}

/** A whole message with the members of OpenRouter. */
export function withOpenRouterReasoning(message: AnswerMessage): AnswerMessage {
  const encoded = { ...message }
  createOpenRouterReasoning()(encoded)
  return encoded
}

/** The encoder of the choices of a stream. */
export function createOpenRouterPieces() {
  const encoders = new Map<number, ReturnType<typeof createOpenRouterReasoning>>()
  return {
    /** Changes the delta of the choice. */
    take({ index, delta }: ChunkChoice): void {
      const encode = encoders.get(index) ?? createOpenRouterReasoning()
      encoders.set(index, encode)
      encode(delta)
    },
  }
}

type ClientDetail = { type?: unknown; text?: unknown; summary?: unknown; data?: unknown }

const isTyped = (detail: ClientDetail): boolean =>
  typeof detail.type === 'string' && detail.type.startsWith('reasoning.')

/** Whether a message of the client has reasoning in OpenRouter's form. */
const hasTypedReasoning = ({ reasoning_details }: Message): boolean => reasoning_details?.some(isTyped) ?? false

/** The reverse of the encoder: the signatures of calls return to their calls. Details of providers have only text. */
export function withoutTypedReasoning(message: Message): Message {
  if (!hasTypedReasoning(message)) return message
  const { reasoning: _, ...copy } = message as Message & { reasoning?: unknown }
  const pieces: Reasoning[] = []
  const signed = new Map<string, Opaque>()
  for (const { text, summary = text, data } of (message.reasoning_details ?? []) as ClientDetail[]) {
    const last = pieces.at(-1)
    if (typeof summary === 'string') {
      if (last?.text !== undefined && !last.opaque) last.text += summary
      else pieces.push({ text: summary })
    } else if (typeof data === 'string' && isEncoded(data)) {
      const { opaque, owner } = decodeSigned(data, HOLDER)
      if (opaque && owner !== undefined) signed.set(owner, opaque)
      else if (opaque && last && !last.opaque) last.opaque = opaque
      else if (opaque) pieces.push({ opaque })
    }
  }
  const tool_calls = message.tool_calls?.map((call) => {
    const opaque = signed.get(call.id)
    return opaque ? { ...call, opaque } : call
  })
  const plain = pieces.map(({ text = '' }) => text).join('')
  return {
    ...copy,
    reasoning_details: pieces,
    ...(plain === '' ? {} : { reasoning_content: plain }),
    ...(tool_calls ? { tool_calls } : {}),
  }
}
