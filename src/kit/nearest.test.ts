import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { nearest } from './nearest.ts'

const words = ['port', 'host', 'base_url', 'max_body_bytes', 'models']

test.each([
  ['prot', 'port'],
  ['Port', 'port'],
  ['hots', 'host'],
  ['base-url', 'base_url'],
  ['max_body_byte', 'max_body_bytes'],
  ['maximum_body', undefined],
  ['model', 'models'],
  ['zzz', undefined],
  ['', undefined],
  ['cost', 'host'],
])('corrects %p to %p', (typed, meant) => {
  expect(nearest(typed, words)).toBe(meant as string)
})

test('chooses the closer of two words', () => {
  expect(nearest('toke', ['coke', 'token', 'to'])).toBe('coke')
  expect(nearest('tokenn', ['tokens_', 'token'])).toBe('token')
})

/** The textbook matrix, whole. */
function distance(from: string, to: string): number {
  const rows = [...`${from} `].map((_, i) => [...`${to} `].map((_, j) => (i === 0 ? j : j === 0 ? i : 0)))
  const at = (i: number, j: number) => rows[i]?.[j] ?? 0
  for (let i = 1; i <= from.length; i++) {
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1]
      const swap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const costs = [at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (same ? 0 : 1)]
      if (swap) costs.push(at(i - 2, j - 2) + 1)
      rows[i]?.splice(j, 1, Math.min(...costs))
    }
  }
  return at(from.length, to.length)
}

test('finds a word exactly if its distance is within the bound', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 9 })
  fc.assert(
    fc.property(word, word, fc.integer({ min: 1, max: 5 }), (one, other, bound) => {
      expect(nearest(one, [other], bound)).toBe((distance(one, other) <= bound ? other : undefined) as string)
    }),
    { numRuns: 2_000 },
  )
})
