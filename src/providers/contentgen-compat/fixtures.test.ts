/** The vendor's recorded streams, split at every byte, become the same valid chunks; cut at any byte, they end in an error. */
import { describe, expect, test } from 'bun:test'
import {
  assemble as assembleChoice,
  createFixtureProvider,
  EMPTY as EMPTY_CHOICE,
  isChunk,
  isCompletion,
} from '../../../test/kit/fixture-provider.ts'
import type { ChatChunk } from '../../protocols/shared/canonical.ts'

const { fixture, read, complete } = createFixtureProvider('contentgen-compat')

/** Assembles the chunks of one choice as a client does: with its thoughts, and with the signatures of its calls. */
function assemble(chunks: ChatChunk[], choice = 0) {
  const deltas = chunks.flatMap(({ choices }) => choices).filter(({ index }) => index === choice)
  const calls: unknown[] = deltas.flatMap(({ delta }) =>
    (delta.tool_calls ?? []).map(({ index, function: { name, arguments: text }, opaque }) => [
      index,
      name,
      text,
      opaque?.value,
    ]),
  )
  const thought = deltas.map(({ delta }) => delta.reasoning_content ?? '').join('')
  return { ...assembleChoice(chunks, choice), thought, calls }
}

const EMPTY = { ...EMPTY_CHOICE, thought: '' }
const opaque = (value: string) => ({ origin: 'contentgen-compat' as const, value })
const CALLS = [
  [0, 'get_weather', '{"city":"Köln"}', 'c2lnbmF0dXJlIDE='],
  [1, 'get_time', '{}', undefined],
  [2, 'get_time', '{"zone":"CET"}', undefined],
]
const citation = (start_index: number, end_index: number, redirect: string, title: string) => ({
  type: 'url_citation',
  url_citation: {
    start_index,
    end_index,
    url: `https://vertexaisearch.cloud.google.com/grounding-api-redirect/${redirect}`,
    title,
  },
})
const FACTS = 'Köln hat 1,1 Mio. Einwohner. Der Dom ist 157 m hoch.'
const SECOND = FACTS.indexOf('Der')
const CITED = [
  citation(0, SECOND - 1, 'A', 'koeln.de'),
  citation(SECOND, FACTS.length, 'A', 'koeln.de'),
  citation(SECOND, FACTS.length, 'B', 'dom.de'),
]

const STREAMS: [name: string, expected: object][] = [
  ['stream.sse', { ...EMPTY, content: 'Guten Tag', thought: 'Ein Gruß also.', finish: ['stop'], usage: [19, 8, 10] }],
  ['tools.sse', { ...EMPTY, thought: 'I look it up.', calls: CALLS, finish: ['tool_calls'], usage: [80, 0, 70] }],
  [
    'signed-text.sse',
    {
      ...EMPTY,
      content: 'Guten Tag',
      thought: 'Let me think.',
      pieces: [{ text: 'Let me think.' }, { opaque: opaque('c2lnbmF0dXJlIDI=') }],
      finish: ['stop'],
      usage: [80, 0, 70],
    },
  ],
  ['grounded.sse', { ...EMPTY, content: FACTS, annotations: CITED, finish: ['stop'], usage: [110, 0, 20] }],
  ['unseen.sse', { ...EMPTY, content: 'Guten Tag', finish: ['stop'] }],
]

describe('recorded streams of the vendor', () => {
  test.each(STREAMS)(
    '%s has its text, its thoughts, its calls, one finish reason and its usage',
    async (name, expected) => {
      const { chunks, failure } = await read([fixture(name)])
      expect(failure).toBeUndefined()
      expect(assemble(chunks)).toMatchObject(expected)
      expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
      for (const chunk of chunks) expect({ fits: isChunk.Check(chunk), chunk }).toMatchObject({ fits: true })
    },
  )

  test.each(STREAMS)('%s has the same content when it is split at every byte', async (name) => {
    const bytes = fixture(name)
    const once = assemble((await read([bytes])).chunks)
    for (let at = 1; at < bytes.length; at++) {
      const { chunks, failure } = await read([bytes.subarray(0, at), bytes.subarray(at)])
      if (failure || JSON.stringify(assemble(chunks)) !== JSON.stringify(once)) {
        expect({ at, failure, assemble: assemble(chunks) }).toEqual({ at, failure: undefined, assemble: once })
      }
    }
    const each = await read([...bytes].map((byte) => Uint8Array.of(byte)))
    expect(each.failure).toBeUndefined()
    expect(assemble(each.chunks)).toEqual(once)
  })

  test.each(STREAMS)(
    '%s is an error when it is cut at any byte before its finish reason, never a shorter response',
    async (name) => {
      const bytes = fixture(name)
      // The event with the finish reason is complete with the brace that closes its object.
      const finish = bytes.indexOf('"finishReason"')
      const complete = bytes.indexOf('\n', finish)
      for (let at = 0; at < bytes.length; at++) {
        const { chunks, failure } = await read([bytes.subarray(0, at)])
        const finishes = assemble(chunks).finish.length
        const outcome = failure ? failure.code : 'whole'
        if (outcome !== 'whole' || at < finish)
          expect({ at, outcome, finishes }).toEqual({ at, outcome: 'upstream_cut', finishes: 0 })
        else expect(finishes).toBe(1)
        if (at > complete) expect({ at, outcome }).toEqual({ at, outcome: 'whole' })
      }
    },
  )

  test('each of several choices has its own text and finish reason, and a choice without one is an error', async () => {
    const bytes = fixture('two.sse')
    const { chunks, failure } = await read([bytes], { more: { n: 2 } })
    expect(failure).toBeUndefined()
    expect(assemble(chunks, 0)).toMatchObject({ content: 'A1', finish: ['stop'] })
    expect(assemble(chunks, 1)).toMatchObject({ content: 'B2', finish: ['length'] })
    const cut = await read([bytes.subarray(0, bytes.lastIndexOf('data:'))])
    expect(cut.failure?.code).toBe('upstream_cut')
  })

  test('a finish reason in every event is reported once, at the end', async () => {
    const event = (text: string) =>
      `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] })}\n\n`
    const { chunks } = await read([Buffer.from(event('a')), Buffer.from(event('b'))])
    expect(assemble(chunks)).toMatchObject({ content: 'ab', finish: ['stop'] })
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
  })

  test('one JSON document, and a list of events, have the same content as a stream', async () => {
    const { chunks } = await read([fixture('whole.json')], { type: 'application/json; charset=UTF-8' })
    expect(assemble(chunks)).toMatchObject({ content: 'Guten Tag', finish: ['stop'], usage: [19, 8, 10] })
    const events = fixture('stream.sse').toString().split('\r\n\r\n').filter(Boolean)
    const list = `[${events.map((event) => event.replace('data: ', '')).join(',\n')}]`
    const listed = await read([Buffer.from(list)], { type: 'application/json' })
    expect(assemble(listed.chunks)).toEqual(assemble((await read([fixture('stream.sse')])).chunks))
  })

  test.each([
    ['<html>', 'text/html'],
    ['data: 7\n\n', 'text/event-stream'],
    ['data: {"candidates"\n\ndata: x\n\n', 'text/event-stream'],
  ])('%p as %s is not a stream', async (body, type) => {
    const { failure } = await read([Buffer.from(body)], { type })
    expect(failure).toMatchObject({ code: 'bad_upstream_response' })
  })

  test.each(['', '{}', '[]', '"x"', '<html>', '{"candidates":7}'])('%p is not a whole response', async (body) => {
    await expect(complete(body)).rejects.toMatchObject({ code: 'bad_upstream_response' })
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
      expect(assemble(chunks)).toMatchObject({ content: 'Guten ', finish: [] })
      expect(failure).toMatchObject({ code: 'server_is_overloaded' })
    }
  })

  test.each([
    ['MALFORMED_FUNCTION_CALL', 'bad_upstream_response'],
    ['TOO_MANY_TOOL_CALLS', 'bad_upstream_response'],
  ])('the finish reason %s fails with %s and its name', async (finishReason, code) => {
    const body = { candidates: [{ content: {}, finishReason, finishMessage: 'x' }] }
    const { chunks, failure } = await read([Buffer.from(`data: ${JSON.stringify(body)}\n\n`)])
    expect(assemble(chunks).finish).toEqual([])
    expect(failure).toMatchObject({ code, message: expect.stringContaining(finishReason) })
    await expect(complete(JSON.stringify(body))).rejects.toMatchObject({ code })
  })

  test('a prompt refused for its content fails with content_policy_violation', async () => {
    const body = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 4 } }
    const { chunks, failure } = await read([Buffer.from(`data: ${JSON.stringify(body)}\n\n`)])
    expect(chunks).toEqual([])
    expect(failure).toMatchObject({ code: 'content_policy_violation', message: expect.stringContaining('PROHIBITED') })
    await expect(complete(JSON.stringify(body))).rejects.toMatchObject({ code: 'content_policy_violation' })
  })
})

describe('whole responses', () => {
  test.each(['whole.json', 'tools.json', 'grounded.json', 'image.json', 'unseen.json'])(
    '%s fits the schema',
    async (name) => {
      const completion = await complete(fixture(name))
      expect({ fits: isCompletion.Check(completion), completion }).toMatchObject({ fits: true })
    },
  )

  test('have text, thoughts and token counts', async () => {
    expect(await complete(fixture('whole.json'))).toEqual({
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

  test('parallel calls without ids get generated ids and keep their signature', async () => {
    const choice = (await complete(fixture('tools.json')))?.choices[0]
    expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
    const calls = choice?.message.tool_calls ?? []
    const signedCalls: unknown[] = calls.map(({ function: { name, arguments: text }, opaque: signature }) => [
      name,
      text,
      signature?.value,
    ])
    expect(signedCalls).toEqual(CALLS.map(([, ...call]) => call))
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3)
    for (const { id } of calls) expect(id).toMatch(/^call_\w{24}$/)
  })

  test('ids of the vendor are kept, except a duplicate', async () => {
    const parts = ['a', 'a', ''].map((id) => ({ functionCall: { id, name: 'f' } }))
    const completion = await complete(JSON.stringify({ candidates: [{ content: { parts } }] }))
    const ids = completion?.choices[0]?.message.tool_calls?.map(({ id }) => id) ?? []
    expect(ids[0]).toBe('a')
    expect(new Set(ids).size).toBe(3)
  })

  test('without parallel_tool_calls the client gets the first call', async () => {
    const completion = await complete(fixture('tools.json'), { more: { parallel_tool_calls: false } })
    expect(completion?.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'get_weather' } }])
    const { chunks } = await read([fixture('tools.sse')], { more: { parallel_tool_calls: false } })
    expect(assemble(chunks).calls).toHaveLength(1)
    const both = await complete(fixture('tools.json'), { more: { parallel_tool_calls: true } })
    expect(both?.choices[0]?.message.tool_calls).toHaveLength(3)
  })

  test('positions of citations are in characters, although the vendor counts bytes', async () => {
    const message = (await complete(fixture('grounded.json')))?.choices[0]?.message
    expect(message?.annotations as object[]).toEqual(CITED)
    const { start_index = 0, end_index = 0 } = message?.annotations?.[1]?.url_citation ?? {}
    expect(message?.content?.slice(start_index, end_index)).toBe('Der Dom ist 157 m hoch.')
  })

  test('positions that do not match the cited text are corrected by it; sources without a position cite the whole text', async () => {
    const grounded = (metadata: object) => ({
      candidates: [{ content: { parts: [{ text: 'Ähm, ja.' }] }, groundingMetadata: metadata }],
    })
    const web = { uri: 'https://a.example/', title: 'A' }
    const off = { segment: { startIndex: 1, endIndex: 3, text: 'ja.' }, groundingChunkIndices: [0, 7] }
    const spans = async (metadata: object) =>
      (await complete(JSON.stringify(grounded(metadata))))?.choices[0]?.message.annotations?.map(
        ({ url_citation: { start_index, end_index } }) => [start_index, end_index],
      )
    expect(await spans({ groundingChunks: [{ web }], groundingSupports: [off] })).toEqual([[5, 8]])
    expect(await spans({ groundingChunks: [{ web }, { web: { uri: 'javascript:x' } }] })).toEqual([[0, 8]])
    // The first character has two bytes.
    const counted = { segment: { startIndex: 6, endIndex: 9 }, groundingChunkIndices: [0] }
    expect(await spans({ groundingChunks: [{ web }], groundingSupports: [counted] })).toEqual([[5, 8]])
    const beyond = { segment: { startIndex: 6, endIndex: 999 }, groundingChunkIndices: [0] }
    expect(await spans({ groundingChunks: [{ web }], groundingSupports: [beyond] })).toEqual([[5, 8]])
    expect(await spans({ webSearchQueries: ['x'] })).toBeUndefined()
  })

  test('images become data URIs, with the signature that the vendor requires back', async () => {
    const message = (await complete(fixture('image.json')))?.choices[0]?.message
    expect(message?.content).toBe('Here it is.')
    expect(message?.images).toMatchObject([{ type: 'image_url', opaque: opaque('c2lnbmF0dXJlIDM=') }])
    expect(message?.images?.[0]?.image_url.url).toStartWith('data:image/png;base64,iVBOR')
  })

  test('a signed thought, a hidden thought, and executed code', async () => {
    const parts = [
      { text: 'First.', thought: true, thoughtSignature: 'A' },
      { text: '', thought: true, thoughtSignature: 'B' },
      { executableCode: { language: 'PYTHON', code: 'print(1)\n' } },
      { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } },
      { text: 'One.', thoughtSignature: 'C' },
    ]
    const completion = await complete(JSON.stringify({ candidates: [{ content: { parts } }] }))
    expect(completion?.choices[0]?.message).toEqual({
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

  test('have logprobs', async () => {
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
    const logprobs = {
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
    expect((await complete(JSON.stringify(body)))?.choices[0]?.logprobs).toEqual(logprobs)
    const { chunks } = await read([Buffer.from(`data: ${JSON.stringify(body)}\n\n`)])
    expect(chunks.flatMap(({ choices }) => choices).flatMap((choice) => choice.logprobs ?? [])).toEqual([logprobs])
  })

  test('positions may be relative to a part', async () => {
    const parts = [{ text: 'Ähm. ' }, { text: 'Gut.' }]
    const support = { segment: { partIndex: 1, endIndex: 4 }, groundingChunkIndices: [0] }
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: 'https://a.example/' } }],
      groundingSupports: [support],
    }
    const completion = await complete(JSON.stringify({ candidates: [{ content: { parts }, groundingMetadata }] }))
    const url_citation = { start_index: 5, end_index: 9, url: 'https://a.example/', title: 'https://a.example/' }
    expect(completion?.choices[0]?.message.annotations).toEqual([{ type: 'url_citation', url_citation }])
  })

  test('a limit that is reached in tool calls has the finish reason length', async () => {
    const parts = [{ functionCall: { name: 'f' } }]
    const completion = await complete(
      JSON.stringify({ candidates: [{ content: { parts }, finishReason: 'MAX_TOKENS' }] }),
    )
    expect(completion?.choices[0]).toMatchObject({
      finish_reason: 'length',
      message: { tool_calls: [{ type: 'function' }] },
    })
  })

  test('token counts of several events are merged', async () => {
    const event = (usageMetadata: object, more: object = {}) =>
      `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'x' }] }, ...more }], usageMetadata })}\n\n`
    const first = event({ promptTokenCount: 5, candidatesTokenCount: 1 })
    const { chunks } = await read([Buffer.from(first + event({ candidatesTokenCount: 3 }, { finishReason: 'STOP' }))])
    expect(assemble(chunks).usage).toEqual([5, 0, 3])
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
  ])('the finish reason %s becomes %s', async (finishReason, finish_reason) => {
    const body = { candidates: [{ content: { parts: [{ text: 'x' }], role: 'model' }, finishReason }] }
    expect((await complete(JSON.stringify(body)))?.choices[0]?.finish_reason as string).toBe(finish_reason)
  })

  test.each([
    ['thoughts beside the output', { promptTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 2 }, [5, 5, 2]],
    [
      'thoughts within the output',
      { promptTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 2, totalTokenCount: 8 },
      [5, 3, 2],
    ],
    ['results of tools', { promptTokenCount: 5, toolUsePromptTokenCount: 7, candidatesTokenCount: 3 }, [12, 3, 0]],
    ['invalid counts', { promptTokenCount: -5, candidatesTokenCount: 'x', totalTokenCount: null }, undefined],
    ['no counts', undefined, undefined],
  ])('token counts: %s', async (_, usageMetadata, expected) => {
    const body = { candidates: [{ content: { parts: [{ text: 'x' }] } }], usageMetadata }
    const usage = (await complete(JSON.stringify(body)))?.usage
    expect(
      usage ? [usage.input_tokens, usage.output_tokens, usage.completion_tokens_details.reasoning_tokens] : undefined,
    ).toEqual(expected)
  })
})
