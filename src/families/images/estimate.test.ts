import { expect, it } from 'bun:test'
import { estimateImages } from './estimate.ts'

const order = { model: 'v/m', operation: 'generate' as const, prompt: 'x'.repeat(40), n: 2 }

it('the estimate of images has their number, size and quality, unless the provider chooses', () => {
  const { most } = estimateImages({ ...order, size: '1024x1024', quality: 'auto' }, 0)
  expect(most).toMatchObject({ images: 2, image_size: '1024x1024', image_quality: undefined, requests: 1 })
})

it('the estimate of images bounds the tokens of models that are charged by token', () => {
  const { expected, most } = estimateImages({ ...order, images: ['a', 'b'], mask: 'c' }, 3)
  expect([expected.input_tokens, expected.output_tokens]).toEqual([10 + 3 * 1_056, 2 * 1_056 + 600])
  expect([most.input_tokens, most.output_tokens]).toEqual([40 + 30_000, 20_000 + 600])
})
