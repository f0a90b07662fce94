/** Responses passthrough: what passes, what is rewritten, what the meter receives, and cuts at every byte. */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { manualClock } from '../../../../test/kit/clock.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import { createSseParser } from '../../../kit/sse.ts'
import { GatewayError } from '../../../spec/error.ts'
import { usageFrom } from '../../../spec/usage.ts'
import type { ChatChunk } from '../../shared/canonical.ts'
import type { Faults } from '../../shared/upstream.ts'
import { createEventReader } from '../upstream/events.ts'
import { decodeEncrypted } from './items.ts'
import { responsesPassthrough } from './passthrough.ts'
import { emptyPassthroughState, type PassthroughExchange } from './passthrough-items.ts'
import { createResponsesEncoder } from './response.ts'
import type { ResponsesRequest } from './schema.ts'
import { clientTools } from './tools.ts'

const NAME = 'A1b2C3d4E5f6G7h8I9j0K1l2'
const head = { id: `resp_${NAME}`, created: 1_800_000_000, model: 'house/model' }
const faults: Faults = {
  inAnswer: () => new GatewayError('server_is_overloaded', 'The vendor failed.'),
  notUnderstood: (what) => new GatewayError('bad_upstream_response', what),
  cut: () => new GatewayError('upstream_cut', 'It broke off.'),
}
const passageOf = (more: Partial<PassthroughExchange> = {}): PassthroughExchange => ({
  body: { model: head.model, input: 'Hi' },
  before: { items: [], ids: [] },
  input: [],
  isStored: false,
  includes_encrypted: false,
  state: emptyPassthroughState(),
  ...more,
})

/** What a client receives for a body that arrives in these pieces, and what the meter receives. */
function forwarded(pieces: Uint8Array[], more: Partial<PassthroughExchange> = {}) {
  const passage = passageOf(more)
  const request = { model: head.model, messages: [] }
  const clientRequest = passage.body as ResponsesRequest
  const { state: passed, isStored } = passage
  const keep = isStored ? async () => {} : undefined
  const writer = createResponsesEncoder({
    head,
    clientRequest,
    request,
    names: clientTools({}).names,
    store: keep,
    clock: manualClock(),
    passthroughState: passed,
  })
  const stream = responsesPassthrough(passage).stream({ head, request, writer, faults })
  const chunks: ChatChunk[] = []
  let output = ''
  let failure: GatewayError | undefined
  const take = (step: ReturnType<typeof stream.push>) => {
    output += step.events.join('')
    for (const one of step.received) chunks.push(one as ChatChunk)
    failure ??= step.failure
  }
  for (const piece of pieces) {
    const step = stream.push(piece)
    take(step)
    if (step.isDone || step.failure) break
  }
  if (!failure) take(stream.close())
  const text = Buffer.from(output, 'latin1').toString()
  const end = failure ? '' : stream.end(usageFrom({ input: 9, output: 3 }))
  return { text: text + end, before: text, failure, chunks, passed, fail: (error: GatewayError) => writer.fail(error) }
}

const bytes = (text: string) => new TextEncoder().encode(text)
const singly = (all: Uint8Array) => Array.from(all, (byte) => new Uint8Array([byte]))
const cutAt = (all: Uint8Array, cuts: number[]) => {
  const places = [...new Set(cuts.map((cut) => cut % all.length))].sort((a, b) => a - b)
  return [0, ...places].map((from, at) => all.slice(from, places[at] ?? all.length))
}
const eventsOf = (text: string): JsonRecord[] => {
  const parser = createSseParser()
  return [...parser.push(bytes(text)), ...parser.end()].map(({ data }) => JSON.parse(data))
}
const summary = (chunks: ChatChunk[]) => {
  const all = { content: '', reasoning: '', calls: '' }
  for (const { choices } of chunks) {
    for (const { delta } of choices) {
      all.content += delta.content ?? ''
      all.reasoning += delta.reasoning_content ?? ''
      for (const call of delta.tool_calls ?? []) all.calls += (call.function?.name ?? '') + call.function?.arguments
    }
  }
  return all
}
const folder = new URL('../../../../test/fixtures/responses-compat/', import.meta.url)
const FIXTURES = readdirSync(folder)
  .filter((name) => name.endsWith('.sse'))
  .map((name) => [name, new Uint8Array(readFileSync(new URL(name, folder)))] as const)
const WELL = FIXTURES.filter(([name]) => !/error|failed|imitator|terse/.test(name))

let number = 0
const event = (type: string, more: object = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...more })}\n\n`
const vendorResponse = (more: object = {}) => ({
  id: 'resp_v',
  object: 'response',
  created_at: 5,
  status: 'in_progress',
  model: 'v',
  output: [],
  store: false,
  previous_response_id: null,
  metadata: {},
  usage: null,
  ...more,
})
const delta = (text: string, more: object = {}) =>
  event('response.output_text.delta', {
    item_id: 'msg_v',
    output_index: 0,
    content_index: 0,
    delta: text,
    logprobs: [],
    ...more,
  })
const message = (text: string) => ({
  id: 'msg_v',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
})
const start = () => {
  number = 0
  return (
    event('response.created', { response: vendorResponse() }) +
    event('response.in_progress', { response: vendorResponse() }) +
    event('response.output_item.added', {
      output_index: 0,
      item: { id: 'msg_v', type: 'message', status: 'in_progress', role: 'assistant', content: [] },
    })
  )
}
const USAGE = {
  input_tokens: 3,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 5,
}
const stop = (text: string, more: object = {}) =>
  event('response.output_item.done', { output_index: 0, item: message(text) }) +
  event('response.completed', {
    response: vendorResponse({ status: 'completed', output: [message(text)], usage: USAGE, ...more }),
  })
const put = (text: string) => text.replaceAll('"model":"v"', '"model":"house/model"')
const withEscapes = (text: string) =>
  text.replaceAll(/[\u0085\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)

describe('a response that is not stored', () => {
  test.each(WELL)('%s passes byte for byte, except for the model', (name, all) => {
    const source = new TextDecoder().decode(all).replace(/^:.*\n\n/gm, '')
    const { text, failure } = forwarded([all])
    expect(failure).toBeUndefined()
    const models = new Set([...source.matchAll(/"model":"([^"]*)"/g)].map(([, model]) => model))
    expect([name, models.size]).toEqual([name, 1])
    expect(text).toBe(source.replaceAll(/"model":"[^"]*"/g, '"model":"house/model"'))
  })

  test.each(FIXTURES)('%s gives the same output however the bytes are split', (_, all) => {
    const whole = forwarded([all])
    const cut = forwarded(singly(all))
    expect([cut.text, cut.failure, cut.passed, summary(cut.chunks)]).toEqual([
      whole.text,
      whole.failure,
      whole.passed,
      summary(whole.chunks),
    ])
  })

  const texts = fc.string({ unit: 'grapheme', maxLength: 8 })
  const unseen = fc.oneof(
    texts.map((text) => ['delta', text] as const),
    texts.map((text) => ['padded', text] as const),
    fc.jsonValue().map((value) => ['item', value] as const),
    fc.jsonValue().map((value) => ['brand_new', value] as const),
  )
  const encodeEvent = ([kind, value]: readonly [string, unknown]) => {
    if (kind === 'delta') return delta(value as string)
    if (kind === 'padded') return delta(value as string, { obfuscation: 'x'.repeat(Number(String(value).length)) })
    if (kind === 'item') {
      const item = { id: 'ci_v', type: 'code_interpreter_call', outputs: value }
      return event('response.output_item.done', { output_index: 9, item })
    }
    return event('response.brand_new.delta', { value, delta: 'not counted', item_id: 'x' })
  }

  test('forwards unknown items, events and fields however the bytes are split, and gives all text to the meter', () => {
    fc.assert(
      fc.property(fc.array(unseen), fc.array(fc.nat()), (list, cuts) => {
        const text = list.flatMap(([kind, value]) => (kind === 'delta' || kind === 'padded' ? [value] : [])).join('')
        const source = start() + list.map(encodeEvent).join('') + stop(text)
        const { text: output, chunks } = forwarded(cutAt(bytes(source), cuts))
        expect(output).toBe(withEscapes(put(source)))
        const reader = createEventReader(head)
        const read = eventsOf(source)
          .map(reader.take)
          .filter((chunk) => chunk !== undefined)
        expect(summary(chunks)).toEqual(summary(read))
        expect(chunks.at(-1)).toEqual({ ...(read.at(-1) as ChatChunk), model: 'v', id: 'resp_v' })
      }),
      { numRuns: 300 },
    )
  })

  test('does not parse most events: the meter receives their text in one piece', () => {
    const source = start() + Array.from({ length: 50 }, () => delta('ab')).join('') + stop('ab'.repeat(50))
    const { chunks, text } = forwarded([bytes(source)])
    expect(text).toBe(put(source))
    expect(chunks.filter(({ choices }) => choices[0]?.delta.content)).toHaveLength(2)
  })

  test('gives calls and reasoning of unparsed events to the meter too', () => {
    const call = { id: 'fc_v', type: 'function_call', call_id: 'c', name: 'f', arguments: '' }
    const part = (text: string) =>
      event('response.function_call_arguments.delta', { item_id: 'fc_v', output_index: 1, delta: text })
    const think = (text: string) =>
      event('response.reasoning_summary_text.delta', { item_id: 'rs', output_index: 2, summary_index: 0, delta: text })
    const source =
      start() +
      ['I ', 'think', ' "'].map(think).join('') +
      event('response.output_item.added', { output_index: 1, item: call }) +
      ['{"a', '":', '1', '}'].map(part).join('') +
      stop('')
    const { text, chunks } = forwarded([bytes(source)])
    expect(text).toBe(put(source))
    expect(summary(chunks)).toEqual({ content: '', reasoning: 'I think "', calls: 'f{"a":1}' })
  })

  test('does not forward an event with invalid JSON that starts like the event before it', () => {
    const started = start()
    const good = delta('a') + delta('b')
    for (const spoil of [
      (text: string) => text.replace('"delta":"c"', '"delta":"c'),
      (text: string) => text.replace('"logprobs":[]}', '"logprobs":[]} }'),
      (text: string) => text.replace('"c",', '"c\\",'),
    ]) {
      const { before, failure } = forwarded([bytes(started + good + spoil(delta('c')) + stop('abc'))])
      expect([failure?.code, before]).toEqual(['bad_upstream_response', put(started + good)])
    }
  })

  test('adds a missing name or number to events', () => {
    const nameless = (type: string, more: object) => `data: ${JSON.stringify({ type, ...more })}\n\n`
    const source =
      nameless('response.created', { response: vendorResponse() }) +
      ['a', 'b', 'c'].map((text) => nameless('response.output_text.delta', { item_id: 'm', delta: text })).join('') +
      `event: response.completed\ndata: ${JSON.stringify({ response: vendorResponse({ status: 'completed' }) })}\n\n`
    const { text } = forwarded([bytes(source)])
    expect(eventsOf(text).map(({ type, sequence_number }) => [type, sequence_number])).toEqual([
      ['response.created', 0],
      ...['response.output_text.delta', 'response.output_text.delta', 'response.output_text.delta'].map((type, at) => [
        type,
        at + 1,
      ]),
      ['response.completed', 4],
    ])
    expect(text.match(/^event: .*$/gm)).toHaveLength(5)
  })

  test('adds the model and the items to responses of imitations of the API', () => {
    const all = FIXTURES.find(([name]) => name === 'imitator.sse')?.[1] ?? new Uint8Array()
    for (const isStored of [false, true]) {
      const events = eventsOf(forwarded([all], { isStored }).text)
      const responses = events.map(({ response }) => response as JsonRecord).filter((one) => one !== undefined)
      expect(responses.map(({ model }) => model)).toEqual(['house/model', 'house/model'])
      expect(responses.map(({ output }) => (output as JsonRecord[]).map(({ type }) => type))).toEqual([
        [],
        ['reasoning', 'function_call', 'function_call'],
      ])
    }
  })

  test('adds missing usage', () => {
    const { text } = forwarded([bytes(start() + delta('Hi') + stop('Hi', { usage: null }))])
    expect(eventsOf(text).at(-1)).toMatchObject({ response: { usage: { input_tokens: 9, output_tokens: 3 } } })
  })

  test('does not echo fields from the operator’s settings', () => {
    const own = {
      metadata: { account: 'secret' },
      safety_identifier: 'secret',
      tools: [{ type: 'mcp', url: 'secret' }],
    }
    const source = (more: object) => bytes(start() + delta('Hi') + stop('Hi', more))
    const { text } = forwarded([source(own)])
    expect(text).not.toContain('secret')
    expect(eventsOf(text).at(-1)).toMatchObject({ response: { metadata: {}, safety_identifier: null, tools: [] } })
    const clientRequest = forwarded([source(own)], { body: { model: 'x', ...own } })
    expect(eventsOf(clientRequest.text).at(-1)).toMatchObject({ response: own })
  })
})

describe('Responses passthrough errors', () => {
  test('reports an error or completes after a cut at any byte, and continues the numbering', () => {
    const source = start() + delta('Hel') + delta('lo') + stop('Hello')
    const all = bytes(source)
    const complete = source.indexOf('event: response.completed')
    const inside = source.length - 2
    expect(complete).toBeGreaterThan(0)
    for (let end = 0; end <= all.length; end++) {
      const { text, failure, fail, before } = forwarded([all.slice(0, end)])
      expect([end, failure?.code]).toEqual([end, end < inside ? 'upstream_cut' : undefined])
      if (!failure) {
        expect(text).toBe(put(source))
        continue
      }
      expect(put(source)).toStartWith(before)
      const events = eventsOf(before + fail(failure))
      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
      expect(events.at(0)?.type).toBe('response.created')
      expect(events.at(-2)?.type).toBe('error')
      const id = before === '' ? head.id : 'resp_v'
      expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { id, status: 'failed' } })
    }
  })

  test.each([
    ['an error event', 'event: error\ndata: {"type":"error","code":"x","message":"secret"}\n\n'],
    ['an error without a name', 'data: {"error":{"message":"secret"}}\n\n'],
    [
      'a failed response',
      'event: response.failed\ndata: {"type":"response.failed","response":{"status":"failed","error":{"message":"secret"}}}\n\n',
    ],
    ['a text', 'event: error\ndata: secret\n\n'],
  ])('%s ends the stream and is not forwarded', (_, error) => {
    const source = start() + delta('Hi')
    const { before, failure } = forwarded([bytes(source + error + delta('more'))])
    expect([failure?.code, before]).toEqual(['server_is_overloaded', put(source)])
  })

  test('sends nothing before the first output, so that another target can be tried', () => {
    const source = start().split('event: response.output_item')[0] ?? ''
    const { before, failure } = forwarded([bytes(`${source}event: error\ndata: {"type":"error"}\n\n`)])
    expect([failure?.code, before]).toEqual(['server_is_overloaded', ''])
  })
})

describe('a stored response', () => {
  const storedResponses = {
    isStored: true,
    body: { model: head.model, input: 'Hi', previous_response_id: 'resp_before' },
  }
  const thought = { id: 'rs_v', type: 'reasoning', summary: [], encrypted_content: 'gAAAA' }
  const search = { id: 'ws_v', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } }
  const source = () =>
    start() +
    event('response.output_item.done', { output_index: 1, item: thought }) +
    event('response.web_search_call.searching', { output_index: 2, item_id: 'ws_v' }) +
    event('response.output_item.done', { output_index: 2, item: search }) +
    ['Hel', 'l', 'o'].map((text) => delta(text)).join('') +
    stop('Hello', { output: [message('Hello'), thought, search], unseen: [1] })

  test('has the gateway’s ids throughout, and the provider’s items', () => {
    for (const pieces of [[bytes(source())], singly(bytes(source()))]) {
      const { text, passed } = forwarded(pieces, storedResponses)
      expect(text).not.toMatch(/(msg|rs|ws|resp)_v/)
      const ids = { msg_v: `msg_${NAME}_0`, rs_v: `rs_${NAME}_1`, ws_v: `ws_${NAME}_2` }
      const ours = (item: object) =>
        JSON.parse(JSON.stringify(item).replace(/(msg|rs|ws)_v/g, (id) => ids[id as 'rs_v']))
      const events = eventsOf(text)
      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
      for (const { item_id } of events.filter(({ type }) => type === 'response.output_text.delta')) {
        expect(item_id).toBe(ids.msg_v)
      }
      const { encrypted_content: _, ...shown } = thought
      const response = {
        id: head.id,
        created_at: head.created,
        store: true,
        previous_response_id: 'resp_before',
        model: head.model,
        unseen: [1],
      }
      expect(events.at(-1)).toMatchObject({
        response: { ...response, output: [message('Hello'), shown, search].map(ours) },
      })
      expect(JSON.stringify(events)).not.toContain('encrypted_content')
      const [, reasoning] = (passed.final?.output ?? []) as JsonRecord[]
      expect(passed.final).toMatchObject(response)
      expect(decodeEncrypted(String(reasoning?.encrypted_content), undefined)).toEqual({
        opaque: { origin: 'chatcompat-response', value: 'gAAAA', id: 'rs_v' },
      })
    }
  })

  test('includes encrypted reasoning if the client requested it', () => {
    const { text } = forwarded([bytes(source())], { ...storedResponses, includes_encrypted: true })
    const last = eventsOf(text).at(-1) as { response: { output: JsonRecord[] } }
    const { id, encrypted_content } = last.response.output[1] ?? {}
    expect(decodeEncrypted(String(encrypted_content), String(id)).opaque).toMatchObject({ value: 'gAAAA', id: 'rs_v' })
  })

  test('goes back to its provider under the provider’s own ids', () => {
    const { passed } = forwarded([bytes(source())], storedResponses)
    const items = (passed.final?.output ?? []) as never[]
    const body = { model: 'x', input: 'And?', previous_response_id: head.id }
    const input = [{ type: 'message' as const, role: 'user' as const, content: 'And?' }]
    const passage = passageOf({ body, input, before: { items, ids: [] }, isStored: true })
    const { id: _, ...texts } = message('Hello')
    expect(responsesPassthrough(passage).body(body)).toEqual({
      model: 'x',
      store: true,
      input: [texts, thought, { ...search, id: `ws_${NAME}_2` }, ...input],
    })
    const cut = items.slice(0, 2) // cut by its limit during reasoning, which providers refuse
    const again = responsesPassthrough({ ...passage, before: { items: cut, ids: [] } }).body(body)
    expect(again?.input).toEqual([texts, ...input])
  })
})

describe('the client’s Responses body', () => {
  const bodyOf = (body: JsonRecord) => responsesPassthrough(passageOf({ body })).body(body)

  test('passes unchanged, except for the gateway’s fields', () => {
    const input = [
      { role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] },
      { type: 'brand_new_item', id: 'bn_1', encrypted_content: 'E', anything: [null] },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA' },
      { type: 'mcp_call', id: 'mcp_1', name: 'x' },
    ]
    const tools = [{ type: 'mcp', server_label: 'x', server_url: 'https://x.example' }, { type: 'code_interpreter' }]
    const body = { model: 'm', input, tools, unseen: { a: null }, temperature: null, store: false }
    expect(bodyOf({ ...body, provider_options: { x: {} }, background: false, web_search: {} })).toEqual(body)
  })

  test('loses reasoning of another vendor', () => {
    const foreign = `gatehouse.${Buffer.from(JSON.stringify(['messages-compat', 'sig', null, null])).toString('base64url')}`
    const input = [
      { type: 'reasoning', id: 'rs_1', summary: [{ text: 'Hm' }], encrypted_content: foreign },
      { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'gatehouse.plain' },
      { type: 'reasoning', id: `rs_${NAME}_1`, summary: [] },
      { type: 'function_call', id: `fc_${NAME}_2`, call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', id: `fco_${NAME}_in0`, call_id: 'c', output: '' },
    ]
    expect(bodyOf({ input })?.input).toEqual([
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: '' },
    ])
  })

  test('does not pass if a tool names another model', () => {
    expect(bodyOf({ tools: [{ type: 'image_generation', model: 'gpt-image-9' }] })).toBeUndefined()
    expect(bodyOf({ tools: [{ type: 'image_generation' }] })).toBeDefined()
  })
})
