/** Warns of patterns of a new token that match no model. */
import type { Config } from '../config/config.ts'
import { matchesGlob } from '../kit/glob.ts'
import { nearest } from '../kit/nearest.ts'
import { nearModel } from '../models/near-names.ts'
import { discoverProviders } from '../providers/discover.ts'
import { presetModels } from '../providers/preset-models.ts'
import { SANDBOX_MODELS } from '../providers/sandbox.ts'

type Known = {
  config: Config
  environment: Record<string, string | undefined>
  /** The models that gateways on this store have had. */
  seen: string[]
}

/** The gateway is not asked, and no provider: a pattern of a provider whose models are not known yet gets no warning. */
export function patternWarnings(patterns: readonly string[], { config, environment, seen }: Known): string[] {
  const listing = listingProviders(config, environment)
  const ids = new Set([...seen, ...Object.keys(config.models), ...(config.sandbox ? Object.keys(SANDBOX_MODELS) : [])])
  for (const [id, preset] of listing) for (const model of Object.keys(presetModels(preset))) ids.add(`${id}/${model}`)
  const known = [...ids]
  const providers = [...new Set(known.map(providerIn))]
  return patterns.flatMap((pattern) => {
    if (known.some((id) => matchesGlob(pattern, id))) return []
    const provider = providerIn(pattern)
    // Its list of models has not been read, or a new model of it may come.
    if (listing.has(provider)) return []
    const meant = pattern.includes('*') ? nearPattern(pattern, providers) : nearModel(pattern, known)
    const hint = meant === undefined ? '' : `; did you mean "${meant}"?`
    return [`--models: "${pattern}" matches no model of this gateway${hint}`]
  })
}

/** The part before the first slash; empty without one, as in `*`. */
const providerIn = (id: string): string => id.slice(0, Math.max(0, id.indexOf('/')))

function nearPattern(pattern: string, providers: string[]): string | undefined {
  const provider = providerIn(pattern)
  const near = nearest(provider, providers)
  // A provider that is spelt right is not what is wrong.
  return near === undefined || near === provider ? undefined : near + pattern.slice(provider.length)
}

/** The providers whose models are discovered, with their presets. */
function listingProviders({ providers, discover }: Config, environment: Known['environment']): Map<string, string> {
  const found = discover ? discoverProviders(environment) : {}
  const inFile = Object.entries(providers).filter(([, one]) => one.discover)
  return new Map([...Object.entries(found), ...inFile].map(([id, { preset = '' }]) => [id, preset]))
}
