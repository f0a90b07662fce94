import { describe, expect, it } from 'bun:test'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import { estimateChat } from './estimate.ts'

const AROUND = 1_024
const MESSAGE = 16
const model = { limits: {}, context_tokens: undefined }
const request = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  model: 'v/m',
  messages: [{ role: 'user', content: 'x'.repeat(400) }],
  ...more,
})
const of = (
  more: Partial<ChatRequest> = {},
  limits: Partial<Parameters<typeof estimateChat>[1]> = {},
  body_bytes?: number,
) => estimateChat([request(more)], { ...model, ...limits }, { body_bytes })

describe('the input that is expected', () => {
  it('is a token for four bytes, of the texts or of the body', () => {
    expect(of().expected.input_tokens).toBe(100)
    expect(of({}, {}, 500).expected.input_tokens).toBe(125)
  })

  it('counts media by what they are, not by their bytes', () => {
    const url = `data:image/png;base64,${'A'.repeat(1_000_000)}`
    const content = [
      { type: 'text' as const, text: 'x'.repeat(400) },
      { type: 'image_url' as const, image_url: { url } },
    ]
    const messages = [{ role: 'user' as const, content }]
    expect(of({ messages }).expected.input_tokens).toBe(100 + 1_300)
    expect(of({ messages }, {}, 1_000_422).expected.input_tokens).toBe(100 + 1_300)
  })
})

describe('the most input', () => {
  it('is a token for each byte, and what providers add', () => {
    expect(of().most.input_tokens).toBe(400 + MESSAGE + AROUND)
    expect(of({ messages: [{ role: 'user', content: '你好' }] }).most.input_tokens).toBe(6 + MESSAGE + AROUND)
    expect(of({}, {}, 500).most.input_tokens).toBe(500 + MESSAGE + AROUND)
  })

  it('is at most the context of the model', () => {
    expect(of({}, { context_tokens: 1_000 }).most.input_tokens).toBe(1_000)
    expect(of({}, { context_tokens: 1_441 }).most.input_tokens).toBe(1_440)
  })

  it('includes tools, calls and schemas', () => {
    const tools = [{ type: 'function' as const, function: { name: 'f', parameters: { a: 'y'.repeat(1_000) } } }]
    expect(of({ tools }).most.input_tokens).toBeGreaterThan(1_400 + MESSAGE + AROUND)
    const schema = { name: 's', schema: { a: 'y'.repeat(1_000) } }
    const response_format = { type: 'json_schema' as const, json_schema: schema }
    expect(of({ response_format }).most.input_tokens).toBeGreaterThan(1_400 + MESSAGE + AROUND)
  })

  it('bounds what is only referred to', () => {
    const content = [{ type: 'file' as const, file: { file_id: 'file-1' } }]
    expect(of({ messages: [{ role: 'user', content }] }).most.input_tokens).toBe(200_000 + MESSAGE + AROUND)
  })

  it('can be audio only where the request has some', () => {
    const content = [{ type: 'input_audio' as const, input_audio: { data: 'A'.repeat(2_000), format: 'wav' } }]
    expect(of({ messages: [{ role: 'user', content }] }).most.input_audio_tokens).toBe(100)
    expect(of().most.input_audio_tokens).toBe(0)
  })

  it('can be kept for an hour only where the request asks for it', () => {
    const cached = (ttl?: string) =>
      of({
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl } } as never] },
        ],
      }).most
    expect(cached('1h').cache_write_1h_tokens).toBe(cached('1h').input_tokens)
    expect(cached('5m').cache_write_1h_tokens).toBe(0)
    expect(cached().cache_write_1h_tokens).toBe(0)
    expect(cached().cache_write_tokens).toBe(cached().input_tokens)
  })
})

describe('the output', () => {
  it('is at most the limit of the request, of the model, its context, or 16,384', () => {
    const most = (more: Partial<ChatRequest>, limits = {}) => of(more, limits).most.output_tokens
    const limits = { max_tokens: { maximum: 4_096 } }
    expect(most({ max_tokens: 100 }, { limits })).toBe(100)
    expect(most({}, { limits, context_tokens: 8_000 })).toBe(4_096)
    expect(most({}, { context_tokens: 8_000 })).toBe(8_000)
    expect(most({ max_tokens: 9_000 }, { context_tokens: 8_000 })).toBe(8_000)
    expect(most({})).toBe(16_384)
  })

  it('is expected to be 500 tokens, or fewer where the request allows fewer', () => {
    expect(of().expected.output_tokens).toBe(500)
    expect(of({ max_tokens: 100 }).expected.output_tokens).toBe(100)
  })

  it('multiplies with the number of choices', () => {
    expect(of({ n: 3, max_tokens: 100 })).toMatchObject({
      expected: { output_tokens: 300 },
      most: { output_tokens: 300 },
    })
  })

  it('can be audio only where the request asks for it', () => {
    expect(of({ max_tokens: 10, modalities: ['text', 'audio'] }).most.output_audio_tokens).toBe(10)
    expect(of({ max_tokens: 10 }).most.output_audio_tokens).toBe(0)
  })
})

it('the estimate of several prompts is their sum', () => {
  const { most, expected } = estimateChat([request({ max_tokens: 10 }), request({ max_tokens: 20 })], model)
  expect([most.input_tokens, most.output_tokens]).toEqual([2 * (400 + MESSAGE) + AROUND, 30])
  expect([expected.input_tokens, expected.output_tokens]).toEqual([200, 30])
})
