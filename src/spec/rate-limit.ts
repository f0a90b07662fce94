/** The names of rate limits and budgets: the same in the configuration, on the command line, in the store and in the API. */
import Type from 'typebox'
import { closedObject, flag, integer, LATEST_TIME, list, text } from './fields.ts'
import { MAX_AMOUNT } from './price.ts'

/** What a rate limit counts in a window. `tokens` is input and output together. */
export const RATE_UNITS = [
  'requests',
  'input_tokens',
  'output_tokens',
  'tokens',
  'images',
  'videos',
  'video_seconds',
  'three_d',
  'audio_seconds',
] as const
export type RateUnit = (typeof RATE_UNITS)[number]

export const RATE_WINDOWS = ['second', 'minute', 'hour', 'day'] as const
export type RateWindow = (typeof RATE_WINDOWS)[number]

/** Counted at a time, not in a window. */
const CONCURRENCY_LIMITS = ['concurrent_requests', 'tasks_in_flight'] as const
type ConcurrencyLimit = (typeof CONCURRENCY_LIMITS)[number]

export type RateLimitKey = `${RateUnit}_per_${RateWindow}` | ConcurrencyLimit

export const RATE_LIMIT_KEYS: readonly RateLimitKey[] = [
  ...RATE_UNITS.flatMap((unit) => RATE_WINDOWS.map((window) => `${unit}_per_${window}` as const)),
  ...CONCURRENCY_LIMITS,
]

/** Above every real limit, and far below what a number can count exactly. */
export const MAX_RATE_LIMIT = 1_000_000_000_000

/** By key, such as `{requests_per_minute: 600}`; 0 refuses everything. */
export type RateLimits = Partial<Record<RateLimitKey, number>>

export const RateLimits = Type.Object(
  Object.fromEntries(
    RATE_LIMIT_KEYS.map((key) => [key, Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_RATE_LIMIT }))]),
  ),
  { additionalProperties: false },
)

export const BUDGET_WINDOWS = ['day', 'week', 'month', 'total'] as const
export type BudgetWindow = (typeof BUDGET_WINDOWS)[number]

export const Budget = closedObject('Budget', {
  amount: Type.Number({ minimum: 0, maximum: MAX_AMOUNT, description: 'In the currency of the ledger.' }),
  window: Type.Enum([...BUDGET_WINDOWS], {
    description: 'When it starts again; weeks on Monday, total never.',
  }),
  time_zone: text('IANA name, such as Europe/Berlin. Default UTC.'),
  starts_at: integer({ minimum: 0, maximum: LATEST_TIME }, 'Unix seconds from which charges count. Default: all.'),
  thresholds: list(
    Type.Number({ exclusiveMinimum: 0, maximum: 100 }),
    { maxItems: 10 },
    'Percentages for alerts. Default 50, 80 and 100.',
  ),
  soft: flag('Only notify, and refuse nothing. Default false.'),
})
export type Budget = Type.Static<typeof Budget>
