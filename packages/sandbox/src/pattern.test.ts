import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { compilePattern } from './pattern.ts'
import { createRandom } from './random.ts'

const budget = () => ({ steps: 1_000_000 })

const KNOWN = [
  '^[a-z]+$',
  '^[A-Z]{3}-\\d{4}$',
  '^(red|green|blue)$',
  '^\\w+@\\w+\\.com$',
  '^#?([0-9a-f]{6}|[0-9a-f]{3})$',
  '^[^0-9]{2,4}$',
  '^\\S+ \\S+$',
  '^(?:a|b(?<name>c|d)*)?e{2,}$',
  '^\\u0041\\x42\\u{43}$',
  '^[\\w.-]{1,5}\\/$',
  '^.{3}$',
  '^[-+]?\\d*\\.?\\d+$',
  '^\\$\\d{1,3}(,\\d{3})*?$',
  'ab',
  '^a|b$',
  '^$',
  '',
  '^\\D\\W$',
]

describe('a pattern', () => {
  test.each(KNOWN)('%j: generated texts match, with the RegExp engine too', (source) => {
    const pattern = compilePattern(source, budget())
    for (let seed = 0; seed < 40; seed++) {
      const text = pattern?.sample(createRandom(String(seed)), 0, 100)
      expect(text).toBeString()
      expect(new RegExp(source, 'u').test(text ?? '')).toBe(true)
    }
  })

  test('matches exactly the texts that the RegExp engine matches', () => {
    const character = fc.constantFrom(...'abcdeABC013-+.,#$@_/ \né😀')
    fc.assert(
      fc.property(fc.constantFrom(...KNOWN), fc.string({ unit: character, maxLength: 8 }), (source, text) => {
        expect(compilePattern(source, budget())?.matches(text)).toBe(new RegExp(source, 'u').test(text))
      }),
      { numRuns: 3000 },
    )
  })

  test.each([
    '(?=a)',
    '(?!a)b',
    '(?<=a)b',
    '(a)\\1',
    '\\bword',
    '\\p{L}',
    '[\\W]',
    '(',
    'a)',
    '*a',
    'a{2,1}',
    'a{',
    '[z-a]',
    '\\',
  ])('%j is reported as unsupported', (source) => {
    expect(compilePattern(source, budget())).toBeUndefined()
  })

  test('supports an expression of 2000 characters, not of 2001', () => {
    expect(compilePattern('a'.repeat(2000), budget())?.matches('a'.repeat(2000))).toBe(true)
    expect(compilePattern('a'.repeat(2001), budget())).toBeUndefined()
  })

  test('supports groups 40 deep, not deeper', () => {
    const nested = (depth: number) => `${'('.repeat(depth)}a${')'.repeat(depth)}`
    expect(compilePattern(nested(40), budget())?.matches('a')).toBe(true)
    expect(compilePattern(nested(41), budget())).toBeUndefined()
  })

  test.each([
    [20, 20],
    [1, 1],
    [7, 9],
    [200, 250],
  ])('generates texts of %i to %i characters', (minimum, maximum) => {
    const text = compilePattern('^[a-z]+$', budget())?.sample(createRandom('x'), minimum, maximum) ?? ''
    expect(text.length).toBeGreaterThanOrEqual(minimum)
    expect(text.length).toBeLessThanOrEqual(maximum)
  })

  test('generates no text where none of the length matches', () => {
    expect(compilePattern('^ab$', budget())?.sample(createRandom('x'), 3, 9)).toBeUndefined()
  })

  test('is matched in bounded time where a backtracking engine takes exponential time', () => {
    const start = performance.now()
    expect(compilePattern('^(a+)+$', budget())?.matches(`${'a'.repeat(5000)}b`)).toBe(false)
    expect(compilePattern('^((a?){500}){500}$', budget())?.matches('a'.repeat(400))).toBeBoolean()
    expect(performance.now() - start).toBeLessThan(3000)
  })
})
