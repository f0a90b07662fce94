/** Responses requests that only their own provider understands: what the gateway must know of them. */
import Type from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { pick } from '../../../kit/pick.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { ChatRequest, Message } from '../../shared/canonical.ts'
import { looseTool } from '../../shared/custom-tools.ts'
import { places, refusalOf } from '../../shared/request-error.ts'
import { type InputItem, ResponsesRequest } from './schema.ts'

const { properties } = ResponsesRequest
const Unknowns = Type.Record(Type.String(), Type.Unknown())
const MinimalSchema = Type.Object({
  model: properties.model,
  input: Type.Optional(Type.Union([Type.String(), Type.Array(Unknowns)])),
  ...pick(properties, 'instructions', 'previous_response_id', 'conversation', 'store', 'stream', 'max_output_tokens'),
  ...pick(properties, 'temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'top_logprobs'),
  tools: Type.Optional(Type.Array(Unknowns)),
  text: Type.Optional(Type.Object({ format: Type.Optional(Unknowns) })),
  reasoning: Type.Optional(Unknowns),
  include: properties.include,
  metadata: properties.metadata,
})
const check = checker(MinimalSchema)

/** Checks the fields that the gateway reads. Throws if they are invalid. */
export function checkMinimalBody(body: JsonRecord): ResponsesRequest {
  if (!check.Check(body)) throw refusalOf(diagnose(MinimalSchema, body))
  return body as ResponsesRequest
}

const SAME = ['stream', 'temperature', 'top_p', 'presence_penalty', 'frequency_penalty'] as const

/** Decodes the text and media of such a request and of the conversation before it. */
export function minimalRequestOf(
  clientRequest: ResponsesRequest,
  items: { item: InputItem; at: string }[],
): ChatRequest {
  const { instructions = '', max_output_tokens, tools = [] } = clientRequest
  const messages = items.map(({ item, at }): Message => {
    const message = messageOf(item as JsonRecord, at)
    places.set(message, at)
    return message
  })
  const request: ChatRequest = {
    model: clientRequest.model,
    messages: [...(instructions === '' ? [] : [{ role: 'system' as const, content: instructions }]), ...messages],
  }
  for (const field of SAME)
    if (clientRequest[field] !== undefined) Object.assign(request, { [field]: clientRequest[field] })
  if (max_output_tokens !== undefined) request.max_tokens = max_output_tokens
  const functions = tools.map(({ type, name, description, parameters }) =>
    looseTool(name ?? type, description, parameters),
  )
  if (functions.length > 0) request.tools = functions
  return request
}

function messageOf(item: JsonRecord, at: string): Message {
  const { role, content, output, summary } = item
  const member = content === undefined ? 'output' : 'content'
  const parts = partsOf(content ?? output ?? summary, `${at}.${member}`)
  if (role === 'assistant' || role === 'system' || role === 'developer') return { role, content: parts }
  if (role === 'user' || content !== undefined || output !== undefined) return { role: 'user', content: parts }
  if (item.type === 'reasoning') return { role: 'assistant', content: parts }
  // A call, or a step of the vendor's own tools. The model reads it as it is.
  const { encrypted_content: _, result: __, ...rest } = item
  return { role: 'assistant', content: JSON.stringify(rest) }
}

function partsOf(content: unknown, at: string): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) return []
  return content.flatMap((part, index) => {
    const converted = isRecord(part) ? partOf(part) : undefined
    if (!converted) return []
    places.set(converted, `${at}[${index}]`)
    return [converted]
  })
}

function partOf({ type, text }: JsonRecord): ContentPart | undefined {
  if (type === 'input_image') return { type: 'image_url', image_url: { url: '' } }
  if (type === 'input_audio') return { type: 'input_audio', input_audio: { data: '', format: '' } }
  if (type === 'input_file') return { type: 'file', file: {} }
  return typeof text === 'string' ? { type: 'text', text } : undefined
}
