import { describe, expect, it } from 'bun:test'
import { byWeight, createShares, type Share } from './shares.ts'

type Sharing = { id: string; share: Share; weight: number }

/** A model with targets of these weights, as `createShares` keeps them. */
function model(shares: ReturnType<typeof createShares>, weights: Record<string, number>) {
  const settings = {}
  const ids = Object.keys(weights)
  const choose = (among = ids) => {
    const shareOf = shares(settings)
    const candidates = among.map((id): Sharing => ({ id, share: shareOf(id), weight: weights[id] ?? 1 }))
    return byWeight(candidates)?.id ?? ''
  }
  const credits = () => ids.map((id) => shares(settings)(id).credit)
  return { choose, credits }
}

describe('smooth weighted round robin', () => {
  it('gives each target its share of every few calls', () => {
    const { choose } = model(createShares(), { a: 5, b: 1, c: 1 })
    expect(Array.from({ length: 14 }, () => choose()).join('')).toBe('aabacaaaabacaa')
  })

  it('is not disturbed by another model with the same targets and other weights', () => {
    const shares = createShares()
    const [one, other] = [model(shares, { a: 5, b: 1, c: 1 }), model(shares, { a: 1, b: 1, c: 9 })]
    let served = ''
    for (let call = 0; call < 14; call++) {
      served += one.choose()
      for (let more = 0; more < 3; more++) other.choose()
    }
    expect(served).toBe('aabacaaaabacaa')
  })

  it('keeps every credit within the total weight, whichever targets take part', () => {
    const weights = { a: 7, b: 1, c: 3, d: 100, e: 0.001 }
    const total = Object.values(weights).reduce((sum, weight) => sum + weight)
    const { choose, credits } = model(createShares(), weights)
    const ids = Object.keys(weights)
    for (let call = 0; call < 20_000; call++) {
      // Every subset in turn, in an order that favours none.
      const mask = ((call * 2_654_435_761) >>> 7) % 32
      const among = ids.filter((_, index) => mask & (1 << index))
      if (among.length > 0) choose(among)
      for (const credit of credits()) expect(Math.abs(credit)).toBeLessThanOrEqual(total)
    }
  })

  it('serves a target that returns after a long time no more than its share', () => {
    const { choose } = model(createShares(), { a: 1, b: 1 })
    for (let call = 0; call < 1_000; call++) choose(['a'])
    expect(Array.from({ length: 6 }, () => choose()).join('')).toMatch(/^(ab){3}$|^(ba){3}$/)
  })
})
