/** Passthrough of recorded provider streams: what passes, what is corrected, and cuts at every byte. */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { createSseParser } from '../../../kit/sse.ts'
import type { UpstreamResponse } from '../../../providers/upstream/upstream-request.ts'
import { GatewayError } from '../../../spec/error.ts'
import { usageFrom } from '../../../spec/usage.ts'
import { messagesPassthrough } from '../../messages/client/passthrough.ts'
import { createMessagesEncoder } from '../../messages/client/response.ts'
import type { ChatChunk, ChatRequest } from '../../shared/canonical.ts'
import { ChunkStream } from '../../shared/chunk-stream.ts'
import type { ProtocolPassthrough, ResponseEncoder } from '../../shared/protocol.ts'
import type { Faults } from '../../shared/upstream.ts'
import { createChunkDecoder } from '../upstream/stream.ts'
import { chatcompatPassthrough } from './passthrough.ts'
import { createChunkEncoder, encodeWhole } from './response.ts'

const head = { id: 'ours-1', created: 1_800_000_000, model: 'house/model' }
const faults: Faults = {
  inAnswer: () => new GatewayError('server_is_overloaded', 'The vendor failed.'),
  notUnderstood: (what) => new GatewayError('bad_upstream_response', what),
  cut: () => new GatewayError('upstream_cut', 'It broke off.'),
}
const requestOf = (more: Partial<ChatRequest> = {}): ChatRequest => ({ model: head.model, messages: [], ...more })

type PassthroughResult = { text: string; chunks: ChatChunk[]; summary: string; failure: GatewayError | undefined }

/** What a client receives for a body that arrives in these pieces. */
function forwarded(passthrough: ProtocolPassthrough, pieces: Uint8Array[], request = requestOf()): PassthroughResult {
  const writer: ResponseEncoder =
    passthrough === chatcompatPassthrough
      ? {
          ...createChunkEncoder(head, { include_usage: request.stream_options?.include_usage === true }),
          whole: (answer, usage) => encodeWhole(answer, head, { usage, delta_mirror: true }),
        }
      : createMessagesEncoder(head, request, 'req_1')
  const stream = passthrough.stream({ head, request, writer, faults })
  const output: PassthroughResult = { text: '', chunks: [], summary: '', failure: undefined }
  const take = ({ events, received: receivedLines, failure }: ReturnType<typeof stream.push>) => {
    output.text += events.join('')
    for (const one of receivedLines) {
      if (typeof one === 'string') output.summary += one
      else output.chunks.push(one)
    }
    output.failure ??= failure
  }
  for (const piece of pieces) {
    const step = stream.push(piece)
    take(step)
    if (step.isDone || step.failure) break
  }
  if (!output.failure) take(stream.close())
  const text = Buffer.from(output.text, 'latin1').toString()
  return {
    ...output,
    text: output.failure
      ? text
      : text + stream.end(stream.includesUsage ? usageFrom({ input: 9, output: 3 }) : undefined),
  }
}

const bytes = (text: string) => new TextEncoder().encode(text)
const singly = (all: Uint8Array) => Array.from(all, (byte) => new Uint8Array([byte]))
const eventsOf = (text: string) => {
  const parser = createSseParser()
  return [...parser.push(bytes(text)), ...parser.end()]
}
const fixtures = (kind: string) => {
  const folder = new URL(`../../../../test/fixtures/${kind}/`, import.meta.url)
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sse'))
    .map((name) => [name, new Uint8Array(readFileSync(new URL(name, folder)))] as const)
}

describe('Messages passthrough', () => {
  const withoutPingComments = (text: string) => text.replace(/^:.*\n\n/gm, '')

  test.each(fixtures('messages-compat').filter(([name]) => !['overloaded.sse', 'imitator.sse'].includes(name)))(
    '%s passes byte for byte, except for the model',
    (_, all) => {
      const source = withoutPingComments(new TextDecoder().decode(all))
      const model = /"model": ?"([^"]*)"/.exec(source)?.[1] ?? ''
      expect(model).not.toBe('')
      const { text, failure } = forwarded(messagesPassthrough, [all])
      expect(failure).toBeUndefined()
      expect(text).toBe(source.replace(`"${model}"`, '"house/model"'))
    },
  )

  test.each(fixtures('messages-compat'))('%s gives the same output however the bytes are split', (_, all) => {
    const { text, failure, chunks } = forwarded(messagesPassthrough, [all])
    const cut = forwarded(messagesPassthrough, singly(all))
    expect([cut.text, cut.failure, cut.chunks]).toEqual([text, failure, chunks])
  })

  const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const start = event('message_start', {
    message: { id: 'msg_v', model: 'v', content: [], usage: { input_tokens: 3 } },
  })
  const stop =
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }) +
    event('message_stop', {})
  const delta = (part: object, index = 0) => event('content_block_delta', { index, delta: part })
  const put = (text: string) => text.replace('"model":"v"', '"model":"house/model"')

  test('forwards unknown blocks, events and fields in any order, however the bytes are split', () => {
    const texts = fc.string({ unit: 'grapheme', maxLength: 8 })
    const unseen = fc.oneof(
      fc
        .dictionary(texts, fc.jsonValue(), { maxKeys: 3 })
        .map((more) => event('content_block_start', { index: 0, content_block: { type: 'server_tool_use', ...more } })),
      texts.map((text) => delta({ type: 'text_delta', text })),
      texts.map((thinking) => delta({ type: 'thinking_delta', thinking, extra: 1 }, 1)),
      texts.map((partial_json) => delta({ type: 'input_json_delta', partial_json })),
      texts.map((signature) => delta({ type: 'signature_delta', signature: `s${signature}` })),
      fc.jsonValue().map((value) => event('brand_new_event', { value })),
      fc.constant(event('ping', {})),
    )
    fc.assert(
      fc.property(fc.array(unseen), fc.array(fc.nat()), (events, cuts) => {
        const source = start + events.join('') + stop
        const all = bytes(source)
        const places = [...new Set(cuts.map((cut) => cut % all.length))].sort((a, b) => a - b)
        const pieces = [0, ...places].map((from, at) => all.slice(from, places[at] ?? all.length))
        const expected = put(source).replaceAll(
          /[\u0085\u2028\u2029]/g,
          (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
        )
        expect(forwarded(messagesPassthrough, pieces).text).toBe(expected)
      }),
      { numRuns: 300 },
    )
  })

  test('gives the text of unparsed events to the meter, each piece once', () => {
    const pieces = ['a', '"', '\\', 'ü', '\n', '', '"\\"', 'z']
    const { chunks, summary } = forwarded(messagesPassthrough, [
      bytes(
        start +
          event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
          pieces.map((text) => delta({ type: 'text_delta', text })).join('') +
          stop,
      ),
    ])
    const first = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
    expect(first + JSON.parse(`"${Buffer.from(summary, 'latin1')}"`)).toBe(pieces.join(''))
    expect(summary).not.toBe('')
    expect(chunks.at(-1)).toMatchObject({ usage: { input_tokens: 3, output_tokens: 2 } })
  })

  test('ends the stream on an error event and does not forward that event', () => {
    const source = start + delta({ type: 'text_delta', text: 'Hi' })
    const error = event('error', { error: { type: 'overloaded_error', message: 'secret place' } })
    const { text, failure } = forwarded(messagesPassthrough, [
      bytes(source + error + delta({ type: 'text_delta', text: 'more' })),
    ])
    expect(failure?.code).toBe('server_is_overloaded')
    expect(text).toBe(put(source))
  })

  test('does not forward an event with invalid JSON that starts like the event before it', () => {
    const good = delta({ type: 'text_delta', text: 'a' })
    for (const bad of [
      good.replace('"a"}}', '"a'),
      good.replace('"a"}}', '"a"} }]'),
      good.replace('"a"}}', '"a\\"}}'),
    ]) {
      const { text, failure } = forwarded(messagesPassthrough, [bytes(start + good + good + bad + stop)])
      expect([failure?.code, text]).toEqual(['bad_upstream_response', put(start + good + good)])
    }
  })

  test.each([
    ['end_turn', ''],
    ['tool_use', event('content_block_start', { index: 1, content_block: { type: 'tool_use', id: 't', name: 'f' } })],
  ])('adds the stop reason %s where the provider ends without one', (stop_reason, more) => {
    const usage = { output_tokens: 2 }
    const open = start + delta({ type: 'text_delta', text: 'Hi' }) + more
    const late = event('message_delta', { delta: { stop_reason: null }, usage })
    const added = (counts: object) =>
      event('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { input_tokens: 3, ...counts } })
    const closing = event('message_stop', {})
    for (const pieces of [(text: string) => [bytes(text)], (text: string) => singly(bytes(text))]) {
      const without = forwarded(messagesPassthrough, pieces(open + closing))
      expect([without.failure, without.text]).toEqual([undefined, put(open) + added({}) + closing])
      const { text } = forwarded(messagesPassthrough, pieces(open + late + closing))
      expect(text).toBe(put(open) + late + added(usage) + closing)
    }
  })

  test.each([
    ['end_turn', [{ type: 'text', text: 'Hi' }]],
    ['tool_use', [{ type: 'tool_use', id: 't', name: 'f', input: {} }]],
  ])('adds the stop reason %s to a whole answer without one', (stop_reason, content) => {
    const message = { id: 'msg_v', type: 'message', role: 'assistant', model: 'v', content }
    const usage = { input_tokens: 3, output_tokens: 2 }
    for (const given of [{}, { stop_reason: null }, { stop_reason: '' }]) {
      const text = JSON.stringify({ ...message, ...given, usage })
      const writer = createMessagesEncoder(head, requestOf(), 'req_1')
      const whole = messagesPassthrough.whole(text, { head, request: requestOf(), writer, faults })
      const encoded = JSON.parse(String(whole.encode(usageFrom({ input: 9, output: 9 }))))
      expect(encoded).toEqual({ ...message, model: 'house/model', stop_reason, usage })
    }
  })

  test('reports an error or completes after a cut at any byte', () => {
    const all = bytes(start + delta({ type: 'text_delta', text: 'Hi' }) + stop)
    const complete = new TextDecoder().decode(all).indexOf('event: message_stop')
    for (let end = 0; end <= all.length; end++) {
      const { text, failure } = forwarded(messagesPassthrough, [all.slice(0, end)])
      // The end of the body closes the last event, which may lack one line end.
      expect([end, failure?.code]).toEqual([end, end < complete - 2 ? 'upstream_cut' : undefined])
      if (!failure) expect(text).toBe(put(new TextDecoder().decode(all)))
    }
  })

  test('normalises events without a name, with CRLF, comments or a byte order mark', () => {
    const source =
      '\ufeff: hello\r\n\r\ndata: {"type":"message_start","message":{"model":"v","usage":{}}}\r\n\r\nevent: message_delta\r\ndata: {"delta":{"stop_reason":"end_turn"}}\r\n\r\n'
    const events = eventsOf(forwarded(messagesPassthrough, singly(bytes(source))).text)
    expect(events.map(({ event }) => event)).toEqual(['message_start', 'message_delta', 'message_stop'])
    expect(JSON.parse(events[0]?.data ?? '')).toEqual({
      type: 'message_start',
      message: { model: 'house/model', usage: {} },
    })
    expect(JSON.parse(events[1]?.data ?? '')).toMatchObject({ type: 'message_delta', usage: { output_tokens: 0 } })
  })
})

describe('chat-completions passthrough', () => {
  /** The translation of the same stream. */
  async function translated(all: Uint8Array, include_usage: boolean): Promise<unknown[]> {
    const pieces = [all]
    const answer = { read: async () => pieces.shift() } as unknown as UpstreamResponse
    const writer = createChunkEncoder(head, { include_usage })
    let text = ''
    const chunks = new ChunkStream(async () => ({ body: answer, decoder: createChunkDecoder(head, faults), faults }))
    for await (const batch of chunks) text += writer.encode(batch)
    return eventsOf(text).map(({ data }) => withoutNulls(JSON.parse(data)))
  }
  /** Members that translation removes, or that it leaves out of the role event. */
  const ONLY_RELAYED = new Set(['obfuscation', 'service_tier', 'system_fingerprint'])
  /** `null` counts as absent. */
  const withoutNulls = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value), (name, member) =>
      member === null || ONLY_RELAYED.has(name) ? undefined : member,
    )
  /** Replaces generated ids, which differ each time. */
  const withIds = (one: unknown): unknown =>
    JSON.parse(JSON.stringify(one ?? null).replaceAll(/call_[a-zA-Z0-9]{24}/g, 'call_ours'))

  test.each(fixtures('chatcompat'))(
    '%s gives the same content as translation, however the bytes are split',
    async (_, all) => {
      for (const include_usage of [false, true]) {
        const request = requestOf({ stream: true, stream_options: { include_usage } })
        const { text, failure, chunks } = forwarded(chatcompatPassthrough, [all], request)
        const cut = forwarded(chatcompatPassthrough, singly(all), request)
        const receivedLines = (one: PassthroughResult) => withIds(one.text.split('\n'))
        expect([receivedLines(cut), cut.failure]).toEqual([
          receivedLines({ text, failure, chunks, summary: '' }),
          failure,
        ])
        expect(failure).toBeUndefined()
        const events = eventsOf(text).map(({ data }) => data)
        expect(events.pop()).toBe('[DONE]')
        const output = events.map((data) => JSON.parse(data))
        for (const one of output) expect('usage' in one).toBe(include_usage)
        if (include_usage) expect(output.pop()).toMatchObject({ choices: [], usage: { input_tokens: 9 } })
        const expected = (await translated(all, include_usage)).map(withIds)
        // Here the role event may hold other members of the provider.
        const [first, ...rest] = output.map(withoutNulls).map(withIds)
        expect(first).toMatchObject(expected[0] as object)
        expect(rest).toEqual(expected.slice(1))
      }
    },
  )

  const vendor = {
    id: 'chatcmpl-v',
    object: 'chat.completion.chunk',
    created: 5,
    model: 'v',
    system_fingerprint: 'fp',
    service_tier: 'x',
    nested: { a: [1] },
  }
  const event = (delta: object, finish_reason: string | null = null, more: object = {}) =>
    `data: ${JSON.stringify({ ...vendor, choices: [{ index: 0, delta, logprobs: null, finish_reason }], ...more })}\n\n`
  const role = event({ role: 'assistant', content: '', refusal: null })
  const put = (text: string) =>
    text
      .replaceAll('"id":"chatcmpl-v"', '"id":"ours-1"')
      .replaceAll('"created":5', '"created":1800000000')
      .replaceAll('"model":"v"', '"model":"house/model"')
  const DONE = 'data: [DONE]\n\n'

  test('forwards events that conform to the specification byte for byte, except for the head', () => {
    const texts = fc.string({ unit: 'grapheme', maxLength: 8 })
    const piece = fc.oneof(
      texts.map((content) => event({ content })),
      texts.map((content) => event({ content }, null, { obfuscation: 'x'.repeat(content.length) })),
      texts.map((reasoning_content) => event({ reasoning_content })),
      texts.map((text) => event({ content: `"content":"${text}`, unseen: { text } })),
      fc.jsonValue().map((value) => event({ content: 'a', unusual: value ?? 1 })),
      texts.map((content) => event({ content }).replaceAll('":', '": ').replaceAll(',"', ', "')),
    )
    fc.assert(
      fc.property(fc.array(piece), fc.array(fc.nat()), (events, cuts) => {
        const source = role + events.join('') + event({}, 'stop')
        const all = bytes(source + DONE)
        const places = [...new Set(cuts.map((cut) => cut % all.length))].sort((a, b) => a - b)
        const pieces = [0, ...places].map((from, at) => all.slice(from, places[at] ?? all.length))
        const { text } = forwarded(chatcompatPassthrough, pieces)
        const expected = put(
          source
            .replaceAll('"model": "v"', '"model": "house/model"')
            .replaceAll('"id": "chatcmpl-v"', '"id": "ours-1"')
            .replaceAll('"created": 5', '"created": 1800000000'),
        )
        expect(text).toBe(
          expected.replaceAll(
            /[\u0085\u2028\u2029]/g,
            (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
          ) + DONE,
        )
      }),
      { numRuns: 300 },
    )
  })

  test('encodes other events again, the tenth like the first', () => {
    const unusual = (reasoning: string) =>
      `data: ${JSON.stringify({ id: null, choices: [{ delta: { role: 'assistant', reasoning } }] })}\n\n`
    const source = Array.from({ length: 10 }, (_, at) => unusual(`r${at}`)).join('') + event({}, 'stop') + DONE
    const events = eventsOf(forwarded(chatcompatPassthrough, [bytes(source)]).text)
      .slice(0, -1)
      .map(({ data }) => JSON.parse(data))
    expect(events[0].choices[0].delta).toEqual({ role: 'assistant', content: '' })
    for (const [at, one] of events.slice(1, -1).entries()) {
      expect(one).toEqual({
        ...head,
        object: 'chat.completion.chunk',
        system_fingerprint: null,
        choices: [{ index: 0, delta: { reasoning_content: `r${at}` }, finish_reason: null, logprobs: null }],
      })
    }
    expect(events).toHaveLength(12)
  })

  test('sends usage once and only on request, with the fields that only the vendor has', () => {
    const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12, queue_time: 0.5 }
    const body = bytes(role + event({ content: 'a' }, null, { usage: null }) + event({}, 'stop', { usage }) + DONE)
    const clientRequest = eventsOf(
      forwarded(chatcompatPassthrough, [body], requestOf({ stream_options: { include_usage: true } })).text,
    )
    const output = clientRequest.slice(0, -1).map(({ data }) => JSON.parse(data))
    expect(output.map((one) => one.usage)).toEqual([
      null,
      null,
      null,
      expect.objectContaining({ input_tokens: 9, queue_time: 0.5 }),
    ])
    expect(output.at(-1).choices).toEqual([])
    const { text, chunks } = forwarded(chatcompatPassthrough, [body])
    expect(text).not.toContain('usage')
    expect(chunks.at(-1)).toMatchObject({ usage: { input_tokens: 9 } })
  })

  test('does not forward what the provider charges', () => {
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 3,
      total_tokens: 12,
      cost: 0.5,
      cost_details: {},
      is_byok: true,
    }
    const body = bytes(role + event({ content: 'a' }) + event({}, 'stop', { usage }) + DONE)
    const request = requestOf({ stream_options: { include_usage: true } })
    expect(forwarded(chatcompatPassthrough, [body], request).text).not.toMatch(/cost|byok/)
  })

  test('forwards calls unchanged, and normalises repeated ones', () => {
    const first = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }
    const part = (text: string, more: object = {}) =>
      event({ tool_calls: [{ index: 0, ...more, function: { arguments: text } }] })
    const source =
      role +
      event({ tool_calls: [first] }) +
      ['{"a', '":', '1}'].map((text) => part(text)).join('') +
      event({}, 'tool_calls')
    expect(forwarded(chatcompatPassthrough, [bytes(source + DONE)]).text).toBe(put(source) + DONE)
    const repeated =
      role +
      event({ tool_calls: [first] }) +
      ['{"a', '":', '1}'].map((text) => part(text, { id: 'call_1', type: 'function' })).join('') +
      event({}, 'tool_calls')
    expect(forwarded(chatcompatPassthrough, [bytes(repeated + DONE)]).text).toBe(put(source) + DONE)
  })

  test('treats each new call without an index or an id as another call', () => {
    const call = event({ tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }] })
    const { text } = forwarded(chatcompatPassthrough, [
      bytes(role + call + call + call + event({}, 'tool_calls') + DONE),
    ])
    const calls = eventsOf(text)
      .slice(0, -1)
      .flatMap(({ data }) => JSON.parse(data).choices[0].delta.tool_calls ?? [])
    expect(calls.map(({ index }) => index)).toEqual([0, 1, 2])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3)
  })

  test('reports an error or completes after a cut at any byte', () => {
    const source = role + event({ content: 'a' }) + event({ content: 'b' }) + event({}, 'stop')
    const all = bytes(source + DONE)
    for (let end = 0; end <= all.length; end++) {
      const { text, failure } = forwarded(chatcompatPassthrough, [all.slice(0, end)])
      expect([end, failure?.code]).toEqual([end, end < source.length - 2 ? 'upstream_cut' : undefined])
      if (!failure) expect(text).toBe(put(source) + DONE)
    }
  })

  test('does not forward an event with invalid JSON that starts like the event before it', () => {
    const good = event({ content: 'a' })
    for (const bad of [good.replace('"a"}', '"a'), good.replace('"a"}', '"a"}}'), good.replace('"a"}', '"a\\"}')]) {
      const { text, failure } = forwarded(chatcompatPassthrough, [
        bytes(role + good + good + bad + event({}, 'stop') + DONE),
      ])
      expect([failure?.code, text]).toEqual(['bad_upstream_response', put(role + good + good)])
    }
  })

  test('sends nothing after the finish except the end', () => {
    const source = role + event({ content: 'a' }) + event({ content: 'b' }) + event({}, 'stop')
    expect(
      forwarded(chatcompatPassthrough, [bytes(source + event({ content: '' }) + event({}, 'stop') + DONE)]).text,
    ).toBe(put(source) + DONE)
  })
})
