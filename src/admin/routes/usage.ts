/** The admin API's usage: what projects, tokens, models and end users used, were charged and cost. */
import Type from 'typebox'
import { readTime } from '../../accounts/routes/usage-route.ts'
import type { Context, Route } from '../../http/context.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { invalidValue } from '../../spec/error.ts'
import { integer, parameter, text, titled } from '../../spec/fields.ts'
import { nanoText } from '../../spec/price.ts'
import {
  type LedgerStore,
  USAGE_DIMENSIONS,
  USAGE_MEMBERS,
  type UsageDimension,
  type UsageSum,
} from '../../store/ledger/ledger-store.ts'
import { listSchema } from './list.ts'
import { adminRoute } from './route.ts'

type UsageRouteParts = {
  ledger: { usage: LedgerStore['usage']; currency(): string }
  max_rows?: number
  clock: Clock
}

const DAY = 86_400
const DEFAULT_DAYS = 30
/** A longer list is for `gatehouse usage --csv`. */
const MAX_ROWS = 10_000

const group = (description: string) => text(description)

const AdminUsage = titled('AdminUsage', {
  project_id: group('Empty: of tokens without a project.'),
  token_id: group('Who called.'),
  end_user: group('Whom the caller named; empty: nobody.'),
  family: group('Such as `chatcompat`.'),
  model: group('The public id.'),
  provider: group('Empty: no provider was called.'),
  upstream_model: group("The provider's name of the model."),
  start: integer('Unix seconds: of the day, hour or minute (UTC).'),
  requests: Type.Integer(),
  errors: Type.Integer(),
  estimated: Type.Integer({ description: 'Requests whose counts are an estimate.' }),
  input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  amount: Type.Number({ description: 'What the callers are charged, in the currency of the ledger.' }),
  cost: Type.Number({ description: 'What the providers charge, in the currency of the ledger.' }),
  unknown_amounts: Type.Integer({ description: 'Requests without a known price, which `amount` leaves out.' }),
  unknown_costs: Type.Integer({ description: 'Requests without a known cost, which `cost` leaves out.' }),
  currency: Type.String(),
})

const AdminUsageList = listSchema(AdminUsage, 'AdminUsageList', {
  from: Type.Integer({ description: 'Unix seconds: the time covered, in whole minutes, hours or days; included.' }),
  to: Type.Integer({ description: 'The same; not included.' }),
})

export function adminUsageRoutes({ ledger, max_rows = MAX_ROWS, clock }: UsageRouteParts): Route[] {
  async function usage(context: Context): Promise<Response> {
    const query = context.query()
    const tomorrow = (Math.floor(unixSeconds(clock) / DAY) + 1) * DAY
    const to = readTime(query, 'to') ?? tomorrow
    const from = readTime(query, 'from') ?? Math.max(0, tomorrow - DEFAULT_DAYS * DAY)
    if (from >= to) throw invalidValue('from', '"from" must be before "to".')
    const by = readBy(query)
    const format = query.get('format') ?? 'json'
    if (format !== 'json' && format !== 'csv') {
      throw invalidValue('format', '"format" must be json or csv.')
    }
    const own = context.admin.project_id ?? query.get('project_id') ?? undefined
    const token_id = query.get('token_id') ?? undefined
    const { rows, ...covered } = await ledger.usage({
      by,
      from,
      to,
      limit: max_rows + 1,
      ...(token_id !== undefined && { token_id }),
      ...(own !== undefined && { project_id: own }),
    })
    if (rows.length > max_rows) {
      const message = `More than ${max_rows} rows: group by less, or ask for a shorter time.`
      throw invalidValue('by', message)
    }
    const currency = ledger.currency()
    const data = rows.map((row) => rowOf(row, by, currency)).sort(inOrder)
    return format === 'csv'
      ? csvOf(data, by)
      : Response.json({ data, next_cursor: null, from: covered.from, to: covered.to })
  }

  const time = (description: string) => ({ description, schema: Type.String(), example: '2026-01-31' })
  return [
    adminRoute(['GET', '/admin/v1/usage', { right: 'read', project: 'own' }], {
      summary: 'Usage of all tokens',
      description:
        'Sums of the ledger, grouped as asked, in one page of at most 10,000 rows. A project_admin sees that of its project.',
      query: {
        by: {
          description: `Groups, separated by commas: ${USAGE_DIMENSIONS.join(', ')}. Default: token.`,
          schema: Type.String(),
          example: 'project,day',
        },
        from: time('A date (UTC) or unix seconds; is included. Default: 30 days.'),
        to: time('A date (UTC) or unix seconds; a date is included. Default: today.'),
        token_id: parameter('Only this token.'),
        project_id: parameter('Only this project.'),
        format: parameter('`csv`: as comma-separated values.', Type.Enum(['json', 'csv'])),
      },
      response: AdminUsageList,
      media: ['text/csv'],
      errors: ['invalid_value', 'storage_unavailable'],
      handle: usage,
    }),
  ]
}

type Row = Record<string, string | number>

function rowOf(sum: UsageSum, by: readonly UsageDimension[], currency: string): Row {
  const row: Row = {}
  for (const name of by) row[USAGE_MEMBERS[name]] = (sum[USAGE_MEMBERS[name]] ?? '') as string | number
  const { requests, errors, estimated, input_tokens, output_tokens, unknown_amounts, unknown_costs } = sum
  const [amount, cost] = [Number(nanoText(sum.amount)), Number(nanoText(sum.cost))]
  const counts = { requests, errors, estimated, input_tokens, output_tokens, amount, cost }
  return Object.assign(row, counts, { unknown_amounts, unknown_costs, currency })
}

const keyOf = (row: Row) => JSON.stringify(Object.values(row))
const inOrder = (a: Row, b: Row) => (keyOf(a) < keyOf(b) ? -1 : 1)

/** A cell that a spreadsheet would take for a formula begins with an apostrophe. */
function csvOf(rows: readonly Row[], by: readonly UsageDimension[]): Response {
  const counts = ['requests', 'errors', 'estimated', 'input_tokens', 'output_tokens', 'amount', 'cost']
  const names = [
    ...new Set(by.map((name) => USAGE_MEMBERS[name])),
    ...counts,
    'unknown_amounts',
    'unknown_costs',
    'currency',
  ]
  const cell = (value: string | number = '') => {
    const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value)
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }
  const lines = [names, ...rows.map((row) => names.map((name) => row[name] ?? ''))]
  const text = lines.map((line) => `${line.map(cell).join(',')}\r\n`).join('')
  return new Response(text, { headers: { 'content-type': 'text/csv; charset=utf-8' } })
}

function readBy(query: URLSearchParams): UsageDimension[] {
  const names = (query.get('by') ?? 'token').split(',').filter((name) => name !== '')
  return [...new Set(names)].map((name) => {
    const known = USAGE_DIMENSIONS.find((one) => one === name)
    if (known) return known
    const rule = `"by" may contain ${USAGE_DIMENSIONS.join(', ')}, not ${JSON.stringify(name.slice(0, 40))}.`
    throw invalidValue('by', rule)
  })
}
