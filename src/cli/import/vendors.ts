/** The providers of other gateways by their names there, as settings of a provider here. */
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { PRESETS } from '../../providers/presets.ts'

type VendorRow = {
  preset?: string
  kind?: string
  /** What follows an address that is written without it. */
  path?: string
}

const ROWS: readonly [names: string, row: VendorRow][] = [
  ['text-completion-openai', { preset: 'openai' }],
  ['azure azure_text azure-openai', { kind: 'azure', path: '/openai' }],
  ['bedrock bedrock_converse', { kind: 'amazon-bedrock' }],
  ['vertex_ai vertex_ai_beta vertex-ai vertex', { kind: 'google-vertex' }],
  ['google google-ai', { preset: 'gemini' }],
  ['mistral-ai', { preset: 'mistral' }],
  ['x-ai', { preset: 'xai' }],
  ['together_ai together-ai', { preset: 'together' }],
  ['fireworks_ai fireworks-ai', { preset: 'fireworks' }],
  ['perplexity-ai', { preset: 'perplexity' }],
  ['nvidia_nim', { preset: 'nvidia' }],
  ['dashscope', { preset: 'alibaba' }],
  ['cohere_chat', { preset: 'cohere' }],
  ['jina_ai', { preset: 'jina' }],
  ['fal_ai', { preset: 'fal' }],
  ['novita-ai', { preset: 'novita' }],
  ['ollama ollama_chat', { preset: 'ollama', path: '/v1' }],
  ['hosted_vllm vllm', { preset: 'vllm' }],
  ['z-ai', { preset: 'zai' }],
  ['lm_studio', { preset: 'lmstudio' }],
  ['sgl siliconflow custom_openai openai_like litellm_proxy', { kind: 'chatcompat' }],
]
/** Names of presets are their own. */
const NAMES: Record<string, VendorRow> = Object.fromEntries(
  ROWS.flatMap(([names, row]) => names.split(' ').map((name) => [name, row])),
)

/** `base_url`: as the source has it. Undefined: the name is not known, and there is no address to call. */
export function vendorTree(name: string, base_url: string | undefined): Tree | undefined {
  const row = NAMES[name] ?? (Object.hasOwn(PRESETS, name) ? { preset: name } : undefined)
  const address = base_url?.replace(/\/+$/, '')
  if (row === undefined) return address === undefined ? undefined : { base_url: address }
  const { preset, kind, path = '' } = row
  if (kind === 'chatcompat' && address === undefined) return undefined
  const full = address === undefined || address.endsWith(path) ? address : `${address}${path}`
  const isOwn = preset !== undefined && full === PRESETS[preset]?.base_url
  return {
    ...(preset !== undefined && { preset }),
    ...(kind !== undefined && kind !== 'chatcompat' && { kind }),
    ...(full !== undefined && !isOwn && { base_url: full }),
  }
}

export const isVendor = (name: string): boolean => Object.hasOwn(NAMES, name) || Object.hasOwn(PRESETS, name)
