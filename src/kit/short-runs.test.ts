import { expect, test } from 'bun:test'
import { inShortRuns } from './short-runs.ts'

test.each([
  ['', []],
  ['a b', [3]],
  ['x'.repeat(1501), [500, 500, 500, 1]],
  [`a ${'x'.repeat(499)} b`, [503]],
  [`a ${'x'.repeat(500)} b`, [502, 2]],
  [' '.repeat(1000), [500, 500]],
])('splits a long run and loses nothing', (text, lengths) => {
  const parts = inShortRuns(text)
  expect(parts.map((part) => part.length)).toEqual(lengths)
  expect(parts.join('')).toBe(text)
})
