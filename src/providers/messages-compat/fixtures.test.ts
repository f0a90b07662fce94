/** The vendor's recorded streams, split at every byte, become the same valid chunks; cut at any byte, they end in an error. */
import { describe, expect, test } from 'bun:test'
import { assemble, createFixtureProvider, EMPTY, isChunk, isCompletion } from '../../../test/kit/fixture-provider.ts'

const { fixture, read, complete } = createFixtureProvider('messages-compat')
const signed = (value: string) => ({ opaque: { origin: 'messages-compat' as const, value } })

const STREAMS: [name: string, expected: object][] = [
  ['text.sse', { ...EMPTY, content: 'Grüße aus 東京 🗼', finish: ['stop'], usage: [132, 100, 15] }],
  [
    'thinking-tools.sse',
    {
      ...EMPTY,
      content: 'Let me look.',
      pieces: [
        { text: 'Two cities, two calls.', ...signed('EqQBCgIYAhIM1gbcDa9GJwZA2b3h') },
        signed('EmwKAhgBEgy3va3pzix/LafPsn4a'),
      ],
      calls: [
        { id: 'toolu_01T1x1fJ34qAmk2tNTrN7Up6', name: 'get_weather', arguments: '{"city": "Paris"}' },
        { id: 'toolu_01Q9', name: 'get_weather', arguments: '{"city": "Rome"}' },
        { id: 'toolu_01Z9', name: 'now', arguments: '{}' },
      ],
      finish: ['tool_calls'],
      usage: [472, 0, 89],
    },
  ],
  [
    'web-search.sse',
    {
      ...EMPTY,
      content: 'It is sunny.',
      annotations: [
        {
          type: 'url_citation',
          url_citation: { start_index: 0, end_index: 12, url: 'https://weather.example/nyc', title: 'Weather' },
        },
      ],
      finish: ['stop'],
      usage: [10_682, 0, 510],
    },
  ],
  ['unseen.sse', { ...EMPTY, content: 'Hi', finish: ['stop'], usage: [9, 0, 4] }],
  [
    'imitator.sse',
    {
      ...EMPTY,
      calls: [{ id: 'call_00_x', name: 'look', arguments: '{"at":"here"}' }],
      finish: ['tool_calls'],
      usage: [31, 0, 8],
    },
  ],
  ['refusal.sse', { ...EMPTY, refusal: 'This may do harm.', finish: ['content_filter'], usage: [20, 0, 1] }],
]

describe('a streamed response', () => {
  for (const [name, expected] of STREAMS) {
    test(`${name} has the same chunks when it is split at any byte`, async () => {
      const bytes = fixture(name)
      const { chunks, failure } = await read([bytes])
      expect(failure).toBeUndefined()
      expect(assemble(chunks)).toEqual(expected as ReturnType<typeof assemble>)
      for (const chunk of chunks) expect(isChunk.Check(chunk)).toBe(true)
      expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
      for (let at = 1; at < bytes.length; at++) {
        const { chunks: split } = await read([bytes.subarray(0, at), bytes.subarray(at)])
        if (!Bun.deepEquals(split, chunks)) throw new Error(`split at ${at} the chunks differ`)
      }
    })

    test(`${name} is an error when it is cut at any byte before its finish reason, never a short response`, async () => {
      const bytes = fixture(name)
      const end = bytes.indexOf('message_stop') - 'event: '.length
      const finish = bytes.lastIndexOf('message_delta', end)
      for (let at = 0; at < bytes.length; at++) {
        const { chunks, failure } = await read([bytes.subarray(0, at)])
        const isWhole = assemble(chunks).finish.length > 0
        if (isWhole !== (failure === undefined)) throw new Error(`cut at ${at}: ${failure?.code ?? 'no error'}`)
        if (failure && failure.code !== 'upstream_cut') throw new Error(`cut at ${at}: ${failure.code}`)
        if (at < finish && isWhole) throw new Error(`cut at ${at} it has ended`)
        if (at >= end && !isWhole) throw new Error(`cut at ${at} it has not ended`)
      }
    })
  }

  test('ends with an error of the vendor after the text before it', async () => {
    const { chunks, failure } = await read([fixture('overloaded.sse')])
    expect(assemble(chunks).content).toBe('Hel')
    expect(failure).toMatchObject({ code: 'server_is_overloaded' })
  })

  test('has the input tokens in its first chunk, with the cached ones', async () => {
    const { chunks } = await read([fixture('text.sse')])
    expect(chunks[0]?.usage).toMatchObject({ input_tokens: 132, prompt_tokens_details: { cache_write_tokens: 7 } })
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
    [
      '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
      'application/json',
      'rate_limit_exceeded',
    ],
    ['{"a":1}', 'application/json', 'bad_upstream_response'],
  ])('%p as %s fails with %s', async (body, type, code) => {
    expect((await read([Buffer.from(body)], { type })).failure).toMatchObject({ code })
  })
})

describe('a whole response', () => {
  test('becomes a completion with the parts of every block', async () => {
    const completion = await complete(fixture('whole.json').toString())
    expect(isCompletion.Check(completion)).toBe(true)
    expect(completion?.choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'As I read, it is sunny.',
          reasoning_content: 'Two calls.',
          reasoning_details: [{ text: 'Two calls.', ...signed('EqQB') }, signed('Emw')],
          tool_calls: [
            { id: 'toolu_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } },
          ],
          annotations: [
            {
              type: 'url_citation',
              url_citation: { start_index: 11, end_index: 23, url: 'https://weather.example/nyc', title: 'Weather' },
            },
          ],
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
    ['end_turn', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['pause_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['refusal', 'content_filter'],
    ['a future reason', 'stop'],
    [null, 'stop'],
  ])('with the stop reason %p ends with %s', async (stop_reason, finish_reason) => {
    const body = { content: [{ type: 'text', text: 'x' }], stop_reason, stop_sequence: 'END' }
    expect((await complete(JSON.stringify(body)))?.choices[0]).toMatchObject({ finish_reason, stop_sequence: 'END' })
  })

  test('without usage has no usage', async () => {
    expect((await complete('{"content":[{"type":"text","text":"x"}]}'))?.usage).toBeUndefined()
  })
})
