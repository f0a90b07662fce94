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
        description:
          'How long a call waits for a rate limit instead of being refused, where it fits within that time. Default 0.',
      }),
    ),
    max_end_users: optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000_000,
        description:
          'How many end users each gateway counts apart; further ones share one count of their token. Default 100000.',
      }),
    ),
    store: optional(
      Type.Enum([...LIMIT_STORES], {
        description:
          'database: all gateways on a database share the limits, and a restart keeps what was counted; memory: each gateway counts for itself; valkey: all gateways on the server of `valkey` share them, with one request to it for each call, and those on a database while it is away. Takes effect at the next start. Default database.',
      }),
    ),
    when_store_fails: optional(
      Type.Enum([...WHEN_STORE_FAILS], {
        description:
          'What a gateway does that has used up what it holds of a limit while the database cannot be reached. share: it uses an equal part of the limit; refuse: it refuses calls; allow: it uses all of the limit by itself. Default share.',
      }),
    ),
  },
  { ...closed, description: 'How rate limits work.' },
)
export type LimitsConfig = Type.Static<typeof LimitsConfig>
