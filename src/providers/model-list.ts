/** Reads a provider's model list in its known shapes, and keeps only the models that the gateway can serve. */
import { familyOfName, familyOfType, NAMED_FAMILIES } from '../config/schema/model-names.ts'
import { matchesGlob } from '../kit/glob.ts'
import { isRecord, type JsonRecord } from '../kit/json.ts'
import { namedText } from '../protocols/shared/upstream.ts'
import { CHAT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'
import type { DiscoveredModel } from './provider.ts'

type Patterns = {
  include: string[]
  exclude: string[]
  /** Families besides chat's whose models are listed. */
  others?: readonly EndpointFamily[]
}

/** A list that comes in pages. */
export type ModelPage = {
  models: DiscoveredModel[]
  /** The cursor of the next page. */
  next: string | undefined
}

/** Providers have some hundred models, and return a thousand per page. */
const MAX_PAGES = 20

/** Returns the matching models of all pages, each once, sorted by name. */
export async function readPages(
  ask: (from: string | undefined) => Promise<ModelPage>,
  patterns: Patterns,
): Promise<DiscoveredModel[]> {
  const found = new Map<string, DiscoveredModel>()
  let from: string | undefined
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const { models, next } = await ask(from)
    for (const one of models) if (one.families || matchesPatterns(one.model, patterns)) found.set(one.model, one)
    if (next === undefined || next === from) break
    from = next
  }
  return byName(found)
}

const byName = (found: Map<string, DiscoveredModel>): DiscoveredModel[] =>
  [...found.values()].sort((left, right) => (left.model < right.model ? -1 : 1))

/** `{data:[..]}` or a bare list; undefined for anything else. Sorted by name, each once. */
export function readModelList(payload: unknown, patterns: Patterns): DiscoveredModel[] | undefined {
  const list = Array.isArray(payload) ? payload : isRecord(payload) ? (payload.data ?? payload.models) : undefined
  if (!Array.isArray(list)) return undefined
  const found = new Map<string, DiscoveredModel>()
  for (const item of list) {
    if (!isRecord(item) || item.active === false || item.status === 'retired') continue
    // Gemini lists `models/x` and accepts `x`.
    const model = (namedText(item.id) ?? namedText(item.name))?.replace(/^models\//, '')
    if (model === undefined || found.has(model)) continue
    const other = otherFamily(item, model)
    if (other ? !patterns.others?.includes(other) : !isChatModel(item) || !matchesPatterns(model, patterns)) continue
    const created = Number.isInteger(item.created) && Number(item.created) > 0 ? { created: Number(item.created) } : {}
    found.set(model, { model, ...created, ...(other ? { families: [other] } : {}) })
  }
  return byName(found)
}

function matchesPatterns(model: string, { include, exclude }: Patterns): boolean {
  const name = model.toLowerCase()
  return include.some((glob) => matchesGlob(glob, name)) && !exclude.some((glob) => matchesGlob(glob, name))
}

/** Decides by the other fields of the item, else by the name; undefined: chat, or a family that is not served. */
function otherFamily(item: JsonRecord, model: string): EndpointFamily | undefined {
  const { type, architecture, supported_endpoint_types: declared } = item
  const families: readonly EndpointFamily[] | undefined = Array.isArray(declared) ? declared : undefined
  if (families) {
    return families.includes(CHAT_FAMILIES[0]) ? undefined : NAMED_FAMILIES.find((one) => families.includes(one))
  }
  const modalities = // OpenRouter
    isRecord(architecture) && Array.isArray(architecture.output_modalities) ? architecture.output_modalities : ''
  return familyOfType(`${typeof type === 'string' ? type : ''} ${modalities}`) ?? familyOfName(model)
}

/** Decides by the other fields of the item; a model without any counts as a chat model. */
function isChatModel(item: JsonRecord): boolean {
  const { type, capabilities, architecture, supported_endpoint_types } = item
  // Together's field; others have `model` or `text-generation` here.
  if (typeof type === 'string' && /image|audio|video|moderation|transcribe/i.test(type)) return false
  if (isRecord(capabilities) && capabilities.completion_chat === false) return false // Mistral
  if (isRecord(architecture) && Array.isArray(architecture.output_modalities)) {
    if (!architecture.output_modalities.includes('text')) return false // OpenRouter
  }
  // Another Gatehouse lists it explicitly.
  return !Array.isArray(supported_endpoint_types) || supported_endpoint_types.includes('chatcompat')
}
