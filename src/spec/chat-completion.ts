/**
 * The response to a chat request, whole and in chunks (specification 2.4; `message` in a whole response and the
 * framing of chunks are the choices 8, 9 and 14 of the table in docs/specification-choices.md).
 */
import Type from 'typebox'
import { integer, list, orNull, titled } from './fields.ts'
import { GeneratedAudio, GeneratedImage, Reasoning } from './message.ts'
import { Usage } from './usage.ts'

const FINISH_REASONS = ['stop', 'length', 'tool_calls', 'content_filter'] as const
export type FinishReason = (typeof FINISH_REASONS)[number]
const FinishReasonOrNull = orNull(Type.Enum([...FINISH_REASONS]))

const ToolFunction = Type.Object({
  arguments: Type.String({ description: 'JSON text.' }),
  name: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  parameters: Type.Optional(Type.Unknown()),
})

const shared = {
  id: Type.Optional(Type.String()),
  index: integer('Position in streamed chunks.'),
}

const FunctionCall = titled('ToolCall', {
  function: ToolFunction,
  ...shared,
  type: Type.Optional(Type.Literal('function')),
})
export type FunctionCall = Type.Static<typeof FunctionCall>

const CustomCall = titled('CustomToolCall', {
  custom: Type.Object({
    input: Type.String({ description: 'Free text.' }),
    name: Type.Optional(Type.String()),
  }),
  ...shared,
  type: Type.Optional(Type.Literal('custom')),
})

const ToolCall = Type.Union([FunctionCall, CustomCall])
export type ToolCall = Type.Static<typeof ToolCall>

export const Annotation = Type.Object({
  type: Type.Literal('url_citation'),
  url_citation: Type.Object({
    start_index: Type.Integer(),
    end_index: Type.Integer(),
    url: Type.String(),
    title: Type.String(),
  }),
})
export type Annotation = Type.Static<typeof Annotation>

export const Delta = titled('Delta', {
  role: Type.Optional(Type.Enum(['system', 'user', 'assistant', 'tool'])),
  content: Type.Optional(orNull(Type.String())),
  reasoning: Type.Optional(Type.String()),
  reasoning_content: Type.Optional(Type.String()),
  reasoning_details: list(
    Reasoning,
    'The reasoning piece by piece. Return each piece with all its members in the next request.',
  ),
  refusal: Type.Optional(orNull(Type.String())),
  tool_calls: Type.Optional(Type.Array(ToolCall)),
  annotations: Type.Optional(Type.Array(Annotation)),
  images: list(GeneratedImage, 'Images that the model made.'),
  audio: Type.Optional(GeneratedAudio),
})
export type Delta = Type.Static<typeof Delta>

export const AnswerMessage = titled('AnswerMessage', {
  role: Type.Literal('assistant'),
  content: orNull(Type.String()),
  refusal: Type.Optional(orNull(Type.String())),
  reasoning_content: Type.Optional(Type.String()),
  reasoning_details: Type.Optional(Type.Array(Reasoning)),
  tool_calls: Type.Optional(Type.Array(ToolCall)),
  annotations: Type.Optional(Type.Array(Annotation)),
  images: list(GeneratedImage, 'Images that the model made.'),
  audio: Type.Optional(GeneratedAudio),
})
export type AnswerMessage = Type.Static<typeof AnswerMessage>

export const ChatCompletion = titled('ChatCompletion', {
  id: Type.String(),
  object: Type.Literal('chat.completion'),
  created: Type.Integer(),
  model: Type.String({ description: 'The full public id of the model that answered.' }),
  system_fingerprint: Type.Optional(orNull(Type.String())),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      message: AnswerMessage,
      delta: Type.Optional(Delta),
      finish_reason: FinishReasonOrNull,
      logprobs: Type.Optional(Type.Unknown()),
    }),
  ),
  usage: Type.Optional(orNull(Usage)),
})
export type ChatCompletion = Type.Static<typeof ChatCompletion>

export const ChunkChoice = Type.Object({
  index: Type.Integer(),
  delta: Delta,
  finish_reason: Type.Optional(FinishReasonOrNull),
  logprobs: Type.Optional(Type.Unknown()),
})
export type ChunkChoice = Type.Static<typeof ChunkChoice>

export const ChatChunk = titled('ChatChunk', {
  id: Type.String(),
  object: Type.Literal('chat.completion.chunk'),
  created: Type.Integer(),
  model: Type.String(),
  system_fingerprint: Type.Optional(orNull(Type.String())),
  choices: Type.Array(ChunkChoice),
  usage: Type.Optional(orNull(Usage)),
})
export type ChatChunk = Type.Static<typeof ChatChunk>
