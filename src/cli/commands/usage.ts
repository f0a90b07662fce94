/** `gatehouse usage`: what tokens, projects, models and end users used, were charged and cost. */
import { nanoText, toNano } from '../../spec/price.ts'
import {
  USAGE_DIMENSIONS,
  type UsageDimension,
  type UsageResult,
  type UsageSum,
} from '../../store/ledger/ledger-store.ts'
import { runWork, type Work } from '../accounts.ts'
import { API_FLAGS, API_OPTIONS_HELP, pathWith } from '../admin-api.ts'
import { type Arguments, STORE_FLAGS, STORE_FLAGS_HELP, UsageError } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import { csv } from '../csv.ts'
import { headedTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { readTimeRange } from '../time-range.ts'

const HELP = `Usage: gatehouse usage [options]

Shows what was used, by day (UTC): of a running gateway (--url), or of its store.

Options:
  --by <names>   groups, separated by commas: ${USAGE_DIMENSIONS.slice(0, 6).join(', ')},
                 ${USAGE_DIMENSIONS.slice(6).join(', ')} (default: token)
  --from <when>  2026-01-31, 2026-01-31T18:00Z, 7d for 7 days, today, yesterday, this-week, last-week, this-month or
                 last-month, from its first day on (default: the last 30 days)
  --to <when>    the same, to the end of the day, week or month (default: today)
  --csv          print comma-separated values
  --json         print one line of JSON: {"usage": [...], "total": {...}}
${API_OPTIONS_HELP}
${STORE_FLAGS_HELP}

Cost is what providers charge, amount what callers are charged, both without unknown_requests, whose price is not known.

Examples:
  gatehouse usage --by project,model --from 2026-01-01 --to 2026-01-31 --csv
  gatehouse usage --by token --json
  gatehouse usage --by model --from last-week --to last-week
`

export const run = plainCommand('usage', HELP, {
  flags: { by: 'text', from: 'text', to: 'text', csv: 'switch', ...API_FLAGS, ...STORE_FLAGS },
  async run(given, terminal) {
    const query = { by: readDimensions(given), ...readTimeRange('usage', given, 30) }
    return runWork('usage', { run: (work) => show(work, query) }, { given, terminal })
  },
})

type Query = { by: UsageDimension[]; from: number; to: number }

async function show({ given, api, tokens, projects, terminal }: Work, { by, from, to }: Query) {
  const [{ body }, ...accounts] = await Promise.all([
    api.call(pathWith('/usage', { by: by.join(','), from: String(from), to: String(to) })),
    tokens.list(),
    projects.list(),
  ])
  const answer = body as Pick<UsageResult, 'from' | 'to'> & {
    data: (Omit<UsageSum, 'amount' | 'cost'> & { amount: number; cost: number })[]
  }
  const sums = answer.data.map((row) => ({ ...row, amount: nanoOf(row.amount), cost: nanoOf(row.cost) }))
  const names = new Map(
    accounts.flat().map((account) => ['token_id' in account ? account.token_id : account.project_id, account.name]),
  )
  const rows = sums.map((row) => usageRow(by, row, names)).sort(inOrder(by))
  const total = usageRow([], totalOf(sums), names)
  const range = { from: timeText(answer.from, 1), to: timeText(answer.to, 1) }
  return {
    data: { usage: rows.map(withNumbers), total: withNumbers(total), ...range },
    text: () => usageText({ by, rows, total }, given, terminal),
  }
}

type Usage = { by: readonly UsageDimension[]; rows: readonly Row[]; total: Row }

function usageText({ by, rows, total }: Usage, given: Arguments, terminal: Terminal): string {
  const columns = [
    ...by.flatMap((name) => (name === 'token' || name === 'project' ? [name, `${name}_name`] : [name])),
    ...COUNTS,
  ]
  const cells = rows.map((row) => columns.map((name) => textOf(row[name])))
  if (given.has('csv')) return csv([columns, ...cells])
  if (rows.length === 0) return 'Nothing was used in this time.\n'
  const head = columns.map((name) => name.toUpperCase().replaceAll('_', ' '))
  const sums = rows.length > 1 ? [columns.map((name, at) => (at === 0 ? 'total' : textOf(total[name])))] : []
  return headedTable(head, [...cells, ...sums], terminal)
}

const textOf = (value: string | number | null | undefined): string => (value === null ? 'unknown' : String(value ?? ''))

const COUNTS = [
  'requests',
  'errors',
  'input_tokens',
  'output_tokens',
  'cost',
  'amount',
  'unknown_requests',
  'estimated',
] as const

type Row = Record<string, string | number | null>

/** `cost` and `amount` are null where no price is known at all. */
function usageRow(by: readonly UsageDimension[], sum: UsageSum, names: Map<string, string>): Row {
  const row: Row = {}
  for (const name of by) {
    if (name === 'day' || name === 'hour' || name === 'minute')
      row[name] = timeText(sum.start ?? 0, name === 'day' ? 0 : 1)
    else if (name === 'token' || name === 'project') {
      const id = sum[`${name}_id`] ?? ''
      row[name] = id
      row[`${name}_name`] = names.get(id) ?? ''
    } else row[name] = sum[name] ?? ''
  }
  const { requests, errors, input_tokens, output_tokens, estimated, unknown_costs, unknown_amounts } = sum
  return {
    ...row,
    requests,
    errors,
    input_tokens,
    output_tokens,
    cost: moneyOf(sum.cost, unknown_costs, requests),
    amount: moneyOf(sum.amount, unknown_amounts, requests),
    unknown_requests: Math.max(unknown_costs, unknown_amounts),
    estimated,
  }
}

function totalOf(rows: readonly UsageSum[]): UsageSum {
  const total = { ...COUNTED, amount: 0n, cost: 0n }
  for (const row of rows) {
    total.amount += row.amount
    total.cost += row.cost
    for (const count of Object.keys(COUNTED) as (keyof typeof COUNTED)[]) total[count] += row[count]
  }
  return total
}

const COUNTED = {
  requests: 0,
  errors: 0,
  estimated: 0,
  input_tokens: 0,
  output_tokens: 0,
  unknown_amounts: 0,
  unknown_costs: 0,
}

/** As text: a number is not exact above some millions. */
const moneyOf = (nano: bigint, unknown: number, requests: number): string | null =>
  nano === 0n && unknown > 0 && unknown >= requests ? null : nanoText(nano)

const withNumbers = (row: Row): Row => ({ ...row, cost: numberOf(row.cost), amount: numberOf(row.amount) })

const numberOf = (money: Row[string] | undefined): number | null => (money == null ? null : Number(money))

/** Exact for the decimals that the number is printed with: multiplied as a number, a great one is rounded. */
function nanoOf(amount: number): bigint {
  const [, whole, part = ''] = /^(-?\d+)(?:\.(\d{1,9}))?$/.exec(String(amount)) ?? []
  return whole === undefined ? BigInt(toNano(amount)) : BigInt(whole + part.padEnd(9, '0'))
}

const timeText = (seconds: number, withTime: 0 | 1): string => {
  const text = new Date(seconds * 1000).toISOString()
  return withTime ? `${text.slice(0, 19)}Z` : text.slice(0, 10)
}

const inOrder =
  (by: readonly UsageDimension[]) =>
  (left: Row, right: Row): number => {
    for (const name of by) {
      const [a, b] = [String(left[name]), String(right[name])]
      if (a !== b) return a < b ? -1 : 1
    }
    return 0
  }

function readDimensions(given: Arguments): UsageDimension[] {
  const names = (given.text('by') ?? 'token').split(',').map((name) => name.trim())
  const found = names.map((name) => {
    const known = USAGE_DIMENSIONS.find((one) => one === name)
    if (known) return known
    throw new UsageError('usage', `--by: found ${JSON.stringify(name)}, must be one of ${USAGE_DIMENSIONS.join(', ')}`)
  })
  if (found.filter((name) => ['day', 'hour', 'minute'].includes(name)).length > 1) {
    throw new UsageError('usage', '--by: takes only one of day, hour and minute')
  }
  if (found.includes('end_user') && found.some((name) => name === 'hour' || name === 'minute')) {
    throw new UsageError('usage', '--by: end users are counted by day, not by hour or minute')
  }
  return [...new Set(found)]
}
