/** The ledger, as the operator writes it. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

export const LedgerConfig = Type.Object(
  {
    currency: optional(
      Type.String({
        pattern: '^[A-Z]{3}$',
        description: 'ISO 4217: of all charges, costs and budgets. Default USD.',
      }),
    ),
    exchange_rates: optional(
      Type.Record(Type.String(), Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }), {
        description:
          'What one unit of another currency is worth in the currency of the ledger, such as CNY: 0.14. Without a rate, prices in that currency count as unknown.',
      }),
    ),
    unknown_price: optional(
      Type.Enum(['allow', 'refuse'], {
        description:
          'What a call gets that counts towards a budget and whose price is not known. allow: it counts as nothing. Default allow.',
      }),
    ),
  },
  closed,
)
export type LedgerConfig = Type.Static<typeof LedgerConfig>
