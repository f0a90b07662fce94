import { expect, it } from 'bun:test'
import { estimateTexts } from './text-meter.ts'

it('the estimate of texts is a token for four bytes, and at most one for each byte and two around each text', () => {
  const { expected, most } = estimateTexts(['x'.repeat(40), '你好'])
  expect([expected.input_tokens, most.input_tokens]).toEqual([12, 46 + 4])
})

it('the estimate of token numbers is their count', () => {
  const { expected, most } = estimateTexts([[1, 2, 3]])
  expect([expected.input_tokens, most.input_tokens]).toEqual([3, 5])
})
