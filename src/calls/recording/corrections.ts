/** Corrects calls whose process ended before them, where the usage export of their provider tells what they have used. */
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import type { VendorDay } from '../../store/ledger/ledger-store.ts'

/** A row of the export. `day` in unix seconds. */
type ExportedDay = { day: number; model: string; requests?: number; input_tokens?: number; output_tokens?: number }

type Tokens = { input_tokens: number; output_tokens: number }

type Charged = { amount: number | null; cost: number | null }

type CorrectionParts = {
  /** Calls that count at the most that they can have used. */
  interrupted: readonly LedgerEntry[]
  /** What the ledger has of the provider, these calls included. */
  days: readonly VendorDay[]
  exported: readonly ExportedDay[]
  /** By the prices of the call. Undefined: they are not known any more. */
  chargeFor(entry: LedgerEntry, units: Tokens): Charged | undefined
}

type Corrections = {
  entries: LedgerEntry[]
  /** Calls that the export tells too little of. */
  left: { day: number; model: string; calls: number; reason: string }[]
}

const DAY_MILLISECONDS = 86_400_000

const keyOf = (day: number, model: string): string => `${day} ${model}`

export function correctionsFor({ interrupted, days, exported, chargeFor }: CorrectionParts): Corrections {
  const ours = new Map(days.map((one) => [keyOf(one.day, one.upstream_model), one]))
  const theirs = new Map(exported.map((one) => [keyOf(one.day, one.model), one]))
  const covered = new Set(exported.map(({ day }) => day))
  const groups = Map.groupBy(interrupted, ({ at_ms, upstream_model }) =>
    keyOf((Math.floor(at_ms / DAY_MILLISECONDS) * DAY_MILLISECONDS) / 1000, upstream_model),
  )
  const corrections: Corrections = { entries: [], left: [] }
  for (const [key, group] of groups) {
    const own = ours.get(key)
    const [first] = group
    if (!own || !first) continue
    const { day, upstream_model: model } = own
    // A model that is missing on a day of the file was not used.
    const nothing = covered.has(day) ? { day, model, requests: 0, input_tokens: 0, output_tokens: 0 } : undefined
    const used = usedBy(group, own, theirs.get(key) ?? nothing)
    const found = typeof used === 'string' ? used : adjustments(group, used, chargeFor)
    if (typeof found === 'string') corrections.left.push({ day, model, calls: group.length, reason: found })
    else corrections.entries.push(...found)
  }
  return corrections
}

type Used = Tokens & { requests: number | undefined }

/** What the calls of a group have used together: what the provider counts less the other entries; or why that cannot be told. */
function usedBy(group: readonly LedgerEntry[], own: VendorDay, their: ExportedDay | undefined): Used | string {
  if (!their) return 'the file has no row of that day'
  if (their.input_tokens === undefined || their.output_tokens === undefined)
    return 'the file has no column input_tokens or output_tokens'
  if (own.estimated > group.length) return 'other entries of that day and model are estimates'
  const most = { input_tokens: 0, output_tokens: 0 }
  for (const { units } of group) {
    most.input_tokens += units.input_tokens
    most.output_tokens += units.output_tokens
  }
  const used = {
    input_tokens: their.input_tokens - own.input_tokens + most.input_tokens,
    output_tokens: their.output_tokens - own.output_tokens + most.output_tokens,
    requests: their.requests === undefined ? undefined : their.requests - own.requests + group.length,
  }
  const { requests = 0 } = used
  if (used.input_tokens < 0 || used.output_tokens < 0 || requests < 0)
    return 'the provider counts less than the other entries'
  if (used.input_tokens > most.input_tokens || used.output_tokens > most.output_tokens || requests > group.length)
    return 'the provider counts more than these calls can have used'
  return used
}

const ownerOf = ({ token_id, project_id, end_user, model, price }: LedgerEntry): string =>
  JSON.stringify([token_id, project_id, end_user, model, price])

/** Divides what was used among the calls, which matters to nobody where they have one owner. */
function adjustments(
  group: readonly LedgerEntry[],
  used: Used,
  chargeFor: CorrectionParts['chargeFor'],
): LedgerEntry[] | string {
  const isNothing = used.input_tokens === 0 && used.output_tokens === 0
  const owners = new Set(group.map(ownerOf))
  if (owners.size > 1 && !(isNothing && !used.requests)) return 'they are of several tokens, end users or models'
  const rest = { ...used }
  const entries: LedgerEntry[] = []
  for (const entry of group) {
    const units = {
      input_tokens: Math.min(rest.input_tokens, entry.units.input_tokens),
      output_tokens: Math.min(rest.output_tokens, entry.units.output_tokens),
    }
    rest.input_tokens -= units.input_tokens
    rest.output_tokens -= units.output_tokens
    const hasUsed = units.input_tokens > 0 || units.output_tokens > 0
    const wasAsked = rest.requests === undefined || rest.requests-- > 0
    const charged = hasUsed ? chargeFor(entry, units) : { amount: 0, cost: 0 }
    if (!charged) return 'their prices are not those of the configuration any more'
    entries.push(adjustmentOf(entry, { units, charged, requests: wasAsked ? 0 : -1 }))
  }
  return entries
}

type Adjusted = { units: Tokens; charged: Charged; requests: number }

/** Written twice, it changes nothing the second time. */
function adjustmentOf(entry: LedgerEntry, { units, charged, requests }: Adjusted): LedgerEntry {
  const counts = Object.entries(entry.units).filter((one): one is [string, number] => typeof one[1] === 'number')
  const removed = Object.fromEntries(counts.map(([name, count]) => [name, -count]))
  const less = (amount: number | null, before: number | null) =>
    amount === null || before === null ? 0 : amount - before
  return {
    ...entry,
    entry_id: `${entry.entry_id}:adjustment`,
    kind: 'adjustment',
    units: {
      ...removed,
      input_tokens: units.input_tokens - entry.units.input_tokens,
      output_tokens: units.output_tokens - entry.units.output_tokens,
    },
    requests,
    errors: 0,
    estimated: -1,
    amount: less(charged.amount, entry.amount),
    cost: less(charged.cost, entry.cost),
  }
}
