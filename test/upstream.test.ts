/** Section 4 and the upstream side of section 6: what happens on the wire between the gateway and a vendor. */
import { afterEach, describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderConfig } from '../src/config/schema.ts'
import { type Clock, systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import type { ChatChunk } from '../src/protocols/canonical.ts'
import { createChatcompat } from '../src/providers/chatcompat/chatcompat.ts'
import { probeLocal } from '../src/providers/discover.ts'
import type { ChatCall } from '../src/providers/provider.ts'
import { settingsOf } from '../src/providers/settings.ts'
import { createTransport } from '../src/providers/upstream/transport.ts'
import { GatewayError } from '../src/spec/error.ts'
import { manualClock } from './kit/clock.ts'
import {
  type Answer,
  chunk,
  chunks,
  completion,
  failure,
  hang,
  hangUp,
  raw,
  reset,
  type StreamOptions,
  startVendor,
  stream,
  usageChunk,
  type Vendor,
  whole,
} from './kit/vendor.ts'

const KEY = 'sk-canary-0123456789'
const CALL: ChatCall = {
  model: 'test-model',
  request: { model: 'vendor/test-model', messages: [{ role: 'user', content: 'Hello' }] },
  request_id: 'req-1',
}
const SECONDS = 1000

const started: Vendor[] = []
afterEach(async () => {
  for (const vendor of started.splice(0)) await vendor.stop()
})
const vendorWith = (...answers: Answer[]): Vendor => {
  const vendor = startVendor(...answers)
  started.push(vendor)
  return vendor
}

type Options = {
  config?: ProviderConfig
  clock?: Clock
  dial?: NonNullable<Parameters<typeof createTransport>[0]['dial']>
  fetch?: NonNullable<Parameters<typeof createTransport>[0]['fetch']>
  environment?: Record<string, string>
}

/** A bare connection that stands at once, so that only the tests of the connect time-out meet it. */
const atOnce: NonNullable<Options['dial']> = (_host, _port, settled) => {
  settled()
  return () => {}
}

/** A provider that speaks to this address, and everything it logs. */
function upstream(base_url: string, { config = {}, clock = systemClock, dial = atOnce, ...rest }: Options = {}) {
  const lines: string[] = []
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => lines.push(text) })
  const transport = createTransport({ clock, log, dial, ...rest })
  const settings = settingsOf({ id: 'vendor', config: { base_url, key: KEY, ...config }, timeouts: DEFAULT_TIMEOUTS })
  const provider = createChatcompat({ id: 'vendor', settings, transport, clock, log })
  const never = new AbortController().signal
  return {
    transport,
    settings,
    provider,
    logged() {
      log.flush()
      return lines.join('')
    },
    whole: (signal = never) => provider.chat?.complete(CALL, signal) ?? Promise.reject(new Error('no chat')),
    chunks: (signal = never) => provider.chat?.chunks(CALL, signal) ?? Promise.reject(new Error('no chat')),
    async said(signal = never): Promise<ChatChunk[]> {
      const all: ChatChunk[] = []
      for await (const batch of provider.chat?.chunks(CALL, signal) ?? []) all.push(...batch)
      return all
    },
  }
}

/** The error that a promise rejects with; anything but a GatewayError fails the test. */
async function refusal(promise: Promise<unknown>): Promise<GatewayError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

const textOf = (all: ChatChunk[]) => all.map((one) => one.choices[0]?.delta.content ?? '').join('')
const finishesOf = (all: ChatChunk[]) =>
  all.flatMap((one) => one.choices.map((choice) => choice.finish_reason)).filter((reason) => typeof reason === 'string')

describe('a request', () => {
  test('goes to base_url/chat/completions with the key, our request id and a JSON body', async () => {
    const vendor = vendorWith()
    await upstream(vendor.url, { config: { headers: { 'X-Team': 'blue' } } }).whole()
    const [request] = vendor.requests
    expect(request).toMatchObject({
      method: 'POST',
      path: '/v1/chat/completions',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        'x-request-id': 'req-1',
        'x-team': 'blue',
      },
    })
    expect(request?.json()).toEqual({ model: 'test-model', messages: CALL.request.messages })
  })

  test('for a stream asks for events, uncompressed', async () => {
    const vendor = vendorWith()
    await upstream(vendor.url).said()
    expect(vendor.requests[0]?.headers).toMatchObject({ accept: 'text/event-stream', 'accept-encoding': 'identity' })
  })

  test('uses the connection of the one before, after whole answers, streams and errors alike', async () => {
    const vendor = vendorWith(whole(completion('a')), stream(chunks('b')), failure(429), whole(completion('c')))
    const { whole: ask, said } = upstream(vendor.url)
    await ask()
    await said()
    await refusal(ask())
    await ask()
    expect(vendor.accepted()).toBe(1)
  })

  test('uses the connection of a stream whose end came only after its [DONE]', async () => {
    const clock = manualClock()
    const gate = Promise.withResolvers<void>()
    const vendor = vendorWith(stream([...chunks('a'), 'data: [DONE]\n\n', gate.promise], { done: false }))
    const { whole: ask, said } = upstream(vendor.url, { clock })
    await said()
    gate.resolve()
    while (clock.waiting() > 0) await new Promise((resolve) => setImmediate(resolve)) // the rest is read
    await ask()
    expect(vendor.accepted()).toBe(1)
  })

  test('is never sent twice when the vendor closes a kept connection instead of answering', async () => {
    const vendor = vendorWith()
    const { whole: ask, said } = upstream(vendor.url)
    for (const fault of [hangUp(), reset(), raw('HTTP/1.1 200 OK\r\ncontent-le', { close: true })]) {
      for (const send of [ask, said]) {
        await ask() // a connection is kept
        const before = vendor.requests.length
        vendor.answer(fault)
        expect((await refusal(send())).code).toBe('bad_upstream_response')
        expect(vendor.requests.length).toBe(before + 1)
      }
    }
  })

  test('after a kept connection was closed while idle goes out once, on a new one', async () => {
    const closing: Answer = async (wire) => {
      await whole(completion('bye'))(wire)
      wire.close()
    }
    const vendor = vendorWith()
    const { whole: ask } = upstream(vendor.url)
    for (let round = 1; round <= 5; round++) {
      vendor.answer(closing)
      await ask()
      if (round % 2) await vendor.idle() // both: with the close seen, and without a moment to see it
      await ask()
      expect(vendor.requests.length).toBe(2 * round)
    }
  })

  test('that is redirected is not followed: the key stays with its address', async () => {
    const other = vendorWith()
    for (const status of [301, 302, 307, 308]) {
      const vendor = vendorWith(whole('', { status, headers: { location: `${other.url}/chat/completions` } }))
      const error = await refusal(upstream(vendor.url).whole())
      expect(error).toMatchObject({ code: 'bad_upstream_response', detail: { upstream_status: status } })
      expect(error.message).toContain('base_url')
    }
    expect(other.requests).toEqual([])
  })
})

describe('a stream', () => {
  test('yields what one read held as one batch, as soon as it is there', async () => {
    const gate = Promise.withResolvers<void>()
    const vendor = vendorWith(stream([chunk({ role: 'assistant', content: 'a' }), gate.promise, chunk({}, 'stop')]))
    const iterator = (await upstream(vendor.url).chunks())[Symbol.asyncIterator]()
    const first = await iterator.next()
    expect(textOf(first.value ?? [])).toBe('a')
    gate.resolve()
    expect(finishesOf((await iterator.next()).value ?? [])).toEqual(['stop'])
    expect((await iterator.next()).done).toBe(true)
  })

  test('survives packets of any size', async () => {
    for (const chunkBytes of [1, 2, 7, 64]) {
      const vendor = vendorWith(stream(chunks('Grüße ', '世界 ', '🚪'), { chunkBytes }))
      const all = await upstream(vendor.url).said()
      expect(textOf(all)).toBe('Grüße 世界 🚪')
      expect(all.at(-1)?.usage?.total_tokens).toBe(12)
    }
  })

  test.each([
    [
      'comments, blank data and pings between events',
      [': ping\n\n', 'data:\n\n', 'data: : ping\n\n', ...chunks('a'), ': x\n\n'],
    ],
    ['`data:` without a space', [...chunks('a')].map((one) => `data:${JSON.stringify(one)}\n\n`)],
    ['CRLF', [...chunks('a')].map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`)],
    ['a BOM', ['\uFEFF', ...chunks('a')]],
  ])('may come with %s', async (_, items) => {
    const all = await upstream(vendorWith(stream(items)).url).said()
    expect(textOf(all)).toBe('a')
    expect(finishesOf(all)).toEqual(['stop'])
  })

  test('without usage ends well, and has none', async () => {
    const all = await upstream(vendorWith(stream(chunks('a').slice(0, -1))).url).said()
    expect(all.some((one) => one.usage)).toBe(false)
  })

  test('may end without [DONE] when every choice has its finish', async () => {
    for (const framing of ['chunked', 'close'] as const) {
      const all = await upstream(vendorWith(stream(chunks('a'), { done: false, framing })).url).said()
      expect(finishesOf(all)).toEqual(['stop'])
    }
  })

  test('whose connection breaks after every finish has ended well: the answer is whole', async () => {
    for (const options of [{ cutAfter: 3 }, { resetAfter: 3 }]) {
      const gate = Promise.withResolvers<void>()
      const [role, text, finish, usage] = chunks('a')
      const vendor = vendorWith(stream([role ?? {}, text ?? {}, finish ?? {}, gate.promise, usage ?? {}], options))
      const all: ChatChunk[] = []
      for await (const batch of await upstream(vendor.url).chunks()) {
        all.push(...batch)
        if (finishesOf(all).length > 0) gate.resolve()
      }
      expect(textOf(all)).toBe('a')
    }
  })

  test('with [DONE] but without a finish gets one, for each open choice', async () => {
    const items = [chunk({ content: 'a' }), chunk({ content: 'b' }, null, 1), chunk({}, 'length', 1)]
    const all = await upstream(vendorWith(stream(items)).url).said()
    expect(finishesOf(all)).toEqual(['length', 'stop'])
  })

  test.each([
    ['is cut within the body', { cutAfter: 2 }],
    ['is reset', { resetAfter: 2 }],
    ['just ends, with the connection as its end', { cutAfter: 2, framing: 'close' }],
  ] as [string, StreamOptions][])('that %s before its finish says what came, then upstream_cut', async (_, options) => {
    const gate = Promise.withResolvers<void>() // a reset may overtake what was sent before it
    const [role, text, ...rest] = chunks('a', 'b')
    const vendor = vendorWith(stream([role ?? {}, text ?? {}, gate.promise, ...rest], options))
    const heard: ChatChunk[] = []
    const error = await refusal(
      (async () => {
        for await (const batch of await upstream(vendor.url).chunks()) {
          heard.push(...batch)
          if (textOf(heard) === 'a') gate.resolve()
        }
      })(),
    )
    expect(error.code).toBe('upstream_cut')
    expect(textOf(heard)).toBe('a')
  })

  test('cut within the last event is cut, not misunderstood', async () => {
    const half = `data: ${JSON.stringify(chunk({ content: 'b' })).slice(0, 40)}`
    const options = { done: false, framing: 'close' } as const
    const vendor = vendorWith(stream([chunk({ content: 'a' }), half], options))
    expect((await refusal(upstream(vendor.url).said())).code).toBe('upstream_cut')
  })

  test('that ends in the middle of tool call arguments is cut, not finished', async () => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":' } }
    const vendor = vendorWith(stream([chunk({ tool_calls: [call] })], { done: false }))
    expect((await refusal(upstream(vendor.url).said())).code).toBe('upstream_cut')
  })

  test.each([
    ['an event with an error', { error: { message: 'slow down', code: 'rate_limit_exceeded' } }, 'rate_limit_exceeded'],
    ['a named error event', 'event: error\ndata: {"message":"boom"}\n\n', 'bad_upstream_response'],
    ['an error event that is text', 'event: error\ndata: boom\n\n', 'bad_upstream_response'],
    ['an error beside the choices', { ...chunk({}), x_groq: { error: 'over capacity' } }, 'bad_upstream_response'],
    [
      'an error with a finish of its own',
      { ...chunk({}, 'error'), error: { code: 502, message: 'x' } },
      'bad_upstream_response',
    ],
    ['an event that is no JSON', 'data: {"id":\n\n', 'bad_upstream_response'],
    ['an event that is no object', 'data: 7\n\n', 'bad_upstream_response'],
  ])('with %s fails, after what came before', async (_, item, code) => {
    const vendor = vendorWith(stream([item]), stream([chunk({ role: 'assistant', content: 'a' }), item]))
    const { said, chunks: open } = upstream(vendor.url)
    expect((await refusal(said())).code as string).toBe(code)
    const heard: ChatChunk[] = []
    const reading = (async () => {
      for await (const batch of await open()) heard.push(...batch)
    })()
    expect((await refusal(reading)).code as string).toBe(code)
    expect(textOf(heard)).toBe('a')
  })

  test.each([
    ['a web page', whole('<!doctype html><h1>hi</h1>', { headers: { 'content-type': 'text/html; charset=utf-8' } })],
    ['nothing', stream([], { done: true })],
    ['only a usage', stream([usageChunk()])],
    ['JSON that is no answer', whole({ ok: true })],
    ['an error with status 200', whole({ error: { message: 'x', type: 'server_error' } })],
    ['broken JSON', whole('{"choices":[')],
  ])('that turns out to be %s is a bad answer, before anything was said', async (_, answer) => {
    expect((await refusal(upstream(vendorWith(answer).url).said())).code).toBe('bad_upstream_response')
  })

  test('an event without end is refused before it fills the memory', async () => {
    const megabyte = 'x'.repeat(1024 * 1024)
    const endless: Answer = stream(['data: ', ...Array.from({ length: 40 }, () => megabyte)])
    const vendor = vendorWith(endless)
    const error = await refusal(upstream(vendor.url).said())
    expect(error.code).toBe('bad_upstream_response')
    await vendor.idle() // and its connection is closed
  })

  test('ends at [DONE] although the vendor keeps the connection open, which is then closed', async () => {
    const clock = manualClock()
    const never = Promise.withResolvers<void>()
    const vendor = vendorWith(stream([...chunks('a'), 'data: [DONE]\n\n', never.promise]))
    expect(textOf(await upstream(vendor.url, { clock }).said())).toBe('a')
    expect(vendor.connections()).toBe(1)
    clock.advance(1 * SECONDS)
    await vendor.idle()
  })

  test('what follows [DONE] is not read', async () => {
    const vendor = vendorWith(stream([...chunks('a'), 'data: [DONE]\n\n', chunk({ content: 'more' })]))
    expect(textOf(await upstream(vendor.url).said())).toBe('a')
  })
})

describe('a whole answer', () => {
  test.each([
    ['a web page', whole('<!doctype html>', { headers: { 'content-type': 'text/html' } })],
    ['broken JSON', whole('{"choices":[')],
    ['an empty body', whole('')],
    ['an error with status 200', whole({ error: { message: 'x' } })],
    ['no choices', whole(completion('a', { choices: [] }))],
    ['a body that is cut', raw('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"id":', { close: true })],
  ])('that is %s is a bad answer', async (_, answer) => {
    expect((await refusal(upstream(vendorWith(answer).url).whole())).code).toBe('bad_upstream_response')
  })

  test('of exactly the size limit passes, one byte more does not, with and without a length', async () => {
    for (const answer of [whole('x'.repeat(100)), stream(['x'.repeat(100)], { done: false })]) {
      const vendor = vendorWith(answer, answer)
      const { transport, settings } = upstream(vendor.url)
      const get = () =>
        transport.send({
          provider: 'vendor',
          url: vendor.url,
          method: 'GET',
          headers: {},
          signal: new AbortController().signal,
          timeouts: settings.timeouts,
          stream: false,
        })
      expect(await (await get()).text(100)).toHaveLength(100)
      expect((await refusal((await get()).text(99))).code).toBe('bad_upstream_response')
    }
  })

  test('an error page without end is read for its beginning only', async () => {
    async function* endless() {
      for (;;) yield 'x'.repeat(4096)
    }
    const vendor = vendorWith(stream(endless(), { status: 500 }))
    expect((await refusal(upstream(vendor.url).whole())).code).toBe('bad_upstream_response')
    await vendor.idle()
  })

  test('an error page that never comes does not hold up the error', async () => {
    const clock = manualClock()
    const timers: number[] = []
    const noting: Clock = {
      now: clock.now,
      after(ms, work) {
        timers.push(ms)
        return clock.after(ms, work)
      },
    }
    const vendor = vendorWith(raw('HTTP/1.1 429 Slow\r\ncontent-length: 100\r\nretry-after: 3\r\n\r\n{"err'))
    const asked = refusal(upstream(vendor.url, { clock: noting }).whole())
    // Five seconds are what its page is given once the head is there.
    while (!timers.includes(5 * SECONDS)) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(5 * SECONDS)
    expect(await asked).toMatchObject({ code: 'rate_limit_exceeded', detail: { retry_after: 3 } })
  })
})

describe('when the client leaves', () => {
  test.each([
    ['a whole answer', false],
    ['a stream', true],
  ])('before the first byte of %s, the vendor loses its connection at once', async (_, isStream) => {
    const vendor = vendorWith(hang())
    const client = new AbortController()
    const { whole: ask, said } = upstream(vendor.url)
    const asked = refusal(isStream ? said(client.signal) : ask(client.signal))
    await vendor.request()
    client.abort()
    expect((await asked).code).toBe('client_closed_request')
    await vendor.aborted
  })

  test('in the middle of a stream, while the next read waits', async () => {
    const vendor = vendorWith(stream(chunks('a', 'b'), { hangAfter: 2 }))
    const client = new AbortController()
    const iterator = (await upstream(vendor.url).chunks(client.signal))[Symbol.asyncIterator]()
    await iterator.next()
    const next = refusal(iterator.next())
    client.abort()
    expect((await next).code).toBe('client_closed_request')
    await vendor.aborted
  })

  test('in the middle of a stream, while nobody reads', async () => {
    const vendor = vendorWith(stream(chunks('a', 'b'), { hangAfter: 2 }))
    const client = new AbortController()
    const iterator = (await upstream(vendor.url).chunks(client.signal))[Symbol.asyncIterator]()
    await iterator.next()
    client.abort()
    await vendor.aborted
    expect((await refusal(iterator.next())).code).toBe('client_closed_request')
  })

  test('in the middle of a whole answer', async () => {
    for (const head of ['content-length: 100', 'transfer-encoding: chunked']) {
      const hanging: Answer = async (wire) => {
        await wire.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\n{"id"\r\n`)
        await wire.gone
      }
      const vendor = vendorWith(hanging)
      const client = new AbortController()
      const asked = refusal(upstream(vendor.url).whole(client.signal))
      await vendor.request()
      await new Promise((resolve) => setImmediate(resolve))
      client.abort()
      expect((await asked).code).toBe('client_closed_request')
      await vendor.aborted
    }
  })

  test('before the request is sent, nothing is sent', async () => {
    const vendor = vendorWith()
    expect((await refusal(upstream(vendor.url).whole(AbortSignal.abort()))).code).toBe('client_closed_request')
    expect((await refusal(upstream(vendor.url).said(AbortSignal.abort()))).code).toBe('client_closed_request')
    expect(vendor.requests).toEqual([])
  })

  test('a consumer that stops reading by itself ends the connection as well', async () => {
    const vendor = vendorWith(stream(chunks('a', 'b'), { hangAfter: 2 }))
    for await (const _ of await upstream(vendor.url).chunks()) break
    await vendor.aborted
  })

  test('a stop of the gateway keeps its own reason', async () => {
    const vendor = vendorWith(hang())
    const client = new AbortController()
    const asked = refusal(upstream(vendor.url).whole(client.signal))
    await vendor.request()
    client.abort(new GatewayError('shutting_down', 'The gateway stops.'))
    expect((await asked).code).toBe('shutting_down')
  })

  test('no rejection is left unhandled, at whatever moment it is', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', note)
    try {
      for (const read of [0, 1]) {
        for (const isReading of [false, true]) {
          const vendor = vendorWith(stream(chunks('a', 'b'), { hangAfter: 2, chunkBytes: 100 }))
          const client = new AbortController()
          const iterator = (await upstream(vendor.url).chunks(client.signal))[Symbol.asyncIterator]()
          for (let i = 0; i < read; i++) await iterator.next()
          const next = isReading ? iterator.next().catch(() => {}) : undefined
          if (read > 0 || isReading) await vendor.request()
          client.abort()
          await next
          await iterator.return?.()
        }
      }
      for (const status of [200, 500]) {
        const vendor = vendorWith(raw(`HTTP/1.1 ${status} X\r\ncontent-length: 100\r\n\r\n{`))
        const client = new AbortController()
        const asked = upstream(vendor.url)
          .whole(client.signal)
          .catch(() => {})
        await vendor.request()
        client.abort()
        await asked
      }
      Bun.gc(true)
      for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })

  test('no timer and no listener is left behind, however a request ends', async () => {
    const clock = manualClock()
    const { signal } = new AbortController()
    let listening = 0
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listening++
      addEventListener.apply(signal, args)
    }
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listening--
      removeEventListener.apply(signal, args)
    }
    const vendor = vendorWith(
      whole(completion('a')),
      stream(chunks('a')),
      failure(500),
      stream(chunks('a'), { cutAfter: 1 }),
      hangUp(),
    )
    const { whole: ask, said } = upstream(vendor.url, { clock })
    await ask(signal)
    await said(signal)
    await refusal(ask(signal))
    await refusal(said(signal))
    await refusal(ask(signal))
    await new Promise((resolve) => setImmediate(resolve))
    // What remains is the log's own: it holds lines for a moment.
    clock.advance(50)
    expect(clock.waiting()).toBe(0)
    expect(listening).toBe(0)
  })
})

describe('time-outs', () => {
  test('first byte: a vendor that takes the request and is silent for 300 s', async () => {
    for (const isStream of [true, false]) {
      const clock = manualClock()
      const vendor = vendorWith(hang())
      const { whole: ask, said } = upstream(vendor.url, { clock })
      let ended = false
      const asked = refusal(isStream ? said() : ask()).finally(() => {
        ended = true
      })
      await vendor.request()
      clock.advance(300 * SECONDS - 1)
      await new Promise((resolve) => setImmediate(resolve))
      expect(ended).toBe(false)
      clock.advance(1)
      expect((await asked).code).toBe('upstream_timeout')
      await vendor.aborted
    }
  })

  test('idle: a stream that is silent for 300 s while its next bytes are waited for', async () => {
    const clock = manualClock()
    const vendor = vendorWith(stream(chunks('a'), { hangAfter: 1 }))
    const iterator = (await upstream(vendor.url, { clock }).chunks())[Symbol.asyncIterator]()
    await iterator.next()
    let ended = false
    const next = refusal(iterator.next()).finally(() => {
      ended = true
    })
    clock.advance(300 * SECONDS - 1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(ended).toBe(false)
    clock.advance(1)
    expect((await next).code).toBe('upstream_timeout')
    await vendor.aborted
  })

  test('idle counts from the last byte, not from the start: a stream may last for hours', async () => {
    const clock = manualClock()
    const gates = Array.from({ length: 30 }, () => Promise.withResolvers<void>())
    const items = gates.flatMap((gate, i) => [gate.promise, chunk({ content: `${i} ` })])
    const vendor = vendorWith(stream([chunk({ role: 'assistant', content: '' }), ...items, chunk({}, 'stop')]))
    const iterator = (await upstream(vendor.url, { clock }).chunks())[Symbol.asyncIterator]()
    await iterator.next()
    for (const gate of gates) {
      const next = iterator.next()
      clock.advance(299 * SECONDS)
      gate.resolve()
      expect((await next).done).toBe(false)
    }
    const rest: ChatChunk[] = []
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) rest.push(...next.value)
    expect(rest.length).toBeLessThanOrEqual(1) // the finish, unless it came with the text before it
  })

  test('idle does not run while a slow client keeps us from reading', async () => {
    const clock = manualClock()
    const gate = Promise.withResolvers<void>()
    const vendor = vendorWith(stream([chunk({ content: 'a' }), gate.promise, chunk({}, 'stop')]))
    const iterator = (await upstream(vendor.url, { clock }).chunks())[Symbol.asyncIterator]()
    await iterator.next()
    clock.advance(10_000 * SECONDS)
    gate.resolve()
    expect(finishesOf((await iterator.next()).value ?? [])).toEqual(['stop'])
  })

  test('total: a whole answer that drips for 600 s; a stream has no such limit', async () => {
    const clock = manualClock()
    const dripping: Answer = async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"id":')
      await wire.gone
    }
    const vendor = vendorWith(dripping)
    const asked = refusal(upstream(vendor.url, { clock }).whole())
    await vendor.request()
    // The head arrived once its time-out is gone and only the total is left.
    while (clock.waiting() > 1) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    clock.advance(600 * SECONDS - 1)
    expect(vendor.connections()).toBe(1)
    clock.advance(1)
    expect((await asked).code).toBe('upstream_timeout')
  })

  test('a provider’s own time-outs hold instead of the house’s', async () => {
    const clock = manualClock()
    const vendor = vendorWith(hang())
    const asked = refusal(upstream(vendor.url, { clock, config: { timeouts: { first_byte_seconds: 2 } } }).whole())
    await vendor.request()
    clock.advance(2 * SECONDS)
    expect((await asked).message).toContain('2 s')
  })
})

describe('the connect time-out', () => {
  /** A fetch that never connects, and ends when it is told to. */
  const stuck: Options['fetch'] = (_, init) =>
    new Promise((_, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason)))

  test('gives up when neither the request nor the bare connection beside it stands after 10 s', async () => {
    const clock = manualClock()
    const dialled: string[] = []
    let hungUp = 0
    const dial: Options['dial'] = (host, port) => {
      dialled.push(`${host}:${port}`)
      return () => hungUp++
    }
    const asked = refusal(upstream('https://[2001:db8::1]/v1', { clock, dial, fetch: stuck }).whole())
    clock.advance(10 * SECONDS - 1)
    expect(hungUp).toBe(0)
    clock.advance(1)
    expect((await asked).code).toBe('upstream_unreachable')
    expect(dialled).toEqual(['2001:db8::1:443'])
    expect(hungUp).toBeGreaterThan(0)
  })

  test('does not strike once the bare connection stood, however long the answer takes', async () => {
    const clock = manualClock()
    const dial: Options['dial'] = (_host, _port, settled) => {
      queueMicrotask(settled)
      return () => {}
    }
    let code: string | undefined
    const asked = refusal(upstream('http://10.0.0.1:8000/v1', { clock, dial, fetch: stuck }).whole()).then((error) => {
      code = error.code
    })
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(299 * SECONDS)
    expect(code).toBeUndefined()
    clock.advance(1 * SECONDS)
    await asked
    expect(code).toBe('upstream_timeout')
  })

  test('an origin that answered within the last 30 s is not watched, one that did not is', async () => {
    const clock = manualClock()
    const vendor = vendorWith()
    let dials = 0
    const { whole: ask } = upstream(vendor.url, {
      clock,
      dial: () => {
        dials++
        return () => {}
      },
    })
    await ask()
    clock.advance(30 * SECONDS - 1)
    await ask()
    expect(dials).toBe(1)
    clock.advance(30 * SECONDS)
    await ask()
    expect(dials).toBe(2)
  })

  test.each([
    ['http_proxy', {}, 0],
    ['HTTP_PROXY', {}, 0],
    ['https_proxy', {}, 1],
    ['http_proxy', { NO_PROXY: 'other.example, 127.0.0.1' }, 1],
    ['http_proxy', { no_proxy: '*' }, 1],
    ['http_proxy', { no_proxy: '127.0.0.1.example' }, 0],
  ])('with %s set, and %j, watches %d times', async (variable, more, times) => {
    const vendor = vendorWith()
    let dials = 0
    const dial: Options['dial'] = () => {
      dials++
      return () => {}
    }
    await upstream(vendor.url, { dial, environment: { [variable]: 'http://proxy.example:3128', ...more } }).whole()
    expect(dials).toBe(times)
  })

  test('the watchman’s own connection is closed at once', async () => {
    const vendor = vendorWith(whole(completion('a'), { headers: { connection: 'close' } }))
    const log = createLog({ clock: systemClock, level: 'silent', pretty: false, write: () => {} })
    const transport = createTransport({ clock: systemClock, log })
    const { settings } = upstream(vendor.url)
    const provider = createChatcompat({ id: 'vendor', settings, transport, clock: systemClock, log })
    await provider.chat?.complete(CALL, new AbortController().signal)
    expect(vendor.accepted()).toBeLessThanOrEqual(2)
    expect(vendor.requests).toHaveLength(1)
  })
})

describe('a vendor that is not there', () => {
  test('refuses: upstream_unreachable, by name', async () => {
    const vendor = startVendor()
    await vendor.stop()
    const error = await refusal(upstream(vendor.url).whole())
    expect(error).toMatchObject({ code: 'upstream_unreachable', status: 502 })
    expect(error.message).toContain('"vendor"')
  })

  test('does not speak TLS: upstream_unreachable', async () => {
    const plain = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data: (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      },
    })
    const error = await refusal(upstream(`https://127.0.0.1:${plain.port}/v1`).whole())
    plain.stop(true)
    expect(error.code).toBe('upstream_unreachable')
  })

  test.each(['ENOTFOUND', 'ECONNREFUSED', 'EAI_AGAIN', 'CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'])(
    '%s: upstream_unreachable',
    async (code) => {
      const fetch = () => Promise.reject(Object.assign(new Error(`to https://x/?key=${KEY}`), { code }))
      const { whole: ask, logged } = upstream('https://vendor.example/v1', { fetch })
      const error = await refusal(ask())
      expect(error.code).toBe('upstream_unreachable')
      expect(`${error.message} ${error.stack} ${error.cause} ${logged()}`).not.toContain(KEY)
    },
  )
})

describe('back-pressure', () => {
  test('a consumer that stops reading stops the vendor, and goes on where it stopped', async () => {
    let written = 0
    let done = false
    async function* flood() {
      yield chunk({ role: 'assistant', content: '' })
      while (!done) {
        written++
        yield chunk({ content: 'x'.repeat(16 * 1024) })
      }
      yield chunk({}, 'stop')
    }
    const vendor = vendorWith(stream(flood()))
    const iterator = (await upstream(vendor.url).chunks())[Symbol.asyncIterator]()
    await iterator.next()
    // Written until the buffers between us are full: then the count stands still, turn after turn of the loop.
    let before = -1
    for (let still = 0; still < 200; still++) {
      if (written !== before) still = 0
      before = written
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(written * 16 * 1024).toBeLessThan(64 * 1024 * 1024)
    let read = 0
    while (read <= before) read += (await iterator.next()).value?.length ?? 0
    expect(written).toBeGreaterThan(before)
    done = true
    let last: ChatChunk | undefined
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) last = next.value.at(-1)
    expect(last?.choices[0]?.finish_reason).toBe('stop')
  })
})

describe('secrets', () => {
  test('the key and the address’s password are in no error and no log line, whatever fails', async () => {
    const mirror: Answer = (wire) =>
      failure(400, { message: `You sent ${wire.request.headers.authorization} to ${wire.request.path}` })(wire)
    const inAnswer: Answer = (wire) =>
      stream([{ error: { message: `bad key ${KEY}`, type: 'invalid_request_error' } }])(wire)
    const answers = [
      mirror,
      inAnswer,
      failure(401, { message: `bad ${KEY}` }),
      failure(500, { message: KEY }),
      hangUp(),
      reset(),
    ]
    const vendor = vendorWith(...answers)
    const address = vendor.url.replace('http://', 'http://operator:pass-canary@')
    const { said, logged } = upstream(address)
    for (const _ of answers) {
      const error = await refusal(said())
      const seen = `${error.message} ${error.stack} ${JSON.stringify(error.detail)} ${error.cause}`
      expect(seen).not.toMatch(/canary/)
      expect(seen).not.toContain('127.0.0.1')
    }
    expect(logged()).toContain('vendor')
    expect(logged()).not.toMatch(/canary/)
  })
})

describe('models', () => {
  test('are listed with the key, at base_url/models', async () => {
    const vendor = vendorWith()
    expect(await upstream(vendor.url).provider.listModels?.(new AbortController().signal)).toEqual([
      { model: 'test-model', created: 1_700_000_000 },
    ])
    expect(vendor.requests[0]).toMatchObject({ method: 'GET', path: '/v1/models' })
    expect(vendor.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`)
  })

  test('a list that is none, or is refused, is an error', async () => {
    const vendor = vendorWith(whole('hello'), failure(401), failure(404))
    const { provider } = upstream(vendor.url)
    const list = () => provider.listModels?.(new AbortController().signal) ?? Promise.resolve([])
    expect((await refusal(list())).code).toBe('bad_upstream_response')
    expect((await refusal(list())).code).toBe('upstream_auth')
    expect((await refusal(list())).code).toBe('bad_upstream_response')
  })
})

describe('local runtimes', () => {
  const list = (owned_by: string, more: Record<string, unknown> = {}) =>
    whole({ object: 'list', data: [{ id: 'm', object: 'model', created: 1, owned_by, ...more }] })
  const probe = (ports: { preset: string; port: number }[], clock: Clock = systemClock) =>
    probeLocal({
      transport: upstream('http://127.0.0.1:1/v1', { clock }).transport,
      signal: new AbortController().signal,
      ports,
    })

  test('are known by what they answer, whatever port they listen on', async () => {
    const [one, two, three] = [vendorWith(list('library')), vendorWith(list('llamacpp')), vendorWith(list('who'))]
    expect(
      await probe([
        { preset: 'ollama', port: one.port },
        { preset: 'vllm', port: two.port },
        { preset: 'lmstudio', port: three.port },
      ]),
    ).toEqual({
      ollama: { preset: 'ollama', base_url: one.url },
      llamacpp: { preset: 'llamacpp', base_url: two.url },
      lmstudio: { preset: 'lmstudio', base_url: three.url },
    })
    expect(one.requests[0]?.headers).not.toHaveProperty('authorization')
  })

  test('two of a kind are both there', async () => {
    const [one, two] = [vendorWith(list('llamacpp')), vendorWith(list('llamacpp'))]
    const found = await probe([
      { preset: 'llamacpp', port: one.port },
      { preset: 'vllm', port: two.port },
    ])
    expect(Object.keys(found).sort()).toEqual(['llamacpp', `llamacpp-${two.port}`])
  })

  test('anything else that answers is left alone: pages, other JSON, errors, a gateway', async () => {
    const others = [
      whole('<html>', { headers: { 'content-type': 'text/html' } }),
      whole({ hello: 'world' }),
      failure(401),
      list('x', { supported_endpoint_types: ['chatcompat'] }),
      hangUp(),
    ].map((answer) => vendorWith(answer))
    expect(await probe(others.map(({ port }) => ({ preset: 'vllm', port })))).toEqual({})
  })

  test('one that is silent is given up after half a second', async () => {
    const clock = manualClock()
    const vendor = vendorWith(hang())
    const probing = probe([{ preset: 'vllm', port: vendor.port }], clock)
    await vendor.request()
    clock.advance(500)
    expect(await probing).toEqual({})
    await vendor.aborted
  })

  test('nobody there is nothing to log', async () => {
    const { transport, logged } = upstream('http://127.0.0.1:1/v1')
    const gone = startVendor()
    await gone.stop()
    const ports = [{ preset: 'vllm', port: gone.port }]
    expect(await probeLocal({ transport, signal: new AbortController().signal, ports })).toEqual({})
    expect(logged()).toBe('')
  })
})
