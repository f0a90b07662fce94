/** Which targets of a model take a request (`when`), and what the request would cost at each. */
import type { TargetConditions } from '../config/routing-schema.ts'
import type { Target } from '../providers/provider.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import { priceAt, ratesFor } from '../spec/price.ts'

/** What is known of a request; each is found out only where a target or a strategy needs it. */
export type RequestFacts = {
  hasTools(): boolean
  hasImages(): boolean
  /** Estimated. */
  inputTokens(): number
  /** Expected. */
  outputTokens(): number
}

export type Conditional = {
  family: EndpointFamily
  tags: readonly string[] | undefined
  /** Undefined where nothing is known: it then has no tools, no images and no size. */
  facts(): RequestFacts | undefined
}

/** The targets that take the request. Throws `no_available_channel`, which says why, where there were some and none does. */
export function eligibleTargets(targets: readonly Target[], request: Conditional): readonly Target[] {
  if (!targets.some(({ when }) => when)) return targets
  const reasons = new Set<string>()
  const eligible = targets.filter(({ when }) => {
    const reason = when && unmetBy(request, when)
    if (reason !== undefined) reasons.add(reason)
    return reason === undefined
  })
  if (eligible.length > 0) return eligible
  const message = `No provider of this model takes this request: ${[...reasons].join('; ')}.`
  throw new GatewayError('no_available_channel', message, { accepted: 'no', retry: false })
}

/** The first condition that does not hold, as text for the caller. */
function unmetBy({ family, tags, facts }: Conditional, when: TargetConditions): string | undefined {
  const { families, tools, images, min_input_tokens: least = 0, max_input_tokens: most } = when
  if (families && !families.includes(family)) return `it must be of ${families.join(' or ')}, not ${family}`
  const missing = when.tags?.filter((tag) => !tags?.includes(tag)) ?? []
  if (missing.length > 0) return `it must have ${missing.map((tag) => `the tag "${tag}"`).join(' and ')}`
  if (tools !== undefined && tools !== (facts()?.hasTools() ?? false)) return `it must have ${tools ? '' : 'no '}tools`
  if (images !== undefined && images !== (facts()?.hasImages() ?? false)) {
    return `it must have ${images ? '' : 'no '}images`
  }
  if (least === 0 && most === undefined) return undefined
  const tokens = facts()?.inputTokens()
  if (tokens === undefined) return undefined
  if (tokens < least) return `it must have at least ${least} input tokens, not about ${tokens}`
  if (most !== undefined && tokens > most) return `it must have at most ${most} input tokens, not about ${tokens}`
  return undefined
}

/**
 * What the request is expected to cost, by the prices of the target at this time, in unix seconds; undefined: it has none.
 * Only good for comparison: a price that is missing beside others counts as 0.
 */
export function expectedCost({ prices }: Target, facts: RequestFacts | undefined, at: number): number | undefined {
  const price = prices && priceAt(prices, at)
  if (!price || (Number.isNaN(price.rates.input) && Number.isNaN(price.rates.output))) return undefined
  // Without a known size the targets are compared by what their input costs.
  if (!facts) return price.rates.input || 0
  const { input, output } = ratesFor(price, facts.inputTokens())
  return facts.inputTokens() * (input || 0) + facts.outputTokens() * (output || 0)
}
