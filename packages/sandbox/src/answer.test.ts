import { describe, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ChatChunk, ChatCompletion, ChatRequest } from '../../../src/providers/provider.ts'
import { createLazySandbox } from '../../../src/providers/sandbox.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { manualClock } from '../../../test/kit/clock.ts'
import { splitTokens } from './tokens.ts'

const MANUAL = [
  {
    name: 'tokens.md',
    text: '# Tokens\n\n## Revoking a token\n\nA revoked token stops working within a second. Open streams go on.\n\n## Rotating a token\n\nA rotated token keeps its name. The old secret stops working, as if the token had been revoked.\n',
  },
  { name: 'streaming.md', text: '# Streaming\n\nSilence is broken by a keep-alive comment after fifteen seconds.\n' },
]

const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })

const sandbox = (pages = MANUAL) => {
  const { chat } = createLazySandbox({ id: 'sandbox', clock: manualClock(), manual: async () => pages })
  if (!chat) throw new Error('no chat')
  return chat
}
const chat = sandbox()

type Rest = Partial<ChatRequest>
const callOf = (text: string, rest: Rest = {}) => ({
  model: 'general',
  request_id: 'req_1',
  request: { model: 'sandbox/general', messages: [{ role: 'user' as const, content: text }], ...rest },
})
const never = () => new AbortController().signal
const whole = (text: string, rest: Rest = {}) => chat.complete(callOf(text, rest), never())

async function stream(text: string, rest: Rest = {}): Promise<ChatChunk[]> {
  const chunks: ChatChunk[] = []
  for await (const batch of chat.chunks(callOf(text, rest), never())) chunks.push(...batch)
  return chunks
}

const contentOf = (completion: ChatCompletion) => completion.choices[0]?.message.content ?? ''

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.then(
    () => new Error('it was answered'),
    (reason) => reason,
  )
  if (error instanceof GatewayError) return error
  throw error
}

describe('structured output', () => {
  test('json_object returns an object that declares itself simulated', async () => {
    const value = JSON.parse(contentOf(await whole('rivers', { response_format: { type: 'json_object' } })))
    expect(value).toMatchObject({ simulated: true, topics: ['rivers'] })
  })

  test('json_schema fits its schema, for every choice, streamed too', async () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' }, stops: { type: 'array', items: { type: 'integer' }, minItems: 2 } },
      required: ['city', 'stops'],
      additionalProperties: false,
    }
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'trip', schema } }
    const { choices } = await whole('A trip to Lisbon', { response_format, n: 3 })
    for (const { message, finish_reason } of choices) {
      expect(ajv.validate(schema, JSON.parse(message.content ?? ''))).toBe(true)
      expect(finish_reason).toBe('stop')
    }
    expect(JSON.parse(choices[0]?.message.content ?? '').city).toBe('Lisbon')
    const deltas = (await stream('A trip to Lisbon', { response_format, n: 3 })).flatMap((chunk) => chunk.choices)
    const joined = [0, 1, 2].map((at) => deltas.map(({ index, delta }) => (index === at ? delta.content : '')).join(''))
    expect(joined).toEqual(choices.map(({ message }) => message.content ?? ''))
  })

  test('a schema without any valid value is rejected', async () => {
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'x', schema: { allOf: [false] } } }
    const error = await refusal(whole('x', { response_format }))
    expect([error.code, error.detail.param]).toEqual(['upstream_invalid_request', 'response_format.json_schema.schema'])
  })

  test('text, and a json_schema without a schema, get an answer', async () => {
    expect(contentOf(await whole('rivers', { response_format: { type: 'text' } }))).toContain('simulated text')
    const loose = await whole('rivers', { response_format: { type: 'json_schema', json_schema: { name: 'x' } } })
    expect(JSON.parse(contentOf(loose)).simulated).toBe(true)
  })
})

describe('web search', () => {
  test.each([
    ['web_search', { web_search: { enable: true } }],
    ['web_search_options', { web_search_options: {} }],
  ])('by %s cites sections at their positions in the content', async (_, rest) => {
    const completion = await whole('How do I revoke a token?', rest)
    const annotations = completion.choices[0]?.message.annotations ?? []
    expect(annotations.length).toBeGreaterThan(1)
    for (const { type, url_citation: cited } of annotations) {
      expect(type).toBe('url_citation')
      expect(cited.url).toStartWith('https://gatehouse.example/docs/')
      expect(contentOf(completion).slice(cited.start_index, cited.end_index)).toBe(`[${cited.title}](${cited.url})`)
    }
    expect(annotations[0]?.url_citation).toMatchObject({
      url: 'https://gatehouse.example/docs/tokens#revoking-a-token',
    })
    const streamed = (await stream('How do I revoke a token?', rest)).flatMap(
      ({ choices }) => choices[0]?.delta.annotations ?? [],
    )
    expect(streamed).toEqual(annotations)
  })

  test('is off by default, limited by max_results, and never cites text that was cut off', async () => {
    const cited = async (rest: Rest) =>
      (await whole('revoke a token', rest)).choices[0]?.message.annotations?.length ?? 0
    expect(await cited({})).toBe(0)
    expect(await cited({ web_search: {} })).toBe(0)
    expect(await cited({ web_search: { enable: false } })).toBe(0)
    expect(await cited({ web_search: { enable: true, max_results: 1 } })).toBe(1)
    expect(await cited({ web_search: { enable: true, search_context_size: 'low' } })).toBe(1)
    expect(await cited({ web_search: { enable: true }, max_tokens: 10 })).toBe(0)
    expect(await cited({ web_search: { enable: true }, stop: 'sources' })).toBe(0)
  })

  test('cites one source even without a fitting section', async () => {
    const completion = await sandbox([]).complete(callOf('x', { web_search: { enable: true } }), never())
    expect(completion.choices[0]?.message.annotations).toHaveLength(1)
  })
})

describe('logprobs', () => {
  test('have an entry, bytes and alternatives for each token, complete and streamed alike', async () => {
    const completion = await whole('rivers é', { logprobs: true, top_logprobs: 3 })
    const logprobs = completion.choices[0]?.logprobs as {
      content: { token: string; logprob: number; bytes: number[]; top_logprobs: { token: string; logprob: number }[] }[]
    }
    expect(logprobs.content.map(({ token }) => token)).toEqual(splitTokens(contentOf(completion)))
    for (const { token, logprob, bytes, top_logprobs } of logprobs.content) {
      expect(logprob).toBeWithin(-2, 0.000001)
      expect(new TextDecoder().decode(new Uint8Array(bytes))).toBe(token)
      expect(top_logprobs).toHaveLength(3)
      expect(top_logprobs[0]).toMatchObject({ token, logprob })
      expect(new Set(top_logprobs.map((other) => other.token)).size).toBe(3)
      expect(top_logprobs.reduce((sum, other) => sum + Math.exp(other.logprob), 0)).toBeLessThan(1.00001)
    }
    const chunks = await stream('rivers é', { logprobs: true, top_logprobs: 3 })
    const streamed = chunks.flatMap(({ choices }) => (choices[0]?.logprobs as typeof logprobs | null)?.content ?? [])
    expect(streamed).toEqual(logprobs.content)
  })

  test('are null, and have no alternatives, unless requested', async () => {
    expect((await whole('rivers')).choices[0]?.logprobs).toBeNull()
    const requested = (await whole('rivers', { logprobs: true })).choices[0]?.logprobs
    expect((requested as { content: { top_logprobs: unknown[] }[] }).content[0]?.top_logprobs).toEqual([])
  })
})

describe('an image', () => {
  test('makes the question one about the image, not about the manual', async () => {
    const image = { type: 'image_url' as const, image_url: { url: 'https://example.com/x.png' } }
    const ask = async (parts: (typeof image)[]) => {
      const text = { type: 'text' as const, text: 'How do I revoke a token?' }
      return contentOf(await whole('', { messages: [{ role: 'user', content: [text, ...parts] }] }))
    }
    expect(await ask([])).toContain('Source: the Gatehouse manual')
    expect(await ask([image])).not.toContain('Source: the Gatehouse manual')
  })
})
