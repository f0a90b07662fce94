import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { globSpecificity, globsOverlap, matchesGlob } from './glob.ts'

/** What a glob means, said as a regular expression: slow, and plain to see. */
const asRegExp = (pattern: string) =>
  new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\/]/g, '\\$&').replaceAll('*', '[^]*')}$`)

const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '-'), maxLength: 8 })
const glob = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '*'), maxLength: 6 })

describe('globs', () => {
  test.each([
    ['*', 'sandbox/general'],
    ['*', ''],
    ['sandbox/*', 'sandbox/general'],
    ['sandbox/*', 'sandbox/a/b'],
    ['sandbox/*', 'sandbox/'],
    ['*/general', 'sandbox/general'],
    ['s*x/g*l', 'sandbox/general'],
    ['sandbox/general', 'sandbox/general'],
    ['a**b', 'ab'],
    ['a*a', 'aa'],
    ['', ''],
  ])('%p matches %p', (pattern, name) => {
    expect(matchesGlob(pattern, name)).toBe(true)
  })

  test.each([
    ['sandbox/*', 'sandbox'],
    ['sandbox/*', 'other/general'],
    ['sandbox/*', 'my-sandbox/general'],
    ['*/general', 'sandbox/general-2'],
    ['sandbox/general', 'sandbox/generals'],
    ['sandbox/general', 'SANDBOX/general'],
    ['a*a', 'a'],
    ['a*b*a', 'ab'],
    ['a.c', 'abc'],
    ['a?c', 'abc'],
    ['', 'a'],
  ])('%p does not match %p', (pattern, name) => {
    expect(matchesGlob(pattern, name)).toBe(false)
  })

  test('a pattern matches exactly where the equivalent regular expression does', () => {
    fc.assert(
      fc.property(glob, text, (pattern, name) => {
        expect(matchesGlob(pattern, name)).toBe(asRegExp(pattern).test(name))
      }),
      { numRuns: 2000 },
    )
  })

  test('a name matches every pattern made by replacing parts with stars', () => {
    const cuts = fc.tuple(text, fc.nat(8), fc.nat(8))
    fc.assert(
      fc.property(cuts, ([name, one, other]) => {
        const [from, to] = [Math.min(one, other), Math.max(one, other)]
        expect(matchesGlob(`${name.slice(0, from)}*${name.slice(to)}`, name)).toBe(true)
      }),
    )
  })

  test('hostile patterns and names take linear time', () => {
    const started = performance.now()
    expect(matchesGlob(`${'a*'.repeat(2_000)}b`, 'a'.repeat(20_000))).toBe(false)
    expect(performance.now() - started).toBeLessThan(5_000)
  })
})

test('two globs overlap if some name matches both', () => {
  const overlap = (left: string, right: string) => [globsOverlap(left, right), globsOverlap(right, left)]
  expect(overlap('*', 'a')).toEqual([true, true])
  expect(overlap('a*', '*b')).toEqual([true, true])
  expect(overlap('a*b', 'a*c')).toEqual([false, false])
  expect(overlap('a*b', 'ab')).toEqual([true, true])
  expect(overlap('a', 'b')).toEqual([false, false])
  expect(overlap('', '*')).toEqual([true, true])
  fc.assert(
    fc.property(glob, glob, text, (left, right, name) => {
      if (matchesGlob(left, name) && matchesGlob(right, name)) expect(globsOverlap(left, right)).toBe(true)
    }),
  )
})

test('a longer prefix is more specific, then more literal characters', () => {
  const patterns = ['*', '*a', 'a*', 'a*b', 'ab*']
  expect(patterns.toSorted((a, b) => globSpecificity(a) - globSpecificity(b))).toEqual(patterns)
})
