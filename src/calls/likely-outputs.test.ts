import { describe, expect, it } from 'bun:test'
import fc from 'fast-check'
import { createLikelyOutputs } from './likely-outputs.ts'

function learned(...lengths: number[]) {
  const outputs = createLikelyOutputs()
  for (const length of lengths) outputs.learn('tok_a', 'acme/large', length)
  return outputs.of('tok_a', 'acme/large')
}

describe('the likely output of a model to a token', () => {
  it('is known from the hundredth answer on', () => {
    expect(learned()).toBeUndefined()
    expect(learned(...Array(99).fill(64))).toBeUndefined()
    expect(learned(...Array(100).fill(64))).toBe(64)
  })

  it('is not changed by one long answer of a hundred, and is by two', () => {
    expect(learned(...Array(99).fill(64), 4096)).toBe(64)
    expect(learned(...Array(98).fill(64), 4096, 4096)).toBe(4096)
  })

  it('is learned for each token and each model apart', () => {
    const outputs = createLikelyOutputs()
    for (let answer = 0; answer < 100; answer++) outputs.learn('tok_a', 'acme/large', 64)
    expect(outputs.of('tok_b', 'acme/large')).toBeUndefined()
    expect(outputs.of('tok_a', 'acme/small')).toBeUndefined()
  })

  it('follows answers that become shorter', () => {
    expect(learned(...Array(900).fill(4096), ...Array(900).fill(64))).toBe(4096)
    expect(learned(...Array(900).fill(4096), ...Array(9_000).fill(64))).toBe(64)
  })

  it('is never below the 99th percentile, and at most a fifth above', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 2_000_000 }), { minLength: 100, maxLength: 900 }), (lengths) => {
        const exact = lengths.toSorted((a, b) => a - b)[Math.ceil(lengths.length * 0.99) - 1] ?? 0
        const likely = learned(...lengths) ?? 0
        expect(likely).toBeGreaterThanOrEqual(exact)
        expect(likely).toBeLessThanOrEqual(Math.ceil(exact * 1.2) + 1)
      }),
      { numRuns: 100 },
    )
  })

  it('is forgotten for the least recently used of 10,000 pairs', () => {
    const outputs = createLikelyOutputs()
    const learn = (token: string, answers: number) => {
      for (let answer = 0; answer < answers; answer++) outputs.learn(token, 'm', 64)
    }
    learn('first', 100)
    learn('second', 100)
    for (let other = 0; other < 9_998; other++) learn(`other ${other}`, 1)
    learn('first', 1)
    expect([outputs.of('first', 'm'), outputs.of('second', 'm')]).toEqual([64, 64])
    learn('one more', 1)
    expect([outputs.of('first', 'm'), outputs.of('second', 'm')]).toEqual([64, undefined])
  })
})
