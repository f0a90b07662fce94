/** The vendor's recorded streams, split at every byte, become the same valid chunks; cut at any byte, they end in an error. */
import { describe, expect, test } from 'bun:test'
import { assemble, createFixtureProvider, EMPTY, isChunk, isCompletion } from '../../../test/kit/fixture-provider.ts'

const { fixture, read, complete } = createFixtureProvider('responses-compat')
const sealed = (value: string, id: string) => ({ opaque: { origin: 'chatcompat-response' as const, value, id } })
const THOUGHTS = [
  { text: '**Two cities**\n\nTwo calls.', ...sealed('gAAAAABo_first', 'rs_68a1') },
  sealed('gAAAAABo_second', 'rs_68a2'),
]
const cited = (start_index: number, end_index: number) => ({
  type: 'url_citation' as const,
  url_citation: { start_index, end_index, url: 'https://weather.example/nyc', title: 'Weather' },
})

const STREAMS: [name: string, expected: object][] = [
  ['text.sse', { ...EMPTY, content: 'Grüße aus 東京 🗼', finish: ['stop'], usage: [132, 100, 15] }],
  [
    'reasoning-tools.sse',
    {
      ...EMPTY,
      content: 'Let me look.',
      pieces: THOUGHTS,
      calls: [
        { id: 'call_Paris', name: 'get_weather', arguments: '{"city":"Paris"}' },
        { id: 'call_Rome', name: 'get_weather', arguments: '{"city":"Rome"}' },
        { id: 'call_now', name: 'now', arguments: '{}' },
      ],
      finish: ['tool_calls'],
      usage: [472, 0, 89],
    },
  ],
  [
    'web-search.sse',
    {
      ...EMPTY,
      content: 'I looked.\n\nIt is sunny.',
      annotations: [cited(14, 19)],
      finish: ['stop'],
      usage: [10_682, 0, 510],
    },
  ],
  ['unseen.sse', { ...EMPTY, content: 'Hi', finish: ['stop'], usage: [9, 0, 4] }],
  ['refusal.sse', { ...EMPTY, refusal: 'This may do harm.', finish: ['stop'], usage: [20, 0, 5] }],
  ['incomplete.sse', { ...EMPTY, content: 'Once upon', finish: ['length'], usage: [11, 0, 16] }],
  [
    'imitator.sse',
    {
      ...EMPTY,
      pieces: [{ text: 'Hm.' }],
      calls: [
        { id: 'call_00_x', name: 'look', arguments: '{"at":"here"}' },
        { id: 'call_01_y', name: 'look', arguments: '{"at":"there"}' },
      ],
      finish: ['tool_calls'],
      usage: [31, 0, 8],
    },
  ],
  [
    'terse.sse',
    {
      ...EMPTY,
      content: 'Hi',
      pieces: THOUGHTS,
      calls: [{ id: 'call_t', name: 'look', arguments: '{}' }],
      annotations: [cited(0, 2)],
      finish: ['tool_calls'],
      usage: [3, 0, 2],
    },
  ],
]

describe('a streamed response', () => {
  for (const [name, expected] of STREAMS) {
    test(`${name} has the same chunks when it is split at any byte`, async () => {
      const bytes = fixture(name)
      const { chunks, batches, failure } = await read([bytes])
      expect(failure).toBeUndefined()
      expect(assemble(chunks)).toEqual(expected as ReturnType<typeof assemble>)
      expect(batches).toHaveLength(1)
      for (const chunk of chunks) expect(isChunk.Check(chunk)).toBe(true)
      expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
      for (let at = 1; at < bytes.length; at++) {
        const { chunks: split } = await read([bytes.subarray(0, at), bytes.subarray(at)])
        if (!Bun.deepEquals(split, chunks)) throw new Error(`split at ${at} the chunks differ`)
      }
    })

    test(`${name} is an error when it is cut at any byte before its end, never a short response`, async () => {
      const bytes = fixture(name)
      const end = Math.max(bytes.lastIndexOf('"response.completed"'), bytes.lastIndexOf('"response.incomplete"'))
      const closed = bytes.indexOf('}\r\n', end) === -1 ? bytes.indexOf('}\n', end) : bytes.indexOf('}\r\n', end)
      for (let at = 0; at < bytes.length; at++) {
        const { chunks, failure } = await read([bytes.subarray(0, at)])
        const isWhole = assemble(chunks).finish.length > 0
        if (isWhole !== at > closed) throw new Error(`cut at ${at} it has ${isWhole ? '' : 'not '}ended`)
        if (isWhole !== (failure === undefined)) throw new Error(`cut at ${at}: ${failure?.code ?? 'no error'}`)
        if (failure && failure.code !== 'upstream_cut') throw new Error(`cut at ${at}: ${failure.code}`)
        if (isWhole) expect(assemble(chunks)).toEqual(expected as ReturnType<typeof assemble>)
      }
    })
  }

  test('has the cache and reasoning token counts in its last chunk', async () => {
    const text = (await read([fixture('text.sse')])).chunks.at(-1)
    expect(text?.usage).toMatchObject({ prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 7 } })
    const tools = (await read([fixture('reasoning-tools.sse')])).chunks.at(-1)
    expect(tools?.usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: 64 } })
  })

  test('has the id, the model and the time in every chunk', async () => {
    const { chunks } = await read([fixture('text.sse')])
    for (const { id, model, created } of chunks) {
      expect({ id, model, created }).toEqual({ id: 'resp_67cb', model: 'gpt-4.1-2025-04-14', created: 1_741_476_542 })
    }
  })

  test('has the logprobs of each token once', async () => {
    const { chunks } = await read([fixture('text.sse')])
    const tokens = chunks.flatMap(({ choices }) => choices.flatMap(({ logprobs }) => logprobs ?? []))
    expect(tokens).toHaveLength(4)
    expect(tokens[0]).toEqual({
      content: [
        {
          token: 'Grüße',
          logprob: -0.1,
          bytes: [...Buffer.from('Grüße')],
          top_logprobs: [{ token: 'Grüße', logprob: -0.1, bytes: [...Buffer.from('Grüße')] }],
        },
      ],
      refusal: null,
    })
  })

  test.each([
    ['failed.sse', 'bad_upstream_response', 'Hel'],
    ['error.sse', 'rate_limit_exceeded', 'Hel'],
    // No text was sent yet, so another target may still be tried.
    ['failed-at-once.sse', 'content_policy_violation', undefined],
  ])('%s ends with %s after the text before it', async (name, code, expected) => {
    const { chunks, failure } = await read([fixture(name)])
    expect(failure).toMatchObject({ code })
    expect(`${failure}`).not.toContain('secret')
    expect(chunks.length === 0 ? undefined : assemble(chunks).content).toBe(expected)
    expect(assemble(chunks).finish).toEqual([])
  })

  test('has the same chunks when it comes as one JSON document', async () => {
    const { chunks, failure } = await read([fixture('whole.json')], { type: 'application/json' })
    const message = (await complete(fixture('whole.json').toString()))?.choices[0]?.message
    expect(failure).toBeUndefined()
    const assembled = assemble(chunks)
    expect(assembled).toMatchObject({ content: message?.content ?? '', finish: ['tool_calls'], usage: [234, 200, 44] })
    expect(assembled.pieces).toEqual(message?.reasoning_details ?? [])
    expect(assembled.annotations).toHaveLength(1)
  })

  test.each([
    ['<html>', 'text/html', 'bad_upstream_response'],
    ['data: hello\n\n', 'text/event-stream', 'bad_upstream_response'],
    ['event: error\ndata: gone\n\n', 'text/event-stream', 'bad_upstream_response'],
    ['', 'text/event-stream', 'upstream_cut'],
    ['data: [DONE]\n\n', 'text/event-stream', 'upstream_cut'],
    ['{"error":{"code":"rate_limit_exceeded","message":"slow"}}', 'application/json', 'rate_limit_exceeded'],
    ['{"a":1}', 'application/json', 'bad_upstream_response'],
    ['{"output":[],"status":"in_progress"}', 'application/json', 'bad_upstream_response'],
    ['{"output":[],"status":"cancelled"}', 'application/json', 'bad_upstream_response'],
    [
      '{"output":[],"status":"failed","error":{"code":"vector_store_timeout","message":"Late."}}',
      'application/json',
      'upstream_timeout',
    ],
    [
      '{"output":[],"status":"failed","error":{"code":"bio_policy","message":"No."}}',
      'application/json',
      'content_policy_violation',
    ],
    [
      '{"output":[],"status":"failed","error":{"code":"invalid_image_url","message":"No image."}}',
      'application/json',
      'upstream_invalid_request',
    ],
    ['{"output":[],"status":"failed","error":null}', 'application/json', 'bad_upstream_response'],
    ['not JSON', 'application/json', 'bad_upstream_response'],
  ])('%p as %s fails with %s', async (body, type, code) => {
    expect((await read([Buffer.from(body)], { type })).failure).toMatchObject({ code })
    if (type === 'application/json') await expect(complete(body)).rejects.toMatchObject({ code })
  })
})

describe('a whole response', () => {
  test('becomes a completion with the parts of every item', async () => {
    const completion = await complete(fixture('whole.json').toString())
    expect(isCompletion.Check(completion)).toBe(true)
    expect(completion).toMatchObject({ id: 'resp_w', model: 'gpt-5.1', created: 1_741_476_542 })
    expect(completion?.choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'As I read, it is sunny.',
          reasoning_content: '**Two cities**\n\nTwo calls.',
          reasoning_details: THOUGHTS,
          tool_calls: [
            { id: 'call_w', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } },
          ],
          annotations: [cited(11, 23)],
        },
        finish_reason: 'tool_calls',
      },
    ])
    expect(completion?.usage).toMatchObject({
      input_tokens: 234,
      output_tokens: 44,
      prompt_tokens_details: { cached_tokens: 200, cache_write_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 9 },
    })
  })

  test.each([
    ['completed', null, 'stop'],
    ['incomplete', { reason: 'max_output_tokens' }, 'length'],
    ['incomplete', { reason: 'max_messages' }, 'length'],
    ['incomplete', { reason: 'content_filter' }, 'content_filter'],
    ['incomplete', { reason: 'steered' }, 'stop'],
    ['incomplete', { reason: 'a future reason' }, 'length'],
    ['incomplete', null, 'length'],
    ['a future status', null, 'stop'],
    [undefined, null, 'stop'],
  ])('with the status %p and %p ends with %s', async (status, incomplete_details, finish_reason) => {
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'x' }] }]
    const body = { output, status, incomplete_details }
    expect((await complete(JSON.stringify(body)))?.choices[0]).toMatchObject({
      message: { content: 'x' },
      finish_reason,
    })
  })

  test('that was cut within a tool call has the finish reason and the received part of the call', async () => {
    const output = [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a', status: 'incomplete' }]
    const body = { output, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
    const choice = (await complete(JSON.stringify(body)))?.choices[0]
    expect(choice).toMatchObject({ finish_reason: 'length' })
    expect(choice?.message.tool_calls).toEqual([
      { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a' } },
    ])
  })

  test('without output has no content, and without usage has no usage', async () => {
    const completion = await complete('{"status":"incomplete","output":[]}')
    expect(completion?.choices[0]?.message).toEqual({ role: 'assistant', content: null })
    expect(completion?.usage).toBeUndefined()
  })
})
