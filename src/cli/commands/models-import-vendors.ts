/** Maps the providers of the configuration to the vendors of models.dev. */
import type { ProviderKind } from '../../config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../../config/schema/schema.ts'
import { matchesGlob } from '../../kit/glob.ts'
import { nearest } from '../../kit/nearest.ts'
import { PRESETS } from '../../providers/presets.ts'
import { NOT_CHAT } from '../../providers/settings.ts'
import type { ModelsDev, Vendor } from './models-import-data.ts'

/** Presets and kinds with another name at models.dev. */
const OTHER_NAMES: Record<string, string> = {
  fireworks: 'fireworks-ai',
  gemini: 'google',
  github: 'github-models',
  moonshot: 'moonshotai',
  novita: 'novita-ai',
  together: 'togetherai',
  zhipu: 'zhipuai',
}

/** Kinds that name an API, not a vendor. */
const NAMELESS: readonly ProviderKind[] = [
  'chatcompat',
  'messages-compat',
  'contentgen-compat',
  'responses-compat',
  'sandbox',
  'chatcompat-video',
]
/** Kinds that serve only videos, for which models.dev has no prices. */
const VIDEO_ONLY: readonly ProviderKind[] = [
  'ark',
  'black-forest-labs',
  'chatcompat-video',
  'fal',
  'google',
  'kling',
  'luma',
  'minimax',
  'replicate',
  'runway',
]

/** A provider and its vendor at models.dev. */
export type Pairing = { provider: string; config: ProviderConfig; vendor: Vendor }
export type Unpaired = { provider: string; why: string }

type ProviderRequest = { provider: string; vendor: string | undefined }

/** Reads `--provider acme` and `--provider acme=mistral`. */
export function readProviderRequest(text: string): ProviderRequest {
  const at = text.indexOf('=')
  return at === -1 ? { provider: text, vendor: undefined } : { provider: text.slice(0, at), vendor: text.slice(at + 1) }
}

type PairParts = { providers: Record<string, ProviderConfig>; wishes: ProviderRequest[]; data: ModelsDev }

/** Pairs all providers, or the requested ones. Throws if a requested one has no vendor. */
export function pairVendors({ providers, wishes: requests, data }: PairParts): {
  paired: Pairing[]
  unpaired: Unpaired[]
} {
  const known = Object.keys(providers).filter((id) => kindOf(providers[id] ?? {}) !== 'sandbox')
  const paired: Pairing[] = []
  const unpaired: Unpaired[] = []
  if (known.length === 0 && requests.length === 0) {
    throw new Error(
      'No provider is configured, or found by its key in the environment: there is nothing to import for.',
    )
  }
  const requested: ProviderRequest[] =
    requests.length > 0 ? lastPerProvider(requests) : known.map((provider) => ({ provider, vendor: undefined }))
  for (const { provider, vendor: name } of requested) {
    const config = Object.hasOwn(providers, provider) ? providers[provider] : undefined
    if (!config) throw new Error(`--provider: there is no provider "${provider}"${choice(provider, known)}`)
    if (name !== undefined) {
      const vendor = data.vendors.get(name)
      if (!vendor)
        throw new Error(`--provider: ${data.name} has no vendor "${name}"${choice(name, [...data.vendors.keys()])}`)
      paired.push({ provider, config, vendor })
      continue
    }
    const found = vendorOf(config, data)
    if (typeof found === 'object') paired.push({ provider, config, vendor: found })
    else if (requests.length === 0) unpaired.push({ provider, why: found })
    else throw new Error(`--provider: "${provider}" ${found}`)
  }
  return { paired, unpaired }
}

const lastPerProvider = (requests: ProviderRequest[]): ProviderRequest[] => [
  ...new Map(requests.map((wish) => [wish.provider, wish])).values(),
]

const kindOf = ({ kind, preset }: ProviderConfig): ProviderKind => kind ?? PRESETS[preset ?? '']?.kind ?? 'chatcompat'

/** The vendor, or the reason why there is none. */
function vendorOf(config: ProviderConfig, { name: source, vendors }: ModelsDev): Vendor | string {
  const kind = kindOf(config)
  if (VIDEO_ONLY.includes(kind)) return 'serves videos, whose prices are not imported'
  const preset = config.preset ?? presetAt(config.base_url)
  if (preset !== undefined && PRESETS[preset]?.local) return 'serves models on this machine'
  const name = preset ?? (NAMELESS.includes(kind) ? undefined : kind)
  const byName = name === undefined ? undefined : vendors.get(OTHER_NAMES[name] ?? name)
  const found = byName ?? [...vendors.values()].find(({ api }) => isSameAddress(api, config.base_url))
  return found ?? `is not known to ${source} by its preset or address; name its vendor, as in --provider <id>=<vendor>`
}

const presetAt = (base_url: string | undefined): string | undefined =>
  Object.entries(PRESETS).find(([, preset]) => !preset.local && isSameAddress(preset.base_url, base_url))?.[0]

const isSameAddress = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && other !== undefined && one.replace(/\/+$/, '') === other.replace(/\/+$/, '')

function choice(word: string, known: string[]): string {
  const suggestion = nearest(word, known)
  if (suggestion !== undefined) return `; did you mean "${suggestion}"?`
  if (known.length === 0) return '; none is configured or found by its key in the environment'
  return known.length > 30 ? '' : `; known: ${known.join(', ')}`
}

/** Whether discovery of this provider would list a model of this name as a chat model. */
export function isChatName(model: string, { preset }: ProviderConfig): boolean {
  const { include = ['*'], exclude = [] } = PRESETS[preset ?? '']?.chat_models ?? {}
  const fits = (globs: readonly string[]) => globs.some((glob) => matchesGlob(glob, model.toLowerCase()))
  return fits(include) && !fits(exclude) && !fits(NOT_CHAT)
}
