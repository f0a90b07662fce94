/** Encoding of contentgen responses: pieces that add up to the whole, and round trips of signatures. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import { GatewayError } from '../../../spec/error.ts'
import { usageFrom } from '../../../spec/usage.ts'
import type { AnswerMessage, ChatChunk, ChatCompletion, Delta, Opaque, Reasoning } from '../../shared/canonical.ts'
import { parseContentgen } from './request.ts'
import { createContentgenEncoder, usageOf } from './response.ts'
import { decodeSignature, encodeSignature } from './signed-content.ts'

const HEAD = { id: 'resp', created: 1, model: 'a/b' }
const USAGE = usageFrom({ input: 130, output: 9, cached: 100, reasoning: 4, input_image: 30 })

type Part = { text?: string; thought?: true; thoughtSignature?: string; functionCall?: object; inlineData?: object }
type Candidate = {
  index: number
  content: { role: string; parts: Part[] }
  finishReason?: string
  finishMessage?: string
  groundingMetadata?: object
  logprobsResult?: object
  avgLogprobs?: number
}
type Piece = { candidates?: Candidate[]; usageMetadata?: object; promptFeedback?: object; error?: object }

type Options = { shows_thoughts?: boolean; form?: 'events' | 'array' }
const writerFor = ({ shows_thoughts = true, form = 'events' }: Options = {}) =>
  createContentgenEncoder({ head: HEAD, shows_thoughts, form })

const chunk = (delta: Delta, finish_reason: FinishReason | null = null, more: object = {}): ChatChunk => ({
  id: 'x',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason, ...more }],
})

/** The pieces of a stream, with a check of their framing. */
function piecesOf(text: string): Piece[] {
  expect(text).toEndWith('\n\n')
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((block) => {
      expect(block).toStartWith('data: {')
      return JSON.parse(block.slice(6))
    })
}

function streamed(
  deltas: (Delta | ChatChunk)[],
  { finish = 'stop' as FinishReason, ...options }: Options & { finish?: FinishReason } = {},
) {
  const writer = writerFor(options)
  const batches = [...deltas.map((one) => ('choices' in one ? one : chunk(one))), chunk({}, finish)]
  return piecesOf(batches.map((one) => writer.encode([one])).join('') + writer.end(USAGE))
}

const partsOf = (pieces: Piece[]): Part[] => pieces.flatMap(({ candidates = [] }) => candidates[0]?.content.parts ?? [])
/** Without the empty texts that pieces require. */
const summary = (parts: Part[]): Part[] => parts.filter((part) => JSON.stringify(part) !== '{"text":""}')

const whole = (
  message: Partial<AnswerMessage>,
  { finish = 'stop' as FinishReason, ...options }: Options & { finish?: FinishReason } = {},
) => {
  const answer: ChatCompletion = {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: finish }],
  }
  return writerFor(options).whole(answer, USAGE) as Piece
}

const call = (index: number, text: string, name?: string, opaque?: Opaque): Delta => ({
  tool_calls: [
    {
      index,
      ...(name ? { id: `call_${index}` } : {}),
      function: { arguments: text, ...(name ? { name } : {}) },
      ...(opaque ? { opaque } : {}),
    },
  ],
})
const output = (index: number, name: string, args: object = {}) => ({
  functionCall: { id: `call_${index}`, name, args },
})
const home = (value: string): Opaque => ({ origin: 'contentgen-compat', value })
const foreign = (value: string): Opaque => ({ origin: 'messages-compat', value, id: 'i' })

describe('a contentgen stream', () => {
  test('has pieces with the same head, and one end with the finish reason and the usage', () => {
    const pieces = streamed([{ role: 'assistant', content: '' }, { content: 'Hel' }, { content: 'lo' }])
    const head = { modelVersion: 'a/b', responseId: 'resp' }
    expect(pieces).toEqual([
      { candidates: [{ content: { role: 'model', parts: [{ text: 'Hel' }] }, index: 0 }], ...head },
      { candidates: [{ content: { role: 'model', parts: [{ text: 'lo' }] }, index: 0 }], ...head },
      {
        candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: usageOf(USAGE),
        ...head,
      },
    ] as Piece[])
  })

  test('sends one batch as one piece', () => {
    const writer = writerFor()
    const text = writer.encode([
      chunk({ reasoning_content: 'h' }),
      chunk({ reasoning_content: 'm' }),
      chunk({ content: 'a' }),
      chunk({ content: 'b' }),
    ])
    expect(partsOf(piecesOf(text))).toEqual([{ text: 'hm', thought: true }, { text: 'ab' }])
  })

  test('has an end even without content', () => {
    const writer = writerFor()
    expect(writer.encode([])).toBe('')
    const [only, ...rest] = piecesOf(writer.end(undefined))
    expect([only?.candidates?.[0]?.finishReason, only && 'usageMetadata' in only, rest.length]).toEqual([
      'STOP',
      false,
      0,
    ])
  })

  test('is one JSON text in array form, also with an error in it', () => {
    const writer = writerFor({ form: 'array' })
    const started = writer.encode([chunk({ content: 'a' })]) + writer.encode([chunk({ content: 'b' })])
    expect(JSON.parse(started + writer.end(USAGE))).toHaveLength(3)
    const broken = writerFor({ form: 'array' })
    const text = broken.encode([chunk({ content: 'a' })]) + broken.fail(new GatewayError('upstream_cut', 'Cut.'))
    expect(JSON.parse(text)[1]).toMatchObject({ error: { code: 502, status: 'UNAVAILABLE', message: 'Cut.' } })
    expect(JSON.parse(writerFor({ form: 'array' }).fail(new GatewayError('upstream_timeout', 'x')))).toHaveLength(1)
  })

  test('ends with an error after a failure, and with prompt feedback if refused before the first text', () => {
    const refused = new GatewayError('content_policy_violation', 'Not that.')
    expect(piecesOf(writerFor().fail(refused))).toMatchObject([
      { promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'Not that.' } },
    ])
    const writer = writerFor()
    writer.encode([chunk({ content: 'a' })])
    expect(piecesOf(writer.fail(refused))).toMatchObject([{ error: { code: 400 } }])
  })

  test('has no character at which some clients end a line', () => {
    const [piece] = streamed([{ content: '\u2028\u0085\n\n' }])
    expect(piece && partsOf([piece])).toEqual([{ text: '\u2028\u0085\n\n' }])
    expect(writerFor().encode([chunk({ content: '\u2028' })])).toContain('\\u2028')
  })

  test('sends calls whole and in order, the first as soon as it is complete', () => {
    const deltas = [call(0, '{"a"', 'one'), call(0, ':1}'), call(1, '', 'two'), { content: 'So.' }, call(1, '{}')]
    const pieces = streamed(deltas, { finish: 'tool_calls' })
    expect(pieces.map((piece) => summary(partsOf([piece])))).toEqual([
      [output(0, 'one', { a: 1 })],
      [{ text: 'So.' }],
      [output(1, 'two')],
      [],
    ])
  })

  test('supports interleaved calls', () => {
    const pieces = streamed([call(0, '{"a', 'one'), call(1, '{"b', 'two'), call(0, '":1}'), call(1, '":2}')])
    expect(summary(partsOf(pieces))).toEqual([output(0, 'one', { a: 1 }), output(1, 'two', { b: 2 })])
  })

  test('supports several candidates', () => {
    const writer = writerFor()
    const at = (index: number, delta: Delta, finish_reason: FinishReason | null = null): ChatChunk => ({
      ...chunk({}),
      choices: [{ index, delta, finish_reason }],
    })
    const text = writer.encode([
      at(0, { content: 'a' }),
      at(1, { content: 'b' }),
      at(1, {}, 'length'),
      at(0, {}, 'stop'),
    ])
    const pieces = piecesOf(text + writer.end(USAGE))
    expect(
      pieces.map(({ candidates }) =>
        candidates?.map(({ index, content, finishReason }) => [index, content.parts, finishReason]),
      ),
    ).toEqual([
      [
        [0, [{ text: 'a' }], undefined],
        [1, [{ text: 'b' }], undefined],
      ],
      [
        [0, [{ text: '' }], 'STOP'],
        [1, [{ text: '' }], 'MAX_TOKENS'],
      ],
    ])
  })
})

describe('the end of a contentgen response', () => {
  test.each<[FinishReason, string]>([
    ['stop', 'STOP'],
    ['length', 'MAX_TOKENS'],
    ['tool_calls', 'STOP'],
    ['content_filter', 'SAFETY'],
  ])('maps %s to %s', (finish, expected) => {
    expect(whole({ content: 'x' }, { finish }).candidates?.[0]?.finishReason).toBe(expected)
    expect(streamed([{ content: 'x' }], { finish }).at(-1)?.candidates?.[0]?.finishReason).toBe(expected)
  })

  test('sends an explained refusal as text', () => {
    const { candidates: [only] = [] } = whole({ refusal: 'No.' })
    expect([only?.content.parts, only?.finishReason]).toEqual([[{ text: 'No.' }], 'SAFETY'])
  })

  test.each(['{"a":', '[]', '"x"', 'null'])('reports arguments that are not an object: %s', (text) => {
    const last = streamed([call(0, text, 'one')], { finish: 'tool_calls' }).at(-1)?.candidates?.[0]
    expect([last?.finishReason, last?.finishMessage]).toEqual([
      'MALFORMED_FUNCTION_CALL',
      'The arguments of a call of "one" are not a JSON object.',
    ])
    expect(streamed([call(0, text, 'one')], { finish: 'length' }).at(-1)?.candidates?.[0]?.finishReason).toBe(
      'MAX_TOKENS',
    )
  })
})

describe('contentgen reasoning', () => {
  const clientRequest = {
    reasoning_content: 'Let me see',
    reasoning_details: [{ text: 'Let me see', opaque: foreign('S') }],
  }

  test('is shown on request, with its signature', () => {
    const thought = {
      text: 'Let me see',
      thought: true as const,
      thoughtSignature: encodeSignature({ own: foreign('S') }),
    }
    expect(whole({ ...clientRequest, content: 'Yes.' }).candidates?.[0]?.content.parts).toEqual([
      thought,
      { text: 'Yes.' },
    ] as Part[])
    const deltas = [
      { reasoning_content: 'Let ' },
      { reasoning_content: 'me see' },
      { reasoning_details: [{ opaque: foreign('S') }] },
      { content: 'Yes.' },
    ]
    expect(summary(partsOf(streamed(deltas)))).toEqual([
      { text: 'Let ', thought: true },
      { text: 'me see', thought: true },
      { text: '', thought: true, thoughtSignature: encodeSignature({ own: foreign('S') }) },
      { text: 'Yes.' },
    ] as Part[])
  })

  test('is otherwise hidden, and the next part holds what its vendor needs again', () => {
    const before: Reasoning[] = [{ text: 'Let me see', opaque: foreign('S') }]
    const hidden = { shows_thoughts: false }
    const parts = [{ text: 'Yes.', thoughtSignature: encodeSignature({ before }) }] as Part[]
    expect(whole({ ...clientRequest, content: 'Yes.' }, hidden).candidates?.[0]?.content.parts).toEqual(parts)
    const deltas = [
      { reasoning_content: 'Let me see' },
      { reasoning_details: [{ opaque: foreign('S') }] },
      { content: 'Yes.' },
    ]
    expect(summary(partsOf(streamed(deltas, hidden)))).toEqual(parts)
  })

  test('is returned with calls only, if it is unsigned', () => {
    const hidden = { shows_thoughts: false }
    expect(summary(partsOf(streamed([{ reasoning_content: 'hm' }, { content: 'Yes.' }], hidden)))).toEqual([
      { text: 'Yes.' },
    ])
    const [part] = summary(partsOf(streamed([{ reasoning_content: 'hm' }, call(0, '{}', 'one')], hidden)))
    expect(part?.thoughtSignature).toBe(encodeSignature({ before: [{ text: 'hm' }] }) ?? '')
  })

  test('is held by the next call too, for clients that send no thoughts back', () => {
    const shown = [{ text: 'Let me see', opaque: foreign('S') }, { text: 'hm' }]
    const thoughts: Delta[] = [
      { reasoning_content: 'Let ' },
      { reasoning_content: 'me see' },
      { reasoning_details: [{ opaque: foreign('S') }] },
      { reasoning_content: 'hm' },
    ]
    const parts = partsOf(streamed([...thoughts, call(0, '{}', 'one'), call(1, '{}', 'one')]))
    expect(parts.flatMap(({ functionCall, thoughtSignature }) => (functionCall ? [thoughtSignature] : []))).toEqual([
      encodeSignature({ shown }),
      undefined,
    ])
    const message = { reasoning_content: 'Let me seehm', reasoning_details: shown }
    const tool_calls = [{ id: 'call_0', function: { name: 'one', arguments: '{}' } }]
    const [, , called] = whole({ ...message, tool_calls }).candidates?.[0]?.content.parts ?? []
    expect(called?.thoughtSignature).toBe(encodeSignature({ shown }) ?? '')
  })

  test("keeps the signatures of the API's own models", () => {
    const message = {
      content: 'Yes.',
      reasoning_details: [{ text: 'hm', opaque: home('A') }, { opaque: home('B') }],
      tool_calls: [{ id: 'call_0', function: { name: 'one', arguments: '' }, opaque: home('C') }],
    }
    expect(whole(message).candidates?.[0]?.content.parts).toEqual([
      { text: 'hm', thought: true, thoughtSignature: 'A' },
      { text: 'Yes.', thoughtSignature: 'B' },
      { ...output(0, 'one'), thoughtSignature: 'C' },
    ] as Part[])
    // The order of these models in a stream: the signature follows the text.
    const parts = partsOf(streamed([{ content: 'Yes.' }, { reasoning_details: [{ opaque: home('B') }] }]))
    expect(summary(parts)).toEqual([{ text: 'Yes.' }, { text: '', thoughtSignature: 'B' }])
  })
})

describe('the round trip of signed content', () => {
  const text = fc.string({ minLength: 1, maxLength: 9 }).map((texts) => `w${texts}`)
  const opaque = fc.record(
    {
      origin: fc.constantFrom('contentgen-compat' as const, 'messages-compat' as const, 'chatcompat-response' as const),
      value: fc.base64String({ minLength: 4, maxLength: 12 }),
    },
    { requiredKeys: ['origin', 'value'] },
  )
  const piece: fc.Arbitrary<Reasoning> = fc.oneof(
    fc.record({ text, opaque }),
    opaque.map((one) => ({ opaque: one })),
  )
  const calls = fc.array(
    fc.tuple(
      fc.dictionary(text, fc.oneof(text, fc.integer(), fc.constant(null))),
      fc.option(opaque, { nil: undefined }),
    ),
    {
      minLength: 1,
      maxLength: 3,
    },
  )

  test.each([true, false])(
    'keeps reasoning, text and calls of any vendor, with thoughts shown: %p',
    (shows_thoughts) => {
      fc.assert(
        fc.property(
          fc.array(piece, { maxLength: 3 }),
          fc.option(text, { nil: '' }),
          calls,
          (reasoning_details, content, converted) => {
            const tool_calls = converted.map(([args, signed], index) => ({
              id: `call_${index + 1}`,
              type: 'function' as const,
              function: { name: 'f', arguments: JSON.stringify(args) },
              ...(signed ? { opaque: signed } : {}),
            }))
            const reasoning_content = reasoning_details.map((one) => one.text ?? '').join('')
            const message = {
              content: content === '' ? null : content,
              ...(reasoning_content === '' ? {} : { reasoning_content }),
              ...(reasoning_details.length === 0 ? {} : { reasoning_details }),
              tool_calls,
            }
            const options = { shows_thoughts, finish: 'tool_calls' as const }
            const deltas: Delta[] = [
              ...reasoning_details.flatMap((one): Delta[] =>
                one.text === undefined
                  ? [{ reasoning_details: [one] }]
                  : [
                      { reasoning_content: one.text },
                      { reasoning_details: [{ ...(one.opaque ? { opaque: one.opaque } : {}) }] },
                    ],
              ),
              { content },
              ...tool_calls.map((one, index) => ({ tool_calls: [{ ...one, index }] })),
            ]
            for (const parts of [
              whole(message, options).candidates?.[0]?.content.parts ?? [],
              partsOf(streamed(deltas, options)),
            ]) {
              const contents = [
                { role: 'user', parts: [{ text: 'x' }] },
                { role: 'model', parts },
              ]
              const [, ...back] = parseContentgen({ contents }, 'm').messages
              const all = back.flatMap((one) => one.reasoning_details ?? [])
              // A hidden piece is sent with the next text, so it may follow pieces that were shown.
              const sorted = (pieces: Reasoning[]) =>
                pieces.map((one) => JSON.stringify([one.text, one.opaque?.value])).sort()
              expect(sorted(all)).toEqual(sorted(reasoning_details))
              expect(back.map((one) => one.content ?? '').join('')).toBe(content)
              expect(back.flatMap((one) => one.tool_calls ?? [])).toEqual(tool_calls)
            }
          },
        ),
        { numRuns: 200 },
      )
    },
  )

  test('survives a client that encodes it in another base64 alphabet', () => {
    const carried = { own: foreign('S'), before: [{ text: 'Größe?>', opaque: home('A') }] }
    const signature = encodeSignature(carried) ?? ''
    expect(decodeSignature(Buffer.from(signature, 'base64').toString('base64url'))).toEqual(carried)
    expect(decodeSignature(signature)).toEqual(carried)
  })

  test.each(['', '[', '{}', '[1]', '[null,1]', '[{"origin":"nobody","value":"x"},[]]', '[null,[1,null,{"text":1}]]'])(
    "treats text that only looks wrapped as the vendor's, or ignores it: %s",
    (text) => {
      const forged = Buffer.from(`gatehouse:${text}`).toString('base64')
      const { own, before = [] } = decodeSignature(forged)
      expect(own === undefined || own.value === forged).toBe(true)
      expect(before).toEqual([])
    },
  )
})

describe('other content of a contentgen response', () => {
  test('includes usage, with thoughts counted separately', () => {
    expect(usageOf(USAGE)).toEqual({
      promptTokenCount: 130,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 4,
      cachedContentTokenCount: 100,
      totalTokenCount: 139,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 100 },
        { modality: 'IMAGE', tokenCount: 30 },
      ],
    })
    expect(usageOf(usageFrom({ input: 0, output: 0 }))).toEqual({
      promptTokenCount: 0,
      candidatesTokenCount: 0,
      totalTokenCount: 0,
    })
  })

  test('includes the cited pages, with offsets in bytes', () => {
    const cited = (start_index: number, end_index: number, page: string) => ({
      type: 'url_citation' as const,
      url_citation: { start_index, end_index, url: `https://a.example/${page}`, title: page },
    })
    const annotations = [cited(0, 5, 'x'), cited(0, 5, 'y'), cited(6, 99, 'x')]
    const supports = [
      { segment: { startIndex: 0, endIndex: 7, text: 'Größe' }, groundingChunkIndices: [0, 1] },
      { segment: { startIndex: 8, endIndex: 14, text: 'zählt' }, groundingChunkIndices: [0] },
    ]
    const groundingChunks = ['x', 'y'].map((title) => ({ web: { uri: `https://a.example/${title}`, title } }))
    const last = streamed([{ content: 'Größe ' }, { content: 'zählt' }, { annotations }]).at(-1)
    expect(last?.candidates?.[0]?.groundingMetadata).toEqual({ groundingChunks, groundingSupports: supports })
    const { candidates: [only] = [] } = whole({ content: 'Größe zählt', reasoning_content: 'hm', annotations })
    expect(only?.groundingMetadata).toEqual({
      groundingChunks,
      groundingSupports: supports.map((one) => ({ ...one, segment: { partIndex: 1, ...one.segment } })),
    })
  })

  test('includes log probabilities', () => {
    const token = (name: string, logprob: number) => ({
      token: name,
      logprob,
      bytes: null,
      top_logprobs: [{ token: name, logprob }],
    })
    const logprobs = { content: [token('a', -1), token('b', -3)], refusal: null }
    const result = {
      chosenCandidates: [
        { token: 'a', logProbability: -1 },
        { token: 'b', logProbability: -3 },
      ],
      topCandidates: [
        { candidates: [{ token: 'a', logProbability: -1 }] },
        { candidates: [{ token: 'b', logProbability: -3 }] },
      ],
    }
    const answer: ChatCompletion = {
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ab' }, finish_reason: 'stop', logprobs }],
    }
    expect((writerFor().whole(answer, USAGE) as Piece).candidates?.[0]).toMatchObject({
      avgLogprobs: -2,
      logprobsResult: result,
    })
    const [piece] = streamed([chunk({ content: 'ab' }, null, { logprobs })])
    expect(piece?.candidates?.[0]?.logprobsResult).toEqual(result)
  })

  test('includes generated images', () => {
    const images = [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,iVBO' }, opaque: home('A') }]
    const parts = [{ text: 'Here:' }, { inlineData: { mimeType: 'image/png', data: 'iVBO' }, thoughtSignature: 'A' }]
    expect(whole({ content: 'Here:', images }).candidates?.[0]?.content.parts).toEqual(parts)
    expect(summary(partsOf(streamed([{ content: 'Here:' }, { images }])))).toEqual(parts)
  })
})
