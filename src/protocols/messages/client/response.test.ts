/** Encoding of Messages responses, folded as the client library does it, with a check of every event. */
import { describe, expect, test } from 'bun:test'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import { GatewayError } from '../../../spec/error.ts'
import { type Usage, usageFrom } from '../../../spec/usage.ts'
import type { ChatChunk, ChatCompletion, ChatRequest, Delta } from '../../shared/canonical.ts'
import { encodeSigned, PLAIN } from '../../shared/signed-content.ts'
import { createMessagesEncoder } from './response.ts'

const HEAD = { id: 'msg_1', created: 1, model: 'a/b' }
const REQUEST: ChatRequest = { model: 'a/b', messages: [{ role: 'user', content: 'Hello there, how are you?' }] }
const USAGE = usageFrom({ input: 130, output: 9, cached: 100, cache_write: 20, reasoning: 4 })

const chunk = (delta: Delta, finish_reason: FinishReason | null = null, more: Partial<ChatChunk> = {}): ChatChunk => ({
  id: 'x',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
})
const call = (index: number, text: string, name?: string): Delta => ({
  tool_calls: [
    {
      index,
      ...(name ? { id: `call_${index}`, type: 'function' } : {}),
      function: { arguments: text, ...(name ? { name } : {}) },
    },
  ],
})

type Block = {
  type: string
  data?: string
  text?: string
  thinking?: string
  signature?: string
  citations?: object[]
  json?: string
  caller?: object
}
type Event = {
  type: string
  index?: number
  message?: { usage: { input_tokens: number } & Record<string, unknown> } & Record<string, unknown>
  content_block?: Block
  delta?: Record<string, string | null | object> & { type?: string; stop_reason?: string }
  content?: unknown
  usage?: unknown
}

/** The text of a stream, and its events after a check of their framing and order. */
function streamed(
  deltas: (Delta | ChatChunk)[],
  { finish = 'stop' as FinishReason, usage = USAGE as Usage | undefined } = {},
) {
  const writer = createMessagesEncoder(HEAD, REQUEST, 'req_1')
  const chunks = deltas.map((one) => ('choices' in one ? one : chunk(one)))
  const text = [...chunks, chunk({}, finish)].map((one) => writer.encode([one])).join('') + writer.end(usage)
  return folded(text)
}

function folded(text: string) {
  const events = text
    .split('\n\n')
    .filter(Boolean)
    .map((block): Event => {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
      const event = JSON.parse(data ?? 'null')
      expect(event.type).toBe(name)
      return event
    })
  const blocks: Block[] = []
  let open: Block | undefined
  for (const event of events.slice(0, -2)) {
    if (event.type === 'content_block_start') {
      expect(open).toBeUndefined()
      expect(event.index).toBe(blocks.length)
      open = { type: '', ...event.content_block, json: '' }
      blocks.push(open)
    } else if (event.type === 'content_block_delta') {
      expect(event.index).toBe(blocks.length - 1)
      if (!open) throw new Error('a delta without a block')
      const { delta = {} } = event
      if (delta.type === 'text_delta') open.text += `${delta.text}`
      else if (delta.type === 'thinking_delta') open.thinking += `${delta.thinking}`
      else if (delta.type === 'signature_delta') open.signature = `${delta.signature}`
      else if (delta.type === 'input_json_delta') open.json += `${delta.partial_json}`
      else if (delta.type === 'citations_delta') open.citations = [...(open.citations ?? []), delta.citation as object]
    } else if (event.type === 'content_block_stop') {
      expect(event.index).toBe(blocks.length - 1)
      expect(open).toBeDefined()
      open = undefined
    }
  }
  expect(open).toBeUndefined()
  const content = blocks.map(({ json, caller: _, ...block }) =>
    block.type === 'tool_use' ? { ...block, input: json } : block,
  )
  return { text, events, content, start: events[0], last: events.at(-2) }
}

const text = (texts: string) => ({ type: 'text', text: texts })
const use = (index: number, input: string) => ({ type: 'tool_use', id: `call_${index}`, name: 'look', input })
const thinking = (texts: string, signature = PLAIN) => ({ type: 'thinking', thinking: texts, signature })
const opaque = (value: string) => ({ origin: 'messages-compat' as const, value })

describe('a Messages stream', () => {
  test('of text has every event in order, and no other end', () => {
    const {
      events,
      content,
      start,
      last,
      text: all,
    } = streamed([{ role: 'assistant', content: '' }, { content: 'Hel' }, { content: 'lo' }])
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'ping',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(content).toEqual([text('Hello')])
    expect(start?.message).toMatchObject({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'a/b',
      content: [],
      stop_reason: null,
    })
    expect(last).toMatchObject({
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { input_tokens: 10, cache_read_input_tokens: 100, cache_creation_input_tokens: 20, output_tokens: 9 },
    })
    expect(all).not.toContain('[DONE]')
  })

  test('reports input tokens at the start: those of the provider, otherwise an estimate', () => {
    const output = usageFrom({ input: 472, output: 1, cached: 400 })
    expect(streamed([chunk({ content: '' }, null, { usage: output })]).start?.message?.usage).toMatchObject({
      input_tokens: 72,
      cache_read_input_tokens: 400,
    })
    const later = streamed([{ content: 'a' }, chunk({ content: 'b' }, null, { usage: output })])
    expect(later.start?.message?.usage.input_tokens).toBeGreaterThan(5)
    expect(later.start?.message?.usage.input_tokens).toBeLessThan(30)
  })

  test('without content is still a message', () => {
    expect(folded(createMessagesEncoder(HEAD, REQUEST, 'r').end(USAGE)).events.map(({ type }) => type)).toEqual([
      'message_start',
      'ping',
      'message_delta',
      'message_stop',
    ])
  })

  test('supports signed reasoning, hidden reasoning, text and a call', () => {
    const { content, last } = streamed(
      [
        { reasoning_content: 'Two ' },
        { reasoning_content: 'calls.' },
        { reasoning_details: [{ opaque: opaque('sig') }] },
        { reasoning_details: [{ opaque: opaque('hidden') }] },
        { reasoning_details: [{ text: '', opaque: opaque('empty') }] },
        { content: 'Well.' },
        call(0, '', 'look'),
        call(0, '{"a"'),
        call(0, ':1}'),
      ],
      { finish: 'tool_calls' },
    )
    expect(content).toEqual([
      thinking('Two calls.', 'sig'),
      { type: 'redacted_thinking', data: 'hidden' },
      thinking('', 'empty'),
      text('Well.'),
      use(0, '{"a":1}'),
    ])
    expect(last?.delta?.stop_reason).toBe('tool_use')
  })

  test('sends reasoning that arrives whole only once', () => {
    const reasoning_details = [{ text: 'a', opaque: opaque('1') }, { text: 'b' }]
    const { content } = streamed([{ content: 'x', reasoning_content: 'ab', reasoning_details }])
    expect(content).toEqual([thinking('a', '1'), thinking('b'), text('x')])
  })

  test('ends a thinking block with a signature, also where no vendor signed the reasoning', () => {
    const { events } = streamed([{ reasoning_content: 'a' }, { reasoning_content: 'b' }, call(0, '{}', 'look')])
    const ofThinking = events.filter(({ index }) => index === 0)
    expect(ofThinking.map(({ type, delta }) => delta ?? type)).toEqual([
      'content_block_start',
      { type: 'thinking_delta', thinking: 'a' },
      { type: 'thinking_delta', thinking: 'b' },
      { type: 'signature_delta', signature: PLAIN },
      'content_block_stop',
    ])
  })

  test('supports unsigned reasoning before and between texts', () => {
    const { content } = streamed([
      { reasoning_content: 'a' },
      { content: 'x' },
      { reasoning_content: 'b' },
      { content: 'y' },
    ])
    expect(content).toEqual([thinking('a'), text('x'), thinking('b'), text('y')])
  })

  test('sends interleaved calls one after the other', () => {
    const { content, events } = streamed([
      call(0, '', 'look'),
      call(0, '{"a":'),
      call(1, '', 'look'),
      call(1, '{"b"'),
      call(2, '{}', 'look'),
      call(0, '1}'),
      call(1, ':2}'),
      { content: 'after' },
    ])
    expect(content).toEqual([use(0, '{"a":1}'), use(1, '{"b":2}'), use(2, '{}'), text('after')])
    // The first call is streamed, not held until its end.
    expect(events.filter(({ index, delta }) => index === 0 && delta).length).toBe(2)
  })

  test('is not blocked by a call whose arguments are missing or incomplete', () => {
    const { content } = streamed([
      call(0, '{"a"', 'look'),
      call(1, '', 'look'),
      { content: 'x' },
      { reasoning_content: 'y' },
    ])
    expect(content).toEqual([use(0, '{"a"'), use(1, ''), text('x'), thinking('y')])
  })

  test('streams consecutive parallel calls as they arrive', () => {
    const writer = createMessagesEncoder(HEAD, REQUEST, 'r')
    writer.encode([chunk(call(0, '{"a":1}', 'look'))])
    expect(writer.encode([chunk(call(1, '{"b"', 'look'))])).toContain('{\\"b\\"')
  })

  test('closes the last block with the finish, before the token counts arrive', () => {
    const writer = createMessagesEncoder(HEAD, REQUEST, 'r')
    writer.encode([chunk(call(0, '{}', 'look'))])
    expect(writer.encode([chunk({}, 'tool_calls')])).toContain('event: content_block_stop')
    expect(writer.end(USAGE)).not.toContain('content_block_stop')
  })

  test('sends a call’s signature in a thinking block without text', () => {
    const google = { origin: 'contentgen-compat' as const, value: 'sig' }
    const [delta] = [call(0, '{}', 'look')]
    if (delta?.tool_calls?.[0]) delta.tool_calls[0].opaque = google
    const signature = encodeSigned({ opaque: google, owner: 'call_0' }, { home: 'messages-compat' })
    expect(streamed([delta as Delta]).content).toEqual([thinking('', signature), use(0, '{}')])
  })

  test('places citations in the text that they support', () => {
    const url_citation = { start_index: 0, end_index: 2, url: 'https://a.example', title: 'A' }
    const { content } = streamed([{ content: 'It is' }, { annotations: [{ type: 'url_citation', url_citation }] }])
    expect(content).toEqual([
      {
        ...text('It is'),
        citations: [
          {
            type: 'web_search_result_location',
            url: 'https://a.example',
            title: 'A',
            cited_text: 'It',
            encrypted_index: '',
          },
        ],
      },
    ])
  })

  test.each([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['tool_calls', 'tool_use'],
    ['content_filter', 'refusal'],
  ] as const)('maps the finish reason %s to %s', (finish, stop_reason) => {
    expect(streamed([{ content: 'x' }], { finish }).last?.delta?.stop_reason).toBe(stop_reason)
  })

  test('stops by a sequence, or with an explained refusal', () => {
    const stopped = chunk({}, 'stop')
    Object.assign(stopped.choices[0] ?? {}, { stop_sequence: 'END' })
    expect(streamed([stopped]).last?.delta).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'END' })
    const refused = streamed([{ refusal: 'I will ' }, { refusal: 'not.' }])
    expect(refused.content).toEqual([text('I will not.')])
    expect(refused.last?.delta).toMatchObject({
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: null, explanation: 'I will not.' },
    })
  })

  test('ends with a named error and the request id on a failure', () => {
    const writer = createMessagesEncoder(HEAD, REQUEST, 'req_1')
    const events = writer.fail(new GatewayError('server_is_overloaded', 'Too much.'))
    expect(events).toStartWith('event: error\ndata: {"type":"error",')
    expect(JSON.parse(events.slice(events.indexOf('{')))).toMatchObject({
      error: { type: 'overloaded_error', message: 'Too much.' },
      request_id: 'req_1',
    })
  })

  test('has no character at which a client may end a line', () => {
    const { text: all, content } = streamed([{ content: 'a\u2028b\u0085c\nd' }])
    expect(all).not.toMatch(/[\u2028\u0085]/)
    expect(content).toEqual([text('a\u2028b\u0085c\nd')])
  })

  test('ignores all choices except the first', () => {
    const other = chunk({ content: 'second' })
    Object.assign(other.choices[0] ?? {}, { index: 1 })
    expect(streamed([other]).content).toEqual([])
  })
})

describe('a whole Messages response', () => {
  const whole = (message: Partial<ChatCompletion['choices'][number]['message']>, more: object = {}) => {
    const answer: ChatCompletion = {
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        { index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: 'stop', ...more },
      ],
    }
    return createMessagesEncoder(HEAD, REQUEST, 'r').whole(answer, USAGE) as Event
  }

  test('has its blocks in the order of a stream, and its usage without the cache', () => {
    const google = { origin: 'contentgen-compat' as const, value: 'sig' }
    const answer = whole(
      {
        content: 'Well.',
        reasoning_content: 'hm',
        reasoning_details: [{ text: 'hm', opaque: opaque('sig') }, { opaque: opaque('hidden') }],
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'look', arguments: '{"at":1}' } },
          { id: 'b', type: 'function', function: { name: 'now', arguments: '' }, opaque: google },
          { id: 'c', type: 'function', function: { name: 'now', arguments: '{broken' } },
        ],
      },
      { finish_reason: 'tool_calls' },
    )
    const caller = { type: 'direct' }
    expect(answer.content).toEqual([
      thinking('hm', 'sig'),
      { type: 'redacted_thinking', data: 'hidden' },
      text('Well.'),
      { type: 'tool_use', id: 'a', name: 'look', input: { at: 1 }, caller },
      thinking('', encodeSigned({ opaque: google, owner: 'b' }, { home: 'messages-compat' })),
      { type: 'tool_use', id: 'b', name: 'now', input: {}, caller },
      { type: 'tool_use', id: 'c', name: 'now', input: { INVALID_JSON: '{broken' }, caller },
    ])
    expect(answer).toMatchObject({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'a/b',
      stop_reason: 'tool_use',
    })
    expect(answer.usage).toMatchObject({
      input_tokens: 10,
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 4 },
    })
  })

  test('has citations only where the text has some', () => {
    const url_citation = { start_index: 0, end_index: 2, url: 'https://a.example', title: 'A' }
    const [cited] = whole({ content: 'It is', annotations: [{ type: 'url_citation', url_citation }] })
      .content as Block[]
    expect(cited?.citations).toHaveLength(1)
    const [plain] = whole({ content: 'It is' }).content as Block[]
    expect(plain).toEqual({ type: 'text', text: 'It is' })
  })

  test('supports plain reasoning, and empty content', () => {
    expect(whole({ reasoning_content: 'hm', content: 'x' }).content).toEqual([thinking('hm'), text('x')])
    expect(whole({}).content).toEqual([])
    expect(whole({ content: 'x' }, { stop_sequence: 'END' })).toMatchObject({
      stop_reason: 'stop_sequence',
      stop_sequence: 'END',
    })
    expect(whole({ refusal: 'No.' })).toMatchObject({ stop_reason: 'refusal', content: [text('No.')] })
  })
})
