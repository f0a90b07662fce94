/** `gatehouse ledger`: proves that the ledger adds up, and compares it with what a provider charges. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { whyUnreadable } from '../../kit/why-unreadable.ts'
import { nanoText } from '../../spec/price.ts'
import type { LedgerDifference, VendorDay } from '../../store/ledger/ledger-store.ts'
import { openStore } from '../../store/open-store.ts'
import { type Arguments, STORE_FLAGS, STORE_FLAGS_HELP, UsageError } from '../arguments.ts'
import { actionsOf } from '../command.ts'
import { configOf } from '../config-of.ts'
import type { Outcome } from '../outcome.ts'
import { storeToRead } from '../store-location.ts'
import { table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { readTimeRange } from '../time-range.ts'
import { type ExportDay, readVendorExport } from '../vendor-export.ts'
import { correct, correctedText } from './ledger-correct.ts'

const HELP = `Usage: gatehouse ledger reconcile [options]

Compares the entries of the ledger with sums, end users, tasks and budgets, and prints each difference. Works on the
store, whether or not a gateway is running. Exits with 1 if something differs.

Options:
  --from <when>      2026-01-31, 2026-01-31T18:00Z, 7d for 7 days, or last-week (default: everything)
  --to <when>        the same; a date includes that day (default: today)
  --vendor <file>    also compare with the usage export of a provider: a CSV file with the columns date, model (at the
                     provider) and any of requests, input_tokens, output_tokens, cost
  --provider <id>    only the calls of this provider, for --vendor
  --correct          first correct calls whose process ended before them, by the file of --vendor; needs --provider
  --dry-run          with --correct: print what would be corrected, and correct nothing
${STORE_FLAGS_HELP}
  --json             print one line of JSON; "difference" is the number of differences

Examples:
  gatehouse ledger reconcile
  gatehouse ledger reconcile --from 2026-01-01 --to 2026-01-31 --vendor openai.csv --provider openai
  gatehouse ledger reconcile --vendor openai.csv --provider openai --correct --dry-run
`

const FLAGS = {
  from: 'text',
  to: 'text',
  vendor: 'text',
  provider: 'text',
  correct: 'switch',
  'dry-run': 'switch',
} as const

export const run = actionsOf('ledger', HELP, { reconcile: { flags: { ...FLAGS, ...STORE_FLAGS }, run: reconcile } })

/** Some 270 years: everything. */
const ALL_DAYS = 100_000

async function reconcile(given: Arguments, terminal: Terminal): Promise<Outcome> {
  const command = 'ledger reconcile'
  const range = readTimeRange(command, given, ALL_DAYS)
  const file = given.text('vendor')
  const exported = file === undefined ? undefined : readExport(file, { cwd: terminal.cwd, range })
  const [provider, is_dry_run] = [given.text('provider'), given.has('dry-run')]
  if (given.has('correct') && (!exported || provider === undefined))
    throw new UsageError(command, '--correct needs --vendor and --provider')
  if (is_dry_run && !given.has('correct')) throw new UsageError(command, '--dry-run needs --correct')
  const config = given.has('correct') ? configOf(given, terminal) : undefined
  const store = await openStore(storeToRead(given, terminal))
  try {
    const daysOf = () => exported && store.ledger.vendorDays({ ...rangeOf(exported, range), provider })
    const before = config && (await daysOf())
    const corrected =
      config && exported && before && provider !== undefined
        ? await correct({
            store,
            config,
            provider,
            range: rangeOf(exported, range),
            days: before,
            exported,
            is_dry_run,
          })
        : undefined
    const differences = await store.ledger.differences(range)
    const days = await daysOf()
    const vendor = exported && days && vendorDifferences(days, exported)
    const { rows } = await store.ledger.usage({ by: [], ...range })
    const [{ requests = 0, amount = 0n, cost = 0n, unknown_costs = 0 } = {}] = rows
    const difference = differences.length + (vendor?.length ?? 0)
    return {
      data: {
        difference,
        differences,
        ...(vendor ? { vendor_differences: vendor } : {}),
        ...(corrected ? { corrected } : {}),
        requests,
        amount: Number(nanoText(amount)),
        cost: Number(nanoText(cost)),
        unknown_requests: unknown_costs,
      },
      text: () => (corrected ? correctedText(corrected, is_dry_run) : '') + textOf(differences, vendor, requests),
      code: difference === 0 ? 0 : 1,
    }
  } finally {
    await store.close()
  }
}

type Range = { from: number; to: number }

function readExport(file: string, { cwd, range: { from, to } }: { cwd: string; range: Range }): ExportDay[] {
  try {
    return readVendorExport(readFileSync(resolve(cwd, file), 'utf8')).filter(({ day }) => day >= from && day < to)
  } catch (cause) {
    throw new Error(`--vendor: ${file} cannot be read: ${whyUnreadable(cause)}`)
  }
}

const DAY_SECONDS = 86_400

/** The days of the file: on others the provider was not asked about. */
function rangeOf(exported: readonly ExportDay[], range: Range): Range {
  const days = exported.map(({ day }) => day)
  if (days.length === 0) return { from: range.from, to: range.from }
  return {
    from: Math.max(
      range.from,
      days.reduce((a, b) => Math.min(a, b)),
    ),
    to: Math.min(range.to, days.reduce((a, b) => Math.max(a, b)) + DAY_SECONDS),
  }
}

type VendorDifference = {
  day: string
  model: string
  count: string
  ledger: number
  vendor: number
  interrupted?: number
}

/** Of the columns that the file has. */
function vendorDifferences(days: readonly VendorDay[], exported: readonly ExportDay[]): VendorDifference[] {
  const keys = new Set([
    ...days.map(({ day, upstream_model }) => `${day} ${upstream_model}`),
    ...exported.map(({ day, model }) => `${day} ${model}`),
  ])
  const ours = new Map(days.map((one) => [`${one.day} ${one.upstream_model}`, one]))
  const theirs = new Map(exported.map((one) => [`${one.day} ${one.model}`, one]))
  const columns = (['requests', 'input_tokens', 'output_tokens', 'cost'] as const).filter((column) =>
    exported.some((one) => one[column] !== undefined),
  )
  return [...keys].sort().flatMap((key) => {
    const [own, other] = [ours.get(key), theirs.get(key)]
    const day = new Date((own?.day ?? other?.day ?? 0) * 1000).toISOString().slice(0, 10)
    const model = own?.upstream_model ?? other?.model ?? ''
    return columns.flatMap((count) => {
      const [ledger, vendor] = [own?.[count] ?? 0, other?.[count] ?? 0]
      if (BigInt(ledger) === BigInt(vendor)) return []
      const shown = (value: number | bigint) => (count === 'cost' ? Number(nanoText(value)) : Number(value))
      const interrupted = own?.interrupted ? { interrupted: own.interrupted } : {}
      return [{ day, model, count, ledger: shown(ledger), vendor: shown(vendor), ...interrupted }]
    })
  })
}

function textOf(
  differences: readonly LedgerDifference[],
  vendor: readonly VendorDifference[] | undefined,
  requests: number,
): string {
  const parts: string[] = []
  if (differences.length === 0) parts.push(`The ledger adds up: ${requests} requests, no difference.\n`)
  else {
    const rows = differences.map(({ what, at, of, count, difference }) => [
      what,
      new Date(at * 1000).toISOString().slice(0, 16),
      of.join(' '),
      count,
      difference,
    ])
    parts.push(
      'The entries differ from what is derived from them:\n',
      table([['SUM', 'TIME', 'OF', 'COUNT', 'ENTRIES LESS SUM'], ...rows]),
    )
  }
  if (vendor?.length === 0) parts.push('The provider charges the same.\n')
  else if (vendor) {
    const rows = vendor.map((one) => [
      one.day,
      one.model,
      one.count,
      String(one.ledger),
      String(one.vendor),
      String(one.interrupted ?? 0),
    ])
    parts.push(
      'The provider differs:\n',
      table([['DAY', 'MODEL', 'COUNT', 'LEDGER', 'PROVIDER', 'INTERRUPTED'], ...rows]),
    )
  }
  return parts.join('')
}
