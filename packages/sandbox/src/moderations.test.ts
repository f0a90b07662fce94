import { describe, expect, it } from 'bun:test'
import { simulatedErrors } from '../../../src/providers/sandbox.ts'
import type { ModerationInput } from '../../../src/spec/moderation-request.ts'
import { manualClock } from '../../../test/kit/clock.ts'
import { createSandboxModerations } from './moderations.ts'

const clock = manualClock()
const { moderate } = createSandboxModerations({ clock, errors: simulatedErrors({ id: 'sandbox', clock }) })
const image = (url: string): ModerationInput => [{ type: 'image_url', image_url: { url } }]

async function classify(input: ModerationInput) {
  const call = { model: 'moderation', inputs: [input], request_id: 'req_1' }
  const { results, prompt_tokens } = await moderate(call, new AbortController().signal)
  const [result] = results
  if (!result) throw new Error('There is no result.')
  return { ...result, prompt_tokens }
}

describe('the moderation model of the sandbox', () => {
  it('scores a category by its words in the text', async () => {
    const calm = await classify('A walk by the river')
    const once = await classify('They attacked at dawn')
    const twice = await classify('They attack and kill')
    expect([calm.flagged, once.flagged, twice.flagged]).toEqual([false, true, true])
    expect(calm.category_scores.violence).toBeGreaterThan(0)
    expect(once.category_scores.violence).toBeGreaterThan(calm.category_scores.violence ?? 1)
    expect(twice.category_scores.violence).toBeGreaterThan(once.category_scores.violence ?? 1)
    expect(twice.category_scores.violence).toBeLessThan(1)
    expect(Object.values(once.categories).filter(Boolean)).toHaveLength(1)
  })

  it('returns the same result for the same input', async () => {
    expect(await classify('You idiot')).toEqual(await classify('You idiot'))
  })

  it('scores an image by the words of its URL, in the categories that OpenAI applies to images', async () => {
    const named = await classify(image('https://example.com/gore/idiot.png'))
    expect([named.categories['violence/graphic'], named.categories.harassment]).toEqual([true, false])
    expect(named.category_applied_input_types?.harassment).toEqual([])
    const unknown = await classify(image('data:image/png;base64,kill'))
    expect(unknown.flagged).toBe(false)
    expect(unknown.prompt_tokens).toBe(256)
  })

  it('serves other requests while it reads much text, and stops when the client disconnects', async () => {
    const left = new AbortController()
    const inputs = Array<string>(10).fill('x '.repeat(60_000))
    const classifying = moderate({ model: 'moderation', inputs, request_id: 'req_1' }, left.signal)
    setImmediate(() => left.abort(new Error('left')))
    await expect(classifying).rejects.toThrow('left')
  })

  it('applies directives', async () => {
    await expect(classify('x\n@sandbox status=429 retry_after=7')).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
    })
  })
})
