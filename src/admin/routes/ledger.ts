/** The admin API's check of the ledger: whether the sums that bills and budgets read are those of its entries. */
import Type from 'typebox'
import { readTime } from '../../accounts/routes/usage-route.ts'
import type { Context, Route } from '../../http/context.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { titled } from '../../spec/fields.ts'
import { nanoText } from '../../spec/price.ts'
import type { LedgerStore } from '../../store/ledger/ledger-store.ts'
import { adminRoute } from './route.ts'

type LedgerRouteParts = {
  ledger: Pick<LedgerStore, 'usage' | 'differences'> & { currency(): string }
  clock: Clock
}

const DAY = 86_400
const DEFAULT_DAYS = 7
/** Every entry of the range is read: longer ranges are for `gatehouse ledger reconcile`. */
const MOST_DAYS = 92
const MOST_DIFFERENCES = 100

const LedgerCheck = titled('LedgerCheck', {
  from: Type.Integer({ description: 'Unix seconds; included.' }),
  to: Type.Integer({ description: 'Unix seconds; not included.' }),
  difference: Type.Integer({ minimum: 0, description: 'How many sums differ; 0: the ledger adds up.' }),
  differences: Type.Array(
    Type.Object({
      what: Type.String({ description: '`minute`, `hour`, `day`, `end_users`, `tasks` or `budgets`.' }),
      at: Type.Integer({ description: 'Unix seconds.' }),
      of: Type.Array(Type.String(), { description: 'What identifies the sum, such as its token and model.' }),
      count: Type.String(),
      difference: Type.String({ description: 'The entries less the sum.' }),
    }),
    { description: `The first ${MOST_DIFFERENCES}.` },
  ),
  requests: Type.Integer(),
  amount: Type.Number({ description: 'What the callers are charged.' }),
  cost: Type.Number({ description: 'What the providers charge.' }),
  unknown_costs: Type.Integer({ description: 'Requests without a known cost, which `cost` leaves out.' }),
  currency: Type.String(),
})

export function ledgerRoutes({ ledger, clock }: LedgerRouteParts): Route[] {
  /** A second one waits for none: each reads every entry of its range. */
  let isRunning = false

  async function reconcile(context: Context): Promise<Response> {
    const query = context.query()
    const tomorrow = (Math.floor(unixSeconds(clock) / DAY) + 1) * DAY
    const to = readTime(query, 'to') ?? tomorrow
    const from = readTime(query, 'from') ?? Math.max(0, to - DEFAULT_DAYS * DAY)
    if (from >= to) throw invalidValue('from', '"from" must be before "to".')
    if (to - from > MOST_DAYS * DAY) {
      const message = `The range has more than ${MOST_DAYS} days: ask for less, or run gatehouse ledger reconcile.`
      throw invalidValue('from', message)
    }
    if (isRunning) {
      const message = 'The ledger is being checked already; try again.'
      throw new GatewayError('server_is_overloaded', message, { retry_after: 5 })
    }
    isRunning = true
    try {
      const differences = await ledger.differences({ from, to })
      const { rows } = await ledger.usage({ by: [], from, to })
      const [{ requests = 0, amount = 0n, cost = 0n, unknown_costs = 0 } = {}] = rows
      return Response.json({
        from,
        to,
        difference: differences.length,
        differences: differences.slice(0, MOST_DIFFERENCES),
        requests,
        amount: Number(nanoText(amount)),
        cost: Number(nanoText(cost)),
        unknown_costs,
        currency: ledger.currency(),
      })
    } finally {
      isRunning = false
    }
  }

  const time = (description: string) => ({ description, schema: Type.String(), example: '2026-01-31' })
  return [
    adminRoute(['GET', '/admin/v1/ledger/reconcile', 'read'], {
      summary: 'Check the ledger',
      description:
        'Compares the sums by minute, hour and day, of end users, tasks and budgets with the entries from which they are derived.',
      query: {
        from: time(`A date (UTC) or unix seconds; is included. Default: ${DEFAULT_DAYS} days; at most ${MOST_DAYS}.`),
        to: time('A date (UTC) or unix seconds; a date is included. Default: today.'),
      },
      response: LedgerCheck,
      errors: ['invalid_value', 'server_is_overloaded', 'storage_unavailable'],
      handle: reconcile,
    }),
  ]
}
