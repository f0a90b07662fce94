import { describe, expect, it } from 'bun:test'
import type { Price, Prices } from '../config/schema/price-schema.ts'
import { toNano } from '../spec/price.ts'
import { NO_UNITS, type Units } from '../spec/usage.ts'
import { chargeOf, compiledPrices, mostOf } from './prices.ts'

const LEDGER = { currency: 'USD', exchange_rates: { CNY: 0.14 } }
const NOW = 1_800_000_000
const MILLION = 1_000_000

const priced = (prices: Prices | undefined, ledger = LEDGER) => compiledPrices({ prices }, ledger)
const tokens = (input_tokens: number, output_tokens = 0, more: Partial<Units> = {}): Units => ({
  input_tokens,
  output_tokens,
  ...more,
})
const charge = (prices: Prices | undefined, units: Units, at = NOW) =>
  chargeOf({ model: priced(prices), target: undefined, units, at })
const amount = (prices: Prices | undefined, units: Units, at = NOW) => charge(prices, units, at).amount
const most = (prices: Prices | undefined, units: Units) => mostOf({ model: priced(prices), units, at: NOW })

describe('a charge by tokens', () => {
  it('is exact in nano-units, each part rounded once', () => {
    expect(amount({ input: 2.5, output: 10 }, tokens(1_000, 100))).toBe(toNano(0.0035))
    expect(amount({ input: 0.15, output: 0.6 }, tokens(1, 1))).toBe(150 + 600)
    expect(amount({ input: 0.0005 }, tokens(1))).toBe(1)
    expect(amount({ input: 0.0004 }, tokens(1))).toBe(0)
  })

  it('is at most the greatest amount that is exact, so that a wrong count or price cannot corrupt the sums', () => {
    expect(amount({ input: 1 }, tokens(1e24))).toBe(toNano(9_000_000))
    expect(charge({ video_second: 1e9 }, tokens(0, 0, { videos: 1, video_seconds: 1e9 })).cost).toBe(toNano(9_000_000))
  })

  it('has a price for each part: cached, written to both caches, reasoning, audio', () => {
    const prices: Price = {
      input: 1,
      cached_input: 0.1,
      cache_write: 1.25,
      cache_write_1h: 2,
      input_audio: 8,
      output: 4,
      reasoning: 5,
      output_audio: 16,
    }
    const parts = {
      cached_tokens: 100,
      cache_write_tokens: 200,
      cache_write_1h_tokens: 300,
      input_audio_tokens: 50,
      reasoning_tokens: 40,
      output_audio_tokens: 30,
    }
    const input = 350 * 1 + 100 * 0.1 + 200 * 1.25 + 300 * 2 + 50 * 8
    const output = 30 * 4 + 40 * 5 + 30 * 16
    expect(amount(prices, tokens(1_000, 100, parts))).toBe((input + output) * 1_000)
  })

  it('charges a part without a price as the next wider one', () => {
    const parts = {
      cached_tokens: 1,
      cache_write_tokens: 1,
      cache_write_1h_tokens: 1,
      input_audio_tokens: 1,
      reasoning_tokens: 1,
      output_audio_tokens: 1,
    }
    expect(amount({ input: 1, output: 2 }, tokens(4, 2, parts))).toBe(4_000 + 4_000)
    expect(amount({ input: 1, output: 2, cache_write: 3 }, tokens(4, 2, parts))).toBe(2_000 + 6_000 + 4_000)
  })

  it('charges reasoning tokens, which are a part of the output, once', () => {
    expect(amount({ input: 1, output: 10 }, tokens(0, 1_000, { reasoning_tokens: 900 }))).toBe(1_000 * 10_000)
  })

  it('does not fall below zero where a provider reports parts that exceed the whole', () => {
    expect(amount({ input: 1, cached_input: 0.5 }, tokens(10, 0, { cached_tokens: 12 }))).toBe(12 * 500)
  })

  it('adds the price of a request', () => {
    expect(amount({ input: 1, request: 0.005 }, tokens(1_000, 0, { requests: 1 }))).toBe(toNano(0.006))
    expect(amount({ request: 0.005, input: 0 }, NO_UNITS)).toBe(0)
  })
})

describe('an unknown price', () => {
  it('is null, never 0', () => {
    expect(charge(undefined, tokens(1, 1))).toEqual({ amount: null, cost: null, price: null })
    expect(amount({ input: 1 }, tokens(1, 1))).toBeNull()
    expect(amount({ output: 1 }, tokens(1, 1))).toBeNull()
    expect(amount({}, tokens(0, 0, { requests: 1 }))).toBe(0)
    expect(amount(undefined, tokens(0, 0, { requests: 1 }))).toBeNull()
    expect(most(undefined, tokens(1))).toBeNull()
    expect(most({ input: 1 }, tokens(1, 1))).toBeNull()
  })

  it('of what was not used is not missed', () => {
    expect(amount({ input: 1 }, tokens(5))).toBe(5_000)
    expect(amount(undefined, NO_UNITS)).toBe(0)
  })

  it('is that of a currency without an exchange rate', () => {
    expect(amount({ currency: 'CNY', input: 100 }, tokens(1))).toBe(14_000)
    expect(amount({ currency: 'EUR', input: 100 }, tokens(1))).toBeNull()
    expect(amount({ currency: 'EUR', input: 100, request: 1 }, tokens(1))).toBeNull()
  })

  it('differs from an explicit 0, which is free', () => {
    expect(amount({ input: 0, output: 0 }, tokens(10, 10, { reasoning_tokens: 5, cached_tokens: 5 }))).toBe(0)
    expect(most({ input: 0, output: 0 }, tokens(10, 10))).toBe(0)
  })
})

describe('a tier above a number of input tokens', () => {
  const prices: Price = {
    input: 3,
    cached_input: 0.3,
    output: 15,
    tiers: [
      { above_input_tokens: 200_000, input: 6, output: 22.5 },
      { above_input_tokens: 500_000, input: 9 },
    ],
  }

  it('begins with one token more, and prices the whole request', () => {
    expect(amount(prices, tokens(200_000, 10))).toBe(200_000 * 3_000 + 10 * 15_000)
    expect(amount(prices, tokens(200_001, 10))).toBe(200_001 * 6_000 + 10 * 22_500)
    expect(amount(prices, tokens(500_000, 10))).toBe(500_000 * 6_000 + 10 * 22_500)
    expect(amount(prices, tokens(500_001, 10))).toBe(500_001 * 9_000 + 10 * 15_000)
  })

  it('counts cached input towards the threshold, and raises its price with that of the input', () => {
    const units = tokens(200_001, 0, { cached_tokens: 200_000 })
    expect(amount(prices, units)).toBe(6_000 + 200_000 * 600)
  })
})

describe('prices of several dates', () => {
  const prices: Prices = [{ input: 1 }, { from: '2026-11-01', input: 2 }, { from: '2026-12-01T12:00Z', input: 3 }]
  const at = (text: string) => Date.parse(text) / 1_000

  it('count from their date on', () => {
    expect(amount(prices, tokens(1), at('2020-01-01'))).toBe(1_000)
    expect(amount(prices, tokens(1), at('2026-11-01') - 1)).toBe(1_000)
    expect(amount(prices, tokens(1), at('2026-11-01'))).toBe(2_000)
    expect(amount(prices, tokens(1), at('2026-12-01T12:00Z') - 1)).toBe(2_000)
    expect(amount(prices, tokens(1), at('2026-12-01T12:00Z'))).toBe(3_000)
  })

  it('are unknown before the first date', () => {
    const later: Prices = { from: '2026-11-01', input: 2 }
    expect(amount(later, tokens(1), at('2026-11-01') - 1)).toBeNull()
    expect(amount(later, tokens(1), at('2026-11-01'))).toBe(2_000)
  })

  it('have names with their date, which change with the figures and not with their source', () => {
    const name = (price: Price) => charge(price, tokens(1)).price
    expect(name({ from: '2026-11-01', input: 2, output: 3 })).toMatch(/^2026-11-01-[0-9a-f]{8}$/)
    expect(name({ input: 2, output: 3 })).toMatch(/^[0-9a-f]{8}$/)
    expect(name({ input: 2, output: 3 })).toBe(name({ output: 3, input: 2, source: 'x' }))
    expect(name({ input: 2, output: 3 })).not.toBe(name({ input: 2, output: 4 }))
  })
})

describe('the cost of a call', () => {
  const model = priced({ currency: 'CNY', input: 100 })

  it('is what the target charges, in the currency of the model unless it names one', () => {
    const cost = (prices: Prices | undefined) =>
      chargeOf({
        model,
        target: { prices: compiledPrices({ prices: { currency: 'CNY', input: 100 } }, LEDGER).pricesOf({ prices }) },
        units: tokens(1),
        at: NOW,
      })
    expect(cost(undefined)).toMatchObject({ amount: 14_000, cost: 14_000 })
    expect(cost({ input: 50 })).toMatchObject({ amount: 14_000, cost: 7_000 })
    expect(cost({ input: 50, currency: 'USD' })).toMatchObject({ amount: 14_000, cost: 50_000 })
    expect(cost({ output: 50 })).toMatchObject({ amount: 14_000, cost: null })
  })

  it('is known where only the target has a price', () => {
    const target = { prices: priced({ input: 1 }).prices }
    expect(chargeOf({ model: { prices: undefined }, target, units: tokens(1), at: NOW })).toEqual({
      amount: null,
      cost: 1_000,
      price: null,
    })
  })
})

describe('service tiers', () => {
  const prices: Price = { input: 1, output: 2, service_tiers: { flex: 0.5, batch: 0.25, priority: 2 } }

  it.each([
    [undefined, 3_000],
    ['default', 3_000],
    ['flex', 1_500],
    ['batch', 750],
    ['priority', 6_000],
  ])('%p', (service_tier, expected) => {
    expect(amount(prices, tokens(1, 1, service_tier ? { service_tier } : {}))).toBe(expected)
  })
})

describe('a charge by piece', () => {
  const images: Price = {
    image: 0.04,
    images: [
      { size: '1024x1024', quality: 'high', price: 0.167 },
      { quality: 'high', price: 0.25 },
    ],
  }

  it('takes the first image price that matches', () => {
    const one = (image_size?: string, image_quality?: string) =>
      amount(
        images,
        tokens(0, 0, { images: 1, ...(image_size ? { image_size } : {}), ...(image_quality ? { image_quality } : {}) }),
      )
    expect(one('1024x1024', 'high')).toBe(toNano(0.167))
    expect(one('1536x1024', 'high')).toBe(toNano(0.25))
    expect(one('1024x1024', 'low')).toBe(toNano(0.04))
    expect(one()).toBe(toNano(0.04))
  })

  it('is by token where images have no price of their own', () => {
    expect(amount({ input: 5, output: 40 }, tokens(50, 4_160, { images: 1 }))).toBe(50 * 5_000 + 4_160 * 40_000)
    expect(amount({ input: 5, output: 40 }, tokens(0, 0, { images: 1 }))).toBeNull()
    expect(amount({ images: [{ size: '512x512', price: 1 }] }, tokens(0, 0, { images: 1 }))).toBeNull()
  })

  it('adds tokens that have a price, and no others', () => {
    expect(amount({ image: 0.04, input: 1 }, tokens(10, 500, { images: 2 }))).toBe(toNano(0.08) + 10_000)
    expect(amount({ image: 0.04, input: 1 }, tokens(10, 0, { images: 2 }))).toBe(toNano(0.08) + 10_000)
  })

  it('of a video is by second, size and sound, and by video', () => {
    const prices: Price = {
      video_seconds: [
        { size: '720p', sound: true, price: 0.4 },
        { size: '720p', price: 0.2 },
      ],
      video_second: 0.5,
      video: 0.01,
    }
    const one = (video_size: string, has_sound: boolean) =>
      amount(prices, tokens(0, 0, { videos: 1, video_seconds: 5, video_size, has_sound }))
    expect(one('1280x720', true)).toBe(toNano(2.01))
    expect(one('720x1280', false)).toBe(toNano(1.01))
    expect(one('1920x1080', false)).toBe(toNano(2.51))
    expect(amount(prices, tokens(0, 0, { videos: 1 }))).toBeNull()
    expect(amount({ video: 0.3 }, tokens(0, 0, { videos: 2 }))).toBe(toNano(0.6))
  })

  it('of 3D models and searches', () => {
    expect(amount({ three_d: 0.4 }, tokens(0, 0, { three_d: 1 }))).toBe(toNano(0.4))
    expect(amount({ searches: 2 }, tokens(0, 0, { searches: 1 }))).toBe(toNano(0.002))
    expect(amount({ searches: 2 }, tokens(900, 0, { searches: 1 }))).toBe(toNano(0.002))
    expect(amount({ input: 0.02 }, tokens(900, 0, { searches: 1 }))).toBe(900 * 20)
  })
})

describe('the most that a call can be charged', () => {
  it('takes the dearest price that each token can have', () => {
    const prices: Price = {
      input: 1,
      cache_write: 1.25,
      cache_write_1h: 2,
      input_audio: 8,
      output: 4,
      reasoning: 5,
      output_audio: 16,
    }
    const rounded = 3
    expect(most(prices, tokens(1_000))).toBe(1_000 * 1_000 + rounded)
    expect(most(prices, tokens(1_000, 0, { cache_write_tokens: 1_000 }))).toBe(1_000 * 1_250 + rounded)
    expect(most(prices, tokens(1_000, 0, { cache_write_1h_tokens: 1_000 }))).toBe(1_000 * 2_000 + rounded)
    expect(most(prices, tokens(1_000, 0, { input_audio_tokens: 1 }))).toBe(1_000 * 8_000 + rounded)
    expect(most(prices, tokens(0, 10))).toBe(10 * 5_000 + rounded)
    expect(most(prices, tokens(0, 10, { output_audio_tokens: 10 }))).toBe(10 * 16_000 + rounded)
  })

  it('takes the dearest image and video that the request allows', () => {
    const images = [
      { size: 'a', price: 1 },
      { size: 'b', price: 3 },
    ]
    expect(most({ images, image: 2 }, tokens(0, 0, { images: 1 }))).toBe(toNano(3) + 3)
    expect(most({ images, image: 2 }, tokens(0, 0, { images: 1, image_size: 'a' }))).toBe(toNano(2) + 3)
    const video_seconds = [
      { sound: true, price: 2 },
      { sound: false, price: 1 },
    ]
    expect(most({ video_seconds }, tokens(0, 0, { videos: 1, video_seconds: 3 }))).toBe(toNano(6) + 3)
    expect(most({ video_seconds }, tokens(0, 0, { videos: 1, video_seconds: 3, has_sound: false }))).toBe(toNano(3) + 3)
  })

  it('is never below the charge, whatever was used', () => {
    let seed = 1
    const next = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    const value = () => next(10_000) / 997
    for (let round = 0; round < 3_000; round++) {
      const prices: Price = { input: value(), output: value() }
      if (next(2)) prices.cached_input = value()
      if (next(2)) prices.cache_write = value()
      if (next(2)) prices.cache_write_1h = value()
      if (next(2)) prices.input_audio = value()
      if (next(2)) prices.reasoning = value()
      if (next(2)) prices.output_audio = value()
      if (next(2)) prices.request = value()
      if (next(2)) prices.service_tiers = { flex: value(), priority: value() }
      if (next(2))
        prices.tiers = [{ above_input_tokens: next(1_000), input: value(), ...(next(2) ? { output: value() } : {}) }]
      const [input, output] = [next(1_000), next(1_000)]
      const bound = {
        cache_write_tokens: next(2) * input,
        cache_write_1h_tokens: next(2) * input,
        input_audio_tokens: next(2) * input,
        output_audio_tokens: next(2) * output,
        requests: 1,
        ...(next(2) ? { service_tier: ['flex', 'auto', 'priority', 'default'][next(4)] ?? '' } : {}),
      }
      const used = tokens(next(input + 1), next(output + 1), { ...bound })
      let left = used.input_tokens
      const some = (limit: number) => {
        const count = next(Math.min(limit, left) + 1)
        left -= count
        return count
      }
      used.cached_tokens = some(left)
      used.cache_write_tokens = some(bound.cache_write_tokens)
      used.cache_write_1h_tokens = some(bound.cache_write_1h_tokens)
      used.input_audio_tokens = some(bound.input_audio_tokens)
      used.reasoning_tokens = next(used.output_tokens + 1)
      used.output_audio_tokens = bound.output_audio_tokens ? used.output_tokens - used.reasoning_tokens : 0
      const limit = most(prices, tokens(input, output, bound)) ?? 0
      expect(amount(prices, used) ?? Number.NaN).toBeLessThanOrEqual(limit)
    }
  })
})

it('a charge of a long price list is exact up to the greatest amounts', () => {
  expect(amount({ input: 1_000_000 }, tokens(9 * MILLION))).toBe(toNano(9_000_000))
})
