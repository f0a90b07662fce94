/** The vendor's true shapes, read as a stream cut and split at every byte, end in the same clean chunks or in an error. */
import { describe, expect, test } from 'bun:test'
import { heard, isChunk, isCompletion, NOTHING, playedTo } from '../../../test/kit/played.ts'

const { fixture, read, whole } = playedTo('messages-compat')
const signed = (value: string) => ({ opaque: { origin: 'messages-compat' as const, value } })

const STREAMS: [name: string, said: object][] = [
  ['text.sse', { ...NOTHING, content: 'Grüße aus 東京 🗼', finish: ['stop'], usage: [132, 100, 15] }],
  [
    'thinking-tools.sse',
    {
      ...NOTHING,
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
      ...NOTHING,
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
  ['unseen.sse', { ...NOTHING, content: 'Hi', finish: ['stop'], usage: [9, 0, 4] }],
  [
    'imitator.sse',
    {
      ...NOTHING,
      calls: [{ id: 'call_00_x', name: 'look', arguments: '{"at":"here"}' }],
      finish: ['tool_calls'],
      usage: [31, 0, 8],
    },
  ],
  ['refusal.sse', { ...NOTHING, refusal: 'This may do harm.', finish: ['content_filter'], usage: [20, 0, 1] }],
]

describe('a streamed response', () => {
  for (const [name, said] of STREAMS) {
    test(`${name} decodes to the same chunks wherever its bytes are split`, async () => {
      const bytes = fixture(name)
      const { chunks, failure } = await read([bytes])
      expect(failure).toBeUndefined()
      expect(heard(chunks)).toEqual(said as ReturnType<typeof heard>)
      for (const chunk of chunks) expect(isChunk.Check(chunk)).toBe(true)
      expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
      for (let at = 1; at < bytes.length; at++) {
        const { chunks: split } = await read([bytes.subarray(0, at), bytes.subarray(at)])
        if (!Bun.deepEquals(split, chunks)) throw new Error(`split at ${at} it says something else`)
      }
    })

    test(`${name} cut at any byte before its finish is an error, never a shorter response`, async () => {
      const bytes = fixture(name)
      const end = bytes.indexOf('message_stop') - 'event: '.length
      const finish = bytes.lastIndexOf('message_delta', end)
      for (let at = 0; at < bytes.length; at++) {
        const { chunks, failure } = await read([bytes.subarray(0, at)])
        const isWhole = heard(chunks).finish.length > 0
        if (isWhole !== (failure === undefined)) throw new Error(`cut at ${at}: ${failure?.code ?? 'no error'}`)
        if (failure && failure.code !== 'upstream_cut') throw new Error(`cut at ${at}: ${failure.code}`)
        if (at < finish && isWhole) throw new Error(`cut at ${at} it has ended`)
        if (at >= end && !isWhole) throw new Error(`cut at ${at} it has not ended`)
      }
    })
  }

  test('an error in the middle comes after the content before it', async () => {
    const { chunks, failure } = await read([fixture('overloaded.sse')])
    expect(heard(chunks).content).toBe('Hel')
    expect(failure).toMatchObject({ code: 'server_is_overloaded' })
  })

  test('the prompt tokens, with cached ones, are reported before the first text', async () => {
    const { chunks } = await read([fixture('text.sse')])
    expect(chunks[0]?.usage).toMatchObject({ input_tokens: 132, prompt_tokens_details: { cache_write_tokens: 7 } })
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
    [
      '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
      'application/json',
      'rate_limit_exceeded',
    ],
    ['{"a":1}', 'application/json', 'bad_upstream_response'],
  ])('%p as %s is %s', async (body, type, code) => {
    expect((await read([Buffer.from(body)], { type })).failure).toMatchObject({ code })
  })
})

describe('a complete response', () => {
  test('has its blocks in our fields', async () => {
    const answer = await whole(fixture('whole.json').toString())
    expect(isCompletion.Check(answer)).toBe(true)
    expect(answer?.choices).toEqual([
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
    expect(answer?.usage).toMatchObject({
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
    ['pause_turn', 'length'],
    ['stop_sequence', 'stop'],
    ['refusal', 'content_filter'],
    ['an unknown reason', 'stop'],
    [null, 'stop'],
  ])('with the stop_reason %p has the finish_reason %s', async (stop_reason, finish_reason) => {
    const body = { content: [{ type: 'text', text: 'x' }], stop_reason, stop_sequence: 'END' }
    expect((await whole(JSON.stringify(body)))?.choices[0]).toMatchObject({ finish_reason, stop_sequence: 'END' })
  })

  test('without usage has none', async () => {
    expect((await whole('{"content":[]}'))?.usage).toBeUndefined()
  })
})
