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
  for (const count of sketch.values()) values += count
  if (values === 0) return fractions.map(() => null)
  const buckets = inOrder(sketch)
  let at = 0
  /** Values of the buckets before. */
  let passed = 0
  return fractions.map((fraction) => {
    const rank = Math.floor(fraction * (values - 1))
    let [bucket, count] = buckets[at] as [number, number]
    while (passed + count <= rank) {
      passed += count
      ;[bucket, count] = buckets[++at] as [number, number]
    }
    return Math.round(((2 * GAMMA ** bucket) / (GAMMA + 1)) * 10) / 10
  })
}

/** Bucket, count, bucket, count: from the lowest bucket, each as its distance from the one before. */
export function encodeSketch(sketch: QuantileSketch): number[] {
  const numbers: number[] = []
  let previous = 0
  for (const [bucket, count] of inOrder(sketch)) {
    numbers.push(bucket - previous, count)
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

const inOrder = (sketch: QuantileSketch): [number, number][] => [...sketch].sort(([a], [b]) => a - b)
