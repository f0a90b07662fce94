/** Contentgen passthrough: what passes, what the meter receives, the client's body, and cuts at every byte. */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import type { JsonRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import { usageFrom } from '../../../spec/usage.ts'
import type { ChatChunk } from '../../shared/canonical.ts'
import type { Faults } from '../../shared/upstream.ts'
import { createAnswerReader } from '../upstream/answer.ts'
import { minimalRequestOf, passthroughBody } from './minimal-request.ts'
import { contentgenPassthrough } from './passthrough.ts'
import { createContentgenEncoder } from './response.ts'
import { encodeSignature } from './signed-content.ts'

const head = { id: 'ours', created: 1_800_000_000, model: 'house/model' }
const faults: Faults = {
  inAnswer: () => new GatewayError('server_is_overloaded', 'The vendor failed.'),
  notUnderstood: (what) => new GatewayError('bad_upstream_response', what),
  cut: () => new GatewayError('upstream_cut', 'It broke off.'),
}
const partsFor = (passed = { hasStarted: false }) => ({
  head,
  request: { model: head.model, messages: [] },
  writer: createContentgenEncoder({ head, shows_thoughts: true, form: 'events', passthroughState: passed }),
  faults,
})

function forwarded(pieces: Uint8Array[]) {
  const passed = { hasStarted: false }
  const parts = partsFor(passed)
  const stream = contentgenPassthrough(passed).stream(parts)
  const chunks: ChatChunk[] = []
  let output = ''
  let failure: GatewayError | undefined
  const take = (step: ReturnType<typeof stream.push>) => {
    output += step.events.join('')
    for (const one of step.received) chunks.push(one as ChatChunk)
    failure ??= step.failure
  }
  for (const piece of pieces) {
    if (failure) break
    take(stream.push(piece))
  }
  if (!failure) take(stream.close())
  return { text: Buffer.from(output, 'latin1').toString(), failure, chunks, fail: parts.writer.fail }
}

const bytes = (text: string) => new TextEncoder().encode(text)
const singly = (all: Uint8Array) => Array.from(all, (byte) => new Uint8Array([byte]))
const summary = (chunks: ChatChunk[]) => ({
  texts: chunks
    .flatMap(({ choices }) => choices.map(({ delta }) => (delta.content ?? '') + (delta.reasoning_content ?? '')))
    .join(''),
  usage: chunks.findLast(({ usage }) => usage)?.usage,
})
const folder = new URL('../../../../test/fixtures/contentgen-compat/', import.meta.url)
const named = (end: string) => readdirSync(folder).filter((name) => name.endsWith(end))
const fixture = (name: string) => readFileSync(new URL(name, folder), 'utf8')
const put = (text: string) =>
  text.replaceAll(/"modelVersion": ?"[^"]*"/g, (found) => found.replace(/"[^"]*"$/, '"house/model"'))

const VERSION = { modelVersion: 'gemini-v', responseId: 'r' }
const piece = (parts: unknown, more: object = {}) =>
  `data: ${JSON.stringify({ candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }], ...VERSION })}\n\n`
const USAGE = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 }
const end = `data: ${JSON.stringify({ candidates: [{ finishReason: 'STOP', index: 0 }], usageMetadata: USAGE, ...VERSION })}\n\n`

describe('the provider’s response', () => {
  test.each(named('.sse'))('%s passes byte for byte except for the model, however the bytes are split', (name) => {
    const source = fixture(name)
    for (const pieces of [[bytes(source)], singly(bytes(source))]) {
      const { text, failure } = forwarded(pieces)
      expect([failure, text]).toEqual([undefined, put(source).replaceAll('\r\n', '\n')])
    }
  })

  test.each(named('.sse'))('%s gives the meter the same content as translation', (name) => {
    const reader = createAnswerReader({
      fallback: head,
      faults: { ...faults, blocked: faults.notUnderstood },
      one_call: false,
    })
    const events = fixture(name)
      .split(/\r?\n\r?\n/)
      .filter((one) => one.startsWith('data: '))
    const read = [...events.flatMap((one) => reader.take(JSON.parse(one.slice(6)))), ...reader.end()]
    const { chunks } = forwarded([bytes(fixture(name))])
    expect(summary(chunks)).toEqual(summary(read))
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
  })

  test.each(named('.json').filter((name) => !name.startsWith('models')))(
    '%s passes whole, except for the model',
    (name) => {
      const text = fixture(name)
      const whole = contentgenPassthrough({ hasStarted: false }).whole(text, partsFor())
      expect(whole.encode(usageFrom({ input: 1, output: 1 }))).toBe(put(text))
      expect(whole.usage?.input_tokens).toBeGreaterThan(0)
    },
  )

  test.each([
    ['the whole text again', piece([{ text: 'Hello there' }], { finishReason: 'STOP' }), ''],
    ['other text', piece([{ text: ' you' }]), ''],
    ['a call', piece([{ functionCall: { name: 'f', args: {} } }]), ''],
    ['the end again', piece([], { finishReason: 'STOP' }), ''],
    ['another end', piece([], { finishReason: 'MAX_TOKENS' }), ''],
  ])('leaves out %s after the end, however the bytes are split', (_, again) => {
    const source = piece([{ text: 'Hello' }]) + piece([{ text: ' there' }]) + end
    for (const pieces of [[bytes(source + again + again)], singly(bytes(source + again))]) {
      const { text, chunks, failure } = forwarded(pieces)
      expect([failure, text]).toEqual([undefined, put(source)])
      expect(summary(chunks).texts).toBe('Hello there')
      expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
    }
  })

  describe('with several candidates', () => {
    const of = (index: number, text: string, more: object = {}) =>
      piece([{ text }], more).replace('"index":0', `"index":${index}`)
    const FINISH = { finishReason: 'STOP' }

    test('leaves out what comes after the end of one of them', () => {
      const last = of(0, ' there', FINISH)
      const before = of(0, 'Hello') + of(0, ' you') + of(1, 'Hi') + last
      const after = of(1, ' all', FINISH)
      const source = before + last + of(0, ' you') + last + after
      for (const pieces of [[bytes(source)], singly(bytes(source))]) {
        const { text, failure } = forwarded(pieces)
        expect([failure, text]).toEqual([undefined, put(before + after)])
      }
    })

    test('forwards the same events however the bytes are split', () => {
      const event = fc
        .record({
          index: fc.constantFrom(0, 0, 1),
          text: fc.constantFrom('a', 'b', ''),
          more: fc.constantFrom({}, {}, FINISH, { finishReason: 'MAX_TOKENS' }),
        })
        .map(({ index, text, more }) => of(index, text, more))
      fc.assert(
        fc.property(fc.array(event, { maxLength: 12 }), (events) => {
          const source = events.join('')
          const [whole, ...others] = [[source], events, [...source]].map((pieces) => {
            const { text, failure } = forwarded(pieces.map(bytes))
            return [text, failure?.code]
          })
          for (const other of others) expect(other).toEqual(whole ?? [])
        }),
        { numRuns: 200 },
      )
    })
  })

  test('passes usage and sources that come after the end', () => {
    const source = piece([{ text: 'Hello' }]) + end
    const grounding = { groundingMetadata: { webSearchQueries: ['x'] } }
    const later = piece([{ text: 'Hello' }], { finishReason: 'STOP', ...grounding })
    const usage = `data: ${JSON.stringify({ usageMetadata: { ...USAGE, totalTokenCount: 6 }, ...VERSION })}\n\n`
    const counted = usage.replace('{', `{"candidates":[{"finishReason":"STOP","index":0}],`)
    const rest = `data: ${JSON.stringify({ candidates: [{ index: 0, ...grounding }], ...VERSION })}\n\n`
    expect(forwarded([bytes(source + later + usage)]).text).toBe(put(source + rest + usage))
    expect(forwarded([bytes(source + counted)]).text).toBe(put(source + usage))
  })

  test('a call is not sent twice where the end repeats it', () => {
    const call = piece([{ functionCall: { name: 'f', args: {} } }])
    const again = piece([{ functionCall: { name: 'f', args: {} } }], { finishReason: 'STOP' })
    const { text, chunks } = forwarded([bytes(call + end + again)])
    expect(text).toBe(put(call + end))
    expect(chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []))).toHaveLength(1)
  })

  test.each([
    [
      'equal pieces with a finish reason each',
      [
        ['ha', { finishReason: 'STOP' }],
        ['ha', { finishReason: 'STOP' }],
      ],
    ],
  ] as [string, [string, object][]][])('forwards %s after a finish reason', (_, pieces) => {
    const source = pieces.map(([text, more]) => piece([{ text }], more)).join('')
    expect(forwarded([bytes(source)]).text).toBe(put(source))
  })

  test('forwards unknown parts, events and fields, however the bytes are split', () => {
    const texts = fc.string({ unit: 'grapheme', maxLength: 8 })
    const unseen = fc.oneof(
      texts.map((text) => piece([{ text }])),
      texts.map((text) => piece([{ text, thought: true, thoughtSignature: text }])),
      fc.jsonValue().map((hologram) => piece([{ hologram }])),
      fc.jsonValue().map((unseen_field) => piece([{ text: 'x' }], { unseen_field })),
      fc.jsonValue().map((weather) => `data: ${JSON.stringify({ weather })}\n\n`),
      texts.map((text) => piece([{ text }]).replaceAll('":', '": ').replace('data: ', 'data:')),
    )
    fc.assert(
      fc.property(fc.array(unseen), fc.array(fc.nat()), (list, cuts) => {
        const source = list.join('') + end
        const all = bytes(source)
        const places = [...new Set(cuts.map((cut) => cut % all.length))].sort((a, b) => a - b)
        const { text } = forwarded([0, ...places].map((from, at) => all.slice(from, places[at] ?? all.length)))
        const expected = put(source)
          // An event with a replaced model name is encoded in the usual form.
          .replaceAll(/^data:(?! )/gm, 'data: ')
          .replaceAll(/[\u0085\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
        expect(text.replaceAll(/^data:(?! )/gm, 'data: ')).toBe(expected)
      }),
      { numRuns: 300 },
    )
  })

  test('does not parse most events: the meter receives their text in one piece, with the last counts', () => {
    const counted = (text: string, count: number) => {
      const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: count, totalTokenCount: 3 + count }
      const candidates = [{ content: { parts: [{ text }], role: 'model' }, index: 0 }]
      return `data: ${JSON.stringify({ candidates, usageMetadata, ...VERSION })}\n\n`
    }
    const texts = Array.from({ length: 120 }, (_, at) => `w${at}"\\ü `)
    const source = texts.map(counted).join('')
    const { text, chunks } = forwarded([bytes(source)])
    expect(text).toBe(put(source))
    expect(chunks.length).toBeLessThan(5)
    expect(summary(chunks)).toMatchObject({ texts: texts.join(''), usage: { input_tokens: 3, output_tokens: 119 } })
  })

  test('does not forward an event with invalid JSON that starts like the event before it', () => {
    const good = piece([{ text: 'a' }])
    for (const bad of [good.replace('"a"}', '"a}'), good.replace('"a"}', '"a"}}'), good.replace('"a"}', '"a\\"}')]) {
      const { text, failure } = forwarded([bytes(good + good + bad + end)])
      expect([failure?.code, text]).toEqual(['bad_upstream_response', put(good + good)])
    }
  })

  test('reports an error or completes after a cut at any byte', () => {
    const source = piece([{ text: 'Hel' }]) + piece([{ text: 'lo' }]) + end
    for (let at = 0; at <= source.length; at++) {
      const { text, failure } = forwarded([bytes(source.slice(0, at))])
      expect([at, failure?.code]).toEqual([at, at < source.length - 2 ? 'upstream_cut' : undefined])
      if (failure) expect(put(source)).toStartWith(text)
      else expect(text).toBe(put(source))
    }
  })

  test.each([
    ['an event', 'data: {"error":{"code":503,"message":"secret","status":"UNAVAILABLE"}}\n\n'],
    ['an event with its name', 'event: error\ndata: {"message":"secret"}\n\n'],
    ['a list', 'data: [{"error":{"code":503,"message":"secret"}}]\n\n'],
    ['bare JSON at the end', '{\n  "error": {\n    "code": 503,\n    "message": "secret"\n  }\n}\n'],
    ['a bare list at the end', '[{"error": {"code": 503, "message": "secret"}}]'],
  ])('ends the stream on an error and does not forward it: %s', (_, error) => {
    const { text, failure, fail } = forwarded([bytes(piece([{ text: 'Hi' }]) + error)])
    expect([failure?.code, text]).toEqual(['server_is_overloaded', put(piece([{ text: 'Hi' }]))])
    expect(fail(new GatewayError('content_policy_violation', 'x'))).toContain('"error"')
  })

  test('forwards a blocked prompt and a failed candidate as the provider sent them', () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY', safetyRatings: [{}] }, usageMetadata: USAGE, ...VERSION }
    const stream = `data: ${JSON.stringify(blocked)}\n\n`
    const output = forwarded([bytes(stream)])
    expect([output.failure, output.text]).toEqual([undefined, put(stream)])
    expect(summary(output.chunks).usage?.input_tokens).toBe(3)
    const whole = contentgenPassthrough({ hasStarted: false }).whole(JSON.stringify(blocked), partsFor())
    expect(whole.encode(usageFrom({ input: 1, output: 1 }))).toBe(put(JSON.stringify(blocked)))
    const failed = piece([], { finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'call:x' })
    const { failure, text } = forwarded([bytes(failed)])
    expect([failure, text]).toEqual([undefined, put(failed)])
  })

  test('rejects a whole body without a response, and adds missing usage', () => {
    const { whole } = contentgenPassthrough({ hasStarted: false })
    const read = (text: string) => whole(text, partsFor())
    for (const text of ['', '[]', '{}', '"Hi"', '{"candidates":[]}']) {
      expect(() => read(text)).toThrow(expect.objectContaining({ code: 'bad_upstream_response' }))
    }
    for (const text of ['{"error":{"code":500}}', '[{"error":{"code":500}}]']) {
      expect(() => read(text)).toThrow(expect.objectContaining({ code: 'server_is_overloaded' }))
    }
    const one = { candidates: [{ content: { parts: [{ text: 'Hi' }] } }], unseen: 1 }
    expect(JSON.parse(String(read(JSON.stringify(one)).encode(usageFrom({ input: 9, output: 3 }))))).toMatchObject({
      ...one,
      modelVersion: 'house/model',
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3 },
    })
    expect(read(JSON.stringify([one])).encode(usageFrom({ input: 9, output: 3 }))).toMatchObject({
      candidates: [{ content: { parts: [{ text: 'Hi' }] } }],
      modelVersion: 'house/model',
    })
  })
})

describe('the client’s body', () => {
  const contents = (...parts: object[]) => [
    { role: 'user', parts: [{ text: 'Hi' }] },
    { role: 'model', parts },
  ]

  test('passes unchanged, with top-level names in camelCase', () => {
    const body = {
      contents: contents({ text: 'x', thoughtSignature: 'sig' }, { unseen_part: { a_b: 1 } }),
      cachedContent: 'cachedContents/x',
      tools: [{ urlContext: {} }, { code_execution: {} }],
      generationConfig: { responseMimeType: 'text/x.enum', unseen: { a_b: null } },
    }
    expect(passthroughBody(body)).toEqual(body)
    expect(passthroughBody(body)?.contents).toEqual(body.contents)
    const { cachedContent: cached_content, generationConfig: generation_config, ...rest } = body
    expect(
      passthroughBody({
        ...rest,
        cached_content,
        generation_config,
        model: 'models/x',
        provider_options: {},
        labels: null,
      }),
    ).toEqual(body)
  })

  test('loses content that another vendor signed, and keeps the provider’s own', () => {
    const foreign = { origin: 'messages-compat', value: 'theirs' } as const
    const own = { origin: 'contentgen-compat', value: 'ours' } as const
    const passthrough = (...parts: object[]) =>
      ((passthroughBody({ contents: contents(...parts) })?.contents ?? []) as JsonRecord[])[1]?.parts
    const call = { functionCall: { name: 'f', args: {} } }
    expect(
      passthrough({ text: 'Hm', thought: true, thoughtSignature: encodeSignature({ own: foreign }) }, { text: 'Hi' }),
    ).toEqual([{ text: 'Hi' }])
    expect(passthrough({ ...call, thoughtSignature: encodeSignature({ own: foreign }) })).toEqual([call])
    expect(
      passthrough({
        ...call,
        thought_signature: encodeSignature({
          own,
          before: [
            { text: 'Hm', opaque: own },
            { text: 'x', opaque: foreign },
          ],
        }),
      }),
    ).toEqual([
      { text: 'Hm', thought: true, thoughtSignature: 'ours' },
      { ...call, thoughtSignature: 'ours' },
    ])
  })

  test('does not pass if it names another model, or an image that the gateway has to fetch', () => {
    const image = (fileUri: string, mimeType?: string) => ({ fileData: { fileUri, mimeType } })
    const passes = (part: object, more: object = {}) =>
      passthroughBody({ contents: contents(part), ...more }) !== undefined
    expect(passes(image('https://generativelanguage.googleapis.com/v1beta/files/a', 'image/png'))).toBe(true)
    expect(passes(image('gs://bucket/a.png'))).toBe(true)
    expect(passes(image('https://example.com/a.pdf', 'application/pdf'))).toBe(true)
    expect(passes(image('https://example.com/a', 'image/png'))).toBe(false)
    expect(passes({ file_data: { file_uri: 'https://example.com/a.png' } })).toBe(false)
    expect(passes({ text: 'x' }, { generation_config: { routing_config: {} } })).toBe(false)
    expect(passes({ text: 'x' }, { generationConfig: { modelSelectionConfig: {} } })).toBe(false)
  })

  test('is reduced to a minimal request: its text, media, tools and limited fields', () => {
    const request = minimalRequestOf(
      {
        contents: [{ parts: [{ text: 'Hi' }, { inlineData: { mimeType: 'image/png', data: 'AA' } }, { unseen: 1 }] }],
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        tools: [{ codeExecution: {} }, { functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT' } }] }],
        generationConfig: { temperature: 0.5, maxOutputTokens: 9, unseen: true },
      },
      'm',
    )
    expect(request).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'image_url', image_url: { url: '' } },
            { type: 'text', text: '{"unseen":1}' },
          ],
        },
      ],
      temperature: 0.5,
      max_tokens: 9,
      tools: [
        { type: 'function', function: { name: 'codeExecution' } },
        { type: 'function', function: { name: 'f', parameters: { type: 'OBJECT' } } },
      ],
    })
    for (const wrong of [{}, { contents: [] }, { contents: [{}], generationConfig: { temperature: 'x' } }]) {
      expect(() => minimalRequestOf(wrong, 'm')).toThrow(GatewayError)
    }
  })
})
