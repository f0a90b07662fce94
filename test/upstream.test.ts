/** Section 4 and the upstream side of section 6: HTTP between the gateway and a vendor. */
import { afterEach, describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { type Clock, systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import type { ChatChunk } from '../src/protocols/shared/canonical.ts'
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

/** A TCP connection that succeeds at once, so that only the connect timeout tests see the real one. */
const connectAtOnce: NonNullable<Options['dial']> = (_host, _port, settled) => {
  settled()
  return () => {}
}

/** A provider with this base URL, and everything it logs. */
function upstream(base_url: string, { config = {}, clock = systemClock, dial = connectAtOnce, ...rest }: Options = {}) {
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
    async readAll(signal = never): Promise<ChatChunk[]> {
      const all: ChatChunk[] = []
      for await (const batch of provider.chat?.chunks(CALL, signal) ?? []) all.push(...batch)
      return all
    },
  }
}

/** The error with which a promise rejects; anything but a GatewayError fails the test. */
async function errorOf(promise: Promise<unknown>): Promise<GatewayError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('expected an error')
}

const textOf = (all: ChatChunk[]) => all.map((item) => item.choices[0]?.delta.content ?? '').join('')
const finishesOf = (all: ChatChunk[]) =>
  all
    .flatMap((item) => item.choices.map((choice) => choice.finish_reason))
    .filter((reason) => typeof reason === 'string')

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

  test('for a stream accepts events, uncompressed', async () => {
    const vendor = vendorWith()
    await upstream(vendor.url).readAll()
    expect(vendor.requests[0]?.headers).toMatchObject({ accept: 'text/event-stream', 'accept-encoding': 'identity' })
  })

  test('reuses the connection after whole responses, streams and errors', async () => {
    const vendor = vendorWith(whole(completion('a')), stream(chunks('b')), failure(429), whole(completion('c')))
    const { whole: complete, readAll } = upstream(vendor.url)
    await complete()
    await readAll()
    await errorOf(complete())
    await complete()
    expect(vendor.accepted()).toBe(1)
  })

  test('reuses the connection of a stream that ends after its [DONE]', async () => {
    const clock = manualClock()
    const gate = Promise.withResolvers<void>()
    const vendor = vendorWith(stream([...chunks('a'), 'data: [DONE]\n\n', gate.promise], { done: false }))
    const { whole: complete, readAll } = upstream(vendor.url, { clock })
    await readAll()
    gate.resolve()
    while (clock.waiting() > 0) await new Promise((resolve) => setImmediate(resolve)) // until the rest is read
    await complete()
    expect(vendor.accepted()).toBe(1)
  })

  const FAULTS: [string, Answer][] = [
    ['closes', hangUp()],
    ['resets', reset()],
    ['closes within the head on', raw('HTTP/1.1 200 OK\r\ncontent-le', { close: true })],
  ]
  test.each(FAULTS)('is never sent twice when the vendor %s a reused connection', async (_, fault) => {
    const vendor = vendorWith()
    const { whole: complete, readAll } = upstream(vendor.url)
    for (const send of [complete, readAll]) {
      await complete() // leaves a connection to reuse
      const before = vendor.requests.length
      vendor.answer(fault)
      expect((await errorOf(send())).code).toBe('bad_upstream_response')
      expect(vendor.requests.length).toBe(before + 1)
    }
  })

  test('is sent once, on a new connection, after an idle connection was closed', async () => {
    const closing: Answer = async (wire) => {
      await whole(completion('bye'))(wire)
      wire.close()
    }
    const vendor = vendorWith()
    const { whole: complete } = upstream(vendor.url)
    for (let round = 1; round <= 5; round++) {
      vendor.answer(closing)
      await complete()
      // Both, with and without the time to see the close.
      if (round % 2) await vendor.idle()
      await complete()
      expect(vendor.requests.length).toBe(2 * round)
    }
  })

  test.each([301, 302, 307, 308])('does not follow the redirect %d, so the key stays with its host', async (status) => {
    const other = vendorWith()
    const vendor = vendorWith(whole('', { status, headers: { location: `${other.url}/chat/completions` } }))
    const error = await errorOf(upstream(vendor.url).whole())
    expect(error).toMatchObject({ code: 'bad_upstream_response', detail: { upstream_status: status } })
    expect(error.message).toContain('base_url')
    expect(other.requests).toEqual([])
  })
})

describe('a stream', () => {
  test('yields the chunks of one read as one batch, at once', async () => {
    const gate = Promise.withResolvers<void>()
    const vendor = vendorWith(stream([chunk({ role: 'assistant', content: 'a' }), gate.promise, chunk({}, 'stop')]))
    const iterator = (await upstream(vendor.url).chunks())[Symbol.asyncIterator]()
    const first = await iterator.next()
    expect(textOf(first.value ?? [])).toBe('a')
    gate.resolve()
    expect(finishesOf((await iterator.next()).value ?? [])).toEqual(['stop'])
    expect((await iterator.next()).done).toBe(true)
  })

  test.each([1, 2, 7, 64])('may come in packets of %d bytes', async (chunkBytes) => {
    const vendor = vendorWith(stream(chunks('Grüße ', '世界 ', '🚪'), { chunkBytes }))
    const all = await upstream(vendor.url).readAll()
    expect(textOf(all)).toBe('Grüße 世界 🚪')
    expect(all.at(-1)?.usage?.total_tokens).toBe(12)
  })

  test.each([
    [
      'comments, blank data and pings between events',
      [': ping\n\n', 'data:\n\n', 'data: : ping\n\n', ...chunks('a'), ': x\n\n'],
    ],
    ['`data:` without a space', [...chunks('a')].map((item) => `data:${JSON.stringify(item)}\n\n`)],
    ['CRLF', [...chunks('a')].map((item) => `data: ${JSON.stringify(item)}\r\n\r\n`)],
    ['a BOM', ['\uFEFF', ...chunks('a')]],
  ])('may come with %s', async (_, items) => {
    const all = await upstream(vendorWith(stream(items)).url).readAll()
    expect(textOf(all)).toBe('a')
    expect(finishesOf(all)).toEqual(['stop'])
  })

  test('without usage ends normally, without usage', async () => {
    const all = await upstream(vendorWith(stream(chunks('a').slice(0, -1))).url).readAll()
    expect(all.some((item) => item.usage)).toBe(false)
  })

  test.each(['chunked', 'close'] as const)(
    'may end without [DONE] when every choice has a finish reason, with the framing %s',
    async (framing) => {
      const all = await upstream(vendorWith(stream(chunks('a'), { done: false, framing })).url).readAll()
      expect(finishesOf(all)).toEqual(['stop'])
    },
  )

  test.each([{ cutAfter: 3 }, { resetAfter: 3 }])('is complete with %j, after every finish reason', async (options) => {
    const gate = Promise.withResolvers<void>()
    const [role, text, finish, usage] = chunks('a')
    const vendor = vendorWith(stream([role ?? {}, text ?? {}, finish ?? {}, gate.promise, usage ?? {}], options))
    const all: ChatChunk[] = []
    for await (const batch of await upstream(vendor.url).chunks()) {
      all.push(...batch)
      if (finishesOf(all).length > 0) gate.resolve()
    }
    expect(textOf(all)).toBe('a')
  })

  test('with [DONE] but without finish reasons gets one for each open choice', async () => {
    const items = [chunk({ content: 'a' }), chunk({ content: 'b' }, null, 1), chunk({}, 'length', 1)]
    const all = await upstream(vendorWith(stream(items)).url).readAll()
    expect(finishesOf(all)).toEqual(['length', 'stop'])
  })

  test.each([
    ['is cut within the body', { cutAfter: 2 }],
    ['is reset', { resetAfter: 2 }],
    ['ends with the connection as its end', { cutAfter: 2, framing: 'close' }],
  ] as [string, StreamOptions][])(
    'that %s before its finish reason yields the received text, then upstream_cut',
    async (_, options) => {
      const gate = Promise.withResolvers<void>() // a reset may overtake the bytes sent before it
      const [role, text, ...rest] = chunks('a', 'b')
      const vendor = vendorWith(stream([role ?? {}, text ?? {}, gate.promise, ...rest], options))
      const received: ChatChunk[] = []
      const error = await errorOf(
        (async () => {
          for await (const batch of await upstream(vendor.url).chunks()) {
            received.push(...batch)
            if (textOf(received) === 'a') gate.resolve()
          }
        })(),
      )
      expect(error.code).toBe('upstream_cut')
      expect(textOf(received)).toBe('a')
    },
  )

  test('cut within the last event is upstream_cut, not bad_upstream_response', async () => {
    const half = `data: ${JSON.stringify(chunk({ content: 'b' })).slice(0, 40)}`
    const options = { done: false, framing: 'close' } as const
    const vendor = vendorWith(stream([chunk({ content: 'a' }), half], options))
    expect((await errorOf(upstream(vendor.url).readAll())).code).toBe('upstream_cut')
  })

  test('that ends within tool call arguments is upstream_cut', async () => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":' } }
    const vendor = vendorWith(stream([chunk({ tool_calls: [call] })], { done: false }))
    expect((await errorOf(upstream(vendor.url).readAll())).code).toBe('upstream_cut')
  })

  test.each([
    ['an event with an error', { error: { message: 'slow down', code: 'rate_limit_exceeded' } }, 'rate_limit_exceeded'],
    ['a named error event', 'event: error\ndata: {"message":"boom"}\n\n', 'bad_upstream_response'],
    ['an error event that is text', 'event: error\ndata: boom\n\n', 'bad_upstream_response'],
    ['an error beside the choices', { ...chunk({}), x_groq: { error: 'over capacity' } }, 'bad_upstream_response'],
    [
      'an error with its own finish reason',
      { ...chunk({}, 'error'), error: { code: 502, message: 'x' } },
      'bad_upstream_response',
    ],
    ['an event that is not JSON', 'data: {"id":\n\n', 'bad_upstream_response'],
    ['an event that is not an object', 'data: 7\n\n', 'bad_upstream_response'],
  ])('with %s fails after the text before it', async (_, item, code) => {
    const vendor = vendorWith(stream([item]), stream([chunk({ role: 'assistant', content: 'a' }), item]))
    const { readAll, chunks: open } = upstream(vendor.url)
    expect((await errorOf(readAll())).code as string).toBe(code)
    const received: ChatChunk[] = []
    const reading = (async () => {
      for await (const batch of await open()) received.push(...batch)
    })()
    expect((await errorOf(reading)).code as string).toBe(code)
    expect(textOf(received)).toBe('a')
  })

  test.each([
    ['a web page', whole('<!doctype html><h1>hi</h1>', { headers: { 'content-type': 'text/html; charset=utf-8' } })],
    ['an empty stream', stream([], { done: true })],
    ['only a usage', stream([usageChunk()])],
    ['JSON that is not a response', whole({ ok: true })],
    ['an error with status 200', whole({ error: { message: 'x', type: 'server_error' } })],
    ['broken JSON', whole('{"choices":[')],
  ])('that is %s is a bad_upstream_response before any chunk', async (_, answer) => {
    expect((await errorOf(upstream(vendorWith(answer).url).readAll())).code).toBe('bad_upstream_response')
  })

  test('fails on an endless event before it fills the memory', async () => {
    const megabyte = 'x'.repeat(1024 * 1024)
    const endless: Answer = stream(['data: ', ...Array.from({ length: 40 }, () => megabyte)])
    const vendor = vendorWith(endless)
    const error = await errorOf(upstream(vendor.url).readAll())
    expect(error.code).toBe('bad_upstream_response')
    await vendor.idle() // and its connection is closed
  })

  test('ends at [DONE], and then closes a connection that the vendor keeps open', async () => {
    const clock = manualClock()
    const never = Promise.withResolvers<void>()
    const vendor = vendorWith(stream([...chunks('a'), 'data: [DONE]\n\n', never.promise]))
    expect(textOf(await upstream(vendor.url, { clock }).readAll())).toBe('a')
    expect(vendor.connections()).toBe(1)
    clock.advance(1 * SECONDS)
    await vendor.idle()
  })

  test('ignores events after [DONE]', async () => {
    const vendor = vendorWith(stream([...chunks('a'), 'data: [DONE]\n\n', chunk({ content: 'more' })]))
    expect(textOf(await upstream(vendor.url).readAll())).toBe('a')
  })
})

describe('a whole response', () => {
  test.each([
    ['a web page', whole('<!doctype html>', { headers: { 'content-type': 'text/html' } })],
    ['broken JSON', whole('{"choices":[')],
    ['an empty body', whole('')],
    ['an error with status 200', whole({ error: { message: 'x' } })],
    ['no choices', whole(completion('a', { choices: [] }))],
    ['a body that is cut', raw('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"id":', { close: true })],
  ])('that is %s is a bad_upstream_response', async (_, answer) => {
    expect((await errorOf(upstream(vendorWith(answer).url).whole())).code).toBe('bad_upstream_response')
  })

  test.each([
    ['with a length', whole('x'.repeat(100))],
    ['without a length', stream(['x'.repeat(100)], { done: false })],
    [
      'with a length beside chunks',
      raw(
        `HTTP/1.1 200 OK\r\ncontent-length: 10\r\ntransfer-encoding: chunked\r\n\r\n64\r\n${'x'.repeat(100)}\r\n0\r\n\r\n`,
      ),
    ],
  ])('of exactly the size limit passes, one byte more does not, %s', async (_, answer) => {
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
    expect((await errorOf((await get()).text(99))).code).toBe('bad_upstream_response')
  })

  test('that is an endless error page is read only at its start', async () => {
    async function* endless() {
      for (;;) yield 'x'.repeat(4096)
    }
    const vendor = vendorWith(stream(endless(), { status: 500 }))
    expect((await errorOf(upstream(vendor.url).whole())).code).toBe('bad_upstream_response')
    await vendor.idle()
  })

  test('whose error page never arrives does not delay the error', async () => {
    const clock = manualClock()
    const timers: number[] = []
    const recordingClock: Clock = {
      ...clock,
      after(ms, work) {
        timers.push(ms)
        return clock.after(ms, work)
      },
    }
    const vendor = vendorWith(raw('HTTP/1.1 429 Slow\r\ncontent-length: 100\r\nretry-after: 3\r\n\r\n{"err'))
    const pending = errorOf(upstream(vendor.url, { clock: recordingClock }).whole())
    // After the head, the gateway waits five seconds for the page.
    while (!timers.includes(5 * SECONDS)) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(5 * SECONDS)
    expect(await pending).toMatchObject({ code: 'rate_limit_exceeded', detail: { retry_after: 3 } })
  })
})

describe('when the client disconnects', () => {
  test.each([
    ['a whole response', false],
    ['a stream', true],
  ])('before the first byte of %s, the request to the vendor is aborted at once', async (_, isStream) => {
    const vendor = vendorWith(hang())
    const client = new AbortController()
    const { whole: complete, readAll } = upstream(vendor.url)
    const pending = errorOf(isStream ? readAll(client.signal) : complete(client.signal))
    await vendor.request()
    client.abort()
    expect((await pending).code).toBe('client_closed_request')
    await vendor.aborted
  })

  test('during a read of a stream, the request to the vendor is aborted', async () => {
    const vendor = vendorWith(stream(chunks('a', 'b'), { hangAfter: 2 }))
    const client = new AbortController()
    const iterator = (await upstream(vendor.url).chunks(client.signal))[Symbol.asyncIterator]()
    await iterator.next()
    const next = errorOf(iterator.next())
    client.abort()
    expect((await next).code).toBe('client_closed_request')
    await vendor.aborted
  })

  test('between two reads of a stream, the request to the vendor is aborted', async () => {
    const vendor = vendorWith(stream(chunks('a', 'b'), { hangAfter: 2 }))
    const client = new AbortController()
    const iterator = (await upstream(vendor.url).chunks(client.signal))[Symbol.asyncIterator]()
    await iterator.next()
    client.abort()
    await vendor.aborted
    expect((await errorOf(iterator.next())).code).toBe('client_closed_request')
  })

  test.each(['content-length: 100', 'transfer-encoding: chunked'])(
    'within a whole response with %s, the request to the vendor is aborted',
    async (head) => {
      const hanging: Answer = async (wire) => {
        await wire.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\n{"id"\r\n`)
        await wire.aborted
      }
      const vendor = vendorWith(hanging)
      const client = new AbortController()
      const pending = errorOf(upstream(vendor.url).whole(client.signal))
      await vendor.request()
      await new Promise((resolve) => setImmediate(resolve))
      client.abort()
      expect((await pending).code).toBe('client_closed_request')
      await vendor.aborted
    },
  )

  test('before the request, nothing is sent', async () => {
    const vendor = vendorWith()
    expect((await errorOf(upstream(vendor.url).whole(AbortSignal.abort()))).code).toBe('client_closed_request')
    expect((await errorOf(upstream(vendor.url).readAll(AbortSignal.abort()))).code).toBe('client_closed_request')
    expect(vendor.requests).toEqual([])
  })

  test('or the consumer stops reading, the request to the vendor is aborted', async () => {
    const vendor = vendorWith(stream(chunks('a', 'b'), { hangAfter: 2 }))
    for await (const _ of await upstream(vendor.url).chunks()) break
    await vendor.aborted
  })

  test('a shutdown of the gateway keeps its own error code', async () => {
    const vendor = vendorWith(hang())
    const client = new AbortController()
    const pending = errorOf(upstream(vendor.url).whole(client.signal))
    await vendor.request()
    client.abort(new GatewayError('shutting_down', 'The gateway stops.'))
    expect((await pending).code).toBe('shutting_down')
  })

  test('at any moment, no rejection is left unhandled', async () => {
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
        const pending = upstream(vendor.url)
          .whole(client.signal)
          .catch(() => {})
        await vendor.request()
        client.abort()
        await pending
      }
      Bun.gc(true)
      for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })

  test('or a request ends in any way, no timer and no listener remains', async () => {
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
    const { whole: complete, readAll } = upstream(vendor.url, { clock })
    await complete(signal)
    await readAll(signal)
    await errorOf(complete(signal))
    await errorOf(readAll(signal))
    await errorOf(complete(signal))
    await new Promise((resolve) => setImmediate(resolve))
    // The log holds lines for a moment with a timer of its own.
    clock.advance(50)
    expect(clock.waiting()).toBe(0)
    expect(listening).toBe(0)
  })
})

describe('timeouts', () => {
  test.each([true, false])(
    'first byte: a vendor that accepts the request and sends nothing for 300 s (stream: %p)',
    async (isStream) => {
      const clock = manualClock()
      const vendor = vendorWith(hang())
      const { whole: complete, readAll } = upstream(vendor.url, { clock })
      let ended = false
      const pending = errorOf(isStream ? readAll() : complete()).finally(() => {
        ended = true
      })
      await vendor.request()
      clock.advance(300 * SECONDS - 1)
      await new Promise((resolve) => setImmediate(resolve))
      expect(ended).toBe(false)
      clock.advance(1)
      expect((await pending).code).toBe('upstream_timeout')
      await vendor.aborted
    },
  )

  test('idle: a read of a stream that waits 300 s for the next bytes', async () => {
    const clock = manualClock()
    const vendor = vendorWith(stream(chunks('a'), { hangAfter: 1 }))
    const iterator = (await upstream(vendor.url, { clock }).chunks())[Symbol.asyncIterator]()
    await iterator.next()
    let ended = false
    const next = errorOf(iterator.next()).finally(() => {
      ended = true
    })
    clock.advance(300 * SECONDS - 1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(ended).toBe(false)
    clock.advance(1)
    expect((await next).code).toBe('upstream_timeout')
    await vendor.aborted
  })

  test('idle: counts from the last byte, so a stream may last for hours', async () => {
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
    expect(rest.length).toBeLessThanOrEqual(1) // the finish reason, unless it came with the text before it
  })

  test('idle: does not run while a slow client pauses reading', async () => {
    const clock = manualClock()
    const gate = Promise.withResolvers<void>()
    const vendor = vendorWith(stream([chunk({ content: 'a' }), gate.promise, chunk({}, 'stop')]))
    const iterator = (await upstream(vendor.url, { clock }).chunks())[Symbol.asyncIterator]()
    await iterator.next()
    clock.advance(10_000 * SECONDS)
    gate.resolve()
    expect(finishesOf((await iterator.next()).value ?? [])).toEqual(['stop'])
  })

  test('total: a whole response that takes 600 s', async () => {
    const clock = manualClock()
    const dripping: Answer = async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"id":')
      await wire.aborted
    }
    const vendor = vendorWith(dripping)
    const pending = errorOf(upstream(vendor.url, { clock }).whole())
    await vendor.request()
    // The head has arrived once only the total timeout remains.
    while (clock.waiting() > 1) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    clock.advance(600 * SECONDS - 1)
    expect(vendor.connections()).toBe(1)
    clock.advance(1)
    expect((await pending).code).toBe('upstream_timeout')
  })

  test('timeouts of the provider override the defaults', async () => {
    const clock = manualClock()
    const vendor = vendorWith(hang())
    const pending = errorOf(upstream(vendor.url, { clock, config: { timeouts: { first_byte_seconds: 2 } } }).whole())
    await vendor.request()
    clock.advance(2 * SECONDS)
    expect((await pending).message).toContain('2 s')
  })
})

describe('an unreachable vendor', () => {
  test('that refuses connections: upstream_unreachable with the name of the provider', async () => {
    const vendor = startVendor()
    await vendor.stop()
    const error = await errorOf(upstream(vendor.url).whole())
    expect(error).toMatchObject({ code: 'upstream_unreachable', status: 502 })
    expect(error.message).toContain('"vendor"')
  })

  test('without TLS: upstream_unreachable', async () => {
    const plain = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data: (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      },
    })
    const error = await errorOf(upstream(`https://127.0.0.1:${plain.port}/v1`).whole())
    plain.stop(true)
    expect(error.code).toBe('upstream_unreachable')
  })

  test.each(['ENOTFOUND', 'ECONNREFUSED', 'EAI_AGAIN', 'CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'])(
    '%s: upstream_unreachable',
    async (code) => {
      const fetch = () => Promise.reject(Object.assign(new Error(`to https://x/?key=${KEY}`), { code }))
      const { whole: complete, logged } = upstream('https://vendor.example/v1', { fetch })
      const error = await errorOf(complete())
      expect(error.code).toBe('upstream_unreachable')
      expect(`${error.message} ${error.stack} ${error.cause} ${logged()}`).not.toContain(KEY)
    },
  )
})

describe('back-pressure', () => {
  test('a consumer that stops reading stops the vendor, and continues later where it stopped', async () => {
    let produced = 0
    let done = false
    async function* flood() {
      yield chunk({ role: 'assistant', content: '' })
      while (!done) {
        produced++
        yield chunk({ content: 'x'.repeat(16 * 1024) })
      }
      yield chunk({}, 'stop')
    }
    const vendor = vendorWith(stream(flood()))
    const iterator = (await upstream(vendor.url).chunks())[Symbol.asyncIterator]()
    await iterator.next()
    // The vendor writes until the buffers between us are full: then the count no longer changes.
    let before = -1
    for (let unchanged = 0; unchanged < 200; unchanged++) {
      if (produced !== before) unchanged = 0
      before = produced
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(produced * 16 * 1024).toBeLessThan(64 * 1024 * 1024)
    let read = 0
    while (read <= before) read += (await iterator.next()).value?.length ?? 0
    expect(produced).toBeGreaterThan(before)
    done = true
    let last: ChatChunk | undefined
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) last = next.value.at(-1)
    expect(last?.choices[0]?.finish_reason).toBe('stop')
  })
})

describe('secrets', () => {
  test('the key and the password of the base URL are in no error and no log line, whatever fails', async () => {
    const echo: Answer = (wire) =>
      failure(400, { message: `You sent ${wire.request.headers.authorization} to ${wire.request.path}` })(wire)
    const echoInStream: Answer = (wire) =>
      stream([{ error: { message: `bad key ${KEY}`, type: 'invalid_request_error' } }])(wire)
    const answers = [
      echo,
      echoInStream,
      failure(401, { message: `bad ${KEY}` }),
      failure(500, { message: KEY }),
      hangUp(),
      reset(),
    ]
    const vendor = vendorWith(...answers)
    const address = vendor.url.replace('http://', 'http://operator:pass-canary@')
    const { readAll, logged } = upstream(address)
    for (const _ of answers) {
      const error = await errorOf(readAll())
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

  test('an invalid list, and an error, is an error', async () => {
    const vendor = vendorWith(whole('hello'), failure(401), failure(404))
    const { provider } = upstream(vendor.url)
    const list = () => provider.listModels?.(new AbortController().signal) ?? Promise.resolve([])
    expect((await errorOf(list())).code).toBe('bad_upstream_response')
    expect((await errorOf(list())).code).toBe('upstream_auth')
    expect((await errorOf(list())).code).toBe('bad_upstream_response')
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

  test('are recognised by their model list on any port', async () => {
    const [item, second, third] = [vendorWith(list('library')), vendorWith(list('llamacpp')), vendorWith(list('who'))]
    expect(
      await probe([
        { preset: 'ollama', port: item.port },
        { preset: 'vllm', port: second.port },
        { preset: 'lmstudio', port: third.port },
      ]),
    ).toEqual({
      ollama: { preset: 'ollama', base_url: item.url },
      llamacpp: { preset: 'llamacpp', base_url: second.url },
      lmstudio: { preset: 'lmstudio', base_url: third.url },
    })
    expect(item.requests[0]?.headers).not.toHaveProperty('authorization')
  })

  test('of the same kind are both found', async () => {
    const [item, second] = [vendorWith(list('llamacpp')), vendorWith(list('llamacpp'))]
    const found = await probe([
      { preset: 'llamacpp', port: item.port },
      { preset: 'vllm', port: second.port },
    ])
    expect(Object.keys(found).sort()).toEqual(['llamacpp', `llamacpp-${second.port}`])
  })

  test('are not web pages, other JSON, errors or a gateway', async () => {
    const others = [
      whole('<html>', { headers: { 'content-type': 'text/html' } }),
      whole({ hello: 'world' }),
      failure(401),
      list('x', { supported_endpoint_types: ['chatcompat'] }),
      hangUp(),
    ].map((answer) => vendorWith(answer))
    expect(await probe(others.map(({ port }) => ({ preset: 'vllm', port })))).toEqual({})
  })

  test('that do not respond are given up after half a second', async () => {
    const clock = manualClock()
    const vendor = vendorWith(hang())
    const probing = probe([{ preset: 'vllm', port: vendor.port }], clock)
    await vendor.request()
    clock.advance(500)
    expect(await probing).toEqual({})
    await vendor.aborted
  })

  test('that do not run are not logged', async () => {
    const { transport, logged } = upstream('http://127.0.0.1:1/v1')
    const stopped = startVendor()
    await stopped.stop()
    const ports = [{ preset: 'vllm', port: stopped.port }]
    expect(await probeLocal({ transport, signal: new AbortController().signal, ports })).toEqual({})
    expect(logged()).toBe('')
  })
})

test('a JSON body instead of a stream is given up where it sends nothing for 300 s', async () => {
  const clock = manualClock()
  const headers = { 'content-type': 'application/json', 'content-length': '100' }
  const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('{"id":')) })
  const { signal } = new AbortController()
  let ending: AbortSignal | null | undefined
  const fetch = async (_url: string, init: RequestInit) => {
    ending = init.signal
    return new Response(body, { headers })
  }
  void upstream('http://127.0.0.1:1/v1', { clock, fetch })
    .readAll(signal)
    .catch(() => {})
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  clock.advance(300 * SECONDS)
  expect(ending?.reason).toMatchObject({ code: 'upstream_timeout' })
})

describe('the connect timeout', () => {
  /** A fetch that never connects, and rejects when it is aborted. */
  const stuck: Options['fetch'] = (_, init) =>
    new Promise((_, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason)))

  test('fails after 10 s without a response head or a TCP connection', async () => {
    const clock = manualClock()
    const dialedAddresses: string[] = []
    let closed = 0
    const dial: Options['dial'] = (host, port) => {
      dialedAddresses.push(`${host}:${port}`)
      return () => closed++
    }
    const pending = errorOf(upstream('https://[2001:db8::1]/v1', { clock, dial, fetch: stuck }).whole())
    clock.advance(10 * SECONDS - 1)
    expect(closed).toBe(0)
    clock.advance(1)
    expect((await pending).code).toBe('upstream_unreachable')
    expect(dialedAddresses).toEqual(['2001:db8::1:443'])
    expect(closed).toBeGreaterThan(0)
  })

  test('does not apply once the TCP connection succeeded, however long the response takes', async () => {
    const clock = manualClock()
    const dial: Options['dial'] = (_host, _port, settled) => {
      queueMicrotask(settled)
      return () => {}
    }
    let code: string | undefined
    const pending = errorOf(upstream('http://10.0.0.1:8000/v1', { clock, dial, fetch: stuck }).whole()).then(
      (error) => {
        code = error.code
      },
    )
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(299 * SECONDS)
    expect(code).toBeUndefined()
    clock.advance(1 * SECONDS)
    await pending
    expect(code).toBe('upstream_timeout')
  })

  test('probes an origin only if it did not respond within the last 30 s', async () => {
    const clock = manualClock()
    const vendor = vendorWith()
    let dials = 0
    const { whole: complete } = upstream(vendor.url, {
      clock,
      dial: () => {
        dials++
        return () => {}
      },
    })
    await complete()
    clock.advance(30 * SECONDS - 1)
    await complete()
    expect(dials).toBe(1)
    clock.advance(30 * SECONDS)
    await complete()
    expect(dials).toBe(2)
  })

  test.each([
    ['http_proxy', {}, 0],
    ['HTTP_PROXY', {}, 0],
    ['https_proxy', {}, 1],
    ['http_proxy', { NO_PROXY: 'other.example, 127.0.0.1' }, 1],
    ['http_proxy', { no_proxy: '*' }, 1],
    ['http_proxy', { no_proxy: '127.0.0.1.example' }, 0],
  ])('with %s set, and %j, probes %d times', async (variable, more, times) => {
    const vendor = vendorWith()
    let dials = 0
    const dial: Options['dial'] = () => {
      dials++
      return () => {}
    }
    await upstream(vendor.url, { dial, environment: { [variable]: 'http://proxy.example:3128', ...more } }).whole()
    expect(dials).toBe(times)
  })

  test('closes the probe connection at once', async () => {
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
