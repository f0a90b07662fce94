/** The ledger, as the operator writes it. */
import Type from 'typebox'
import { flag, integer, mapping, number, oneOf, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

const days = (what: string, usual: number) =>
  integer({ minimum: 1, maximum: 36_500 }, `Days to keep ${what}. Default ${usual}.`)

export const LedgerConfig = section({
  currency: text({ ...mark.shown, pattern: '^[A-Z]{3}$' }, 'ISO 4217: of all charges, costs and budgets. Default USD.'),
  durable: flag(
    'Commit each call before its provider is called, and its charge before its response ends, so that no crash loses one.',
  ),
  spool_megabytes: number(
    { exclusiveMinimum: 0, maximum: 1_000_000 },
    'Kept in data_dir/spool while the store is away. Default 1000.',
  ),
  keep_minutes_days: days('sums by minute', 2),
  keep_hours_days: days('sums by hour', 92),
  keep_entries_days: days('single entries; sums by day are kept for ever', 400),
  exchange_rates: mapping(
    Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }),
    'Worth of one unit of another currency, such as CNY: 0.14.',
  ),
  unknown_price: oneOf(
    ['allow', 'refuse'],
    'Calls with a budget and no known price; allow counts nothing. Default allow.',
  ),
})
export type LedgerConfig = Type.Static<typeof LedgerConfig>
