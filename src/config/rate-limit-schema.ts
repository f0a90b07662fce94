/** Rate limits, and how they work, as the operator writes them. */
import Type, { type TSchema } from 'typebox'
import { RateLimits } from '../spec/rate-limit.ts'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

const LIMIT_STORES = ['database', 'memory', 'valkey'] as const
const WHEN_STORE_FAILS = ['share', 'refuse', 'allow'] as const

/** With the keys in its type. */
export const rateLimits = (description: string) =>
  optional(Type.Unsafe<RateLimits>({ ...RateLimits, title: 'rate limits', description }))

/** The section `limits`. */
export const LimitsConfig = Type.Object(
  {
    queue_seconds: optional(
      Type.Number({
        minimum: 0,
        maximum: 300,
        description: 'How long a call waits for a rate limit if it fits within that time. Default 0.',
      }),
    ),
    max_end_users: optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000_000,
        description: 'End users counted apart; further ones share one count of their token. Default 100000.',
      }),
    ),
    store: optional(
      Type.Enum([...LIMIT_STORES], {
        description:
          'database: gateways share limits, also after a restart; memory: each counts for itself; valkey: shared exactly, with one request a call; by the database while it is away. Needs a restart. Default database.',
      }),
    ),
    when_store_fails: optional(
      Type.Enum([...WHEN_STORE_FAILS], {
        description:
          'While the database is away, beyond what a gateway holds: share uses an equal part of the limit, refuse refuses calls, allow uses all of it. Default share.',
      }),
    ),
  },
  { ...closed, description: 'How rate limits work.' },
)
export type LimitsConfig = Type.Static<typeof LimitsConfig>
