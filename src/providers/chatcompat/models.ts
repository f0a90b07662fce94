/** The model list of a vendor, in the shapes that vendors give it, with only its chat models left. */
import { matchesGlob } from '../../kit/glob.ts'
import type { DiscoveredModel } from '../provider.ts'
import { isRecord, type JsonRecord, namedText } from './json.ts'

type Patterns = { include: string[]; exclude: string[] }

/** `{data:[..]}` or a bare list; undefined for anything else. Sorted by name, each once. */
export function readModelList(payload: unknown, patterns: Patterns): DiscoveredModel[] | undefined {
  const list = Array.isArray(payload) ? payload : isRecord(payload) ? (payload.data ?? payload.models) : undefined
  if (!Array.isArray(list)) return undefined
  const found = new Map<string, DiscoveredModel>()
  for (const item of list) {
    if (!isRecord(item) || !isChatModel(item)) continue
    // Gemini lists `models/x` and answers to `x`.
    const model = (namedText(item.id) ?? namedText(item.name))?.replace(/^models\//, '')
    if (model === undefined || !isWanted(model, patterns)) continue
    const created = Number.isInteger(item.created) && Number(item.created) > 0 ? { created: Number(item.created) } : {}
    if (!found.has(model)) found.set(model, { model, ...created })
  }
  return [...found.values()].sort((left, right) => (left.model < right.model ? -1 : 1))
}

function isWanted(model: string, { include, exclude }: Patterns): boolean {
  const name = model.toLowerCase()
  return include.some((glob) => matchesGlob(glob, name)) && !exclude.some((glob) => matchesGlob(glob, name))
}

/** What vendors say beside the name; a model that says nothing is taken for a chat model. */
function isChatModel(item: JsonRecord): boolean {
  const { type, capabilities, architecture, supported_endpoint_types, status, active } = item
  if (active === false || status === 'retired') return false
  // Together's word; others say `model` or `text-generation` here.
  if (typeof type === 'string' && /embed|image|audio|video|rerank|moderation|transcribe/i.test(type)) return false
  if (isRecord(capabilities) && capabilities.completion_chat === false) return false // Mistral
  if (isRecord(architecture) && Array.isArray(architecture.output_modalities)) {
    if (!architecture.output_modalities.includes('text')) return false // OpenRouter
  }
  // Another Gatehouse says it outright.
  return !Array.isArray(supported_endpoint_types) || supported_endpoint_types.includes('chatcompat')
}
