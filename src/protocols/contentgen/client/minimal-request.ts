/** Contentgen requests on their way to a vendor of their own: what the house must know of them, and what it takes out. */

import Type from 'typebox'
import { camelCase } from '../../../kit/camel-case.ts'
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { EXTRA_FIELDS } from '../../../spec/chat-request.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { ChatRequest, Message } from '../../canonical.ts'
import { namesAnotherModel } from '../../passthrough/named-models.ts'
import { type Places, refusalOf } from '../../request-error.ts'
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

/** The words and media of a request whose other parts only its vendor knows. Throws for what is wrong with them. */
export function minimalRequestOf(body: unknown, model: string, places: Places = new WeakMap()): ChatRequest {
  const given = normaliseNames(body)
  if (!check.Check(given)) throw refusalOf(diagnose(MinimalSchema, given))
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

/** The functions of one of the client's tools; a tool of the vendor's own stands for itself. */
function toolsIn(tool: JsonRecord): NonNullable<ChatRequest['tools']> {
  const { functionDeclarations: declared, ...own } = tool
  const functions = Array.isArray(declared) ? declared.filter(isRecord) : []
  return [
    ...Object.keys(own).map((name) => ({ type: 'function' as const, function: { name } })),
    ...functions.map(({ name, description, parameters, parametersJsonSchema: schema = parameters }) => ({
      type: 'function' as const,
      function: {
        name: String(name ?? ''),
        ...(typeof description === 'string' ? { description } : {}),
        ...(isRecord(schema) ? { parameters: schema } : {}),
      },
    })),
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

/** Fields of the gateway's own, which a vendor would refuse, and the model, which the path says. */
const NOT_SENT = ['provider_options', 'providerOptions', 'model', ...EXTRA_FIELDS]
/** Members of `generationConfig` that name another model of the vendor's, which the caller may not be allowed. */
const OTHER_MODELS = ['routingConfig', 'modelSelectionConfig']

/**
 * The body without what is the gateway's: its own fields, and what another vendor signed. Undefined for one that names
 * another model, or an image at an address that the vendor does not read: the gateway does, in the other lane.
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
 * The members in the one spelling of the two that there are; what is in them is the vendor's to read. Undefined where
 * one comes in both: which of them the vendor reads is not known, and it could be the one that the house has not seen.
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

/** The very same content where nothing was carried through the client, which is nearly always. */
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
  // Reasoning of another vendor's, or a part that was there to carry it.
  return rest.thought === true || rest.text === '' ? hidden : [...hidden, rest]
}
