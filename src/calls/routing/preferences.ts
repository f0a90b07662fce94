/** Applies the caller's choice of providers: which ones may serve its request, and in which order. */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import type { Target } from '../../providers/provider.ts'
import { priceAt, ratesFor } from '../../spec/price.ts'

export type Strategy = NonNullable<RoutingConfig['strategy']>

/** The field `provider` of a request. Providers are named by their ids. https://openrouter.ai/docs/guides/routing/provider-selection */
export type ProviderPreferences = {
  /** These first, in this order. */
  order?: readonly string[]
  /** No others. */
  only?: readonly string[]
  ignore?: readonly string[]
  /** False: none but those of `order`; without an order, none but the provider of the first try. */
  allow_fallbacks?: boolean
  /** Replaces the priorities and the strategy of the model. */
  sort?: Extract<Strategy, 'cheapest' | 'least_latency'>
  /** Per million tokens, in the currency of the ledger. */
  max_price?: { prompt?: number; completion?: number }
}

/** A target that does not take the request, and why: text for the caller that names no provider. */
export type Excluded = { target: Target; reason: string }

type Preferred = { targets: readonly Target[]; excluded: readonly Excluded[] }

/** More than the highest priority of the configuration. */
const PRIORITIES = 101

/** Nano-units per token, of one unit per million tokens. */
const RATE = 1_000

type Priced = {
  /** Unix seconds. */
  at: number
  /** Undefined: not known. */
  inputTokens(): number | undefined
}

/** The targets that the preferences permit, with their priorities by these. */
export function preferredTargets(all: readonly Target[], preferences: ProviderPreferences, priced: Priced): Preferred {
  const targets: Target[] = []
  const excluded: Excluded[] = []
  for (const target of all) {
    const reason = forbiddenBy(target, preferences) ?? dearerThan(target, preferences.max_price, priced)
    if (reason === undefined) targets.push(prioritised(target, preferences))
    else excluded.push({ target, reason })
  }
  return { targets, excluded }
}

function forbiddenBy({ provider: { id } }: Target, preferences: ProviderPreferences): string | undefined {
  const { order, only, ignore, allow_fallbacks = true } = preferences
  if (only && !only.includes(id)) return 'not in "provider.only"'
  if (ignore?.includes(id)) return 'in "provider.ignore"'
  if (order && !allow_fallbacks && !order.includes(id)) {
    return 'not in "provider.order", and "provider.allow_fallbacks" is false'
  }
  return undefined
}

function dearerThan(
  { prices }: Target,
  max_price: ProviderPreferences['max_price'],
  { at, inputTokens }: Priced,
): string | undefined {
  if (!max_price) return undefined
  const price = prices && priceAt(prices, at)
  const rates = price && ratesFor(price, inputTokens() ?? 0)
  for (const [name, rate] of [
    ['prompt', rates?.input],
    ['completion', rates?.output],
  ] as const) {
    const most = max_price[name]
    if (most === undefined) continue
    if (rate === undefined || Number.isNaN(rate)) return 'its price is not known, and "provider.max_price" is set'
    if (rate > most * RATE) return `above "provider.max_price.${name}"`
  }
  return undefined
}

/** Weight 0 stays: the operator takes such a target out of use. */
function prioritised(target: Target, { order, sort }: ProviderPreferences): Target {
  if (!order && !sort) return target
  const own = sort === undefined ? (target.priority ?? 0) : 0
  if (!order) return { ...target, priority: own }
  const at = order.indexOf(target.provider.id)
  return { ...target, priority: (at === -1 ? order.length : at) * PRIORITIES + own }
}
