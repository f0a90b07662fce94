/** Sums over rows of the request log: what summaries count, with quantile sketches, and how a sum is stored. */
import { addSketch, addValue, decodeSketch, encodeSketch, type QuantileSketch } from '../../kit/quantile-sketch.ts'
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

export function addRow(sum: RequestSum, { cost, error, total_ms, detail }: RequestRow): void {
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
