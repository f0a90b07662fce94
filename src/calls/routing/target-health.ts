/** Describes the router's state of targets as plain data for operators. Times are unix seconds. */
import Type from 'typebox'
import type { Clock } from '../../kit/clock.ts'
import { orNull } from '../../spec/fields.ts'
import { latencyCost } from './bounds.ts'
import { availableAt, avoidedBecause, type TargetState } from './target-state.ts'

const time = (description: string) => orNull(Type.Integer({ description: `${description} Unix seconds.` }))

export const TargetHealth = Type.Object(
  {
    state: Type.String({
      description:
        '`available`, or why it is avoided: `drained` or `disabled` by an operator, `key refused`, `rate limited`, `unhealthy` (its probes fail), `ejected` (its breaker is open) or `probing` (one call tests it).',
    }),
    since: time('When the state began; null: at the start of the process, or not known.'),
    until: time('When it is available again, so far as known.'),
    open_calls: Type.Integer(),
    latency_ms: orNull(Type.Integer({ description: 'The moving average of the time to the first byte.' })),
    expected_latency_ms: orNull(Type.Integer({ description: 'What the strategy least_latency compares.' })),
    recent: Type.Object(
      { succeeded: Type.Integer(), failed: Type.Integer(), error_rate: orNull(Type.Number()) },
      { description: 'Of the last 30 to 60 seconds.' },
    ),
    consecutive_failures: Type.Integer(),
    ejections: Type.Integer({ description: 'Without a success in between: each is twice as long.' }),
    active_health: orNull(Type.String({ description: '`healthy` or `unhealthy`; null: its provider is not probed.' })),
    last_ok_at: time('The last success.'),
    last_error: orNull(
      Type.Object({
        at: Type.Integer({ description: 'Unix seconds.' }),
        code: Type.String(),
        upstream_status: orNull(Type.Integer()),
        message: Type.String(),
      }),
    ),
  },
  { title: 'TargetHealth', description: 'As this gateway process knows it.' },
)
type TargetHealth = Type.Static<typeof TargetHealth>

const MAX_MESSAGE = 200

/** Calls that are older than two windows no longer count. */
const RECENT_MS = 60_000

export function targetHealth(state: TargetState, clock: Clock): TargetHealth {
  const now = clock.steady()
  const unix = (steady: number): number => Math.floor((clock.now() - (now - steady)) / 1000)
  const unixOrNull = (steady: number): number | null => (steady === 0 ? null : unix(steady))
  const reason = avoidedBecause(state, now)
  const until = availableAt(state)
  const isTimed = reason !== undefined && state.blocked === undefined && until > now
  const isRecent = now - state.window_at < RECENT_MS
  const [succeeded, failed] = isRecent ? [state.ok[0] + state.ok[1], state.failed[0] + state.failed[1]] : [0, 0]
  const { last_error } = state
  return {
    state: reason ?? 'available',
    since: unixOrNull(sinceOf(state, reason)),
    until: isTimed ? unix(until) : null,
    open_calls: state.open,
    latency_ms: state.count === 0 ? null : Math.round(state.latency_ms),
    expected_latency_ms: state.count === 0 ? null : Math.round(latencyCost(state, now)),
    recent: { succeeded, failed, error_rate: succeeded + failed === 0 ? null : failed / (succeeded + failed) },
    consecutive_failures: state.consecutive_failures,
    ejections: state.ejections,
    active_health: state.health === undefined ? null : state.health.is_unhealthy ? 'unhealthy' : 'healthy',
    last_ok_at: unixOrNull(state.last_ok_at),
    last_error: last_error
      ? {
          at: unix(last_error.at),
          code: last_error.error.code,
          upstream_status: last_error.error.detail.upstream_status ?? null,
          message: last_error.error.message.slice(0, MAX_MESSAGE),
        }
      : null,
  }
}

function sinceOf(state: TargetState, reason: ReturnType<typeof avoidedBecause>): number {
  switch (reason) {
    case 'ejected':
    case 'probing':
      return state.ejected_at
    case 'key refused':
    case 'rate limited':
      return state.limited_at
    case undefined:
      return state.returned_at
    default:
      return 0
  }
}
