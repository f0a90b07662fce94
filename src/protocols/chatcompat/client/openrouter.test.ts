import { describe, expect, it } from 'bun:test'
import { GatewayError } from '../../../spec/error.ts'
import { usageFrom } from '../../../spec/usage.ts'
import { type ChatChunk, type ChatCompletion, type Delta, type Message, OPENROUTER } from '../../shared/canonical.ts'
import { parseChatRequest } from './request.ts'
import { createChunkEncoder, encodeWhole } from './response.ts'

const HELLO = { model: 'a/b', messages: [{ role: 'user', content: 'hi' }] }
const CLIENT = 'ai/7.0.0 ai-sdk/openrouter/3.1.0'
const HEAD = { id: 'chatcmpl-1', created: 5, model: 'p/m' }
const SIGNED = { origin: 'messages-compat', value: 'signature' } as const

const parsed = (fields: object, user_agent?: string) =>
  parseChatRequest({ ...HELLO, ...fields }, { header: () => user_agent ?? null })

function refusal(fields: object): [string, string | undefined, string] {
  try {
    parsed(fields)
  } catch (error) {
    if (error instanceof GatewayError) return [error.code, error.detail.param, error.message]
    throw error
  }
  throw new Error('It was accepted.')
}

describe('a client made for OpenRouter', () => {
  it.each([
    ['by its user agent', {}, CLIENT, true],
    ['by "reasoning"', { reasoning: {} }, undefined, true],
    ['by "include_reasoning"', { include_reasoning: true }, undefined, true],
    ['not by "include_reasoning": false', { include_reasoning: false }, undefined, undefined],
    ['not by a "reasoning" that is no object', { reasoning: 'high' }, undefined, undefined],
    ['not by another user agent', {}, 'ai/7.0.0 ai-sdk/openai-compatible/3.0.0', undefined],
  ])('is recognised %s', (_, fields, user_agent, expected) => {
    expect(parsed(fields, user_agent)[OPENROUTER]).toBe(expected as true)
  })

  it('always gets the usage of a stream, and whole answers need no option for it', () => {
    expect(parsed({ stream: true }, CLIENT).stream_options).toEqual({ include_usage: true })
    expect(parsed({ stream: true, stream_options: { include_usage: false } }, CLIENT).stream_options).toEqual({
      include_usage: true,
    })
    expect(parsed({}, CLIENT).stream_options).toBeUndefined()
    expect(parsed({ stream: true }).stream_options).toBeUndefined()
  })
})

describe('"reasoning" of a request', () => {
  it.each([
    [{ effort: 'high' }, { reasoning_effort: 'high' }],
    [{ effort: 'low', max_tokens: 9, enabled: true }, { reasoning_effort: 'low' }],
    [
      { effort: null, max_tokens: 2000 },
      { thinking_enabled: true, reasoning_budget: 2000 },
    ],
    [{ max_tokens: -1 }, { thinking_enabled: true, reasoning_budget: -1 }],
    [{ enabled: true }, { thinking_enabled: true, reasoning_effort: 'medium' }],
    [{ enabled: false }, { thinking_enabled: false, reasoning_effort: 'none' }],
    [{ exclude: true }, {}],
    [{}, {}],
  ])('%j is read', (reasoning, expected) => {
    const { model: _, messages: __, reasoning: ___, ...read } = parsed({ reasoning }) as Record<string, unknown>
    expect(read).toEqual({ [OPENROUTER]: true, ...expected })
  })

  it('has no effect beside "reasoning_effort"', () => {
    const request = parsed({ reasoning_effort: 'low', reasoning: { max_tokens: 2000 } })
    expect(request).toMatchObject({ reasoning_effort: 'low' })
    expect(request).not.toHaveProperty('reasoning_budget')
    expect(request).not.toHaveProperty('thinking_enabled')
  })

  it.each([
    [{ effort: 'most' }, 'invalid_value', 'reasoning.effort', '"medium"'],
    [{ effort: 3 }, 'invalid_type', 'reasoning.effort', '"medium"'],
    [{ max_tokens: -2 }, 'invalid_value', 'reasoning.max_tokens', '-1'],
    [{ max_tokens: 1.5 }, 'invalid_type', 'reasoning.max_tokens', 'integer'],
    [{ enabled: 'yes' }, 'invalid_type', 'reasoning.enabled', 'boolean'],
  ])('%j is refused with its member and the rule', (reasoning, code, param, rule) => {
    expect(refusal({ reasoning })).toEqual([code, param, expect.stringContaining(rule)])
    expect(refusal({ reasoning, reasoning_effort: 'low' }).slice(0, 2)).toEqual([code, param])
  })
})

const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' }, opaque: SIGNED } as const

/** The message of a whole answer, as a client receives it. */
function wholeMessage(message: object, openrouter: boolean): Message & { reasoning?: string } {
  const answer = { choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.', ...message } }] }
  const options = { usage: usageFrom({ input: 3, output: 4 }), delta_mirror: false, openrouter }
  return JSON.parse(JSON.stringify(encodeWhole(answer as unknown as ChatCompletion, HEAD, options))).choices[0].message
}

/** The deltas of a stream, as a client receives them, without the first one. */
function streamDeltas(...deltas: Delta[]): (Delta & { reasoning?: string })[] {
  const { encode } = createChunkEncoder(HEAD, { include_usage: true, openrouter: true })
  const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta }] }) as unknown as ChatChunk)
  return [...encode(chunks).matchAll(/^data: (.*)$/gm)]
    .slice(1)
    .map(([, data = '']) => JSON.parse(data).choices[0].delta)
}

const history = (message: object) =>
  parsed({ messages: [...HELLO.messages, { ...message, role: 'assistant' }] }).messages.at(-1)

describe('reasoning of an answer', () => {
  const THOUGHTS = { reasoning_content: 'Hm. So.', reasoning_details: [{ text: 'Hm. So.', opaque: SIGNED }] }

  it('is text with typed details, and returns as it was, with signatures at their pieces and calls', () => {
    const message = wholeMessage({ ...THOUGHTS, tool_calls: [call] }, true)
    expect(message).toMatchObject({
      reasoning: 'Hm. So.',
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm. So.', format: 'unknown', index: 0 },
        { type: 'reasoning.encrypted' },
        { type: 'reasoning.encrypted', id: 'call_1' },
      ] as never,
    })
    const { opaque: _, ...unsigned } = call
    expect(history({ ...message, tool_calls: [unsigned] })).toMatchObject({ ...THOUGHTS, tool_calls: [call] })
  })

  it('is streamed piece by piece, each signature after the text that it signs', () => {
    const deltas = streamDeltas(
      { reasoning_content: 'Hm. ' },
      { reasoning_content: 'So.' },
      { reasoning_details: [{ opaque: SIGNED }] },
    )
    expect(deltas.map(({ reasoning }) => reasoning)).toEqual(['Hm. ', 'So.', undefined])
    const details = deltas.flatMap(({ reasoning_details = [] }) => reasoning_details)
    expect(details.map((detail) => (detail as { type?: string }).type)).toEqual([
      'reasoning.text',
      'reasoning.text',
      'reasoning.encrypted',
    ])
    expect(history({ content: 'Yes.', reasoning: 'Hm. So.', reasoning_details: details })).toMatchObject(THOUGHTS)
  })

  it("passes in a provider's own format as it is", () => {
    const own = { type: 'reasoning.summary', summary: 'Hm.', format: 'acme-v1', index: 0 }
    const message = wholeMessage({ reasoning_content: 'Hm.', reasoning_details: [own] }, true)
    expect(message).toMatchObject({ reasoning: 'Hm.', reasoning_details: [own] as never })
  })

  it('has none of these members for another client', () => {
    expect(wholeMessage(THOUGHTS, false)).toMatchObject(THOUGHTS)
    expect(wholeMessage(THOUGHTS, false)).not.toHaveProperty('reasoning')
    expect(wholeMessage({}, true)).not.toHaveProperty('reasoning_details')
  })
})
