/** The providers of other gateways by their names there, as settings of a provider here. */
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { byName } from '../../kit/by-name.ts'
import { PRESETS } from '../../providers/presets.ts'

type VendorRow = {
  preset?: string
  kind?: string
  /** What follows an address that is written without it. */
  path?: string
}

/** Names of presets are their own. */
const NAMES = byName<VendorRow>(
  [{ preset: 'openai' }, 'text-completion-openai'],
  [{ kind: 'azure', path: '/openai' }, 'azure azure_text azure-openai'],
  [{ kind: 'amazon-bedrock' }, 'bedrock bedrock_converse'],
  [{ kind: 'google-vertex' }, 'vertex_ai vertex_ai_beta vertex-ai vertex'],
  [{ preset: 'gemini' }, 'google google-ai'],
  [{ preset: 'mistral' }, 'mistral-ai'],
  [{ preset: 'xai' }, 'x-ai'],
  [{ preset: 'together' }, 'together_ai together-ai'],
  [{ preset: 'fireworks' }, 'fireworks_ai fireworks-ai'],
  [{ preset: 'perplexity' }, 'perplexity-ai'],
  [{ preset: 'nvidia' }, 'nvidia_nim'],
  [{ preset: 'alibaba' }, 'dashscope'],
  [{ preset: 'cohere' }, 'cohere_chat'],
  [{ preset: 'jina' }, 'jina_ai'],
  [{ preset: 'fal' }, 'fal_ai'],
  [{ preset: 'novita' }, 'novita-ai'],
  [{ preset: 'ollama', path: '/v1' }, 'ollama ollama_chat'],
  [{ preset: 'vllm' }, 'hosted_vllm vllm'],
  [{ preset: 'zai' }, 'z-ai'],
  [{ preset: 'lmstudio' }, 'lm_studio'],
  [{ kind: 'chatcompat' }, 'sgl siliconflow custom_openai openai_like litellm_proxy'],
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
