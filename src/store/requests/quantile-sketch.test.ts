/** Quantile sketches: their relative error, addition, subtraction, and bounds. */
import { describe, expect, test } from 'bun:test'
import {
  addSketch,
  addValue,
  decodeSketch,
  encodeSketch,
  type QuantileSketch,
  quantilesOf,
  RELATIVE_ERROR,
} from './request-sum.ts'

const sketchOf = (values: readonly number[]): QuantileSketch => {
  const sketch: QuantileSketch = new Map()
  for (const value of values) addValue(sketch, value)
  return sketch
}

/** A fixed sequence of values from 1 ms to 100 s, most of them short. */
function durations(count: number): number[] {
  let state = 12_345
  return Array.from({ length: count }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return 10 ** ((state / 2_147_483_648) ** 2 * 5)
  })
}

describe('a quantile sketch', () => {
  test('returns quantiles within its relative error', () => {
    const values = durations(5_000)
    const sorted = values.toSorted((a, b) => a - b)
    const sketch = sketchOf(values)
    const fractions = [0, 0.1, 0.5, 0.95, 0.99, 1]
    for (const [at, value] of quantilesOf(sketch, fractions).entries()) {
      const exact = sorted[Math.floor((fractions[at] ?? 0) * (sorted.length - 1))] ?? 0
      const found = value ?? 0
      // And half a tenth, since it is rounded.
      expect(Math.abs(found - exact)).toBeLessThanOrEqual(exact * RELATIVE_ERROR + 0.051)
    }
  })

  test('of parts that were added is that of all values', () => {
    const values = durations(900)
    const sum = sketchOf(values.slice(0, 100))
    addSketch(sum, sketchOf(values.slice(100)))
    expect(encodeSketch(sum)).toEqual(encodeSketch(sketchOf(values)))
  })

  test('loses exactly the part that is subtracted', () => {
    const values = durations(900)
    const rest = sketchOf(values)
    addSketch(rest, sketchOf(values.slice(0, 300)), -1)
    expect(encodeSketch(rest)).toEqual(encodeSketch(sketchOf(values.slice(300))))
  })

  test('survives its encoding', () => {
    const sketch = sketchOf(durations(50))
    expect(decodeSketch(encodeSketch(sketch))).toEqual(new Map([...sketch].toSorted(([a], [b]) => a - b)))
    expect(encodeSketch(sketchOf([1, 1]))).toEqual([0, 2])
  })

  test('has at most 520 buckets, whatever the values are', () => {
    const values = Array.from({ length: 20_000 }, (_, index) => 10 ** (index / 1_000 - 6))
    expect(sketchOf([...values, 0, -1, Number.POSITIVE_INFINITY]).size).toBeLessThanOrEqual(520)
  })

  test('without values has no quantiles', () => {
    expect(quantilesOf(new Map(), [0.5, 0.95])).toEqual([null, null])
  })
})
