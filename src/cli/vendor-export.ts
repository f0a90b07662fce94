/** Reads what a provider charges, from its export or invoice, by day and model. */
import { toNano } from '../spec/price.ts'
import { readCsv } from './csv.ts'

/** `day` in unix seconds, `cost` in nano-units; absent: the file has no such column. */
export type ExportDay = {
  day: number
  model: string
  requests?: number
  input_tokens?: number
  output_tokens?: number
  cost?: bigint
}

/** Names of the columns, in lower case and with `_`. */
const COLUMNS = {
  date: ['date', 'day', 'usage_date', 'start_time', 'start_date', 'timestamp', 'time'],
  model: ['model', 'model_id', 'model_name', 'model_version', 'snapshot_id', 'sku', 'line_item'],
  requests: ['requests', 'num_model_requests', 'n_requests', 'request_count', 'calls', 'num_requests'],
  input_tokens: ['input_tokens', 'prompt_tokens', 'n_context_tokens_total', 'tokens_in', 'input'],
  output_tokens: ['output_tokens', 'completion_tokens', 'n_generated_tokens_total', 'tokens_out', 'output'],
  cost: ['cost', 'amount', 'amount_value', 'cost_usd', 'total_cost', 'total', 'price', 'usd'],
} as const
type Column = keyof typeof COLUMNS
const DAY_SECONDS = 86_400

/** One row for each day and model. Throws Error that names the line and the column. */
export function readVendorExport(text: string): ExportDay[] {
  const [head = [], ...rows] = readCsv(text)
  const names = head.map((name) =>
    name
      .trim()
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '_')
      .replaceAll(/^_|_$/g, ''),
  )
  const at = Object.fromEntries(
    Object.entries(COLUMNS).map(([column, known]) => [
      column,
      names.findIndex((name) => (known as readonly string[]).includes(name)),
    ]),
  ) as Record<Column, number>
  for (const column of ['date', 'model'] as const) {
    if (at[column] >= 0) continue
    throw new Error(
      `the file has no column ${column}: it may be called ${COLUMNS[column].join(', ')}; found ${names.join(', ')}`,
    )
  }
  const days = new Map<string, ExportDay>()
  for (const [index, row] of rows.entries()) {
    const line = index + 2
    const day = readDay(row[at.date] ?? '', line)
    const model = (row[at.model] ?? '').trim()
    const sum = days.get(`${day} ${model}`) ?? { day, model }
    days.set(`${day} ${model}`, sum)
    for (const column of ['requests', 'input_tokens', 'output_tokens'] as const) {
      if (at[column] >= 0) sum[column] = (sum[column] ?? 0) + readNumber(row[at[column]] ?? '', { line, column })
    }
    if (at.cost >= 0)
      sum.cost = (sum.cost ?? 0n) + BigInt(toNano(readNumber(row[at.cost] ?? '', { line, column: 'cost' })))
  }
  return [...days.values()]
}

function readDay(text: string, line: number): number {
  const trimmed = text.trim()
  const seconds = /^\d{9,10}$/.test(trimmed)
    ? Number(trimmed)
    : Date.parse(/^\d{4}-\d{2}-\d{2}/.exec(trimmed)?.[0] ?? '') / 1000
  if (!Number.isNaN(seconds)) return Math.floor(seconds / DAY_SECONDS) * DAY_SECONDS
  throw new Error(`line ${line}: the date is ${JSON.stringify(text)}, must be like 2026-01-31 or in unix seconds`)
}

/** Empty is 0. A sign of a currency and separators of thousands are ignored. */
function readNumber(text: string, { line, column }: { line: number; column: string }): number {
  const number = Number(text.trim().replaceAll(/[$€£¥\s]|,(?=\d{3}(\D|$))/g, ''))
  if (Number.isFinite(number)) return number
  throw new Error(`line ${line}: ${column} is ${JSON.stringify(text)}, must be a number such as 1234.5`)
}
