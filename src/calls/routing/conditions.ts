/** Which targets of a model take a request, by their conditions and by what the caller asks, and what it costs at each. */
import type { TargetConditions } from '../../config/schema/routing-schema.ts'
import type { Target } from '../../providers/provider.ts'
import type { CallFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import { priceAt, ratesFor } from '../../spec/price.ts'
import { type Excluded, type ProviderPreferences, preferredTargets } from './preferences.ts'

/** What is known of a request; each is found out only where a target or a strategy needs it. */
export type RequestFacts = {
  hasTools(): boolean
  hasImages(): boolean
  /** Estimated. */
  inputTokens(): number
  /** Expected. */
  outputTokens(): number
}

type Conditional = {
  family: CallFamily
  tags: readonly string[] | undefined
  /** Of the caller. */
  project_id?: string | undefined
  /** Absent: the caller asks for nothing. */
  preferences?: ProviderPreferences | undefined
  /** Unix seconds. */
  now(): number
  /** Undefined where nothing is known: it then has no tools, no images and no size. */
  facts(): KnownFacts | undefined
}

/** Of a request that may have no size. */
export type KnownFacts = Pick<RequestFacts, 'hasTools' | 'hasImages'> & Partial<Pick<RequestFacts, 'inputTokens'>>

/** Of a request whose size is known where anything is. */
export type SizedRequest = Omit<Conditional, 'facts'> & { facts(): RequestFacts | undefined }

type Eligible = { targets: readonly Target[]; excluded: readonly Excluded[] }

const NONE: readonly Excluded[] = []

/** Whether a target takes only some requests: mostly none does. */
export function haveConditions(all: readonly Target[]): boolean {
  for (const { when } of all) if (when) return true
  return false
}

/** The targets that take the request, with their priorities for it, and the others. */
export function eligibleTargets(all: readonly Target[], request: Conditional): Eligible {
  const { preferences } = request
  const taking = haveConditions(all) ? takingTargets(all, request) : { targets: all, excluded: NONE }
  if (!preferences) return taking
  const priced = { at: request.now(), inputTokens: () => request.facts()?.inputTokens?.() }
  const { targets, excluded } = preferredTargets(taking.targets, preferences, priced)
  return { targets, excluded: [...taking.excluded, ...excluded] }
}

function takingTargets(all: readonly Target[], request: Conditional): Eligible {
  const excluded: Excluded[] = []
  const targets = all.filter((target) => {
    const reason = target.when && unmetBy(request, target.when)
    if (reason !== undefined) excluded.push({ target, reason })
    return reason === undefined
  })
  return { targets, excluded }
}

/** The targets that take the request. Throws where there are some, and none does. */
export function acceptingTargets(all: readonly Target[], request: Conditional): readonly Target[] {
  const { targets, excluded } = eligibleTargets(all, request)
  if (targets.length === 0 && excluded.length > 0) throw noneEligible(excluded)
  return targets
}

/** The error of a request that no target takes. */
export function noneEligible(excluded: readonly Excluded[]): GatewayError {
  const reasons = new Set(excluded.map(({ reason }) => reason))
  const message = `No provider of this model takes this request: ${[...reasons].join('; ')}.`
  return new GatewayError('no_available_channel', message, { accepted: 'no', retry: false })
}

/** The first condition that does not hold, as text for the caller. */
function unmetBy(request: Conditional, when: TargetConditions): string | undefined {
  const { family, tags, project_id } = request
  const { families, tools, images, min_input_tokens: least = 0, max_input_tokens: most } = when
  if (families && !families.some((one) => one === family))
    return `it must be of ${families.join(' or ')}, not ${family}`
  if (when.projects && !when.projects.includes(project_id ?? '')) return 'it must be of another project'
  const missing = when.tags?.filter((tag) => !tags?.includes(tag)) ?? []
  if (missing.length > 0) return `it must have ${missing.map((tag) => `the tag "${tag}"`).join(' and ')}`
  if (tools !== undefined && tools !== (request.facts()?.hasTools() ?? false))
    return `it must have ${tools ? '' : 'no '}tools`
  if (images !== undefined && images !== (request.facts()?.hasImages() ?? false)) {
    return `it must have ${images ? '' : 'no '}images`
  }
  if (least === 0 && most === undefined) return undefined
  const tokens = request.facts()?.inputTokens?.()
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
