import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isSameText, orderedAlphanumerics, randomAlphanumerics, sha256 } from './secret.ts'

describe('random alphanumerics', () => {
  test('have the requested length and only letters and digits', () => {
    for (const length of [0, 1, 16, 48, 1000]) {
      expect(randomAlphanumerics(length)).toMatch(new RegExp(`^[A-Za-z0-9]{${length}}$`))
    }
  })

  test('never repeat', () => {
    const many = new Set(Array.from({ length: 5_000 }, () => randomAlphanumerics(16)))
    expect(many.size).toBe(5_000)
  })

  test('use each of the 62 characters about equally often', () => {
    const counts = new Map<string, number>()
    for (const character of randomAlphanumerics(124_000)) counts.set(character, (counts.get(character) ?? 0) + 1)
    expect(counts.size).toBe(62)
    // 2000 are expected of each with a deviation of 44: seven deviations are never seen by chance, while taking the
    // remainder of whole bytes would give the first eight characters 25 % more.
    for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(310)
  })
})

describe('alphanumerics in the order of time', () => {
  test('sort as their times do, never repeat within one, and have the requested length', () => {
    const times = [0, 1_000, 1_769_904_000_000, 1_769_904_000_001, 3_000_000_000_000]
    const ids = times.flatMap((now_ms) => [orderedAlphanumerics(now_ms, 24), orderedAlphanumerics(now_ms, 24)])
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9]{24}$/)
    expect(new Set(ids).size).toBe(ids.length)
    const starts = ids.map((id) => id.slice(0, 9))
    expect(starts).toEqual([...starts].sort())
    expect(orderedAlphanumerics(1_000, 24).slice(0, 9)).toBe(starts[2] ?? '')
  })
})

describe('hashes', () => {
  test('are the SHA-256 of the text in hexadecimal', () => {
    // The test vectors of FIPS 180-4 for "abc" and for nothing.
    expect(sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  })
})

describe('comparison', () => {
  test('returns whether two texts are equal', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (left, right) => {
        expect(isSameText(left, left)).toBe(true)
        expect(isSameText(left, right)).toBe(left === right)
      }),
    )
  })

  test('detects a difference in the last character and in the length', () => {
    expect(isSameText('a'.repeat(64), `${'a'.repeat(63)}b`)).toBe(false)
    expect(isSameText('a'.repeat(64), 'a'.repeat(63))).toBe(false)
    expect(isSameText('', 'a')).toBe(false)
  })
})
