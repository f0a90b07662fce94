/** Guards as the official libraries see them: a refusal in the form that each of them knows. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import Anthropic, { BadRequestError as AnthropicBadRequest } from '@anthropic-ai/sdk'
import { BlockedReason, FinishReason, GoogleGenAI } from '@google/genai'
import OpenAI, { BadRequestError } from 'openai'
import { openPort, type Port } from './kit/served.ts'
import { chunk, completion, startVendor, stream, usageChunk, type Vendor, whole } from './kit/vendor.ts'

const SECRET = 'project-falcon'
let vendor: Vendor
let port: Port
beforeAll(async () => {
  vendor = startVendor()
  port = await openPort({
    guards: { 'no-secrets': { kind: 'patterns', patterns: [SECRET] } },
    providers: { v: { base_url: vendor.url, key: 'sk-vendor' } },
    models: { 'v/m': { targets: [{ provider: 'v', model: 'vendor-model' }], guards: ['no-secrets'] } },
  })
})
afterAll(async () => {
  await port.close()
  await vendor.stop()
})

const answer = () => stream([chunk({ content: `It is ${SECRET}.` }), chunk({}, 'stop'), usageChunk()])
const messages = (content: string) => [{ role: 'user' as const, content }]

describe('the openai package', () => {
  const client = () => new OpenAI({ baseURL: port.url, apiKey: port.token })

  it('throws its BadRequestError with the code for a blocked request, and does not retry', async () => {
    port.requests.length = 0
    const thrown = await client()
      .chat.completions.create({ model: 'v/m', messages: messages(SECRET) })
      .catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(BadRequestError)
    expect(thrown).toMatchObject({ status: 400, code: 'content_blocked', type: 'invalid_request_error' })
    expect(port.requests).toHaveLength(1)
  })

  it('reads a blocked answer as content_filter, whole and streamed', async () => {
    vendor.answer(whole(completion(`It is ${SECRET}.`)), answer())
    const completed = await client().chat.completions.create({ model: 'v/m', messages: messages('Hi') })
    expect(completed.choices[0]).toMatchObject({ finish_reason: 'content_filter', message: { content: '' } })
    expect(completed.usage?.completion_tokens).toBe(3)
    const streamed = client().chat.completions.stream({ model: 'v/m', messages: messages('Hi') })
    const final = await streamed.finalChatCompletion()
    expect(final.choices[0]?.finish_reason).toBe('content_filter')
    expect(JSON.stringify(final)).not.toContain('falcon')
  })

  it('reads a blocked response as incomplete', async () => {
    vendor.answer(whole(completion(`It is ${SECRET}.`)))
    const response = await client().responses.create({ model: 'v/m', input: 'Hi', store: false })
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
  })
})

describe('the @anthropic-ai/sdk package', () => {
  const client = () => new Anthropic({ baseURL: port.url.replace('/v1', ''), apiKey: port.token })

  it('throws its BadRequestError for a blocked request', async () => {
    const thrown = await client()
      .messages.create({ model: 'v/m', max_tokens: 50, messages: messages(SECRET) })
      .catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(AnthropicBadRequest)
    expect(thrown).toMatchObject({ status: 400, error: { error: { details: { error_code: 'content_blocked' } } } })
  })

  it('reads a blocked answer as a refusal, whole and streamed', async () => {
    vendor.answer(whole(completion(`It is ${SECRET}.`)), answer())
    const request = { model: 'v/m', max_tokens: 50, messages: messages('Hi') }
    expect((await client().messages.create(request)).stop_reason).toBe('refusal')
    const final = await client().messages.stream(request).finalMessage()
    expect(final.stop_reason).toBe('refusal')
    expect(JSON.stringify(final)).not.toContain('falcon')
  })
})

describe('the @google/genai package', () => {
  const client = () => new GoogleGenAI({ apiKey: port.token, httpOptions: { baseUrl: port.url.replace('/v1', '') } })

  it('reads a blocked request as its own block reason, whole and streamed', async () => {
    const request = { model: 'v/m', contents: SECRET }
    const { promptFeedback, candidates = [] } = await client().models.generateContent(request)
    expect([promptFeedback?.blockReason, candidates.length]).toEqual([BlockedReason.BLOCKLIST, 0])
    const reasons = []
    for await (const part of await client().models.generateContentStream(request)) reasons.push(part.promptFeedback)
    expect(reasons).toMatchObject([{ blockReason: BlockedReason.BLOCKLIST }])
  })

  it('reads a blocked answer by its finish reason, whole and streamed', async () => {
    vendor.answer(whole(completion(`It is ${SECRET}.`)), answer())
    const request = { model: 'v/m', contents: 'Hi' }
    const { candidates = [] } = await client().models.generateContent(request)
    expect(candidates[0]?.finishReason).toBe(FinishReason.SAFETY)
    const parts = await Array.fromAsync(await client().models.generateContentStream(request))
    expect(parts.at(-1)?.candidates?.[0]?.finishReason).toBe(FinishReason.SAFETY)
    expect(JSON.stringify(parts)).not.toContain('falcon')
  })
})
