/** Sums up rows of the request log, each by its minute: what summaries count, with quantile sketches, and how a sum is stored. */
import type { RequestRow } from './request-row.ts'

/** Amounts in nano-units: `charge` is what callers are charged, `cost` what providers charge. Unknown ones are left out. */
export type RequestSum = {
  calls: number
  input_tokens: number
  output_tokens: number
  cost: number
  charge: number
  cache_hits: number
  /** By error code. */
  errors: Map<string, number>
  /** Milliseconds from the arrival to the last byte, and to the first one. */
  duration: QuantileSketch
  first_byte: QuantileSketch
}

export const emptySum = (): RequestSum => ({
  calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cost: 0,
  charge: 0,
  cache_hits: 0,
  errors: new Map(),
  duration: new Map(),
  first_byte: new Map(),
})

function addRow(sum: RequestSum, { cost, error, total_ms, detail }: RequestRow): void {
  sum.calls++
  const { units } = detail
  if (units) {
    sum.input_tokens += units.input_tokens
    sum.output_tokens += units.output_tokens
  }
  sum.cost += detail.provider_cost ?? 0
  sum.charge += cost ?? 0
  if (detail.cache === 'hit') sum.cache_hits++
  if (error !== null) sum.errors.set(error, (sum.errors.get(error) ?? 0) + 1)
  addValue(sum.duration, total_ms)
  if (detail.first_byte_ms !== undefined) addValue(sum.first_byte, detail.first_byte_ms)
}

/** `times`: -1 subtracts a part of the sum. */
export function addSum(sum: RequestSum, added: RequestSum, times: 1 | -1 = 1): void {
  for (const name of COUNTS) sum[name] += times * added[name]
  for (const [code, count] of added.errors) {
    const errors = (sum.errors.get(code) ?? 0) + times * count
    if (errors > 0) sum.errors.set(code, errors)
    else sum.errors.delete(code)
  }
  addSketch(sum.duration, added.duration, times)
  addSketch(sum.first_byte, added.first_byte, times)
}

const COUNTS = ['calls', 'input_tokens', 'output_tokens', 'cost', 'charge', 'cache_hits'] as const

/** As JSON: arrays, since there are many sums. */
export type StoredSum = [
  calls: number,
  input_tokens: number,
  output_tokens: number,
  cost: number,
  charge: number,
  cache_hits: number,
  errors: Record<string, number> | 0,
  duration: number[],
  first_byte: number[],
]

export const encodeSum = (sum: RequestSum): StoredSum => [
  sum.calls,
  sum.input_tokens,
  sum.output_tokens,
  sum.cost,
  sum.charge,
  sum.cache_hits,
  sum.errors.size === 0 ? 0 : Object.fromEntries(sum.errors),
  encodeSketch(sum.duration),
  encodeSketch(sum.first_byte),
]

export const decodeSum = (stored: StoredSum): RequestSum => ({
  calls: stored[0],
  input_tokens: stored[1],
  output_tokens: stored[2],
  cost: stored[3],
  charge: stored[4],
  cache_hits: stored[5],
  errors: new Map(stored[6] === 0 ? [] : Object.entries(stored[6])),
  duration: decodeSketch(stored[7]),
  first_byte: decodeSketch(stored[8]),
})

/** Sums by key, made where they are missing. */
export function sumAt<Key>(sums: Map<Key, RequestSum>, key: Key): RequestSum {
  let sum = sums.get(key)
  if (!sum) {
    sum = emptySum()
    sums.set(key, sum)
  }
  return sum
}

/** Keys of a group, joined by NUL, which none of them can hold. */
export type Sums = Map<string, RequestSum>

/** `groups`: by project, token, model and provider; `users`, `tags`: by project and end user or tag. Empty: none. */
export type MinuteSums = { groups: Sums; users: Sums; tags: Sums }

export const MINUTE_SECONDS = 60

export const emptyMinute = (): MinuteSums => ({ groups: new Map(), users: new Map(), tags: new Map() })

export const groupKey = (project: string, token: string, model: string, provider: string): string =>
  `${project}\0${token}\0${model}\0${provider}`

/** Adds one row to sums of any length. */
export function addToSums(sums: MinuteSums, row: RequestRow): void {
  addRow(groupOf(sums, row), row)
  addNames(sums, row)
}

const groupOf = ({ groups }: MinuteSums, row: RequestRow): RequestSum =>
  sumAt(groups, groupKey(row.project_id ?? '', row.token_id, storable(row.model), row.provider))

function addNames({ users, tags }: MinuteSums, row: RequestRow): void {
  if (row.end_user) addRow(sumAt(users, `${row.project_id ?? ''}\0${row.end_user}`), row)
  for (const tag of row.tags) addRow(sumAt(tags, `${row.project_id ?? ''}\0${tag}`), row)
}

/** Adds each row to the sums of the minute (unix seconds) of its arrival, at the earliest of `earliest`. */
export function byMinute(rows: readonly RequestRow[], earliest: number) {
  const minutes = new Map<number, { row_id: number; sums: MinuteSums }>()
  let last: RequestRow | undefined
  let group: RequestSum | undefined
  for (const row of rows) {
    const start = Math.max(earliest, Math.floor(row.at_ms / 60_000) * MINUTE_SECONDS)
    let minute = minutes.get(start)
    if (!minute) {
      minute = { row_id: row.row_id, sums: emptyMinute() }
      minutes.set(start, minute)
      group = undefined
    }
    // Mostly it is the group of the row before, and no key is made.
    if (!group || !last || !isOfGroup(row, last) || Math.floor(last.at_ms / 60_000) !== Math.floor(row.at_ms / 60_000))
      group = groupOf(minute.sums, row)
    last = row
    addRow(group, row)
    addNames(minute.sums, row)
  }
  return minutes
}

const isOfGroup = (row: RequestRow, last: RequestRow): boolean =>
  row.token_id === last.token_id &&
  row.model === last.model &&
  row.provider === last.provider &&
  row.project_id === last.project_id

/** Of a refused request it is what the client wrote. */
const storable = (text: string): string => text.slice(0, 256)

/** The `most` keys with the most calls, and as many with the highest charge. */
export function largest<Key>(sums: ReadonlyMap<Key, RequestSum>, most: number): Map<Key, RequestSum> {
  if (sums.size <= most) return new Map(sums)
  const kept = new Map<Key, RequestSum>()
  for (const name of ['calls', 'charge'] as const) {
    const ordered = [...sums].sort(([, a], [, b]) => b[name] - a[name])
    for (const [key, sum] of ordered.slice(0, most)) kept.set(key, sum)
  }
  return kept
}

/**
 * Quantiles of durations without the durations: DDSketch (Masson, Rim, Lee 2019). A sketch counts values in buckets whose
 * bounds grow by a constant factor, so a quantile is at most 2 % from a true one, sketches of different processes and times
 * are added count by count, and a part can be subtracted again. The range of values bounds the buckets: some 510. Stored is
 * the count of each bucket that is not empty.
 */
export type QuantileSketch = Map<number, number>

export const RELATIVE_ERROR = 0.02
/** Milliseconds. Durations are recorded in tenths; a longer one than a day counts as a day. */
const SHORTEST = 0.1
const LONGEST = 86_400_000

const GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
const PER_LOG = 1 / Math.log(GAMMA)

export function addValue(sketch: QuantileSketch, milliseconds: number): void {
  const bounded = milliseconds > SHORTEST ? Math.min(milliseconds, LONGEST) : SHORTEST
  const bucket = Math.ceil(Math.log(bounded) * PER_LOG)
  sketch.set(bucket, (sketch.get(bucket) ?? 0) + 1)
}

/** `times`: -1 subtracts what was added before. */
export function addSketch(sketch: QuantileSketch, added: QuantileSketch, times: 1 | -1 = 1): void {
  // A loop over its entries would make an array for each.
  added.forEach((count, bucket) => {
    const sum = (sketch.get(bucket) ?? 0) + times * count
    if (sum > 0) sketch.set(bucket, sum)
    else sketch.delete(bucket)
  })
}

/** Of rising `fractions`: 0.95 is the 95th percentile. null: there are no values. Rounded to tenths. */
export function quantilesOf(sketch: QuantileSketch, fractions: readonly number[]): (number | null)[] {
  let values = 0
  sketch.forEach((count) => {
    values += count
  })
  if (values === 0) return fractions.map(() => null)
  const buckets = bucketsOf(sketch)
  let at = 0
  /** Values of the buckets before. */
  let passed = 0
  return fractions.map((fraction) => {
    const rank = Math.floor(fraction * (values - 1))
    for (;;) {
      const bucket = buckets[at] ?? 0
      const count = sketch.get(bucket) ?? values
      if (passed + count > rank) return Math.round(((2 * GAMMA ** bucket) / (GAMMA + 1)) * 10) / 10
      passed += count
      at++
    }
  })
}

/** Bucket, count, bucket, count: from the lowest bucket, each as its distance from the one before. */
export function encodeSketch(sketch: QuantileSketch): number[] {
  const numbers: number[] = []
  let previous = 0
  for (const bucket of bucketsOf(sketch)) {
    numbers.push(bucket - previous, sketch.get(bucket) ?? 0)
    previous = bucket
  }
  return numbers
}

export function decodeSketch(numbers: readonly number[]): QuantileSketch {
  const sketch: QuantileSketch = new Map()
  let bucket = 0
  for (let at = 0; at + 1 < numbers.length; at += 2) {
    bucket += numbers[at] ?? 0
    sketch.set(bucket, numbers[at + 1] ?? 0)
  }
  return sketch
}

/** From the lowest on: mostly that is their order already, since they are stored so. */
function bucketsOf(sketch: QuantileSketch): number[] {
  const buckets: number[] = []
  let isSorted = true
  let last = Number.NEGATIVE_INFINITY
  sketch.forEach((_, bucket) => {
    if (bucket < last) isSorted = false
    last = bucket
    buckets.push(bucket)
  })
  return isSorted ? buckets : buckets.sort((a, b) => a - b)
}
