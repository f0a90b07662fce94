import { describe, expect, it } from 'bun:test'
import { fromNano, MAX_AMOUNT, nanoText, toNano } from './price.ts'

describe('nano-units', () => {
  it('represent an amount exactly', () => {
    expect(toNano(0.1) + toNano(0.2)).toBe(toNano(0.3))
    expect(toNano(MAX_AMOUNT)).toBe(9e15)
    expect(Number.isSafeInteger(toNano(MAX_AMOUNT))).toBe(true)
    expect(fromNano(toNano(12.345678901))).toBe(12.345678901)
  })

  it('are written as a decimal number', () => {
    expect(nanoText(toNano(0.00123))).toBe('0.00123')
    expect(nanoText(0)).toBe('0')
    expect(nanoText(-1)).toBe('-0.000000001')
    expect(nanoText(toNano(50))).toBe('50')
    expect(nanoText(10n ** 19n + 1n)).toBe('10000000000.000000001')
  })
})
