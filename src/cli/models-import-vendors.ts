/** Which vendor of models.dev stands behind which provider of the configuration. */
import { nearest } from '../config/nearest.ts'
import type { ProviderKind } from '../config/provider-kinds.ts'
import type { ProviderConfig } from '../config/schema.ts'
import { matchesGlob } from '../kit/glob.ts'
import { PRESETS } from '../providers/presets.ts'
import { NOT_CHAT } from '../providers/settings.ts'
import type { ModelsDev, Vendor } from './models-import-data.ts'

/** Presets and kinds that models.dev knows by another name. */
const OTHER_NAMES: Record<string, string> = {
  fireworks: 'fireworks-ai',
  gemini: 'google',
  github: 'github-models',
  moonshot: 'moonshotai',
  novita: 'novita-ai',
  together: 'togetherai',
  zhipu: 'zhipuai',
}

/** Kinds that say how a vendor is spoken to, not which one it is. */
const NAMELESS: readonly ProviderKind[] = [
  'chatcompat',
  'messages-compat',
  'contentgen-compat',
  'responses-compat',
  'sandbox',
  'chatcompat-video',
]
/** Kinds that take orders for videos only, of which models.dev knows no prices. */
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

/** A provider, and the vendor whose rows are true of it. */
export type Pairing = { provider: string; config: ProviderConfig; vendor: Vendor }
export type Unpaired = { provider: string; why: string }

type Wish = { provider: string; vendor: string | undefined }

/** Reads `--provider acme` and `--provider acme=mistral`. */
export function readWish(text: string): Wish {
  const at = text.indexOf('=')
  return at === -1 ? { provider: text, vendor: undefined } : { provider: text.slice(0, at), vendor: text.slice(at + 1) }
}

type PairParts = { providers: Record<string, ProviderConfig>; wishes: Wish[]; data: ModelsDev }

/** All providers, or those that are wished for. Throws for a wish that cannot be fulfilled. */
export function pairVendors({ providers, wishes, data }: PairParts): { paired: Pairing[]; unpaired: Unpaired[] } {
  const known = Object.keys(providers).filter((id) => kindOf(providers[id] ?? {}) !== 'sandbox')
  const paired: Pairing[] = []
  const unpaired: Unpaired[] = []
  if (known.length === 0 && wishes.length === 0) {
    throw new Error(
      'No provider is configured, or found by its key in the environment: there is nothing to import for.',
    )
  }
  const asked: Wish[] =
    wishes.length > 0 ? lastOfEach(wishes) : known.map((provider) => ({ provider, vendor: undefined }))
  for (const { provider, vendor: name } of asked) {
    const config = Object.hasOwn(providers, provider) ? providers[provider] : undefined
    if (!config) throw new Error(`--provider: there is no provider "${provider}"${choice(provider, known)}`)
    if (name !== undefined) {
      const vendor = data.vendors.get(name)
      if (!vendor)
        throw new Error(`--provider: models.dev has no vendor "${name}"${choice(name, [...data.vendors.keys()])}`)
      paired.push({ provider, config, vendor })
      continue
    }
    const found = vendorOf(config, data)
    if (typeof found === 'object') paired.push({ provider, config, vendor: found })
    else if (wishes.length === 0) unpaired.push({ provider, why: found })
    else throw new Error(`--provider: "${provider}" ${found}`)
  }
  return { paired, unpaired }
}

const lastOfEach = (wishes: Wish[]): Wish[] => [...new Map(wishes.map((wish) => [wish.provider, wish])).values()]

const kindOf = ({ kind, preset }: ProviderConfig): ProviderKind => kind ?? PRESETS[preset ?? '']?.kind ?? 'chatcompat'

/** The vendor, or why there is none. */
function vendorOf(config: ProviderConfig, { vendors }: ModelsDev): Vendor | string {
  const kind = kindOf(config)
  if (VIDEO_ONLY.includes(kind)) return 'serves videos, and models.dev knows no prices of those'
  const preset = config.preset ?? presetAt(config.base_url)
  if (preset !== undefined && PRESETS[preset]?.local) return 'serves models of your own machine'
  const name = preset ?? (NAMELESS.includes(kind) ? undefined : kind)
  const byName = name === undefined ? undefined : vendors.get(OTHER_NAMES[name] ?? name)
  const found = byName ?? [...vendors.values()].find(({ api }) => isSameAddress(api, config.base_url))
  return (
    found ?? 'is nobody whom models.dev knows by its preset or address; name the vendor, as in --provider <id>=<vendor>'
  )
}

const presetAt = (base_url: string | undefined): string | undefined =>
  Object.entries(PRESETS).find(([, preset]) => !preset.local && isSameAddress(preset.base_url, base_url))?.[0]

const isSameAddress = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && other !== undefined && one.replace(/\/+$/, '') === other.replace(/\/+$/, '')

function choice(word: string, known: string[]): string {
  const meant = nearest(word, known)
  if (meant !== undefined) return `; did you mean "${meant}"?`
  if (known.length === 0) return '; none is configured or found by its key in the environment'
  return known.length > 30 ? '' : `; there is ${known.join(', ')}`
}

/** Whether the provider would offer a model of this name for chat, where it is asked for its models. */
export function isChatName(model: string, { preset }: ProviderConfig): boolean {
  const { include = ['*'], exclude = [] } = PRESETS[preset ?? '']?.chat_models ?? {}
  const fits = (globs: readonly string[]) => globs.some((glob) => matchesGlob(glob, model.toLowerCase()))
  return fits(include) && !fits(exclude) && !fits(NOT_CHAT)
}
