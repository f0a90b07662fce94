/** The admin API's budgets: how those of this day, week, month or of all time stand. */
import Type from 'typebox'
import type { Route } from '../../http/context.ts'
import type { Clock } from '../../kit/clock.ts'
import { fromNano } from '../../spec/money.ts'
import { type BudgetStore, NEVER } from '../../store/budget-store.ts'
import { LIST_PARAMETERS, listAnswer, listSchema, readPage } from './list.ts'

export type BudgetRouteParts = { budgets: Pick<BudgetStore, 'list'>; clock: Clock }

const AdminBudget = Type.Object(
  {
    budget: Type.String({ description: 'Names it, such as `token:tok_a/month/UTC/0`.' }),
    scope: Type.String({
      description: '`installation`, `project:<id>`, `token:<id>`, or `user:<id of the token or project>/<end user>`.',
    }),
    used: Type.Number({ description: 'In the currency of the ledger, as are `credit` and `held`.' }),
    credit: Type.Number(),
    held: Type.Number({ description: 'By open calls, unfinished tasks, and for the next calls.' }),
    window_start: Type.Integer({ description: 'Unix seconds.' }),
    window_end: Type.Union([Type.Integer(), Type.Null()], { description: 'Unix seconds; null: it never ends.' }),
  },
  { title: 'AdminBudget' },
)

const MAX_LISTED = 10_000

export const adminBudgetRoutes = ({ budgets, clock }: BudgetRouteParts): Route[] => [
  {
    method: 'GET',
    path: '/admin/v1/budgets',
    admin: { right: 'read' },
    operation: {
      summary: 'List budgets',
      description: 'Those whose window contains this moment, at most 10,000. A budget is listed once a call has counted towards it.', // biome-ignore format: one sentence
      tag: 'Admin',
      query: LIST_PARAMETERS,
      response: listSchema(AdminBudget, 'AdminBudgetList'),
      errors: ['invalid_value', 'storage_unavailable'],
    },
    async handle(context) {
      const { limit, after } = readPage(context.query())
      const found = await budgets.list({ now_ms: clock.now(), limit: MAX_LISTED })
      const rows = found.sort((a, b) => (a.account_key < b.account_key ? -1 : 1))
      const rest = after === undefined ? rows : rows.filter(({ account_key }) => account_key > (after[0] ?? ''))
      const page = rest.slice(0, limit)
      const last = rest.length > limit ? page.at(-1) : undefined
      const data = page.map(({ account_key, scope_key, settled, credit, held, start_ms, end_ms }) => ({
        budget: account_key,
        scope: scope_key,
        used: fromNano(settled),
        credit: fromNano(credit),
        held: fromNano(held),
        window_start: Math.floor(start_ms / 1000),
        window_end: end_ms === NEVER ? null : Math.floor(end_ms / 1000),
      }))
      return listAnswer(data, last && [last.account_key])
    },
  },
]
