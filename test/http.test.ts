/** HTTP for all routes: request ids, callers, paths, errors, CORS, the log, and close. */
import { describe, expect, test } from 'bun:test'
import { DEFAULT_SERVER, type ServerSettings } from '../src/config/config.ts'
import { eventStream } from '../src/families/shared/event-stream.ts'
import { type Authenticate, createApp } from '../src/http/app.ts'
import type { Context, Route } from '../src/http/context.ts'
import { createLog } from '../src/kit/log.ts'
import { createAccessLog, createRequests } from '../src/observe/requests/requests.ts'
import { pageRoutes } from '../src/site/pages.ts'
import { ERRORS, type ErrorCode, GatewayError } from '../src/spec/error.ts'
import type { Caller } from '../src/spec/token.ts'
import { manualClock } from './kit/clock.ts'

const CALLER: Caller = { token_id: 'tok_1', mayUseModel: () => true, mayUseFamily: () => true }
const operation = { summary: '', tag: '' }
const get = (path: string, handle: Route['handle'], more: Partial<Route> = {}): Route => ({
  method: 'GET',
  path,
  operation,
  handle,
  ...more,
})

type Parts = { routes?: Route[]; authenticate?: Authenticate; settings?: Partial<ServerSettings> }

function gateway({ routes = [], authenticate = () => CALLER, settings = {} }: Parts = {}) {
  const clock = manualClock()
  let logText = ''
  const write = (text: string) => {
    logText += text
  }
  const log = createLog({ clock, level: 'debug', pretty: false, write })
  const all = { ...DEFAULT_SERVER, ...settings }
  const requests = createRequests({ recorders: [createAccessLog({ log })], clock, log })
  const app = createApp({
    routes: [
      get('/ok', () => Response.json({ ok: true })),
      get('/things/:thing{.+}', ({ params }) => Response.json(params)),
      { ...get('/things', () => new Response()), method: 'POST' },
      { ...get('/things/:thing{.+:run}', () => new Response()), method: 'POST', exclusive: true },
      { ...get('/things/count', () => new Response()), method: 'POST' },
      ...routes,
    ],
    authenticate,
    settings: all,
    clock,
    log,
    onFinished: requests.requestFinished,
  })
  const call = (path: string, init: RequestInit = {}) =>
    app.fetch(new Request(`http://gatehouse.test${path}`, init), { address: '192.0.2.1' })
  const lines = () => {
    requests.flush()
    log.flush()
    return logText
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  }
  return { app, clock, call, lines, settings: all }
}

/** A route that throws. */
const failing = (error: unknown, more: Partial<Route> = {}): Route =>
  get(
    '/fail',
    () => {
      throw error
    },
    more,
  )

describe('a request id', () => {
  test.each(['x', 'a.b_c:d-9', 'x'.repeat(128)])('that is valid is returned: %s', async (id) => {
    const { headers } = await gateway().call('/ok', { headers: { 'x-request-id': id } })
    expect([headers.get('x-request-id'), headers.get('request-id')]).toEqual([id, id])
  })

  test.each(['', 'x'.repeat(129), 'a b', 'a\tb', '<script>', 'ä'])('that is invalid is replaced: %j', async (id) => {
    const { headers } = await gateway().call('/ok', { headers: { 'x-request-id': id } })
    expect(headers.get('x-request-id')).toMatch(/^req_[A-Za-z0-9]{24}$/)
  })

  test('is in every response, in both headers, and in the log', async () => {
    const { call, lines } = gateway({
      routes: [failing(new Error('x')), failing(new GatewayError('invalid_value', 'x'))],
    })
    for (const [path, method] of [
      ['/ok', 'GET'],
      ['/ok', 'HEAD'],
      ['/ok', 'POST'],
      ['/ok', 'OPTIONS'],
      ['/nowhere', 'GET'],
      ['/fail', 'GET'],
      ['/things/a%', 'GET'],
    ] as const) {
      const { headers } = await call(path, { method, headers: { 'x-request-id': 'mine' } })
      expect([path, headers.get('x-request-id'), headers.get('request-id')]).toEqual([path, 'mine', 'mine'])
    }
    expect(lines().every(({ request_id }) => request_id === 'mine')).toBe(true)
  })
})

describe('a path', () => {
  test.each([
    ['/ok?x=1', 200],
    ['/ok/', 200],
    ['/ok//', 200],
    ['/ok/?x=/', 200],
    ['/OK', 404],
    ['/ok/more', 404],
    ['/', 404],
  ])('%s -> %d', async (path, status) => {
    expect((await gateway().call(path)).status).toBe(status)
  })

  test.each([
    ['/things/a/b', 'a/b'],
    ['/things/a%2Fb', 'a/b'],
    ['/things/a%2fb/', 'a/b'],
    ['/things/a%252Fb', 'a%2Fb'],
    ['/things/%C3%A9', 'é'],
    ['/things/a%20b?c=d', 'a b'],
    ['/things/a+b', 'a+b'],
    ['/things/a:b', 'a:b'],
    ['/things/__proto__', '__proto__'],
  ])('%s is decoded once: %s', async (path, thing) => {
    expect(await (await gateway().call(path)).json()).toEqual({ thing })
  })

  test.each(['/things/%', '/things/a%2', '/things/%zz', '/things/%E0%A4%A'])('%s is a client error', async (path) => {
    const answer = await gateway().call(path)
    expect([answer.status, (await answer.json()).error.code]).toEqual([400, 'invalid_value'])
  })

  test('that is not UTF-8 causes no internal error', async () => {
    expect((await gateway().call('/things/%FF%FE')).status).toBe(200)
  })

  test('that is unknown returns 404 and repeats the path', async () => {
    const answer = await gateway().call('/v1/nothing?key=secret')
    expect(answer.status).toBe(404)
    expect(await answer.json()).toEqual({
      error: {
        message: 'Invalid URL (GET /v1/nothing)',
        type: 'invalid_request_error',
        param: null,
        code: 'unknown_url',
      },
    })
  })

  test.each([
    ['/ok', 'POST', 'GET, HEAD, OPTIONS'],
    ['/ok/', 'DELETE', 'GET, HEAD, OPTIONS'],
    ['/things', 'GET', 'POST, OPTIONS'],
    ['/things', 'HEAD', 'POST, OPTIONS'],
    ['/things/a/b', 'PATCH', 'GET, HEAD, OPTIONS'],
    ['/things/count', 'GET', 'POST, OPTIONS'],
    ['/things/a/b:run', 'GET', 'POST, OPTIONS'],
    ['/things/a/b:run', 'DELETE', 'POST, OPTIONS'],
    ['/things/a/b:walk', 'DELETE', 'GET, HEAD, OPTIONS'],
  ])('%s does not allow %s, and names the methods that it allows', async (path, method, allow) => {
    const answer = await gateway().call(path, { method })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    if (method !== 'HEAD') expect((await answer.json()).error.code).toBe('method_not_allowed')
  })

  test.each([
    ['/ok', 'GET, HEAD, OPTIONS'],
    ['/things', 'POST, OPTIONS'],
    ['/things/a/b', 'GET, HEAD, OPTIONS'],
    ['/things/count', 'POST, OPTIONS'],
    ['/things/a/b:run', 'POST, OPTIONS'],
  ])('%s answers OPTIONS with its methods, to every caller', async (path, allow) => {
    const { call } = gateway({ authenticate: () => Promise.reject(new GatewayError('invalid_api_key', 'No.')) })
    const answer = await call(path, { method: 'OPTIONS' })
    expect([answer.status, answer.headers.get('allow'), answer.body]).toEqual([204, allow, null])
  })

  test('that is unknown has no methods; a preflight succeeds there, so that a browser can read the 404', async () => {
    const { call } = gateway()
    expect((await call('/nowhere', { method: 'OPTIONS' })).status).toBe(404)
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' }
    const preflight = await call('/nowhere', { method: 'OPTIONS', headers })
    expect([preflight.status, preflight.headers.get('allow')]).toEqual([204, null])
  })

  test('that receives a WebSocket upgrade returns 426 with the supported protocol', async () => {
    const { call } = gateway()
    const upgrade = { connection: 'Upgrade', upgrade: 'WebSocket', 'sec-websocket-version': '13' }
    const answer = await call('/things', { method: 'GET', headers: upgrade })
    expect(answer.status).toBe(426)
    expect([answer.headers.get('upgrade'), answer.headers.get('connection')]).toEqual(['HTTP/1.1', 'Upgrade'])
    const { error } = await answer.json()
    expect([error.code, error.message]).toEqual(['upgrade_required', expect.stringContaining('HTTP POST')])
    expect((await call('/things', { method: 'GET', headers: { upgrade: 'h2c' } })).status).toBe(405)
    expect((await call('/things', { method: 'PUT', headers: upgrade })).status).toBe(405)
  })

  test('answers HEAD like GET, without the body', async () => {
    const { call } = gateway()
    for (const path of ['/ok', '/things/a%2Fb']) {
      const whole = await call(path)
      const { status, headers, body } = await call(path, { method: 'HEAD' })
      expect([status, body, headers.get('content-type')]).toEqual([200, null, whole.headers.get('content-type')])
      expect(Number(headers.get('content-length'))).toBe((await whole.bytes()).length)
    }
  })

  test('that is unknown answers HEAD with the status and the length of its error', async () => {
    const { call } = gateway({ authenticate: () => Promise.reject(new GatewayError('invalid_api_key', 'No.')) })
    for (const path of ['/ok', '/nowhere', '/things']) {
      const whole = await call(path, { method: path === '/things' ? 'PUT' : 'GET' })
      const { status, headers, body } = await call(path, { method: 'HEAD' })
      expect([path, status, body]).toEqual([path, whole.status, null])
      // The message contains the method, which is a letter longer than GET and PUT.
      const longer = path === '/ok' ? 0 : 1
      expect(Number(headers.get('content-length'))).toBe((await whole.bytes()).length + longer)
    }
  })
})

describe('an error', () => {
  const responseTo = async (error: unknown, more: Partial<Route> = {}) => {
    const { call, lines } = gateway({ routes: [failing(error, more)] })
    const answer = await call('/fail')
    return { status: answer.status, headers: answer.headers, body: await answer.json(), lines: lines() }
  }

  test('that is a GatewayError has the status of its code and the common format', async () => {
    const error = new GatewayError('invalid_value', 'It must be 1.', { param: 'a.b' })
    const { status, headers, body } = await responseTo(error)
    expect([status, headers.get('content-type')?.split(';')[0]]).toEqual([400, 'application/json'])
    expect(body).toEqual({
      error: { message: 'It must be 1.', type: 'invalid_request_error', param: 'a.b', code: 'invalid_value' },
    })
    for (const name of ['retry-after', 'www-authenticate', 'allow']) {
      expect([name, headers.has(name)]).toEqual([name, false])
    }
  })

  test.each<[ErrorCode, Record<string, string>]>([
    ['invalid_api_key', { 'www-authenticate': 'Bearer', 'x-should-retry': 'false' }],
    ['insufficient_quota', { 'x-should-retry': 'false' }],
    ['upstream_auth', { 'x-should-retry': 'false' }],
  ])('%s is announced in headers: %j', async (code, expected) => {
    const { headers } = await responseTo(new GatewayError(code, 'x'))
    for (const [name, value] of Object.entries(expected)) expect([name, headers.get(name)]).toEqual([name, value])
  })

  test.each(Object.keys(ERRORS) as ErrorCode[])(
    '%s states whether a retry can help, where the status does not',
    async (code) => {
      const permanent = [
        'insufficient_quota',
        'storage_quota_exceeded',
        'upstream_auth',
        'output_refused',
        'task_not_ended',
        'batch_not_ended',
      ]
      const transient = [408, 409, 429, 500, 502, 503, 504].includes(ERRORS[code].status) && !permanent.includes(code)
      const { status, headers } = await responseTo(new GatewayError(code, 'x'))
      expect([status, headers.get('x-should-retry')]).toEqual([ERRORS[code].status, transient ? null : 'false'])
    },
  )

  test.each([
    [0, '0'],
    [0.2, '1'],
    [1, '1'],
    [12.5, '13'],
    [-3, '0'],
  ])('has retry-after in whole seconds, rounded up: %d -> %s', async (retry_after, expected) => {
    const { headers } = await responseTo(new GatewayError('rate_limit_exceeded', 'x', { retry_after }))
    expect(headers.get('retry-after')).toBe(expected)
  })

  test('is encoded in the format of its API', async () => {
    const encodeError = ({ message }: GatewayError) => ({ type: 'error', message })
    const { status, body } = await responseTo(new GatewayError('model_not_found', 'No such model.'), { encodeError })
    expect([status, body]).toEqual([404, { type: 'error', message: 'No such model.' }])
  })

  test.each([new Error('the inner secret'), 'the inner secret', undefined, new TypeError('the inner secret')])(
    'that is internal is logged with its cause and returned without it',
    async (thrown) => {
      const { status, headers, body, lines } = await responseTo(thrown)
      expect([status, body.error.code]).toEqual([500, 'internal_error'])
      expect(body.error.message).toContain(headers.get('x-request-id') ?? 'none')
      expect(JSON.stringify(body)).not.toContain('secret')
      const fault = lines.find(({ event }) => event === 'internal error')
      expect(fault.level).toBe('error')
      if (thrown) expect(fault.cause).toContain('the inner secret')
    },
  )
})

describe('a caller', () => {
  const whoami = get('/whoami', ({ caller, note }) => Response.json([caller.token_id, note.token_id ?? null]))
  const open = { ...whoami, path: '/open', public: true } as const
  const reject = () => {
    throw new GatewayError('invalid_api_key', 'No.')
  }

  test.each<[string, Authenticate]>([
    ['at once', () => CALLER],
    ['later', async () => CALLER],
  ])('is available to the route and to the log, found %s', async (_, authenticate) => {
    const { call, lines } = gateway({ routes: [whoami], authenticate })
    expect(await (await call('/whoami')).json()).toEqual(['tok_1', 'tok_1'])
    expect(lines()[0].token_id).toBe('tok_1')
  })

  test.each<[string, Authenticate]>([
    ['at once', reject],
    ['later', async () => reject()],
  ])('that is not authenticated is rejected %s, unless the route is public', async (_, authenticate) => {
    const { call, lines } = gateway({ routes: [whoami, open], authenticate })
    expect((await call('/whoami')).status).toBe(401)
    expect((await call('/things/%zz')).status).toBe(401)
    expect(await (await call('/open')).json()).toEqual(['', null])
    expect(lines()[0]).toMatchObject({ status: 401, error: 'invalid_api_key' })
  })

  test('has the address of its connection, or the one that a trusted proxy forwards', async () => {
    const where = get('/where', ({ address }) => new Response(address))
    const headers = { 'x-forwarded-for': '203.0.113.7, 198.51.100.2' }
    expect(await (await gateway({ routes: [where] }).call('/where', { headers })).text()).toBe('192.0.2.1')
    const trusting = gateway({ routes: [where], settings: { trust_proxy: true } })
    expect(await (await trusting.call('/where', { headers })).text()).toBe('198.51.100.2')
    expect(await (await trusting.call('/where')).text()).toBe('192.0.2.1')
  })
})

describe('the log', () => {
  test('has one line for each request, with its times and without the query', async () => {
    const slow = get('/slow', async ({ note }) => {
      clock.advance(249.510498046875)
      note.model = 'a/b'
      return new Response('x')
    })
    const { call, clock, lines } = gateway({ routes: [slow] })
    await call('/slow?key=sk-secret', { headers: { authorization: 'Bearer sk-secret' } })
    expect(lines()).toEqual([
      {
        time: expect.any(String),
        level: 'info',
        event: 'request',
        request_id: expect.stringMatching(/^req_/),
        method: 'GET',
        path: '/slow',
        status: 200,
        outcome: 'done',
        total_ms: 249.5,
        first_byte_ms: 249.5,
        token_id: 'tok_1',
        model: 'a/b',
      },
    ])
  })

  test('has a line for every request, however it ended', async () => {
    const { call, lines } = gateway({
      routes: [failing(new Error('x'))],
    })
    const calls = [
      ['GET', '/ok', 200],
      ['HEAD', '/ok', 200],
      ['HEAD', '/things/a', 200],
      ['OPTIONS', '/ok', 204],
      ['POST', '/ok', 405],
      ['GET', '/nowhere', 404],
      ['GET', '/fail', 500],
      ['GET', '/things/%', 400],
    ] as const
    for (const [method, path] of calls) await call(path, { method })
    const requests = lines().filter(({ event }) => event === 'request')
    expect(requests.map(({ method, path, status }) => [method, path, status])).toEqual(calls as never)
    expect(new Set(requests.map(({ request_id }) => request_id)).size).toBe(calls.length)
  })

  test('truncates a very long path', async () => {
    const { call, lines } = gateway()
    const answer = await call(`/${'x'.repeat(10_000)}`)
    expect((await answer.text()).length).toBeLessThan(400)
    expect(lines()[0].path.length).toBe(203)
  })

  const streamed = (batches: () => AsyncIterable<string>) =>
    get('/stream', (context: Context) => {
      context.note.stream = true
      return eventStream({
        batches: batches(),
        keep_alive_ms: 15_000,
        clock: manualClock(),
        abort: () => context.leave(),
        onEnd: (outcome) => context.finish(outcome),
      })
    })

  test('writes the line of a stream when it ends, with its outcome', async () => {
    const two = async function* () {
      yield 'data: 1\n\n'
      yield 'data: 2\n\n'
    }
    const { app, call, clock, lines } = gateway({ routes: [streamed(two)] })
    const answer = await call('/stream')
    expect([app.open(), lines()]).toEqual([1, []])
    clock.advance(1_000)
    expect(await answer.text()).toBe('data: 1\n\ndata: 2\n\n')
    expect(app.open()).toBe(0)
    expect(lines()).toMatchObject([{ status: 200, stream: true, outcome: 'done', total_ms: 1_000 }])

    const left = await call('/stream')
    await left.body?.cancel()
    expect(lines()[1]).toMatchObject({ status: 200, outcome: 'client_gone' })
  })

  test('records that a stream was cut when its source failed', async () => {
    const broken = async function* () {
      yield 'data: 1\n\n'
      throw new Error('broken')
    }
    const { call, lines } = gateway({ routes: [streamed(broken)] })
    await expect((await call('/stream')).text()).rejects.toThrow()
    expect(lines()).toMatchObject([{ status: 200, outcome: 'cut' }])
  })

  test('records a client that disconnected before the response, whatever the outcome', async () => {
    const leaving = new AbortController()
    const { call, lines } = gateway({
      routes: [
        get('/left', ({ signal }) => {
          leaving.abort()
          return signal.aborted ? new Response('done all the same') : new Response('not told', { status: 500 })
        }),
      ],
    })
    expect((await call('/left', { signal: leaving.signal })).status).toBe(200)
    expect(lines()).toMatchObject([{ outcome: 'client_gone' }])
    const { status } = await call('/ok', { signal: AbortSignal.abort() })
    expect(status).toBe(200)
    expect(lines()[1]).toMatchObject({ outcome: 'client_gone' })
  })
})

describe('a browser of another origin', () => {
  const origin = 'https://app.example'
  const preflight = { method: 'OPTIONS', headers: { origin, 'access-control-request-headers': 'x-custom' } }

  test('gets no CORS headers unless it is configured', async () => {
    for (const cors_origins of [[], ['https://other.example']]) {
      const { call } = gateway({ settings: { cors_origins } })
      for (const init of [{ headers: { origin } }, preflight]) {
        const { headers } = await call('/ok', init)
        expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
      }
    }
  })

  test.each([
    [[origin, 'https://other.example'], origin],
    [['*'], '*'],
  ])(
    'may call if it is one of %j, errors included, and may read the headers that clients need',
    async (cors_origins, allowed) => {
      const { call } = gateway({ settings: { cors_origins } })
      for (const path of ['/ok', '/nowhere']) {
        const { headers } = await call(path, { headers: { origin } })
        expect(headers.get('access-control-allow-origin')).toBe(allowed)
        for (const name of [
          'x-request-id',
          'request-id',
          'retry-after',
          'x-should-retry',
          'x-ratelimit-limit-requests',
        ]) {
          expect(headers.get('access-control-expose-headers')?.split(', ')).toContain(name)
        }
        expect(headers.get('vary')).toContain('origin')
      }
      const { status, headers } = await call('/things', preflight)
      expect([status, headers.get('access-control-allow-headers')]).toEqual([204, 'x-custom'])
      // PUT and PATCH are methods of the paths of providers by name.
      expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
      expect(headers.get('access-control-allow-origin')).toBe(allowed)
      expect(headers.get('vary')).toBe('origin')
    },
  )

  test('may call as soon as the settings allow it', async () => {
    const { call, settings } = gateway()
    settings.cors_origins = ['*']
    expect((await call('/ok', { headers: { origin } })).headers.has('access-control-allow-origin')).toBe(true)
  })
})

describe('close', () => {
  const waiting = () => {
    const { promise, resolve } = Promise.withResolvers<Response>()
    let signal: AbortSignal | undefined
    const route = get('/wait', (context) => {
      signal = context.signal
      return promise
    })
    return { route, answer: () => resolve(new Response('late')), reason: () => signal?.reason }
  }

  test('waits for open requests and rejects new ones', async () => {
    const { route, answer, reason } = waiting()
    const { app, call } = gateway({ routes: [route] })
    const open = call('/wait')
    const closed = app.close({ deadline_ms: 60_000 })
    const refused = await call('/ok')
    expect([refused.status, (await refused.json()).error.code]).toEqual([503, 'shutting_down'])
    expect([refused.headers.get('retry-after'), refused.headers.get('connection')]).toEqual(['1', 'close'])
    answer()
    expect(await (await open).text()).toBe('late')
    await closed
    expect(reason()).toBeUndefined()
    await app.close({ deadline_ms: 60_000 })
  })

  test('aborts open requests at the deadline, not before, and stops waiting for those that ignore the abort', async () => {
    const { route, reason } = waiting()
    const { app, call, clock } = gateway({ routes: [route] })
    void call('/wait')
    const closed = app.close({ deadline_ms: 1_000 })
    clock.advance(999)
    expect(reason()).toBeUndefined()
    clock.advance(1)
    expect(reason()).toMatchObject({ code: 'shutting_down' })
    clock.advance(1_000)
    await closed
  })

  test('takes the shorter deadline of a second call', async () => {
    const { route, reason } = waiting()
    const { app, call, clock } = gateway({ routes: [route] })
    void call('/wait')
    const long_close = app.close({ deadline_ms: 60_000 })
    const short_close = app.close({ deadline_ms: 0 })
    clock.advance(0)
    expect(reason()).toMatchObject({ code: 'shutting_down' })
    clock.advance(1_000)
    await Promise.all([long_close, short_close])
  })
})

describe('pages', () => {
  type Health = { unfinished: number; oldest_seconds: number; lag_seconds: number }
  const pages = (ready = async () => {}, tasks?: () => Promise<Health>) =>
    gateway({
      routes: pageRoutes({
        version: '1.2.3<',
        ready,
        ...(tasks && { tasks }),
        openApi: () => ({ openapi: '3.1.0' }),
        endpoints: () => [{ method: 'GET', path: '/v1/<x>', summary: 'What <x> is' }],
        has_console: true,
        hasSandbox: () => true,
      }),
      authenticate: () => {
        throw new GatewayError('invalid_api_key', 'No.')
      },
    })
  const BROWSER = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }

  test('describe the gateway at the root: HTML for browsers, JSON for other clients', async () => {
    const { call } = pages()
    const page = await call('/', BROWSER)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const html = await page.text()
    for (const text of [
      '1.2.3&lt;',
      'href="/docs"',
      '/v1/&lt;x&gt;',
      'What &lt;x&gt; is',
      'prefers-color-scheme: dark',
    ]) {
      expect(html).toContain(text)
    }
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }, { accept: 'text/html;q=0, */*' }]) {
      const json = await (await call('/', { headers })).json()
      expect(json).toMatchObject({ name: 'Gatehouse', version: '1.2.3<', docs: '/docs', openapi: '/openapi.json' })
    }
  })

  test.each(['/', '/docs'])('%s runs only its own scripts and loads nothing from other hosts', async (path) => {
    const page = await pages().call(path, BROWSER)
    const policy = page.headers.get('content-security-policy') ?? ''
    const nonce = /'nonce-([A-Za-z0-9]{20})'/.exec(policy)?.[1] ?? 'none'
    expect(policy).toStartWith("default-src 'none'; script-src 'self' 'nonce-")
    expect(policy).not.toContain('unsafe-eval')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    const html = await page.text()
    const scripts = [...html.matchAll(/<script([^>]*)>/g)].map(([, attributes]) => attributes?.trim())
    expect(scripts.filter((script) => script !== 'src="/docs/scalar.js"')).toEqual([`nonce="${nonce}"`])
    const addresses = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address ?? '')
    expect(addresses.filter((address) => !/^(\/(?!\/)|data:)/.test(address))).toEqual([])
  })

  test('serve a script of the reference from its package, and only if it has changed', async () => {
    const { call } = pages()
    const script = await call('/docs/scalar.js')
    expect(script.headers.get('content-type')).toStartWith('text/javascript')
    expect(await script.text()).toContain('createApiReference')
    const etag = script.headers.get('etag') ?? ''
    const again = await call('/docs/scalar.js', { headers: { 'if-none-match': etag } })
    expect([again.status, await again.text()]).toEqual([304, ''])
    expect((await call('/docs/scalar.js', { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  })

  test('report liveness and readiness without a token', async () => {
    const alive = await pages().call('/healthz')
    expect([alive.status, await alive.json()]).toEqual([200, { status: 'ok', version: '1.2.3<' }])
    const ready = await pages().call('/readyz')
    expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready' }])
    const notReady = await pages(() => Promise.reject(new Error('the inner secret'))).call('/readyz')
    expect(notReady.status).toBe(503)
    expect(await notReady.text()).not.toContain('secret')
    expect(await (await pages().call('/openapi.json')).json()).toEqual({ openapi: '3.1.0' })
  })

  test('compress the OpenAPI document for clients that accept it', async () => {
    const { call } = pages()
    const compressed = await call('/openapi.json', { headers: { 'accept-encoding': 'gzip, deflate, br' } })
    expect(compressed.headers.get('content-encoding')).toBe('gzip')
    expect(JSON.parse(Buffer.from(Bun.gunzipSync(await compressed.bytes())).toString())).toEqual({ openapi: '3.1.0' })
    expect((await call('/openapi.json')).headers.get('content-encoding')).toBeNull()
  })

  test('report how far the work on tasks is behind; 503 only if the store does not respond', async () => {
    const health = { unfinished: 12_000, oldest_seconds: 86_400, lag_seconds: 3_600 }
    const ready = await pages(undefined, async () => health).call('/readyz')
    expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready', tasks: health }])
    const away = await pages(undefined, () => Promise.reject(new Error('the inner secret'))).call('/readyz')
    expect([away.status, await away.json()]).toEqual([
      503,
      { status: 'not ready', reason: 'the store does not answer' },
    ])
  })
})
