/**
 * The inner chat type, to which every client request is decoded and from which every response is encoded. It is the
 * public schema of chat completions with the members that only translation between protocols needs. These members are
 * not part of the OpenAPI document.
 */
import Type from 'typebox'
import type { RawNumber } from '../../kit/json.ts'
import type {
  FunctionCall,
  AnswerMessage as PublicAnswerMessage,
  ChatChunk as PublicChunk,
  ChunkChoice as PublicChunkChoice,
  ChatCompletion as PublicCompletion,
  Delta as PublicDelta,
} from '../../spec/chat-completion.ts'
import {
  type FunctionTool,
  type CustomTool as PublicCustomTool,
  ChatRequest as PublicRequest,
} from '../../spec/chat-request.ts'
import { EndpointFamily } from '../../spec/endpoint-family.ts'
import {
  GeneratedImage as PublicImage,
  Message as PublicMessage,
  Reasoning as PublicReasoning,
  RequestCustomCall,
  RequestFunctionCall,
} from '../../spec/message.ts'

/** A value that a provider signed or encrypted and expects back unchanged. Other provider families cannot use it. */
const Opaque = Type.Object({
  origin: EndpointFamily,
  /** The signature, or everything that is hidden. */
  value: Type.String(),
  /** The provider's own id of it. */
  id: Type.Optional(Type.String()),
})
export type Opaque = Type.Static<typeof Opaque>

const signed = { opaque: Type.Optional(Opaque) }
type Signed = { opaque?: Opaque }

/** One piece of reasoning. A piece without `text` is hidden: only `opaque` holds it. */
const Reasoning = Type.Object({ ...PublicReasoning.properties, ...signed })
export type Reasoning = Type.Static<typeof Reasoning>

/** An image that the model generated. */
const GeneratedImage = Type.Object({ ...PublicImage.properties, ...signed })
export type GeneratedImage = Type.Static<typeof GeneratedImage>

const SignedFunctionCall = Type.Object({ ...RequestFunctionCall.properties, ...signed })
const SignedCustomCall = Type.Object({ ...RequestCustomCall.properties, ...signed })

const Message = Type.Object({
  ...PublicMessage.properties,
  tool_calls: Type.Optional(Type.Array(Type.Union([SignedFunctionCall, SignedCustomCall]))),
  reasoning_details: Type.Optional(Type.Array(Reasoning)),
  images: Type.Optional(Type.Array(GeneratedImage)),
})

/**
 * A custom tool takes free text. Here it is a function whose only argument is that text, which every provider supports.
 * This marks such a function, and its calls, for providers that have custom tools. It is not part of any JSON.
 */
export const CUSTOM: unique symbol = Symbol('custom tool')

export type CustomTool = PublicCustomTool['custom']
export type Tool = FunctionTool & { [CUSTOM]?: CustomTool }
export type HistoryCall = Type.Static<typeof SignedFunctionCall> & { [CUSTOM]?: true }
export type Message = Omit<Type.Static<typeof Message>, 'tool_calls'> & { tool_calls?: HistoryCall[] }

/**
 * A chat client returns the values that it received with a response, so its requests are checked against this schema.
 * `provider_options` is an extension of the gateway that the manual documents.
 */
export const ChatRequest = Type.Object({
  ...PublicRequest.properties,
  messages: Type.Array(Message, { minItems: 1 }),
  provider_options: Type.Optional(
    Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()), {
      description: "A provider's own options under the name of its kind; other providers do not receive them.",
    }),
  ),
})
/** As a client of chat completions sends it. */
export type ClientChatRequest = Type.Static<typeof ChatRequest>
/** Marks a request whose client expects reasoning in OpenRouter's form. It is not part of any JSON. */
export const OPENROUTER: unique symbol = Symbol('OpenRouter')

export type ChatRequest = Omit<ClientChatRequest, 'messages' | 'seed' | 'tools' | 'tool_choice'> & {
  [OPENROUTER]?: true
  /** Vendors accept integers of 64 bits, of which a number holds 53. */
  seed?: number | RawNumber
  messages: Message[]
  tools?: Tool[]
  tool_choice?: Exclude<ClientChatRequest['tool_choice'], { type: 'custom' } | undefined>
}
export type ChatRequestField = Exclude<keyof ChatRequest, symbol>

export type ToolCall = FunctionCall & Signed

/** `reasoning_details` ends one piece of reasoning. */
type Generated = { reasoning_details?: Reasoning[]; tool_calls?: ToolCall[]; images?: GeneratedImage[] }

export type Delta = Omit<PublicDelta, keyof Generated> & Generated
export type AnswerMessage = Omit<PublicAnswerMessage, keyof Generated> & Generated

/**
 * `stop_sequence`: of the stop sequences that the client sent, the one that ended the text. `is_paused`: the provider
 * paused a long turn of its own tools, and continues it when the response is sent back. The Messages API returns both.
 */
type Stopped = { stop_sequence?: string | null; is_paused?: true }

export type ChunkChoice = Omit<PublicChunkChoice, 'delta'> & { delta: Delta } & Stopped
export type ChatChunk = Omit<PublicChunk, 'choices'> & { choices: ChunkChoice[] }

type Choice = Omit<PublicCompletion['choices'][number], 'message' | 'delta'> & {
  message: AnswerMessage
  delta?: Delta
} & Stopped
export type ChatCompletion = Omit<PublicCompletion, 'choices'> & { choices: Choice[] }
