/** How a request would be routed now. Pure: settings and memory in, decision out; nothing is sent and nothing is counted. */
import Type from 'typebox'
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import type { Target } from '../../providers/provider.ts'
import { orNull, text } from '../../spec/fields.ts'
import { boundsOf, firstByteLimit } from './bounds.ts'
import { type Candidate, type Choice, chooseAvailable, chooseAvoided } from './choose.ts'
import { availableAt, avoidedBecause, targetName } from './target-state.ts'

/** One target of a decision. Names keys, and never contains one. */
const TargetDecision = Type.Object({
  target: Type.String(),
  key: Type.Optional(Type.String()),
  priority: Type.Integer(),
  weight: Type.Number(),
  order: orNull(Type.Integer({ description: 'Its position among the tries; null: it would not be tried.' })),
  available: Type.Boolean(),
  // As it is avoided: `drained`, `key refused`, `rate limited`, `ejected`, `wrong family`, `queue full`, `rate limit: ...`.
  reason: text('Why it is not available.'),
  available_in_seconds: Type.Optional(Type.Integer()),
  first_byte_seconds: Type.Number(),
  latency_ms: Type.Optional(Type.Integer()),
  open_calls: Type.Integer(),
  expected_cost: Type.Optional(orNull(Type.Number())),
  is_full: Type.Optional(Type.Boolean()),
})

export const DECISION = {
  strategy: Type.Unsafe<NonNullable<RoutingConfig['strategy']>>(Type.String()),
  sticky: Type.Unsafe<RoutingConfig['sticky'] | null>(orNull(Type.String())),
  hedge: Type.Boolean(),
  tries: Type.Integer(),
  deadline_seconds: orNull(Type.Number()),
  order: Type.Unsafe<'fixed' | 'shared'>(
    Type.String({ description: '`fixed`, or `shared`: the next request may see another order.' }),
  ),
  targets: Type.Array(TargetDecision),
}
export type Decision = Type.Static<Type.TObject<typeof DECISION>>

type Explaining = {
  /** The targets, with what is remembered of them. They are not changed. */
  candidates: readonly Candidate[]
  /** The targets that do not take the request, and why. */
  excluded?: readonly { candidate: Candidate; reason: string }[]
  settings: RoutingConfig
  options?: Parameters<typeof boundsOf>[2]
  /** By the steady clock. */
  now: number
  is_stream: boolean
  /** The number that calls of one conversation share. */
  affinity?: number | undefined
  /** Whether no other provider is tried after the first one. */
  is_one_provider?: boolean
  /** Whether a fallback model serves the call where no target is available: then those that are avoided are not tried. */
  has_fallback?: boolean
  /** Whether a target serves the kind of request; absent: all do. */
  serves?(target: Target): boolean
  /** What the request is expected to cost at a target, for the strategy `cheapest`; undefined: not known. */
  costOf?(target: Target): number | undefined
}

export function explain(explaining: Explaining): Decision {
  const { settings, options, now, excluded = [], serves = () => true } = explaining
  // Copies: choosing by weight counts.
  const candidates = explaining.candidates.map(copied)
  const wrong = new Set(candidates.filter(({ target }) => !serves(target)))
  const served = candidates.filter((one) => !wrong.has(one))
  const isShared = sharesCalls(served, explaining)
  const order = orderOf(served, explaining)
  const { tries, deadline } = boundsOf(settings, 0, options)
  const position = (candidate: Candidate) => {
    const at = order.indexOf(candidate)
    return at === -1 || at >= tries ? null : at + 1
  }
  return {
    strategy: settings.strategy ?? 'priority',
    sticky: settings.sticky ?? null,
    hedge: settings.hedge ?? false,
    tries,
    deadline_seconds: deadline === Number.POSITIVE_INFINITY ? null : deadline / 1000,
    order: isShared ? 'shared' : 'fixed',
    targets: [
      ...candidates.map((candidate) => ({
        ...shown(candidate, explaining),
        order: position(candidate),
        ...availability(candidate, wrong.has(candidate), now),
      })),
      ...excluded.map(({ candidate, reason }) => ({
        ...shown(candidate, explaining),
        order: null,
        available: false,
        reason,
      })),
    ],
  }
}

function shown(candidate: Candidate, explaining: Explaining) {
  const { target, state, limiter, weight } = candidate
  const { strategy } = explaining.settings
  return {
    target: targetName(target),
    ...(target.key === undefined ? {} : { key: target.key }),
    priority: target.priority ?? 0,
    weight,
    first_byte_seconds: firstByteLimit(candidate, explaining) / 1000,
    ...(state.count === 0 ? {} : { latency_ms: Math.round(state.latency_ms) }),
    open_calls: state.open,
    ...(strategy === 'cheapest' ? { expected_cost: inCurrency(explaining.costOf?.(target)) } : {}),
    ...(limiter === undefined || limiter.isFree() ? {} : { is_full: true as const }),
  }
}

const inCurrency = (nanos: number | undefined): number | null =>
  nanos === undefined ? null : Math.round(nanos) / 1_000_000_000

function availability({ state, limiter }: Candidate, isWrong: boolean, now: number) {
  const reason = isWrong ? 'wrong family' : avoidedBecause(state, now)
  if (reason === undefined) {
    return limiter?.isQueueFull() ? { available: false, reason: 'queue full' } : { available: true }
  }
  const left = availableAt(state) - now
  const wait = isWrong || left <= 0 ? {} : { available_in_seconds: Math.ceil(left / 1000) }
  return { available: false, reason, ...wait }
}

type Choosing = Pick<Explaining, 'settings' | 'now' | 'affinity' | 'has_fallback' | 'is_one_provider' | 'costOf'>

/** The candidates in the order in which a request would try them; those that are avoided only where all are. */
function orderOf(candidates: readonly Candidate[], choosing: Choosing): Candidate[] {
  const { settings, now, affinity, has_fallback, is_one_provider, costOf } = choosing
  const tried = new Set<Candidate>()
  const choice: Choice = {
    strategy: settings.strategy ?? 'priority',
    now,
    random: () => 0,
    affinity,
    isTried: (candidate) => tried.has(candidate),
    costOf: (target) => costOf?.(target),
  }
  const order: Candidate[] = []
  const isLastResort = !has_fallback && chooseAvailable(candidates.map(copied), choice) === undefined
  for (;;) {
    const next = chooseAvailable(candidates, choice) ?? (isLastResort ? chooseAvoided(candidates, choice) : undefined)
    if (!next) return order
    tried.add(next)
    order.push(next)
    if (!is_one_provider) continue
    for (const other of candidates) if (other.target.provider.id !== next.target.provider.id) tried.add(other)
  }
}

const copied = (candidate: Candidate): Candidate => ({
  ...candidate,
  state: { ...candidate.state },
  share: { ...candidate.share },
})

/** Whether another request may see another order: where a choice among several of one priority is not by conversation. */
function sharesCalls(candidates: readonly Candidate[], { now, affinity }: Choosing): boolean {
  if (affinity !== undefined) return false
  const seen = new Set<number>()
  return candidates.some(({ target, weight, state }) => {
    if (weight === 0 || avoidedBecause(state, now) !== undefined) return false
    const priority = target.priority ?? 0
    if (seen.has(priority)) return true
    seen.add(priority)
    return false
  })
}
