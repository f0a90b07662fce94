/** Contentgen requests that pass through: what the gateway must know of them, and what it removes. */
import Type, { type TSchema } from 'typebox'
import { camelCase } from '../../../kit/camel-case.ts'
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord, type JsonRecord, recordsIn, takeRawInteger } from '../../../kit/json.ts'
import { EXTRA_FIELDS } from '../../../spec/chat-request.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { ChatRequest, Message } from '../../shared/canonical.ts'
import { looseTool } from '../../shared/custom-tools.ts'
import { namesAnotherModel } from '../../shared/passthrough/named-models.ts'
import { places, refusalOf } from '../../shared/request-error.ts'
import { isVendorAddress } from '../upstream/parts.ts'
import { RENAMED } from './fields.ts'
import { normaliseNames } from './names.ts'
import { filePart } from './parts.ts'
import { type FileData, GenerationConfig } from './schema.ts'
import { decodeSignature, isWrapped } from './signed-content.ts'

const Unknowns = Type.Record(Type.String(), Type.Unknown())
const Parts = Type.Optional(Type.Array(Unknowns))
const MinimalSchema = Type.Object({
  contents: Type.Array(Type.Object({ role: Type.Optional(Type.String()), parts: Parts }), { minItems: 1 }),
  systemInstruction: Type.Optional(Type.Object({ parts: Parts })),
  tools: Type.Optional(Type.Array(Unknowns)),
  generationConfig: Type.Optional(Type.Pick(GenerationConfig, Object.keys(RENAMED) as (keyof typeof RENAMED)[])),
})
const check = checker(MinimalSchema)

/** Throws the error that names the field. A seed may be an integer beyond 2^53. */
export function refuseInvalid(body: unknown, schema: TSchema, check: { Check(value: unknown): boolean }): void {
  const config = isRecord(body) && isRecord(body.generationConfig) ? body.generationConfig : undefined
  const seed = config && takeRawInteger(config, 'seed')
  try {
    if (!check.Check(body)) throw refusalOf(diagnose(schema, body))
  } finally {
    if (config && seed) config.seed = seed
  }
}

/**
 * Decodes the text and media of a request that only its own provider understands completely. Throws if these are
 * invalid.
 */
export function minimalRequestOf(body: unknown, model: string): ChatRequest {
  const given = normaliseNames(body)
  refuseInvalid(given, MinimalSchema, check)
  const { contents, systemInstruction, tools = [], generationConfig = {} } = given as Type.Static<typeof MinimalSchema>
  const system = partsOf(systemInstruction?.parts)
  const request: ChatRequest = {
    model,
    messages: [
      ...(system.length > 0 ? [{ role: 'system' as const, content: system }] : []),
      ...contents.map(({ role, parts }, index): Message => {
        const message: Message = { role: role === 'model' ? 'assistant' : 'user', content: partsOf(parts) }
        places.set(message, `contents[${index}]`)
        return message
      }),
    ],
  }
  const config = generationConfig as JsonRecord
  for (const [member, field] of Object.entries(RENAMED)) {
    if (config[member] !== undefined) Object.assign(request, { [field]: config[member] })
  }
  const functions = tools.flatMap(toolsIn)
  if (functions.length > 0) request.tools = functions
  return request
}

/** The functions of one of the client's tools. Each tool of the vendor counts as a function. */
function toolsIn(tool: JsonRecord): NonNullable<ChatRequest['tools']> {
  const { functionDeclarations: declared, ...own } = tool
  const functions = recordsIn(declared)
  return [
    ...Object.keys(own).map((name) => looseTool(name, undefined, undefined)),
    ...functions.map(({ name, description, parameters, parametersJsonSchema: schema = parameters }) =>
      looseTool(name, description, schema),
    ),
  ]
}

function partsOf(parts: JsonRecord[] = []): ContentPart[] {
  return parts.flatMap((part): ContentPart[] => {
    if (part.thought === true) return []
    if (typeof part.text === 'string') return [{ type: 'text', text: part.text }]
    const { inlineData, fileData = inlineData } = part
    if (isRecord(fileData)) return [mediumOf(String(fileData.mimeType ?? ''))]
    return [{ type: 'text', text: JSON.stringify(part) }]
  })
}

function mediumOf(type: string): ContentPart {
  if (/^image\//i.test(type)) return { type: 'image_url', image_url: { url: '' } }
  if (/^audio\//i.test(type)) return { type: 'input_audio', input_audio: { data: '', format: '' } }
  return { type: 'file', file: {} }
}

/** Fields of the gateway, which a provider would refuse, and the model, which is in the path. */
const NOT_SENT = ['provider_options', 'providerOptions', 'model', ...EXTRA_FIELDS]
/** Members of `generationConfig` that name another model, which the caller may not be allowed to use. */
const OTHER_MODELS = ['routingConfig', 'modelSelectionConfig']

/**
 * The body without the gateway's fields and without content that another vendor signed. Undefined if it names another
 * model, or an image at a URL that the vendor does not fetch: then the request is translated, and the gateway fetches
 * it.
 */
export function passthroughBody(body: Readonly<JsonRecord>): JsonRecord | undefined {
  const forwarded = inCamelCase(body)
  if (!forwarded || namesAnotherModel(forwarded)) return undefined
  for (const field of NOT_SENT) delete forwarded[field]
  if (isRecord(forwarded.generationConfig)) {
    const config = inCamelCase(forwarded.generationConfig)
    if (!config || OTHER_MODELS.some((name) => config[name] !== undefined)) return undefined
    forwarded.generationConfig = config
  }
  const contents = [forwarded.contents ?? []].flat()
  if (contents.some(showsForeignImage)) return undefined
  forwarded.contents = contents.flatMap(ownContent)
  return forwarded
}

/**
 * Renames the members to camelCase; nested values stay as they are. Undefined if a member occurs in both spellings:
 * it is unknown which one the provider reads, and it could be the one that the gateway did not check.
 */
function inCamelCase(holder: Readonly<JsonRecord>): JsonRecord | undefined {
  const members = Object.entries(holder).filter(([, value]) => value !== null)
  const renamed = new Map(members.map(([name, value]) => [camelCase(name), value]))
  return renamed.size === members.length ? Object.fromEntries(renamed) : undefined
}

function showsForeignImage(content: unknown): boolean {
  return partsIn(content).some((part) => {
    const file = isRecord(part) ? (part.fileData ?? part.file_data) : undefined
    if (!isRecord(file)) return false
    const known = inCamelCase(file)
    if (!known) return true
    const { fileUri, mimeType } = known
    if (typeof fileUri !== 'string' || isVendorAddress(fileUri)) return false
    const fileData: FileData = { fileUri, ...(typeof mimeType === 'string' ? { mimeType } : {}) }
    return filePart(fileData).type === 'image_url'
  })
}

const partsIn = (content: unknown): unknown[] =>
  isRecord(content) && content.parts != null ? [content.parts].flat() : []

/** Returns the same content if it holds nothing wrapped by the gateway, which is the usual case. */
function ownContent(content: unknown): unknown[] {
  const parts = partsIn(content)
  const own = parts.flatMap(ownParts)
  if (own.length === parts.length && own.every((part, at) => part === parts[at])) return [content]
  return own.length === 0 ? [] : [{ ...(content as JsonRecord), parts: own }]
}

const HOME = 'contentgen-compat'

function ownParts(part: unknown): unknown[] {
  if (!isRecord(part)) return [part]
  const { thoughtSignature, thought_signature, ...rest } = part
  const signature = thoughtSignature ?? thought_signature
  if (typeof signature !== 'string' || !isWrapped(signature)) return [part]
  const { own, before = [] } = decodeSignature(signature)
  const hidden = before.flatMap(({ text, opaque }) => {
    if (opaque?.origin !== HOME) return []
    return [{ text: text ?? '', ...(text === undefined ? {} : { thought: true }), thoughtSignature: opaque.value }]
  })
  if (own?.origin === HOME) return [...hidden, { ...rest, thoughtSignature: own.value }]
  // Reasoning of another vendor, or a part that only held its signature.
  return rest.thought === true || rest.text === '' ? hidden : [...hidden, rest]
}
