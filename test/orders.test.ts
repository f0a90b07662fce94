/** A request that costs money: what the transport sends, how often, and what it reports after a failure. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { acceptanceOf } from '../src/providers/orders/acceptance.ts'
import { createTransport } from '../src/providers/upstream/transport.ts'
import type { UpstreamRequest } from '../src/providers/upstream/upstream-request.ts'
import { GatewayError } from '../src/spec/error.ts'
import { manualClock } from './kit/clock.ts'
import { type Answer, failure, hang, hangUp, raw, reset, startVendor, type Vendor, whole } from './kit/vendor.ts'

const stops: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})
const vendorWith = (...answers: Answer[]): Vendor => {
  const vendor = startVendor(...answers)
  stops.push(vendor.stop)
  return vendor
}

/** A bare socket that counts the requests whose first line has arrived, and runs the script of the test at each point. */
function socketServer(on: { open?: 'end' | 'reset'; bytes?: (text: string) => 'end' | 'reset' | undefined }) {
  const seen = { connections: 0, requests: 0 }
  const server = Bun.listen<{ text: string }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        seen.connections++
        socket.data = { text: '' }
        if (on.open === 'end') socket.end()
        if (on.open === 'reset') socket.terminate()
      },
      data(socket, bytes) {
        if (socket.data.text === '') seen.requests++
        socket.data.text += bytes.toString()
        const next = on.bytes?.(socket.data.text)
        if (next === 'end') socket.end()
        if (next === 'reset') socket.terminate()
      },
    },
  })
  stops.push(() => server.stop(true))
  return { url: `http://127.0.0.1:${server.port}/v1`, port: server.port, seen }
}

/** A TLS server whose connection returns garbage once it has read a request. */
async function brokenTls() {
  const read = (name: string) => readFileSync(new URL(`./fixtures/tls/files.example.com.${name}`, import.meta.url))
  const bodies: string[] = []
  let spoil = () => {}
  const inner = createTlsServer({ cert: read('crt'), key: read('key') }, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      const [, body = ''] = bytes.toString().split('\r\n\r\n')
      if (body === '') return
      bodies.push(body)
      spoil()
    })
  })
  const proxy = createServer((client) => {
    const server = connect((inner.address() as AddressInfo).port, '127.0.0.1')
    client.on('error', () => {})
    server.on('error', () => {})
    client.pipe(server)
    server.pipe(client)
    spoil = () => void client.write('these bytes are no TLS record at all, and nobody can read them')
  })
  for (const server of [inner, proxy]) {
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    stops.push(() => void server.close())
  }
  return { url: `https://127.0.0.1:${(proxy.address() as AddressInfo).port}/v1`, bodies }
}

type Parts = Parameters<typeof createTransport>[0]
function sender({ clock = systemClock, ...parts }: Partial<Parts> = {}) {
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const transport = createTransport({ clock, log, ...parts })
  const base = (url: string) => ({
    provider: 'vendor',
    url,
    headers: { 'content-type': 'application/json' },
    signal: new AbortController().signal,
    timeouts: DEFAULT_TIMEOUTS,
    stream: false,
  })
  const order = (url: string, more: Partial<UpstreamRequest> = {}) =>
    transport.send({ ...base(url), method: 'POST', body: '{"prompt":"a cat"}', order: true, ...more })
  /** A request that is not an order, read to its end, so that its connection is reused. */
  const look = async (url: string) => (await transport.send({ ...base(url), method: 'GET' })).text()
  return Object.assign(order, { look })
}

async function refusal(promise: Promise<unknown>): Promise<GatewayError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

/** A bare connection that is established at once. */
const atOnce: NonNullable<Parts['dial']> = (_host, _port, settled) => {
  settled()
  return () => {}
}

const METHODS = ['POST', 'PUT', 'DELETE'] as const

describe('an order', () => {
  test.each(METHODS)('by %s is sent once, complete, on a connection of its own', async (method) => {
    const vendor = vendorWith()
    vendor.otherwise(whole({ ok: true }))
    const send = sender()
    for (let round = 0; round < 3; round++) await send.look(vendor.url)
    const before = new Set(vendor.requests.map(({ connection }) => connection))
    expect(before.size).toBe(1) // requests that are not orders share one
    for (let round = 0; round < 3; round++) await (await send(vendor.url, { method })).text()
    const orders = vendor.requests.slice(3)
    expect(orders.map((one) => [one.method, one.body])).toEqual(Array(3).fill([method, '{"prompt":"a cat"}']))
    expect(new Set([...before, ...orders.map(({ connection }) => connection)]).size).toBe(4)
  })

  test('may have a binary body', async () => {
    const vendor = vendorWith(whole({}))
    await sender()(vendor.url, { body: new TextEncoder().encode('{"é":1}') })
    expect(vendor.requests[0]?.json()).toEqual({ é: 1 })
  })

  const faults: [string, Answer][] = [
    ['is closed after the whole request', hangUp()],
    ['is reset after the whole request', reset()],
    ['is closed within the head of the answer', raw('HTTP/1.1 200 OK\r\ncontent-le', { close: true })],
  ]
  describe.each(METHODS)('by %s', (method) => {
    test.each(faults)('whose connection %s is not repeated, and may have been accepted', async (_, fault) => {
      const vendor = vendorWith()
      const send = sender()
      await send.look(vendor.url)
      vendor.answer(fault)
      const error = await refusal(send(vendor.url, { method }))
      expect(error).toMatchObject({ code: 'bad_upstream_response' })
      expect(error.detail.accepted).toBeUndefined()
      expect(vendor.requests).toHaveLength(2)
    })

    test('whose response breaks off in its body is not repeated, and may have been accepted', async () => {
      const vendor = vendorWith(raw('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"id":', { close: true }))
      const answer = await sender()(vendor.url, { method })
      const error = await refusal(answer.text())
      expect(error.detail.accepted).toBeUndefined()
      expect(vendor.requests).toHaveLength(1)
    })

    test.each([
      ['closed', 'end'],
      ['reset', 'reset'],
    ] as const)('is not repeated when the connection is %s before a byte was read', async (_, open) => {
      const server = socketServer({ open })
      const error = await refusal(sender({ dial: atOnce })(server.url, { method }))
      expect(error.detail.accepted).toBeUndefined()
      expect(server.seen.requests).toBeLessThanOrEqual(1)
      expect(server.seen.connections).toBe(1)
    })

    test.each([
      ['closed', 'end'],
      ['reset', 'reset'],
    ] as const)('is not repeated when the connection is %s after its head, before its body is read', async (_, end) => {
      const server = socketServer({ bytes: (text) => (text.includes('\r\n\r\n') ? end : undefined) })
      const body = 'x'.repeat(8 * 1024 * 1024) // more than the sockets' buffers hold
      const error = await refusal(sender()(server.url, { method, body }))
      expect(error.detail.accepted).toBeUndefined()
      expect(server.seen.requests).toBe(1)
    })

    test('is not sent on a reused connection that the provider has just closed', async () => {
      const closing: Answer = async (wire) => {
        await whole({ ok: true })(wire)
        wire.close()
      }
      const vendor = vendorWith()
      vendor.otherwise(whole({ ok: true }))
      const send = sender()
      for (let round = 1; round <= 5; round++) {
        vendor.answer(closing)
        await send.look(vendor.url)
        await (await send(vendor.url, { method })).text()
        expect(vendor.requests).toHaveLength(2 * round)
      }
    })
  })

  test('with a late response, or aborted by its caller, may have been accepted', async () => {
    const clock = manualClock()
    const vendor = vendorWith(hang(), hang())
    const send = sender({ clock })
    const late = refusal(send(vendor.url))
    await vendor.request(1)
    clock.advance(DEFAULT_TIMEOUTS.first_byte_seconds * 1000)
    expect(await late).toMatchObject({ code: 'upstream_timeout' })
    expect((await late).detail.accepted).toBeUndefined()
    const leaving = new AbortController()
    const left = refusal(send(vendor.url, { signal: leaving.signal }))
    await vendor.request(2)
    leaving.abort()
    expect(await left).toMatchObject({ code: 'client_closed_request' })
    expect((await left).detail.accepted).toBeUndefined()
    expect(vendor.requests).toHaveLength(2)
  })
})

describe('an order that cannot be sent was certainly not accepted', () => {
  const never: NonNullable<Parts['fetch']> = () => {
    throw new Error('it was sent')
  }
  const notTaken = (code: string) => ({ code, detail: { accepted: 'no' } })

  test('because nothing listens', async () => {
    const server = startVendor()
    await server.stop()
    expect(await refusal(sender({ fetch: never })(server.url))).toMatchObject(notTaken('upstream_unreachable'))
  })

  test('because the host name is unknown', async () => {
    const error = await refusal(sender({ fetch: never })('http://vendor.invalid/v1'))
    expect(error).toMatchObject(notTaken('upstream_unreachable'))
  })

  test('because no connection is established within connect_seconds, and not earlier', async () => {
    const clock = manualClock()
    let hungUp = 0
    const dial: NonNullable<Parts['dial']> = () => () => hungUp++
    let error: GatewayError | undefined
    const asked = refusal(sender({ clock, fetch: never, dial })('http://10.0.0.1/v1')).then((thrown) => {
      error = thrown
    })
    clock.advance(DEFAULT_TIMEOUTS.connect_seconds * 1000 - 1)
    await Promise.resolve()
    expect(error).toBeUndefined()
    clock.advance(1)
    await asked
    expect(error).toMatchObject(notTaken('upstream_unreachable'))
    expect(hungUp).toBe(1)
  })

  test('because its caller aborted it, before it started or while it was connecting', async () => {
    const dial: NonNullable<Parts['dial']> = () => () => {}
    const leaving = new AbortController()
    const send = sender({ fetch: never, dial })
    const asked = refusal(send('http://10.0.0.1/v1', { signal: leaving.signal }))
    leaving.abort(new GatewayError('shutting_down', 'The gateway is being stopped.'))
    expect(await asked).toMatchObject(notTaken('shutting_down'))
    expect(await refusal(send('http://10.0.0.1/v1', { signal: leaving.signal }))).toMatchObject(
      notTaken('shutting_down'),
    )
  })

  test('because TLS fails, which fetch does not tell from a connection that broke: in doubt', async () => {
    const plain = socketServer({ bytes: () => 'end' })
    expect((await refusal(sender()(`https://127.0.0.1:${plain.port}/v1`))).detail.accepted).toBeUndefined()
    const speaking = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n') },
    })
    stops.push(() => speaking.stop(true))
    const other = await refusal(sender()(`https://127.0.0.1:${speaking.port}/v1`))
    expect([other.code, other.detail.accepted]).toEqual(['upstream_unreachable', undefined])
  })

  test('nor because TLS broke after the complete request was read', async () => {
    const vendor = await brokenTls()
    const untrusting: NonNullable<Parts['fetch']> = (url, init) =>
      fetch(url, { ...init, tls: { rejectUnauthorized: false } } as RequestInit)
    const error = await refusal(sender({ fetch: untrusting })(vendor.url))
    expect(vendor.bodies).toEqual(['{"prompt":"a cat"}'])
    expect(error.detail.accepted).toBeUndefined()
  })

  const failingWith =
    (code: string): NonNullable<Parts['fetch']> =>
    () =>
      Promise.reject(Object.assign(new Error('at https://vendor.example/?key=canary'), { code }))

  test.each(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'CERT_HAS_EXPIRED', 'SELF_SIGNED_CERT_IN_CHAIN'])(
    'because the request itself failed with %s',
    async (code) => {
      const send = sender({ dial: atOnce, fetch: failingWith(code) })
      expect(await refusal(send('https://vendor.example/v1'))).toMatchObject(notTaken('upstream_unreachable'))
    },
  )

  test.each(['ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'EPROTO', 'EHOSTUNREACH', 'ECONNABORTED', 'anything'])(
    'but not because it failed with %s, which an established connection can cause too',
    async (code) => {
      const error = await refusal(sender({ dial: atOnce, fetch: failingWith(code) })('https://vendor.example/v1'))
      expect(error.detail.accepted).toBeUndefined()
      expect(error.message).not.toContain('canary')
    },
  )

  test('but through a proxy it opens no direct connection', async () => {
    let dials = 0
    const dial: NonNullable<Parts['dial']> = (_host, _port, settled) => {
      dials++
      settled()
      return () => {}
    }
    const environment = { https_proxy: 'http://proxy.example:3128' }
    const send = sender({ dial, environment, fetch: failingWith('ECONNREFUSED') })
    expect(await refusal(send('https://vendor.example/v1'))).toMatchObject(notTaken('upstream_unreachable'))
    expect(dials).toBe(0)
    const clear = sender({ dial, fetch: failingWith('ECONNREFUSED') })
    await refusal(clear('https://vendor.example/v1'))
    expect(dials).toBe(1)
  })
})

describe('an HTTP status of an order', () => {
  const acceptanceWith = (status: number) => acceptanceOf({ kind: 'chatcompat', status, payload: {} })
  test.each([400, 401, 402, 403, 404, 405, 410, 413, 415, 422, 429, 431, 451])(
    '%d means that it was not accepted',
    (status) => expect(acceptanceWith(status)).toBe('not accepted'),
  )
  test.each([
    200, 201, 202, 204, 299, 300, 301, 302, 303, 307, 308, 407, 408, 409, 412, 421, 423, 424, 425, 426, 460, 498, 499,
    500, 501, 502, 503, 504, 507, 519, 520, 522, 524, 527, 528, 529, 530, 598, 599,
  ])('%d leaves it in doubt', (status) => expect(acceptanceWith(status)).toBe('in doubt'))
  test('is a response in any case, not a failure of the transport', async () => {
    const vendor = vendorWith(failure(503), failure(200))
    const send = sender()
    expect((await send(vendor.url)).status).toBe(503)
    expect((await send(vendor.url)).status).toBe(200)
  })
})
