/** The listening port, seen from raw sockets: what it accepts, what it cuts off, and how it stops. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { DEFAULT_SERVER } from '../src/config/config.ts'
import { eventStream } from '../src/families/shared/event-stream.ts'
import { createApp } from '../src/http/app.ts'
import { readJson } from '../src/http/body.ts'
import type { Context, Outcome, Route } from '../src/http/context.ts'
import { textResponse } from '../src/http/live.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { type Listener, listen } from '../src/listen.ts'
import { createAccessLog, createRequests } from '../src/observe/requests/requests.ts'
import { manualClock } from './kit/clock.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

const settings = { ...DEFAULT_SERVER, port: 0, max_body_bytes: 100_000, body_seconds: 0.2 }
const operation = { summary: '', tag: '' }
const get = (path: string, handle: Route['handle']): Route => ({ method: 'GET', path, public: true, operation, handle })
const post = (path: string, handle: Route['handle']): Route => ({ ...get(path, handle), method: 'POST' })

/** An app with a route that echoes JSON, and the routes of the test. */
async function start({ routes = [], idle_seconds }: { routes?: Route[]; idle_seconds?: number } = {}) {
  let logged = ''
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ clock: systemClock, level: 'debug', pretty: false, write })
  const limits = { max_bytes: settings.max_body_bytes, seconds: settings.body_seconds, clock: systemClock }
  const echo = async ({ request }: Context) => Response.json({ echo: await readJson(request, limits) })
  const requests = createRequests({ recorders: [createAccessLog({ log })], clock: systemClock, log })
  const app = createApp({
    routes: [post('/echo', echo), get('/hello', () => new Response('hello')), ...routes],
    authenticate: () => ({ token_id: 'tok_x', mayUseModel: () => true, mayUseFamily: () => true }),
    settings,
    clock: systemClock,
    log,
    onFinished: requests.requestFinished,
  })
  const server = await listen({
    gateway: { fetch: app.fetch, drain: app.close },
    server: settings,
    log,
    ...(idle_seconds === undefined ? {} : { idle_seconds }),
  })
  open.push(() => server.stop({ deadline_ms: 0 }))
  const lines = () => {
    requests.flush()
    log.flush()
    return logged
  }
  return { server, app, lines }
}

type Wire = {
  socket: Socket
  send(text: string): void
  /** All text received so far. */
  text(): string
  /** Waits until the received text passes the check. */
  until(passes: (text: string) => boolean): Promise<string>
  /** Waits for the server to close the connection; resolves with all received text. */
  closed: Promise<string>
}

function dial({ port }: Listener): Wire {
  const socket = connect({ port, host: '127.0.0.1' })
  open.push(() => socket.destroy())
  let text = ''
  let look = () => {}
  const { promise: closed, resolve } = Promise.withResolvers<string>()
  socket.on('data', (piece) => {
    text += piece.toString('latin1')
    look()
  })
  socket.on('error', () => {}) // the connection may be cut while the test writes; `closed` reports it
  socket.on('close', () => {
    resolve(text)
    look()
  })
  return {
    socket,
    send: (more) => void socket.write(more),
    text: () => text,
    until: (passes) =>
      new Promise((done, fail) => {
        look = () => {
          if (passes(text)) done(text)
          else if (socket.destroyed) fail(new Error(`closed too early, after: ${text}`))
        }
        look()
      }),
    closed,
  }
}

const head = (line: string, headers: Record<string, string> = {}) =>
  `${line} HTTP/1.1\r\n${Object.entries({ host: 'h', ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`
const JSON_TYPE = { 'content-type': 'application/json' }
const chunked = { ...JSON_TYPE, 'transfer-encoding': 'chunked' }
const statusOf = (text: string) => Number(text.slice(9, 12))
const codeOf = (text: string) => JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)).error.code
const hasResponses = (count: number) => (text: string) =>
  text.split('HTTP/1.1 ').length > count && (text.endsWith('}') || text.endsWith('hello'))

/** Writes while the connection accepts data, up to a bound that no server should accept. */
async function flood({ socket }: Wire, piece: string, bound: number): Promise<void> {
  while (!socket.destroyed && socket.bytesWritten < bound) {
    if (socket.write(piece)) await new Promise((go) => setImmediate(go))
    else await new Promise<void>((go) => void socket.once('drain', go).once('close', go))
    socket.removeAllListeners('drain')
  }
}

describe('a connection', () => {
  test('serves one request after another', async () => {
    const { server } = await start()
    const wire = dial(server)
    wire.send(head('GET /hello'))
    await wire.until(hasResponses(1))
    wire.send(`${head('POST /echo', { ...JSON_TYPE, 'content-length': '2' })}{}`)
    expect(await wire.until(hasResponses(2))).toContain('{"echo":{}}')
    wire.send(head('GET /hello', { connection: 'close' }))
    await wire.until(hasResponses(3))
  })

  test('returns the response to HEAD without a body, but with its length', async () => {
    const { server } = await start()
    const wire = dial(server)
    wire.send(head('HEAD /hello'))
    const text = await wire.until((soFar) => soFar.endsWith('\r\n\r\n'))
    expect(text.toLowerCase()).toContain('content-length: 5\r\n')
    wire.send(head('GET /hello'))
    expect(await wire.until(hasResponses(2))).toEndWith('\r\n\r\nhello')
  })

  test('gets an error for a method that no path has, and is ended for one that the runtime does not know', async () => {
    const { server } = await start()
    for (const method of ['PUT', 'QUERY', 'PROPFIND', 'M-SEARCH', 'CONNECT']) {
      const wire = dial(server)
      wire.send(head(`${method} /hello`, { connection: 'close' }))
      const text = await wire.until((soFar) => soFar.includes('method_not_allowed'))
      expect([method, statusOf(text)]).toEqual([method, 405])
      expect(text).toContain('allow: GET, HEAD, OPTIONS\r\n')
    }
    // A limit of the runtime, which `listen.ts` and the manual name: when this fails, both change.
    for (const method of ['FOO', 'get']) {
      const wire = dial(server)
      wire.send(head(`${method} /hello`))
      expect([method, await wire.closed]).toEqual([method, ''])
    }
    const next = dial(server)
    next.send(head('GET /hello'))
    await next.until(hasResponses(1))
  })

  test('may send its body and its head in single bytes', async () => {
    const { server } = await start()
    const wire = dial(server)
    wire.socket.setNoDelay(true)
    for (const sign of `${head('POST /echo', { ...JSON_TYPE, 'content-length': '7' })}{"a":1}`) {
      wire.send(sign)
      await new Promise((go) => setImmediate(go))
    }
    expect(await wire.until(hasResponses(1))).toContain('{"echo":{"a":1}}')
  })

  test('of HTTP/1.0, without a host, gets a response and is closed', async () => {
    const { server } = await start()
    const wire = dial(server)
    wire.send('GET /hello/?x=1 HTTP/1.0\r\n\r\n')
    const text = await wire.closed
    expect(statusOf(text)).toBe(200)
    expect(text).toContain('x-request-id: req_')
  })

  test('that expects 100-continue gets it', async () => {
    const { server } = await start()
    const wire = dial(server)
    wire.send(head('POST /echo', { ...JSON_TYPE, 'content-length': '2', expect: '100-continue' }))
    await wire.until((text) => text.includes('100 Continue\r\n\r\n'))
    wire.send('{}')
    expect(await wire.until((text) => text.endsWith('}'))).toContain('{"echo":{}}')
  })

  test('is closed when it is idle, but not while a request waits for its response', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const route = get('/wait', () => answered.then(() => new Response('hello')))
    const { server } = await start({ routes: [route], idle_seconds: 1 })
    const idle = dial(server)
    idle.send(head('GET /hello'))
    const silent = dial(server)
    silent.send(head('GET /wait'))
    // The server's timers tick every four seconds; both connections were silent for as long.
    expect(statusOf(await idle.closed)).toBe(200)
    expect(silent.socket.destroyed).toBe(false)
    answer()
    await silent.until(hasResponses(1))
  }, 120_000)

  test('is closed when it is idle even while the body of a refused request drips in', async () => {
    const { server } = await start({ idle_seconds: 1 })
    const wire = dial(server)
    wire.send(head('POST /nowhere', { ...JSON_TYPE, 'content-length': '1000000' }))
    const dripping = setInterval(() => wire.send('x'), 100)
    expect(statusOf(await wire.closed)).toBe(404)
    clearInterval(dripping)
  }, 120_000)
})

describe('a request that is not HTTP', () => {
  test.each([
    ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\n\r\n', 400],
    ['GET / HTTP/3.0\r\nhost: h\r\n\r\n', 505],
    [`${head('POST /echo', { 'content-length': 'many' })}`, 400],
    [`${head('POST /echo', { 'content-length': '2', 'transfer-encoding': 'chunked' })}0\r\n\r\n`, 400],
    [`POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} `, 400],
    [`${head('POST /echo', chunked)}zz\r\n`, 400],
  ])('is rejected and its connection closed: %j', async (text, status) => {
    const { server, lines } = await start()
    const wire = dial(server)
    wire.send(text)
    expect(statusOf(await wire.closed)).toBe(status)
    expect(lines()).not.toContain('internal error')
  })

  test.each([
    'CONNECT h:443 HTTP/1.1\r\nhost: h\r\n\r\n',
    'GET /hello HTTP/1.1\r\nhost: a/b?c\r\n\r\n',
    'GET /hello HTTP/1.1\r\nhost: \r\n\r\n',
    'GET /hello HTTP/1.1\r\nhost: user:word@h\r\n\r\n',
    'GET /hello HTTP/1.1\r\nhost: [::\r\n\r\n',
    'GET http://elsewhere/hello HTTP/1.1\r\nhost: h\r\n\r\n',
    'GET /h\xe9llo/%%%/../..\\ HTTP/1.1\r\nhost: h\r\n\r\n',
    'PROPFIND /hello HTTP/1.1\r\nhost: h\r\n\r\n',
  ])('that is unusual, but HTTP, is answered by the app: %j', async (text) => {
    const { server, lines } = await start()
    const wire = dial(server)
    wire.socket.write(text, 'latin1')
    const answer = await wire.until(hasResponses(1))
    expect(statusOf(answer)).toBeLessThan(500)
    expect(answer).toContain('x-request-id: req_')
    expect(lines().split('"event":"request"').length).toBe(2)
  })

  test('a head may have nearly 16 KiB and no more; an endless one is cut off', async () => {
    const { server } = await start()
    const wire = dial(server)
    wire.send(head('GET /hello', { 'x-long': 'x'.repeat(16_000) }))
    expect(statusOf(await wire.until(hasResponses(1)))).toBe(200)
    for (const headers of [
      { 'x-long': 'x'.repeat(17_000) },
      Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x-${index}`, 'x'.repeat(20)])),
    ]) {
      const over = dial(server)
      over.send(head('GET /hello', headers))
      expect(statusOf(await over.closed)).toBe(431)
    }
    const endless = dial(server)
    endless.send('GET /hello HTTP/1.1\r\nhost: h\r\nx-long: ')
    await flood(endless, 'x'.repeat(10_000), 20_000_000)
    await endless.closed
    expect(endless.socket.bytesWritten).toBeLessThan(20_000_000)
  })
})

describe('a body', () => {
  test.each([
    ['announced', { ...JSON_TYPE, 'content-length': '100' }, '{"a":'],
    ['in chunks', chunked, '5\r\n{"a":\r\n'],
  ])('that does not arrive (%s) returns 408 and closes the connection', async (_, headers, beginning) => {
    const { server } = await start()
    const wire = dial(server)
    wire.send(head('POST /echo', headers) + beginning)
    const text = await wire.closed
    expect([statusOf(text), codeOf(text)]).toEqual([408, 'request_timeout'])
  })

  test('that arrives too slowly returns 408 too', async () => {
    const { server } = await start()
    const wire = dial(server)
    wire.send(head('POST /echo', { ...JSON_TYPE, 'content-length': '90000' }))
    await flood(wire, ' ', 90_000)
    const text = await wire.closed
    expect(statusOf(text)).toBe(408)
  })

  test('of exactly the limit is accepted, with content-length or in chunks', async () => {
    const { server } = await start()
    const body = `"${'x'.repeat(settings.max_body_bytes - 2)}"`
    const wire = dial(server)
    wire.send(`${head('POST /echo', { ...JSON_TYPE, 'content-length': String(body.length) })}${body}`)
    await wire.until(hasResponses(1))
    wire.send(`${head('POST /echo', chunked)}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
    await wire.until(hasResponses(2))
  })

  test('with a content-length above the limit returns 413 before any of it is read', async () => {
    const { server } = await start()
    const wire = dial(server)
    wire.send(head('POST /echo', { ...JSON_TYPE, 'content-length': String(settings.max_body_bytes + 1) }))
    const text = await wire.until(hasResponses(1))
    expect([statusOf(text), codeOf(text)]).toEqual([413, 'request_too_large'])
  })

  test('that is rejected is drained, because a client that is cut off while it sends does not read the error', async () => {
    const { server } = await start()
    const wire = dial(server)
    const length = 8_000_000 // far more than the buffers of the connection hold
    wire.send(head('POST /echo', { ...JSON_TYPE, 'content-length': String(length) }))
    await wire.until(hasResponses(1))
    const before_body = wire.socket.bytesWritten
    await flood(wire, 'x'.repeat(100_000), before_body + length)
    expect(wire.socket.bytesWritten).toBe(before_body + length)
    wire.send(head('GET /hello'))
    expect(statusOf(await wire.until(hasResponses(2)))).toBe(413)
  })

  test('without an end is cut off at the limit', async () => {
    const { server, lines } = await start()
    const wire = dial(server)
    wire.send(head('POST /echo', chunked))
    await flood(wire, `2710\r\n${'x'.repeat(10_000)}\r\n`, 100_000_000)
    await wire.closed
    expect(wire.socket.bytesWritten).toBeLessThan(100_000_000)
    expect(lines()).toContain('"error":"request_too_large"')
  })

  test('that no route reads is not awaited if it is large', async () => {
    const { server } = await start()
    const small = dial(server)
    small.send(`${head('POST /nowhere', { 'content-length': '5' })}hello${head('GET /hello')}`)
    await small.until((text) => text.endsWith('hello'))
    const large = dial(server)
    large.send(head('POST /nowhere', { 'content-length': String(64 * 1024 * 1024 + 1) }))
    expect(statusOf(await large.closed)).toBe(404)
  })
})

describe('a client', () => {
  test('that disconnects before its response ends the work for it', async () => {
    const { promise: left, resolve } = Promise.withResolvers<unknown>()
    const { promise: started, resolve: begin } = Promise.withResolvers<void>()
    const route = get('/work', ({ signal }) => {
      begin()
      signal.addEventListener('abort', () => resolve(signal.reason))
      return left.then(() => new Response('nobody reads this'))
    })
    const { server, lines } = await start({ routes: [route] })
    const wire = dial(server)
    wire.send(head('GET /work'))
    await started
    wire.socket.destroy()
    expect(await left).toMatchObject({ code: 'client_closed_request' })
    await server.stop({ deadline_ms: 5000 })
    expect(lines()).toContain('"outcome":"client_gone"')
  })

  test('that disconnects in the middle of its body causes no internal error', async () => {
    for (const headers of [{ ...JSON_TYPE, 'content-length': '100' }, chunked]) {
      const { server, app, lines } = await start()
      const wire = dial(server)
      wire.send(`${head('POST /echo', headers)}5\r\n{"a":\r\n`)
      while (app.open() === 0) await Bun.sleep(1)
      wire.socket.destroy()
      await server.stop({ deadline_ms: 5000 })
      expect(lines()).toContain('"error":"client_closed_request"')
      expect(lines()).not.toContain('internal error')
    }
  })

  test('that stops reading stops the source, and is disconnected when it reads nothing for long', async () => {
    const clock = manualClock()
    const { promise: outcome, resolve } = Promise.withResolvers<Outcome>()
    let generated = 0
    let ended = false
    async function* endless() {
      try {
        for (;;) yield `data: ${'x'.repeat(10_000)} ${generated++}\n\n`
      } finally {
        ended = true
      }
    }
    const route = get('/flood', (context) => {
      context.note.stream = true
      const onEnd = (how: Outcome) => {
        context.finish(how)
        resolve(how)
      }
      return eventStream({ batches: endless(), keep_alive_ms: 15_000, clock, abort: () => context.leave(), onEnd })
    })
    const { server, app } = await start({ routes: [route] })
    const wire = dial(server)
    wire.send(head('GET /flood'))
    await wire.until((text) => text.includes('data:'))
    wire.socket.pause()
    // The buffers are full when nothing more is generated in some ten turns of the event loop.
    for (let before = -1; before !== generated; ) {
      before = generated
      await Bun.sleep(50)
    }
    expect(generated).toBeLessThan(5_000)
    clock.advance(200_000)
    expect(await outcome).toBe('client_gone')
    expect([ended, app.open()]).toEqual([true, 0])
    wire.socket.resume()
    await wire.closed
    expect(wire.text()).not.toEndWith('0\r\n\r\n')
  })

  test('that does not read a whole answer loses its connection soon after the answer is given up', async () => {
    const clock = manualClock()
    const lost = Promise.withResolvers<void>()
    const route = get('/large', (context) => {
      context.request.signal.addEventListener('abort', () => lost.resolve())
      return textResponse('x'.repeat(50_000_000), context, clock, {})
    })
    const { server, app } = await start({ routes: [route] })
    const wire = dial(server)
    wire.socket.pause()
    wire.send(head('GET /large'))
    while (app.open() === 0) await Bun.sleep(1)
    // The buffers are full when the client's no longer grows.
    for (let before = -1; before !== wire.socket.bytesRead; await Bun.sleep(50)) before = wire.socket.bytesRead
    const gaveUpAt = performance.now()
    clock.advance(60_000)
    expect(app.open()).toBe(0)
    await lost.promise
    // Otherwise at the idle time, 75 s.
    expect(performance.now() - gaveUpAt).toBeLessThan(20_000)
  })
})

describe('an internal error', () => {
  test('reveals nothing to the client', async () => {
    const { server, lines } = await start({
      routes: [
        get('/fault', () => {
          throw new Error('the inner secret')
        }),
      ],
    })
    const answer = await fetch(`${server.url}/fault`)
    const text = await answer.text()
    expect([answer.status, text.includes('inner'), lines().includes('the inner secret')]).toEqual([500, false, true])
  })
})

/** Whether the system has a listening socket (state 0A) with this port. */
function isListening(port: number): boolean {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return readFileSync('/proc/self/net/tcp', 'latin1')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .some((columns) => columns[1]?.endsWith(suffix) && columns[3] === '0A')
}

describe('a stop', () => {
  test('lets open requests finish, accepts no new ones, and then resolves', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const { server, app } = await start({ routes: [get('/wait', () => answered.then(() => new Response('hello')))] })
    const busy = dial(server)
    const idle = dial(server)
    idle.send(head('GET /hello'))
    await idle.until(hasResponses(1))
    busy.send(head('GET /wait'))
    while (app.open() === 0) await Bun.sleep(1)
    const stopped = server.stop({ deadline_ms: 60_000 })
    await expect(fetch(`${server.url}/hello`)).rejects.toThrow()
    answer()
    await busy.until(hasResponses(1))
    await stopped
    await Promise.all([busy.closed, idle.closed])
  })

  test.skipIf(process.platform !== 'linux')(
    'after it was announced serves who has connected, but not sent anything, before the port closed',
    async () => {
      const { server } = await start()
      server.retire()
      const fresh = dial(server)
      await new Promise<void>((resolve) => fresh.socket.once('connect', () => resolve()))
      const stopped = server.stop({ deadline_ms: 60_000 })
      while (isListening(server.port)) await Bun.sleep(1)
      fresh.send(head('GET /hello'))
      expect(await fresh.closed).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: close/i)
      await stopped
    },
  )

  test('cuts open requests at the deadline', async () => {
    const route = get('/forever', ({ signal }) => {
      const { promise, reject } = Promise.withResolvers<Response>()
      signal.addEventListener('abort', () => reject(signal.reason))
      return promise
    })
    const { server, app } = await start({ routes: [route] })
    const wire = dial(server)
    wire.send(head('GET /forever'))
    while (app.open() === 0) await Bun.sleep(1)
    await server.stop({ deadline_ms: 10 })
    const text = await wire.closed
    expect([statusOf(text), codeOf(text)]).toEqual([503, 'shutting_down'])
  })

  test('resolves soon after the deadline even if work ignores the abort', async () => {
    const { server, app } = await start({ routes: [get('/deaf', () => new Promise<Response>(() => {}))] })
    const wire = dial(server)
    wire.send(head('GET /deaf'))
    while (app.open() === 0) await Bun.sleep(1)
    await server.stop({ deadline_ms: 10 })
    expect(await wire.closed).toBe('')
  })
})

test('a port in use is an error that names the port', async () => {
  const { server } = await start()
  const log = createLog({ clock: systemClock, level: 'silent', pretty: false, write: () => {} })
  const gateway = { fetch: async () => new Response(), drain: async () => {} }
  const second = listen({ gateway, server: { host: '127.0.0.1', port: server.port }, log })
  await expect(second).rejects.toThrow(String(server.port))
})
