/** The vendor's true shapes, read as a stream cut and split at every byte, end in the same clean chunks or in an error. */
import { describe, expect, test } from 'bun:test'
import { isChunk, isCompletion, NOTHING as NO_WORDS, playedTo, heard as saidBy } from '../../../test/kit/played.ts'
import type { ChatChunk } from '../../protocols/canonical.ts'

const { fixture, read, whole } = playedTo('contentgen-compat')

/** What a client makes of the chunks of one choice: with its thoughts, and with the signatures of its calls. */
function heard(chunks: ChatChunk[], choice = 0) {
  const deltas = chunks.flatMap(({ choices }) => choices).filter(({ index }) => index === choice)
  const calls: unknown[] = deltas.flatMap(({ delta }) =>
    (delta.tool_calls ?? []).map(({ index, function: called, opaque }) => [
      index,
      called.name,
      called.arguments,
      opaque?.value,
    ]),
  )
  const thought = deltas.map(({ delta }) => delta.reasoning_content ?? '').join('')
  return { ...saidBy(chunks, choice), thought, calls }
}

const NOTHING = { ...NO_WORDS, thought: '' }
const opaque = (value: string) => ({ origin: 'contentgen-compat' as const, value })
const CALLS = [
  [0, 'get_weather', '{"city":"Köln"}', 'c2lnbmF0dXJlIDE='],
  [1, 'get_time', '{}', undefined],
  [2, 'get_time', '{"zone":"CET"}', undefined],
]
const page = (start_index: number, end_index: number, letter: string, title: string) => ({
  type: 'url_citation',
  url_citation: {
    start_index,
    end_index,
    url: `https://vertexaisearch.cloud.google.com/grounding-api-redirect/${letter}`,
    title,
  },
})
const FACTS = 'Köln hat 1,1 Mio. Einwohner. Der Dom ist 157 m hoch.'
const SECOND = FACTS.indexOf('Der')
const CITED = [
  page(0, SECOND - 1, 'A', 'koeln.de'),
  page(SECOND, FACTS.length, 'A', 'koeln.de'),
  page(SECOND, FACTS.length, 'B', 'dom.de'),
]

const STREAMS: [name: string, said: object][] = [
  ['stream.sse', { ...NOTHING, content: 'Guten Tag', thought: 'Ein Gruß also.', finish: ['stop'], usage: [19, 8, 10] }],
  ['tools.sse', { ...NOTHING, thought: 'I look it up.', calls: CALLS, finish: ['tool_calls'], usage: [80, 0, 70] }],
  [
    'signed-text.sse',
    {
      ...NOTHING,
      content: 'Guten Tag',
      thought: 'Let me think.',
      pieces: [{ text: 'Let me think.' }, { opaque: opaque('c2lnbmF0dXJlIDI=') }],
      finish: ['stop'],
      usage: [80, 0, 70],
    },
  ],
  ['grounded.sse', { ...NOTHING, content: FACTS, annotations: CITED, finish: ['stop'], usage: [110, 0, 20] }],
  ['unseen.sse', { ...NOTHING, content: 'Guten Tag', finish: ['stop'] }],
]

describe('streams in the provider’s recorded formats', () => {
  test.each(STREAMS)('%s has its text, thoughts, calls, one finish and its usage', async (name, said) => {
    const { chunks, failure } = await read([fixture(name)])
    expect(failure).toBeUndefined()
    expect(heard(chunks)).toMatchObject(said)
    expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
    for (const chunk of chunks) expect({ fits: isChunk.Check(chunk), chunk }).toMatchObject({ fits: true })
  })

  test.each(STREAMS)('%s split at every byte decodes to the same chunks', async (name) => {
    const bytes = fixture(name)
    const once = heard((await read([bytes])).chunks)
    for (let at = 1; at < bytes.length; at++) {
      const { chunks, failure } = await read([bytes.subarray(0, at), bytes.subarray(at)])
      if (failure || JSON.stringify(heard(chunks)) !== JSON.stringify(once)) {
        expect({ at, failure, heard: heard(chunks) }).toEqual({ at, failure: undefined, heard: once })
      }
    }
    const each = await read([...bytes].map((byte) => Uint8Array.of(byte)))
    expect(each.failure).toBeUndefined()
    expect(heard(each.chunks)).toEqual(once)
  })

  test.each(STREAMS)('%s cut at any byte before its finish is an error, never a shorter response', async (name) => {
    const bytes = fixture(name)
    // The event that holds the finish is complete with the brace that closes its object.
    const finish = bytes.indexOf('"finishReason"')
    const complete = bytes.indexOf('\n', finish)
    for (let at = 0; at < bytes.length; at++) {
      const { chunks, failure } = await read([bytes.subarray(0, at)])
      const finishes = heard(chunks).finish.length
      const told = failure ? failure.code : 'whole'
      if (told !== 'whole' || at < finish)
        expect({ at, told, finishes }).toEqual({ at, told: 'upstream_cut', finishes: 0 })
      else expect(finishes).toBe(1)
      if (at > complete) expect({ at, told }).toEqual({ at, told: 'whole' })
    }
  })

  test('each of several candidates has its own text and finish, and a missing finish is an error', async () => {
    const bytes = fixture('two.sse')
    const { chunks, failure } = await read([bytes], { more: { n: 2 } })
    expect(failure).toBeUndefined()
    expect(heard(chunks, 0)).toMatchObject({ content: 'A1', finish: ['stop'] })
    expect(heard(chunks, 1)).toMatchObject({ content: 'B2', finish: ['length'] })
    const cut = await read([bytes.subarray(0, bytes.lastIndexOf('data:'))])
    expect(cut.failure?.code).toBe('upstream_cut')
  })

  test('a finish in every event is reported once, at the end', async () => {
    const event = (text: string) =>
      `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] })}\n\n`
    const { chunks } = await read([Buffer.from(event('a')), Buffer.from(event('b'))])
    expect(heard(chunks)).toMatchObject({ content: 'ab', finish: ['stop'] })
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
  })

  test('a complete response, or a list of its events, decodes like a stream', async () => {
    const { chunks } = await read([fixture('whole.json')], { type: 'application/json; charset=UTF-8' })
    expect(heard(chunks)).toMatchObject({ content: 'Guten Tag', finish: ['stop'], usage: [19, 8, 10] })
    const events = fixture('stream.sse').toString().split('\r\n\r\n').filter(Boolean)
    const list = `[${events.map((event) => event.replace('data: ', '')).join(',\n')}]`
    const listed = await read([Buffer.from(list)], { type: 'application/json' })
    expect(heard(listed.chunks)).toEqual(heard((await read([fixture('stream.sse')])).chunks))
  })

  test('an invalid response is an error', async () => {
    const page = await read([Buffer.from('<html>')], { type: 'text/html' })
    expect(page.failure).toMatchObject({ code: 'bad_upstream_response' })
    for (const body of ['data: 7\n\n', 'data: {"candidates"\n\ndata: x\n\n']) {
      expect((await read([Buffer.from(body)])).failure).toMatchObject({ code: 'bad_upstream_response' })
    }
    for (const body of ['', '{}', '[]', '"x"', '<html>', '{"candidates":7}']) {
      await expect(whole(body)).rejects.toMatchObject({ code: 'bad_upstream_response' })
    }
  })
})

describe('errors in the middle of a response', () => {
  const error = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }
  const before = fixture('stream.sse').subarray(0, fixture('stream.sse').lastIndexOf('data:'))

  test.each([
    ['an event', `data: ${JSON.stringify(error)}\r\n\r\n`],
    ['a list in an event', `data: ${JSON.stringify([error])}\r\n\r\n`],
    ['bare JSON', JSON.stringify(error, null, 2)],
    ['a bare list', `[${JSON.stringify(error, null, 2)}\n]`],
  ])('as %s, split at every byte', async (_, text) => {
    const bytes = Buffer.concat([before, Buffer.from(text)])
    for (const pieces of [[bytes], [...bytes].map((byte) => Uint8Array.of(byte))]) {
      const { chunks, failure } = await read(pieces)
      expect(heard(chunks)).toMatchObject({ content: 'Guten ', finish: [] })
      expect(failure).toMatchObject({ code: 'server_is_overloaded' })
    }
  })

  test.each([
    ['MALFORMED_FUNCTION_CALL', 'bad_upstream_response'],
    ['TOO_MANY_TOOL_CALLS', 'bad_upstream_response'],
  ])('the finish %s is %s, with the provider’s term', async (finishReason, code) => {
    const body = { candidates: [{ content: {}, finishReason, finishMessage: 'x' }] }
    const { chunks, failure } = await read([Buffer.from(`data: ${JSON.stringify(body)}\n\n`)])
    expect(heard(chunks).finish).toEqual([])
    expect(failure).toMatchObject({ code, message: expect.stringContaining(finishReason) })
    await expect(whole(JSON.stringify(body))).rejects.toMatchObject({ code })
  })

  test('a prompt that is rejected for its content is a client error', async () => {
    const body = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 4 } }
    const { chunks, failure } = await read([Buffer.from(`data: ${JSON.stringify(body)}\n\n`)])
    expect(chunks).toEqual([])
    expect(failure).toMatchObject({ code: 'content_policy_violation', message: expect.stringContaining('PROHIBITED') })
    await expect(whole(JSON.stringify(body))).rejects.toMatchObject({ code: 'content_policy_violation' })
  })
})

describe('complete responses', () => {
  test.each(['whole.json', 'tools.json', 'grounded.json', 'image.json', 'unseen.json'])(
    '%s fits the specification',
    async (name) => {
      const answer = await whole(fixture(name))
      expect({ fits: isCompletion.Check(answer), answer }).toMatchObject({ fits: true })
    },
  )

  test('text, thoughts and counts', async () => {
    expect(await whole(fixture('whole.json'))).toEqual({
      id: 'bWFkZSBieSBoYW5k',
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'gemini-2.5-flash',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Guten Tag', reasoning_content: 'Ein Gruß also.' },
          finish_reason: 'stop',
        },
      ],
      usage: expect.objectContaining({
        prompt_tokens: 19,
        completion_tokens: 10,
        total_tokens: 29,
        completion_tokens_details: { text_tokens: 6, audio_tokens: 0, reasoning_tokens: 4 },
        prompt_cache_hit_tokens: 8,
      }),
    })
  })

  test('parallel calls without ids get unique ids and keep their signature', async () => {
    const choice = (await whole(fixture('tools.json')))?.choices[0]
    expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
    const calls = choice?.message.tool_calls ?? []
    const told: unknown[] = calls.map(({ function: called, opaque: signed }) => [
      called.name,
      called.arguments,
      signed?.value,
    ])
    expect(told).toEqual(CALLS.map(([, ...call]) => call))
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3)
    for (const { id } of calls) expect(id).toMatch(/^call_\w{24}$/)
  })

  test('ids of the provider are kept, except one that occurs twice', async () => {
    const parts = ['a', 'a', ''].map((id) => ({ functionCall: { id, name: 'f' } }))
    const answer = await whole(JSON.stringify({ candidates: [{ content: { parts } }] }))
    const ids = answer?.choices[0]?.message.tool_calls?.map(({ id }) => id) ?? []
    expect(ids[0]).toBe('a')
    expect(new Set(ids).size).toBe(3)
  })

  test('a client that allows one call at a time gets the first', async () => {
    const answer = await whole(fixture('tools.json'), { more: { parallel_tool_calls: false } })
    expect(answer?.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'get_weather' } }])
    const { chunks } = await read([fixture('tools.sse')], { more: { parallel_tool_calls: false } })
    expect(heard(chunks).calls).toHaveLength(1)
    const both = await whole(fixture('tools.json'), { more: { parallel_tool_calls: true } })
    expect(both?.choices[0]?.message.tool_calls).toHaveLength(3)
  })

  test('positions of citations are in characters, though the provider counts bytes', async () => {
    const message = (await whole(fixture('grounded.json')))?.choices[0]?.message
    expect(message?.annotations as object[]).toEqual(CITED)
    const { start_index = 0, end_index = 0 } = message?.annotations?.[1]?.url_citation ?? {}
    expect(message?.content?.slice(start_index, end_index)).toBe('Der Dom ist 157 m hoch.')
  })

  test('a position that does not fit the text is corrected by the text; pages without a position come last', async () => {
    const grounded = (metadata: object) => ({
      candidates: [{ content: { parts: [{ text: 'Ähm, ja.' }] }, groundingMetadata: metadata }],
    })
    const web = { uri: 'https://a.example/', title: 'A' }
    const off = { segment: { startIndex: 1, endIndex: 3, text: 'ja.' }, groundingChunkIndices: [0, 7] }
    const spans = async (metadata: object) =>
      (await whole(JSON.stringify(grounded(metadata))))?.choices[0]?.message.annotations?.map(
        ({ url_citation: { start_index, end_index } }) => [start_index, end_index],
      )
    expect(await spans({ groundingChunks: [{ web }], groundingSupports: [off] })).toEqual([[5, 8]])
    expect(await spans({ groundingChunks: [{ web }, { web: { uri: 'javascript:x' } }] })).toEqual([[0, 8]])
    // The first letter has two bytes.
    const counted = { segment: { startIndex: 6, endIndex: 9 }, groundingChunkIndices: [0] }
    expect(await spans({ groundingChunks: [{ web }], groundingSupports: [counted] })).toEqual([[5, 8]])
    const beyond = { segment: { startIndex: 6, endIndex: 999 }, groundingChunkIndices: [0] }
    expect(await spans({ groundingChunks: [{ web }], groundingSupports: [beyond] })).toEqual([[5, 8]])
    expect(await spans({ webSearchQueries: ['x'] })).toBeUndefined()
  })

  test('images become data URIs, with the metadata that the provider requires back', async () => {
    const message = (await whole(fixture('image.json')))?.choices[0]?.message
    expect(message?.content).toBe('Here it is.')
    expect(message?.images).toMatchObject([{ type: 'image_url', opaque: opaque('c2lnbmF0dXJlIDM=') }])
    expect(message?.images?.[0]?.image_url.url).toStartWith('data:image/png;base64,iVBOR')
  })

  test('a thought that is signed, one that is hidden, and code that was run', async () => {
    const parts = [
      { text: 'First.', thought: true, thoughtSignature: 'A' },
      { text: '', thought: true, thoughtSignature: 'B' },
      { executableCode: { language: 'PYTHON', code: 'print(1)\n' } },
      { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } },
      { text: 'One.', thoughtSignature: 'C' },
    ]
    const answer = await whole(JSON.stringify({ candidates: [{ content: { parts } }] }))
    expect(answer?.choices[0]?.message).toEqual({
      role: 'assistant',
      content: '\n```python\nprint(1)\n```\n\n```\n1\n```\nOne.',
      reasoning_content: 'First.',
      reasoning_details: [
        { text: 'First.', opaque: opaque('A') },
        { text: '', opaque: opaque('B') },
        { opaque: opaque('C') },
      ],
    })
  })

  test('logprobs', async () => {
    const logprobsResult = {
      chosenCandidates: [{ token: 'é', logProbability: -0.5, tokenId: 7 }, { token: '!' }],
      topCandidates: [
        {
          candidates: [
            { token: 'é', logProbability: -0.5 },
            { token: 'e', logProbability: -2 },
          ],
        },
      ],
    }
    const body = { candidates: [{ content: { parts: [{ text: 'é!' }] }, finishReason: 'STOP', logprobsResult }] }
    const told = {
      content: [
        {
          token: 'é',
          logprob: -0.5,
          bytes: [195, 169],
          top_logprobs: [
            { token: 'é', logprob: -0.5, bytes: [195, 169] },
            { token: 'e', logprob: -2, bytes: [101] },
          ],
        },
        { token: '!', logprob: 0, bytes: [33], top_logprobs: [] },
      ],
      refusal: null,
    }
    expect((await whole(JSON.stringify(body)))?.choices[0]?.logprobs).toEqual(told)
    const { chunks } = await read([Buffer.from(`data: ${JSON.stringify(body)}\n\n`)])
    expect(chunks.flatMap(({ choices }) => choices).flatMap(({ logprobs }) => logprobs ?? [])).toEqual([told])
  })

  test('positions may be relative to their part', async () => {
    const parts = [{ text: 'Ähm. ' }, { text: 'Gut.' }]
    const support = { segment: { partIndex: 1, endIndex: 4 }, groundingChunkIndices: [0] }
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: 'https://a.example/' } }],
      groundingSupports: [support],
    }
    const answer = await whole(JSON.stringify({ candidates: [{ content: { parts }, groundingMetadata }] }))
    const url_citation = { start_index: 5, end_index: 9, url: 'https://a.example/', title: 'https://a.example/' }
    expect(answer?.choices[0]?.message.annotations).toEqual([{ type: 'url_citation', url_citation }])
  })

  test('a token limit that is reached during tool calls is reported as length', async () => {
    const parts = [{ functionCall: { name: 'f' } }]
    const answer = await whole(JSON.stringify({ candidates: [{ content: { parts }, finishReason: 'MAX_TOKENS' }] }))
    expect(answer?.choices[0]).toMatchObject({
      finish_reason: 'length',
      message: { tool_calls: [{ type: 'function' }] },
    })
  })

  test('counts that arrive in parts are added up', async () => {
    const event = (usageMetadata: object, more: object = {}) =>
      `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'x' }] }, ...more }], usageMetadata })}\n\n`
    const first = event({ promptTokenCount: 5, candidatesTokenCount: 1 })
    const { chunks } = await read([Buffer.from(first + event({ candidatesTokenCount: 3 }, { finishReason: 'STOP' }))])
    expect(heard(chunks).usage).toEqual([5, 0, 3])
  })

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['CONTINUATION', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['SPII', 'content_filter'],
    ['IMAGE_SAFETY', 'content_filter'],
    ['OTHER', 'stop'],
    ['toString', 'stop'],
    [undefined, 'stop'],
  ])('the finish %s is %s', async (finishReason, told) => {
    const body = { candidates: [{ content: { parts: [{ text: 'x' }], role: 'model' }, finishReason }] }
    expect((await whole(JSON.stringify(body)))?.choices[0]?.finish_reason as string).toBe(told)
  })

  test.each([
    [
      'thoughts in addition to the answer',
      { promptTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 2 },
      [5, 5, 2],
    ],
    [
      'thoughts within the answer',
      { promptTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 2, totalTokenCount: 8 },
      [5, 3, 2],
    ],
    ['tool results', { promptTokenCount: 5, toolUsePromptTokenCount: 7, candidatesTokenCount: 3 }, [12, 3, 0]],
    ['nonsense', { promptTokenCount: -5, candidatesTokenCount: 'x', totalTokenCount: null }, undefined],
    ['nothing', undefined, undefined],
  ])('counts: %s', async (_, usageMetadata, told) => {
    const body = { candidates: [{ content: { parts: [{ text: 'x' }] } }], usageMetadata }
    const usage = (await whole(JSON.stringify(body)))?.usage
    expect(
      usage ? [usage.input_tokens, usage.output_tokens, usage.completion_tokens_details.reasoning_tokens] : undefined,
    ).toEqual(told)
  })
})
