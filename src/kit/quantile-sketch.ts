/**
 * Quantiles of durations without the durations: DDSketch (Masson, Rim, Lee 2019). A sketch counts values in buckets whose
 * bounds grow by a constant factor, so a quantile is at most 2 % from a true one, sketches of different processes and times
 * are added count by count, and a part can be subtracted again. The range of values bounds the buckets: some 510.
 */

/** The count of each bucket that is not empty. */
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
