/**
 * One message of a chat request (specification 2.2), with the content parts, roles and tool calls that clients send
 * today.
 */
import Type from 'typebox'
import { flag, integer, list, text, titled } from './fields.ts'

/** One piece of reasoning. The member that holds the provider's signature is not part of the schema. */
export const Reasoning = Type.Object({ text: Type.Optional(Type.String()) })

/** An image that a model generated. */
export const GeneratedImage = Type.Object({
  type: Type.Literal('image_url'),
  image_url: Type.Object({ url: Type.String({ description: 'A data URI.' }) }),
})

/** Audio that a model spoke. */
export const GeneratedAudio = titled('GeneratedAudio', {
  id: text('By which a later request refers to it.'),
  data: text('Base64, in the format that was asked for.'),
  transcript: Type.Optional(Type.String()),
  expires_at: integer('Unix seconds.'),
})
export type GeneratedAudio = Type.Static<typeof GeneratedAudio>

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const

const TextPart = Type.Object({ type: Type.Literal('text'), text: Type.String() })
const ImagePart = Type.Object({
  type: Type.Literal('image_url'),
  image_url: Type.Object({ url: Type.String(), detail: Type.Optional(Type.String()) }),
})
const AudioPart = Type.Object({
  type: Type.Literal('input_audio'),
  input_audio: Type.Object({ data: Type.String(), format: Type.String() }),
})
const FilePart = Type.Object({
  type: Type.Literal('file'),
  file: Type.Object({
    file_data: Type.Optional(Type.String()),
    file_id: Type.Optional(Type.String()),
    file_url: Type.Optional(Type.String()),
    filename: Type.Optional(Type.String()),
  }),
})
const RefusalPart = Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() })

export const ContentPart = Type.Union([TextPart, ImagePart, AudioPart, FilePart, RefusalPart], { title: 'ContentPart' })
export type ContentPart = Type.Static<typeof ContentPart>

export const RequestFunctionCall = Type.Object({
  id: Type.String(),
  type: Type.Optional(Type.Literal('function')),
  function: Type.Object({ name: Type.String(), arguments: Type.String() }),
})
export const RequestCustomCall = Type.Object({
  id: Type.String(),
  type: Type.Literal('custom'),
  custom: Type.Object({ name: Type.String(), input: Type.String() }),
})

export const Message = titled('Message', {
  role: Type.Enum([...ROLES], { description: '`developer` is treated as `system`.' }),
  content: Type.Optional(
    Type.Union([Type.String(), Type.Array(ContentPart), Type.Null()], {
      description: 'Required; of the assistant it may be null, or absent beside `tool_calls` and the like.',
    }),
  ),
  name: Type.Optional(Type.String()),
  tool_calls: Type.Optional(Type.Array(Type.Union([RequestFunctionCall, RequestCustomCall]))),
  tool_call_id: Type.Optional(Type.String()),
  reasoning_content: Type.Optional(Type.String()),
  reasoning_details: list(
    Reasoning,
    'The same piece by piece. Return each piece with all its members, as you received it.',
  ),
  is_error: flag('Of a tool: its content says what went wrong.'),
  images: list(GeneratedImage, 'Of the assistant: images that it made.'),
  audio: Type.Optional(
    Type.Object({ id: Type.Optional(Type.String()) }, { description: 'Of the assistant: audio that it spoke.' }),
  ),
  refusal: Type.Optional(Type.String()),
  function_call: Type.Optional(Type.Object({ name: Type.String(), arguments: Type.String() })),
})
export type Message = Type.Static<typeof Message>

/** Text alone becomes one string, which every provider accepts. */
export function contentOf(parts: ContentPart[]): string | ContentPart[] {
  const texts = parts.filter((part) => part.type === 'text')
  return texts.length === parts.length ? texts.map((part) => part.text).join('\n') : parts
}
