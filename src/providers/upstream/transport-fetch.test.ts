import { describe, expect, test } from 'bun:test'
import { DEFAULT_TIMEOUTS } from '../../config/config.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Transport } from './transport.ts'
import { createTransportFetch } from './transport-fetch.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

const answerOf = (status: number, text: string, headers: Record<string, string> = {}): UpstreamResponse => ({
  status,
  headers: new Headers(headers),
  contentType: headers['content-type'] ?? '',
  read: async () => undefined,
  firstByte: async () => undefined,
  text: async () => text,
  excerpt: async () => text,
  release: () => {},
  drop: () => {},
})

function fetching(answer: () => UpstreamResponse, orders = true, stream = false) {
  const sent: UpstreamRequest[] = []
  const transport: Transport = {
    async send(request) {
      sent.push(request)
      return answer()
    },
  }
  const made = createTransportFetch({
    provider: 'vendor',
    transport,
    timeouts: DEFAULT_TIMEOUTS,
    signal: new AbortController().signal,
    isOrder: orders,
    stream,
    route: ({ url, headers }) => (url.startsWith('https://own.example') ? { url, headers } : undefined),
  })
  return { ...made, sent }
}

describe('a fetch over the transport', () => {
  test('sends the request and returns the response', async () => {
    const { fetch, sent, wire } = fetching(() =>
      answerOf(201, '{"id":1}', { 'content-type': 'application/json', 'content-encoding': 'gzip', 'x-id': '7' }),
    )
    const headers = { 'X-Key': 'k', 'user-agent': 'somebody' }
    const response = await fetch('https://own.example/a', { method: 'POST', body: '{"a":1}', headers })
    expect(await response.json()).toEqual({ id: 1 })
    expect([response.status, response.headers.get('x-id'), response.headers.get('content-encoding')]).toEqual([
      201,
      '7',
      null,
    ])
    expect(sent[0]).toMatchObject({
      url: 'https://own.example/a',
      method: 'POST',
      body: '{"a":1}',
      headers: { 'x-key': 'k', 'user-agent': 'gatehouse' },
      order: true,
      stream: false,
    })
    expect(wire).toMatchObject({ orderSent: true, response: { status: 201, text: '{"id":1}' } })
  })

  test('accepts bytes, URLs and Request objects', async () => {
    const { fetch, sent } = fetching(() => answerOf(204, ''), false)
    await fetch(new URL('https://own.example/a'), { method: 'PUT', body: new Uint8Array([1, 2]) })
    await fetch(new Request('https://own.example/b'))
    expect(sent.map(({ url, method, body }) => [url, method, body])).toEqual([
      ['https://own.example/a', 'PUT', new Uint8Array([1, 2])],
      ['https://own.example/b', 'GET', undefined],
    ])
  })

  test('sends one order and no second one, whatever a package retries', async () => {
    const { fetch, sent, wire } = fetching(() => answerOf(503, 'busy'))
    expect((await fetch('https://own.example/a', { method: 'POST', body: '{}' })).status).toBe(503)
    await expect(fetch('https://own.example/a', { method: 'POST', body: '{}' })).rejects.toThrow('twice')
    expect(wire.failure?.code).toBe('internal_error')
    expect(sent).toHaveLength(1)
  })

  test('allows a POST that orders nothing to be repeated', async () => {
    const { fetch, sent, wire } = fetching(() => answerOf(200, '{}'), false)
    await fetch('https://own.example/a', { method: 'POST', body: '{}' })
    await fetch('https://own.example/a', { method: 'POST', body: '{}' })
    expect(sent.map(({ order }) => order)).toEqual([undefined, undefined])
    expect(wire.orderSent).toBe(false)
  })

  test('calls no URL outside its route', async () => {
    const { fetch, sent, wire } = fetching(() => answerOf(200, '{}'))
    expect(await fetch('https://other.example/a').catch((error: unknown) => error)).toBe(wire.failure as GatewayError)
    expect(wire.failure?.code).toBe('bad_upstream_response')
    expect(sent).toEqual([])
  })

  test('stores a failure, and clears it when the next request succeeds', async () => {
    let fails = true
    const { fetch, wire } = fetching(() => {
      if (fails) throw new GatewayError('upstream_timeout', 'late')
      return answerOf(200, '{}')
    }, false)
    await fetch('https://own.example/a').catch(() => {})
    expect(wire.failure?.code).toBe('upstream_timeout')
    fails = false
    await fetch('https://own.example/a')
    expect(wire.failure).toBeUndefined()
  })

  describe('of a streamed response', () => {
    /** An answer that counts how often it is read. */
    const streaming = (pieces: (string | GatewayError)[]) => {
      const state = { reads: 0, isDropped: false }
      const answer: UpstreamResponse = {
        ...answerOf(200, '', { 'content-type': 'text/event-stream' }),
        async read() {
          const piece = pieces[state.reads++]
          if (piece instanceof GatewayError) throw piece
          return piece === undefined ? undefined : new TextEncoder().encode(piece)
        },
        drop: () => {
          state.isDropped = true
        },
      }
      return { answer, state }
    }

    test('passes chunks on, and reads no further than its consumer', async () => {
      const { answer, state } = streaming(['a', 'b', 'c'])
      const { fetch, sent } = fetching(() => answer, false, true)
      const response = await fetch('https://own.example/a', { method: 'POST', body: '{}' })
      expect([state.reads, sent[0]?.stream, sent[0]?.headers['accept-encoding']]).toEqual([0, true, 'identity'])
      const reader = response.body?.getReader()
      expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('a')
      expect(state.reads).toBe(1)
      await reader?.cancel()
      expect(state).toEqual({ reads: 1, isDropped: true })
    })

    test('fails where the stream failed, and stores the reason', async () => {
      const cut = new GatewayError('upstream_cut', 'cut')
      const { answer } = streaming(['a', cut])
      const { fetch, wire } = fetching(() => answer, false, true)
      const response = await fetch('https://own.example/a')
      expect(await response.text().catch((error: unknown) => error)).toBe(cut)
      expect(wire.failure).toBe(cut)
    })

    test('reads JSON and errors completely', async () => {
      const json = answerOf(200, '{"error":"no"}', { 'content-type': 'application/json' })
      const { fetch, wire } = fetching(() => json, false, true)
      expect(await (await fetch('https://own.example/a')).text()).toBe('{"error":"no"}')
      expect(wire.response?.text).toBe('{"error":"no"}')
      const refused = fetching(() => answerOf(429, 'slow'), false, true)
      await refused.fetch('https://own.example/a')
      expect(refused.wire.response).toMatchObject({ status: 429, text: 'slow' })
    })
  })
})
