/** Messages requests that pass through: what the gateway must know of them, and what it removes. */
import Type from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord } from '../../../kit/json.ts'
import { EXTRA_FIELDS } from '../../../spec/chat-request.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { ChatRequest, Message } from '../../shared/canonical.ts'
import { looseTool } from '../../shared/custom-tools.ts'
import { addsModel, namesAnotherModel } from '../../shared/passthrough/named-models.ts'
import { refusalOf } from '../../shared/request-error.ts'
import { MessagesRequest } from './schema.ts'
import { decodeSignature } from './signature.ts'

type Body = Readonly<Record<string, unknown>>

const { model, max_tokens, stream, temperature, top_p, top_k } = MessagesRequest.properties
const Message_ = Type.Object({
  role: Type.String(),
  content: Type.Union([Type.String(), Type.Array(Type.Record(Type.String(), Type.Unknown()))]),
})
const MinimalSchema = Type.Object({
  model,
  max_tokens,
  stream,
  temperature,
  top_p,
  top_k,
  messages: Type.Array(Message_, { minItems: 1 }),
  tools: Type.Optional(Type.Array(Type.Record(Type.String(), Type.Unknown()))),
})
const check = checker(MinimalSchema)

/**
 * Decodes the text and media of a request that only its own provider understands completely. Throws if these are
 * invalid.
 */
export function minimalRequestOf(body: unknown): ChatRequest {
  const given = isRecord(body) ? Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)) : body
  if (!check.Check(given)) throw refusalOf(diagnose(MinimalSchema, given))
  const clientRequest = given as Type.Static<typeof MinimalSchema>
  const system = partsOf((given as Body).system)
  const request: ChatRequest = {
    model: clientRequest.model,
    max_tokens: clientRequest.max_tokens,
    messages: [
      ...(system.length > 0 ? [{ role: 'system' as const, content: system }] : []),
      ...clientRequest.messages.map(
        ({ role, content }): Message => ({
          role: role === 'assistant' || role === 'system' ? role : 'user',
          content: partsOf(content),
        }),
      ),
    ],
  }
  for (const field of ['stream', 'temperature', 'top_p', 'top_k'] as const) {
    if (clientRequest[field] !== undefined) Object.assign(request, { [field]: clientRequest[field] })
  }
  const tools = (clientRequest.tools ?? []).map(({ name, description, input_schema, type }) =>
    looseTool(name ?? type, description, input_schema),
  )
  if (tools.length > 0) request.tools = tools
  return request
}

/** The depth of nested blocks: a tool result within a message, and one more level. */
const DEPTH = 3

function partsOf(content: unknown, depth = DEPTH): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content) || depth === 0) return []
  return content.filter(isRecord).flatMap((block): ContentPart[] => {
    if (block.type === 'image') return [{ type: 'image_url', image_url: { url: '' } }]
    if (block.type === 'document') return [{ type: 'file', file: {} }]
    if (typeof block.text === 'string') return [{ type: 'text', text: block.text }]
    return partsOf(block.content, depth - 1)
  })
}

/** Fields of the gateway, which a provider would refuse. */
const GATEWAY_FIELDS = ['provider_options', ...EXTRA_FIELDS] as const

/**
 * The body without the gateway's fields and without reasoning that another vendor signed. Undefined if the body names
 * another model, which the caller may not be allowed to use: the request is then refused as in translation.
 */
export function passthroughBody(body: Body): Record<string, unknown> | undefined {
  if (namesAnotherModel(body) || addsModel(body.messages)) return undefined
  const forwarded: Record<string, unknown> = { ...body }
  for (const field of GATEWAY_FIELDS) delete forwarded[field]
  if (Array.isArray(body.messages)) forwarded.messages = body.messages.map(withoutForeignReasoning)
  return forwarded
}

/** Returns the same message if it holds no content wrapped by the gateway, which is the usual case. */
function withoutForeignReasoning(message: unknown): unknown {
  if (!isRecord(message) || !Array.isArray(message.content)) return message
  const blocks: unknown[] = message.content
  const content = blocks.flatMap(ownReasoning)
  const isSame = content.length === blocks.length && content.every((block, at) => block === blocks[at])
  return isSame ? message : { ...message, content }
}

function ownReasoning(block: unknown): unknown[] {
  if (!isRecord(block)) return [block]
  const member = block.type === 'thinking' ? 'signature' : block.type === 'redacted_thinking' ? 'data' : undefined
  const value = member === undefined ? undefined : block[member]
  if (member === undefined || typeof value !== 'string') return [block]
  // No provider accepts reasoning without a signature.
  if (value === '') return []
  const { opaque, owner } = decodeSignature(value)
  if (opaque?.origin !== 'messages-compat' || owner !== undefined) return []
  return opaque.value === value ? [block] : [{ ...block, [member]: opaque.value }]
}
