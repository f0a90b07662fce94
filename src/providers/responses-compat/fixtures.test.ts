/** The vendor's true shapes, read as a stream cut and split at every byte, end in the same clean chunks or in an error. */
import { describe, expect, test } from 'bun:test'
import { heard, isChunk, isCompletion, NOTHING, playedTo } from '../../../test/kit/played.ts'

const { fixture, read, whole } = playedTo('responses-compat')
const sealed = (value: string, id: string) => ({ opaque: { origin: 'chatcompat-response' as const, value, id } })
const THOUGHTS = [
  { text: '**Two cities**\n\nTwo calls.', ...sealed('gAAAAABo_first', 'rs_68a1') },
  sealed('gAAAAABo_second', 'rs_68a2'),
]
const cited = (start_index: number, end_index: number) => ({
  type: 'url_citation' as const,
  url_citation: { start_index, end_index, url: 'https://weather.example/nyc', title: 'Weather' },
})

const STREAMS: [name: string, said: object][] = [
  ['text.sse', { ...NOTHING, content: 'Grüße aus 東京 🗼', finish: ['stop'], usage: [132, 100, 15] }],
  [
    'reasoning-tools.sse',
    {
      ...NOTHING,
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
      ...NOTHING,
      content: 'I looked.\n\nIt is sunny.',
      annotations: [cited(14, 19)],
      finish: ['stop'],
      usage: [10_682, 0, 510],
    },
  ],
  ['unseen.sse', { ...NOTHING, content: 'Hi', finish: ['stop'], usage: [9, 0, 4] }],
  ['refusal.sse', { ...NOTHING, refusal: 'This may do harm.', finish: ['stop'], usage: [20, 0, 5] }],
  ['incomplete.sse', { ...NOTHING, content: 'Once upon', finish: ['length'], usage: [11, 0, 16] }],
  [
    'imitator.sse',
    {
      ...NOTHING,
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
      ...NOTHING,
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
  for (const [name, said] of STREAMS) {
    test(`${name} decodes to the same chunks wherever its bytes are split`, async () => {
      const bytes = fixture(name)
      const { chunks, batches, failure } = await read([bytes])
      expect(failure).toBeUndefined()
      expect(heard(chunks)).toEqual(said as ReturnType<typeof heard>)
      expect(batches).toHaveLength(1)
      for (const chunk of chunks) expect(isChunk.Check(chunk)).toBe(true)
      expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
      for (let at = 1; at < bytes.length; at++) {
        const { chunks: split } = await read([bytes.subarray(0, at), bytes.subarray(at)])
        if (!Bun.deepEquals(split, chunks)) throw new Error(`split at ${at} it says something else`)
      }
    })

    test(`${name} cut at any byte before its end is an error, never a shorter response`, async () => {
      const bytes = fixture(name)
      const end = Math.max(bytes.lastIndexOf('"response.completed"'), bytes.lastIndexOf('"response.incomplete"'))
      const closed = bytes.indexOf('}\r\n', end) === -1 ? bytes.indexOf('}\n', end) : bytes.indexOf('}\r\n', end)
      for (let at = 0; at < bytes.length; at++) {
        const { chunks, failure } = await read([bytes.subarray(0, at)])
        const isWhole = heard(chunks).finish.length > 0
        if (isWhole !== at > closed) throw new Error(`cut at ${at} it has ${isWhole ? '' : 'not '}ended`)
        if (isWhole !== (failure === undefined)) throw new Error(`cut at ${at}: ${failure?.code ?? 'no error'}`)
        if (failure && failure.code !== 'upstream_cut') throw new Error(`cut at ${at}: ${failure.code}`)
        if (isWhole) expect(heard(chunks)).toEqual(said as ReturnType<typeof heard>)
      }
    })
  }

  test('the cached and reasoning tokens are reported at the end', async () => {
    const text = (await read([fixture('text.sse')])).chunks.at(-1)
    expect(text?.usage).toMatchObject({ prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 7 } })
    const tools = (await read([fixture('reasoning-tools.sse')])).chunks.at(-1)
    expect(tools?.usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: 64 } })
  })

  test('the model and id are in every chunk from the first on', async () => {
    const { chunks } = await read([fixture('text.sse')])
    for (const { id, model, created } of chunks) {
      expect({ id, model, created }).toEqual({ id: 'resp_67cb', model: 'gpt-4.1-2025-04-14', created: 1_741_476_542 })
    }
  })

  test('logprobs are in the chunks of their tokens, once each', async () => {
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
    // Nothing was said: another target may still be asked.
    ['failed-at-once.sse', 'content_policy_violation', undefined],
  ])('%s is %s, after the content before it', async (name, code, said) => {
    const { chunks, failure } = await read([fixture(name)])
    expect(failure).toMatchObject({ code })
    expect(`${failure}`).not.toContain('secret')
    expect(chunks.length === 0 ? undefined : heard(chunks).content).toBe(said)
    expect(heard(chunks).finish).toEqual([])
  })

  test('a complete response decodes to the same content as a stream', async () => {
    const { chunks, failure } = await read([fixture('whole.json')], { type: 'application/json' })
    const message = (await whole(fixture('whole.json').toString()))?.choices[0]?.message
    expect(failure).toBeUndefined()
    const said = heard(chunks)
    expect(said).toMatchObject({ content: message?.content ?? '', finish: ['tool_calls'], usage: [234, 200, 44] })
    expect(said.pieces).toEqual(message?.reasoning_details ?? [])
    expect(said.annotations).toHaveLength(1)
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
  ])('%p as %s is %s, streamed', async (body, type, code) => {
    expect((await read([Buffer.from(body)], { type })).failure).toMatchObject({ code })
    if (type === 'application/json') await expect(whole(body)).rejects.toMatchObject({ code })
  })
})

describe('a complete response', () => {
  test('has its items in our fields', async () => {
    const answer = await whole(fixture('whole.json').toString())
    expect(isCompletion.Check(answer)).toBe(true)
    expect(answer).toMatchObject({ id: 'resp_w', model: 'gpt-5.1', created: 1_741_476_542 })
    expect(answer?.choices).toEqual([
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
    expect(answer?.usage).toMatchObject({
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
    ['incomplete', { reason: 'an unknown reason' }, 'length'],
    ['incomplete', null, 'length'],
    ['an unknown status', null, 'stop'],
    [undefined, null, 'stop'],
  ])('with the status %p and %p has the finish_reason %s', async (status, incomplete_details, finish_reason) => {
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'x' }] }]
    const body = { output, status, incomplete_details }
    expect((await whole(JSON.stringify(body)))?.choices[0]).toMatchObject({
      message: { content: 'x' },
      finish_reason,
    })
  })

  test('that was cut within a tool call reports it, with the call as far as it arrived', async () => {
    const output = [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a', status: 'incomplete' }]
    const body = { output, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
    const choice = (await whole(JSON.stringify(body)))?.choices[0]
    expect(choice).toMatchObject({ finish_reason: 'length' })
    expect(choice?.message.tool_calls).toEqual([
      { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a' } },
    ])
  })

  test('without items has no content, and without usage has none', async () => {
    const answer = await whole('{"output":[]}')
    expect(answer?.choices[0]?.message).toEqual({ role: 'assistant', content: null })
    expect(answer?.usage).toBeUndefined()
  })
})
