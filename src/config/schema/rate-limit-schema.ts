/** Rate limits, and how they work, as the operator writes them. */
import Type from 'typebox'
import { integer, number, oneOf, optional, section } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'
import { RateLimits } from '../../spec/rate-limit.ts'

const LIMIT_STORES = ['database', 'memory', 'valkey'] as const
const WHEN_STORE_FAILS = ['share', 'refuse', 'allow'] as const

/** With the keys in its type. */
export const rateLimits = (description: string) =>
  optional(Type.Unsafe<RateLimits>({ ...RateLimits, title: 'rate limits', description }))

/** The section `limits`. */
export const LimitsConfig = section(
  {
    queue_seconds: number({ minimum: 0, maximum: 300 }, 'How long a call may wait. Default 0.'),
    max_end_users: integer({ minimum: 1, maximum: 10_000_000 }, 'End users counted apart. Default 100000.'),
    store: oneOf(
      LIMIT_STORES,
      mark.restart,
      'database: gateways share limits, also after a restart; memory: each counts for itself; valkey: shared exactly. Needs a restart. Default database.',
    ),
    when_store_fails: oneOf(
      WHEN_STORE_FAILS,
      'Without the database: share: an equal part of the limit; refuse: what a gateway holds; allow: all of it. Default share.',
    ),
  },
  'How rate limits work.',
)
export type LimitsConfig = Type.Static<typeof LimitsConfig>
