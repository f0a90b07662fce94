/** The ledger, as the operator writes it. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

const days = (what: string, usual: number) =>
  optional(Type.Integer({ minimum: 1, maximum: 36_500, description: `Days to keep ${what}. Default ${usual}.` }))

export const LedgerConfig = Type.Object(
  {
    currency: optional(
      Type.String({
        pattern: '^[A-Z]{3}$',
        description: 'ISO 4217: of all charges, costs and budgets. Default USD.',
      }),
    ),
    durable: optional(
      Type.Boolean({
        description:
          'Store each call before its provider is called, and its charge before its response ends: two commits a call, and a crash loses none. Default false: a crash loses the calls under way, a power cut also the last 100 ms.',
      }),
    ),
    spool_megabytes: optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 1_000_000,
        description:
          'The most that is kept in data_dir/spool while the store is away, besides the journal. Default 1000.',
      }),
    ),
    keep_minutes_days: days('sums by minute', 2),
    keep_hours_days: days('sums by hour', 92),
    keep_entries_days: days('single entries; sums by day are kept for ever', 400),
    exchange_rates: optional(
      Type.Record(Type.String(), Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }), {
        description: 'Worth of one unit of another currency, such as CNY: 0.14. Without a rate its prices are unknown.',
      }),
    ),
    unknown_price: optional(
      Type.Enum(['allow', 'refuse'], {
        description: 'For calls with a budget and no known price. allow: they count as nothing. Default allow.',
      }),
    ),
  },
  closed,
)
export type LedgerConfig = Type.Static<typeof LedgerConfig>
