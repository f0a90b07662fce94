/** Encodes a chat request for the contentgen API. Unsupported features are refused by name. */
import type { JsonRecord } from '../../../kit/json.ts'
import { adapt, assertNotRefused, HAS_EFFECT, REPLACED_FIELDS, type RefusedFields } from '../../shared/field-rules.ts'
import type { BodyOptions, MediaReader, UpstreamCall } from '../../shared/upstream.ts'
import { conversationOf } from './contents.ts'
import { generationOf } from './generation.ts'
import { type ModelRule, ruleOf } from './model-rules.ts'
import { mergeOptions, ownOptionsOf } from './own-options.ts'
import { toolsOf } from './tools.ts'

/** The operator's settings for a provider of this protocol. */
export type ContentgenOptions = BodyOptions & {
  base_url: string
  /** The operator's corrections of the model's row. */
  rule: Partial<ModelRule>
  /** The vendor's cloud, which lacks a few of the fields. */
  cloud: boolean
}

/** Fields that change the meaning and that the vendor does not support, or whose result has no canonical form. */
const REFUSED: RefusedFields = {
  audio: { isUsed: HAS_EFFECT.audio, instead: 'must be left out: the response has no audio' },
  modalities: {
    isUsed: ({ modalities }) => modalities?.some((one) => one !== 'text' && one !== 'image') ?? false,
    instead: 'must be of "text" and "image"',
  },
  ...REPLACED_FIELDS,
}

/** Fields that the gateway sets. The operator's lists and defaults cannot replace them. */
export const RESERVED = new Set(['contents', 'model'])
const COUNTED = ['contents', 'systemInstruction', 'tools', 'toolConfig']
/** The canonical tier -> the vendor's. Other tiers belong to other vendors and are dropped. */
const TIERS: Record<string, string> = { default: 'standard', standard: 'standard', flex: 'flex', priority: 'priority' }

export function createBodyEncoder(settings: ContentgenOptions, media?: () => MediaReader) {
  const { fields, request_defaults, base_url, cloud } = settings
  const defaults = Object.fromEntries(Object.entries(request_defaults).filter(([field]) => !RESERVED.has(field)))

  async function bodyOf({ model, request }: UpstreamCall, signal: AbortSignal): Promise<JsonRecord> {
    assertNotRefused(request, REFUSED)
    const rule = { ...ruleOf(model), ...settings.rule }
    const own = ownOptionsOf(request)
    const tools = toolsOf(request, rule)
    const generationConfig = generationOf(request, rule, tools)
    const reader = { media: media?.(), base_url, signal, rule, ids: !cloud }
    const { system, contents } = await conversationOf(request.messages, reader)
    const tier = request.service_tier && TIERS[request.service_tier]
    const body: JsonRecord = {
      contents,
      ...(system.length > 0 ? { systemInstruction: { parts: system } } : {}),
      ...(tools.tools.length > 0 ? { tools: tools.tools } : {}),
      ...(tools.toolConfig ? { toolConfig: tools.toolConfig } : {}),
      ...(Object.keys(generationConfig).length > 0 ? { generationConfig } : {}),
      ...(tier && !cloud ? { serviceTier: tier } : {}),
    }
    const given: JsonRecord = request
    for (const field of fields.allow) if (!RESERVED.has(field) && given[field] != null) body[field] ??= given[field]
    const whole = mergeOptions(mergeOptions(body, own), defaults)
    return adapt(whole, fields, RESERVED)
  }

  return {
    answer: async (call: UpstreamCall, signal: AbortSignal) => JSON.stringify(await bodyOf(call, signal)),
    /** The body of a token-count request for the same prompt. */
    async count(call: UpstreamCall, signal: AbortSignal) {
      const body = await bodyOf(call, signal)
      const prompt = Object.fromEntries(COUNTED.map((field) => [field, body[field]]))
      // The vendor's cloud expects the prompt without a wrapper.
      return JSON.stringify(
        cloud ? prompt : { generateContentRequest: { model: modelPath(call.model), ...prompt, toolConfig: undefined } },
      )
    },
  }
}

/** The path of a model. A name with a `/` already is a path. */
export const modelPath = (model: string): string => (model.includes('/') ? model : `models/${model}`)
