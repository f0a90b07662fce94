import { describe, expect, test } from 'bun:test'
import { usageOf } from './upstream.ts'

describe('usage in the formats of all vendors', () => {
  test.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty object', {}],
    ['zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ['texts', { prompt_tokens: '5', completion_tokens: '7' }],
  ])('%s is not usage', (_, raw) => {
    expect(usageOf(raw)).toBeUndefined()
  })

  test.each([
    ['prompt and completion', { prompt_tokens: 5, completion_tokens: 7 }],
    ['input and output', { input_tokens: 5, output_tokens: 7 }],
    ['prompt and total', { prompt_tokens: 5, total_tokens: 12 }],
    ['completion and total', { completion_tokens: 7, total_tokens: 12 }],
  ])('%s tokens are sufficient', (_, raw) => {
    expect(usageOf(raw)).toMatchObject({ prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, output_tokens: 7 })
  })

  test.each([
    ['prompt_tokens_details', { prompt_tokens_details: { cached_tokens: 3 } }],
    ['input_tokens_details', { input_tokens_details: { cached_tokens: 3 } }],
    ['prompt_cache_hit_tokens', { prompt_cache_hit_tokens: 3, prompt_cache_miss_tokens: 2 }],
    ['cache_read_input_tokens', { cache_read_input_tokens: 3 }],
    ['cached_tokens', { cached_tokens: 3 }],
  ])('reads cached tokens from %s', (_, more) => {
    const usage = usageOf({ prompt_tokens: 5, completion_tokens: 7, ...more })
    expect(usage).toMatchObject({ prompt_tokens_details: { cached_tokens: 3 }, prompt_cache_hit_tokens: 3 })
  })

  test('counts reasoning once if the vendor leaves it out of the completion', () => {
    const details = { completion_tokens_details: { reasoning_tokens: 4 } }
    const outside = usageOf({ prompt_tokens: 5, completion_tokens: 7, total_tokens: 16, ...details })
    expect(outside).toMatchObject({
      completion_tokens: 11,
      completion_tokens_details: { reasoning_tokens: 4, text_tokens: 7 },
    })
    const inside = usageOf({ prompt_tokens: 5, completion_tokens: 11, total_tokens: 16, ...details })
    expect(inside).toEqual(outside as NonNullable<typeof outside>)
  })

  test('counts tokens that only the total includes as reasoning', () => {
    expect(usageOf({ prompt_tokens: 5, completion_tokens: 7, total_tokens: 20 })).toMatchObject({
      completion_tokens: 15,
      total_tokens: 20,
      completion_tokens_details: { reasoning_tokens: 8 },
    })
  })

  test('keeps an estimate of another gateway as an estimate', () => {
    expect(usageOf({ prompt_tokens: 5, completion_tokens: 7, estimated: true })).toMatchObject({ estimated: true })
    expect(usageOf({ prompt_tokens: 5, completion_tokens: 7 })).not.toHaveProperty('estimated')
  })
})
