/** Paths of providers by name, on a real port: what is allowed, what is forwarded, what is charged, and what attacks do. */
import { afterEach, describe, expect, it } from 'bun:test'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { openPort, type Port } from './kit/served.ts'
import { type Answer, failure, hang, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

type Paths = NonNullable<ProviderConfig['passthrough_paths']>
type Json = Record<string, unknown>

const KEY = 'sk-secret-key-of-the-provider'
const ANY: Paths = [{ path: '/**', methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] }]
const PRICED: Paths = [
  {
    path: '/**',
    methods: ['GET', 'POST'],
    prices: { request: 0.01, input: 10, output: 20 },
    usage: { input_tokens: '/usage/in', output_tokens: '/usage/out' },
    most: { input_tokens: 1_000, output_tokens: 1_000 },
  },
]

const started: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of started.splice(0).reverse()) await one.stop()
})

type Served = { port: Port; vendor: Vendor; origin: string; call(path: string, init?: RequestInit): Promise<Response> }

async function serve(
  passthrough_paths: Paths | undefined,
  { answer, settings = {}, provider = {} }: { answer?: Answer; settings?: object; provider?: object } = {},
): Promise<Served> {
  const vendor = startVendor()
  vendor.otherwise(answer ?? whole({ ok: true }))
  started.push(vendor)
  const acme = { base_url: vendor.url, key: KEY, ...(passthrough_paths ? { passthrough_paths } : {}), ...provider }
  const port = await openPort({ providers: { acme }, ...settings })
  started.push({ stop: () => port.close() })
  const origin = port.url.replace(/\/v1$/, '')
  const call = (path: string, { headers, ...init }: RequestInit = {}) =>
    fetch(`${origin}${path}`, {
      redirect: 'manual',
      ...init,
      headers: { authorization: `Bearer ${port.token}`, ...(headers as Record<string, string>) },
    })
  return { port, vendor, origin, call }
}

/** A request as bytes; resolves with all that is answered. */
function rawRequest({ origin }: Pick<Served, 'origin'>, bytes: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const socket = connect(Number(new URL(origin).port), '127.0.0.1', () => socket.write(bytes))
  socket.on('data', (data) => {
    text += data.toString('latin1')
  })
  socket.on('close', () => resolve(text))
  socket.on('error', () => resolve(text))
  return promise
}

const raw = (served: Served, target: string, headers = '', method = 'GET') =>
  rawRequest(
    served,
    `${method} ${target} HTTP/1.1\r\nHost: gatehouse.test\r\nAuthorization: Bearer ${served.port.token}\r\nConnection: close\r\n${headers}\r\n`,
  )

const charged = async ({ call, port }: Served, requests: number): Promise<Json | undefined> => {
  while (((await port.gateway.instance.usage({ limit: 1 }))[0]?.requests ?? 0) < requests)
    await new Promise(setImmediate)
  const { data } = (await (await call('/v1/usage?by=model')).json()) as { data: Json[] }
  return data.find(({ model }) => model === 'passthrough/acme')
}

describe('a path of a provider by name', () => {
  it('passes the request with the key of the provider and the answer as it is', async () => {
    const served = await serve(ANY, { answer: whole({ id: 'f1' }, { status: 201, headers: { etag: '"a"' } }) })
    const answer = await served.call('/passthrough/acme/files/f%20%C3%A9?limit=2&after=x', {
      method: 'PUT',
      headers: { 'content-type': 'application/json', cookie: 'a=b', 'x-own': '1', 'idempotency-key': 'k' },
      body: '{"a":1}',
    })
    expect([answer.status, await answer.json()]).toEqual([201, { id: 'f1' }])
    expect(answer.headers.get('etag')).toBe('"a"')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    const [{ method, path, headers, body } = {} as never] = served.vendor.requests
    expect([method, path, body]).toEqual(['PUT', '/v1/files/f%20%C3%A9?limit=2&after=x', '{"a":1}'])
    expect(headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      'content-length': '7',
      'idempotency-key': 'k',
    })
    expect(Object.keys(headers)).not.toContainAnyValues(['cookie', 'x-own', 'x-api-key'])
  })

  it('is not there without configuration, nor for another method, path or provider', async () => {
    const none = await serve(undefined)
    expect((await none.call('/passthrough/acme/files')).status).toBe(404)
    const served = await serve([{ path: '/files/*/content', methods: ['GET'] }])
    expect((await served.call('/passthrough/acme/files/f1/content')).status).toBe(200)
    for (const [path, method] of [
      ['/passthrough/acme/files/f1/content', 'POST'],
      ['/passthrough/acme/files/f1', 'GET'],
      ['/passthrough/acme/files/f1/x/content', 'GET'],
      ['/passthrough/other/files/f1/content', 'GET'],
      ['/passthrough/acme', 'GET'],
    ] as const) {
      const { status } = await served.call(path, { method })
      expect([path, method, status]).toEqual([path, method, 404])
    }
    expect(served.vendor.requests).toHaveLength(1)
  })

  it('shares its calls among the keys of the provider, and avoids one that is refused or limited', async () => {
    const keys = ['one', 'two', 'three'].map((name, at) => ({ name, key: `sk-key-${name}`, weight: at === 0 ? 2 : 1 }))
    const vendor = startVendor()
    vendor.otherwise(whole({}))
    const gateway = await startGateway({ providers: { acme: { base_url: vendor.url, keys, passthrough_paths: ANY } } })
    started.push(vendor, { stop: () => gateway[Symbol.asyncDispose]() })
    const used = async (calls: number) => {
      const before = vendor.requests.length
      for (let call = 0; call < calls; call++) await (await gateway.call('/passthrough/acme/files')).text()
      const sent = vendor.requests.slice(before).map(({ headers }) => headers.authorization?.split('-').at(-1))
      return keys.map(({ name }) => sent.filter((one) => one === name).length)
    }
    expect(await used(8)).toEqual([4, 2, 2])
    vendor.otherwise((wire) => {
      const is = (name: string) => wire.request.headers.authorization?.endsWith(name)
      if (is('one')) return failure(401)(wire)
      return (is('two') ? whole({}, { status: 429, headers: { 'retry-after': '60' } }) : whole({}))(wire)
    })
    const [one, two, three] = (await used(10)) as [number, number, number]
    expect([one, two, three]).toEqual([1, 1, 8])
    gateway.clock.advance(61_000)
    vendor.otherwise(whole({}))
    expect(await used(6)).toEqual([0, 3, 3])
    gateway.clock.advance(300_000)
    expect((await used(4))[0]).toBe(2)
  })

  it('keeps the tags of a call, and is not refused by guards of other tags', async () => {
    const guards = { g: { kind: 'patterns', patterns: ['x'], when: { tags: ['pii'] } } }
    const served = await serve(ANY, { settings: { guards } })
    expect((await served.call('/passthrough/acme/files')).status).toBe(200)
    const other = await served.call('/passthrough/acme/files', { headers: { 'x-gatehouse-tags': 'other' } })
    expect(other.status).toBe(200)
    const tagged = await served.call('/passthrough/acme/files', { headers: { 'x-gatehouse-tags': 'pii' } })
    expect([tagged.status, ((await tagged.json()) as { error: Json }).error.code]).toEqual([
      400,
      'unsupported_endpoint',
    ])
    expect(served.vendor.requests).toHaveLength(2)
  })

  it('needs a token, and refuses one that is limited unless the configuration names it', async () => {
    const served = await serve(ANY)
    expect((await fetch(`${served.origin}/passthrough/acme/files`)).status).toBe(401)
    const { token, secret } = await served.port.gateway.instance.tokens.issue({ name: 'narrow', models: ['acme/*'] })
    const narrow = { headers: { authorization: `Bearer ${secret}` } }
    const refused = await served.call('/passthrough/acme/files', narrow)
    expect([refused.status, ((await refused.json()) as { error: Json }).error.code]).toEqual([403, 'model_not_allowed'])
    const paths = [{ ...ANY[0], tokens: [token.token_id] }] as Paths
    const acme = { base_url: served.vendor.url, key: KEY, passthrough_paths: paths }
    await served.port.gateway.instance.reload(configOf({ providers: { acme } }))
    expect((await served.call('/passthrough/acme/files', narrow)).status).toBe(200)
    // A list of tokens is of all that may.
    expect((await served.call('/passthrough/acme/files')).status).toBe(403)
  })

  it('streams events as they arrive', async () => {
    const held = Promise.withResolvers<void>()
    const served = await serve(ANY, { answer: stream([{ n: 1 }, held.promise, { n: 2 }]) })
    const answer = await served.call('/passthrough/acme/events')
    expect(answer.headers.get('content-type')).toStartWith('text/event-stream')
    const reader = answer.body?.getReader()
    const first = await reader?.read()
    expect(new TextDecoder().decode(first?.value)).toContain('{"n":1}')
    held.resolve()
    let rest = ''
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
      rest += new TextDecoder().decode(part.value)
    expect(rest).toContain('{"n":2}')
  })

  it('passes an answer without a body', async () => {
    const served = await serve(ANY, { answer: (wire) => wire.write('HTTP/1.1 204 No Content\r\n\r\n') })
    const answer = await served.call('/passthrough/acme/files/f1', { method: 'DELETE' })
    expect([answer.status, await answer.text()]).toEqual([204, ''])
  })
})

describe('the charge of a call', () => {
  it('is the price of a request and of the usage in the answer, once', async () => {
    const served = await serve(PRICED, { answer: whole({ usage: { in: 100, out: 50 } }) })
    await (await served.call('/passthrough/acme/work', { method: 'POST', body: 'x' })).text()
    expect(await charged(served, 1)).toMatchObject({ requests: 1, input_tokens: 100, output_tokens: 50, cost: 0.012 })
  })

  it('counts the last usage of a stream', async () => {
    const events = [{ usage: { in: 1, out: 1 } }, { text: 'a' }, { usage: { in: 10, out: 20 } }]
    const served = await serve(PRICED, { answer: stream(events) })
    await (await served.call('/passthrough/acme/work')).text()
    expect(await charged(served, 1)).toMatchObject({ requests: 1, input_tokens: 10, output_tokens: 20, cost: 0.0105 })
  })

  it('is the most where the answer has no usage, and nothing where the provider refuses', async () => {
    const served = await serve(PRICED, { answer: whole({ no: 'usage' }) })
    await (await served.call('/passthrough/acme/work')).text()
    expect(await charged(served, 1)).toMatchObject({ requests: 1, cost: 0.04 })
    served.vendor.otherwise(whole({ error: 'no' }, { status: 422 }))
    const refused = await served.call('/passthrough/acme/work')
    expect([refused.status, await refused.json()]).toEqual([422, { error: 'no' }])
    expect(await charged(served, 2)).toMatchObject({ requests: 2, cost: 0.04 })
  })

  it('is nothing where the status of the answer does not exist, and the call ends', async () => {
    const served = await serve(PRICED, { answer: whole({ usage: { in: 1, out: 1 } }, { status: 999 }) })
    const answer = await served.call('/passthrough/acme/work')
    expect([answer.status, await answer.json()]).toMatchObject([502, { error: { code: 'bad_upstream_response' } }])
    expect(await charged(served, 1)).toMatchObject({ requests: 1, cost: 0 })
    expect(served.vendor.requests).toHaveLength(1)
  })

  it('is refused beyond a budget and a rate limit, as any call is', async () => {
    const served = await serve(PRICED, { answer: whole({ usage: { in: 1, out: 1 } }) })
    const { secret } = await served.port.gateway.instance.tokens.issue({
      name: 'poor',
      budgets: [{ amount: 0.03, window: 'total' }],
    } as never)
    const poor = await served.call('/passthrough/acme/work', { headers: { authorization: `Bearer ${secret}` } })
    expect([poor.status, ((await poor.json()) as { error: Json }).error.code]).toEqual([429, 'insufficient_quota'])
    const once = await served.port.gateway.instance.tokens.issue({
      name: 'once',
      rate_limits: { requests_per_minute: 1 },
    } as never)
    const headers = { authorization: `Bearer ${once.secret}` }
    expect((await served.call('/passthrough/acme/work', { headers })).status).toBe(200)
    expect((await served.call('/passthrough/acme/work', { headers })).status).toBe(429)
    expect(served.vendor.requests).toHaveLength(1)
  })
})

describe('attacks by the path', () => {
  const TARGETS = [
    ['/passthrough/acme/files/..%2f..%2fadmin', 400],
    ['/passthrough/acme/files/%2e%2e%2fadmin', 400],
    ['/passthrough/acme/files/..%5c..%5cadmin', 400],
    ['/passthrough/acme/files/..;/admin', 400],
    ['/passthrough/acme/files/%252e%252e/admin', 400],
    ['/passthrough/acme/files//evil.example/x', 400],
    ['/passthrough/acme//evil.example/x', 400],
    ['/passthrough/acme/files/%0d%0ax-injected:%201', 400],
    ['/passthrough/acme/files/a%00b', 400],
    ['/passthrough/acme/files/%ff', 400],
    ['/passthrough/acme/files/%zz', 400],
    ['/passthrough/acme/files/a%3fkey=b', 400],
    ['/passthrough/acme/files/a%23b', 400],
    ['/passthrough/acme/@evil.example/x', 404],
    ['/passthrough/acme/http:%2f%2fevil.example/x', 400],
    ['/passthrough/../passthrough/acme/files/../../admin', 404],
    ['/passthrough/acme/files/%2e%2e/%2e%2e/secrets', 404],
    ['/passthrough/acme%2ffiles/x', 404],
    ['http://evil.example/passthrough/acme/secrets', 404],
    ['//evil.example/passthrough/acme/files/a', 404],
    ['/passthrough/acme/FILES/a', 404],
  ] as const

  it('never reach the provider', async () => {
    const served = await serve([{ path: '/files/**', methods: ['GET'] }])
    const statuses = await Promise.all(
      TARGETS.map(async ([target]) => [target, Number((await raw(served, target)).slice(9, 12))]),
    )
    expect(statuses).toEqual(TARGETS.map(([...target]) => target))
    expect(served.vendor.requests).toEqual([])
  })

  it('compares and sends an encoded path as the same text', async () => {
    const served = await serve([{ path: '/files/**', methods: ['GET'] }])
    await raw(served, '/passthrough/acme/%66iles/a%3Ab%7e')
    expect(served.vendor.requests.map(({ path }) => path)).toEqual(['/v1/files/a:b~'])
  })

  it('sends no secret of the caller in the query', async () => {
    const served = await serve(ANY)
    await raw(served, `/passthrough/acme/files?key=${served.port.token}&a=1&%6bey=2`)
    expect(served.vendor.requests[0]?.path).toBe('/v1/files?a=1')
  })

  it('follows no redirect, and does not pass its address on', async () => {
    const headers = { location: 'http://169.254.169.254/latest' }
    const served = await serve(ANY, { answer: whole('', { status: 302, headers }) })
    const answer = await served.call('/passthrough/acme/files')
    expect([answer.status, answer.headers.get('location')]).toEqual([302, null])
    expect(served.vendor.requests).toHaveLength(1)
  })
})

describe('attacks by headers', () => {
  it('forwards no credential, no header of the connection and no forged origin, even where they are listed', async () => {
    const names = [
      'x-one',
      'x-two',
      'cookie',
      'authorization',
      'x-api-key',
      'x-forwarded-for',
      'host',
      'te',
      'forwarded',
    ]
    const served = await serve([{ ...(ANY[0] as Paths[number]), request_headers: names }])
    await raw(
      served,
      '/passthrough/acme/files',
      `X-One: 1\r\nX-Two: 2\r\nConnection: x-two\r\nCookie: a=b\r\nX-Api-Key: theirs\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: evil\r\nForwarded: for=1.2.3.4\r\nTE: trailers\r\nUpgrade: h2c\r\nProxy-Authorization: Basic eA==\r\n`,
    )
    const { headers = {} } = served.vendor.requests[0] ?? {}
    expect(headers.authorization).toBe(`Bearer ${KEY}`)
    expect(headers['x-one']).toBe('1')
    const never = [
      'x-two',
      'cookie',
      'x-api-key',
      'x-forwarded-for',
      'x-forwarded-host',
      'forwarded',
      'te',
      'upgrade',
      'proxy-authorization',
    ]
    expect(Object.keys(headers).filter((name) => never.includes(name))).toEqual([])
    expect(headers.host).toBe(new URL(served.vendor.url).host)
  })

  it('never sends a message whose length is stated in two ways', async () => {
    const served = await serve(ANY)
    const head = `POST /passthrough/acme/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${served.port.token}\r\nConnection: close\r\n`
    await rawRequest(
      served,
      `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/secrets HTTP/1.1\r\nHost: a\r\n\r\n`,
    )
    await rawRequest(
      served,
      `${head}Content-Length: 1\r\nContent-Length: 40\r\n\r\nGET /v1/secrets HTTP/1.1\r\nHost: a\r\n\r\n`,
    )
    expect(served.vendor.requests.filter(({ path }) => path.includes('secrets'))).toEqual([])
  })

  it('passes no cookie, no header of the connection and no script of the answer to the origin of the gateway', async () => {
    const headers = {
      'set-cookie': 'a=b',
      'x-shown': '1',
      'access-control-allow-origin': '*',
      'content-type': 'text/html',
      'content-security-policy': "default-src '*'",
      'x-hidden': '1',
      'keep-alive': 'timeout=5',
    }
    const listed = ['x-shown', 'set-cookie', 'access-control-allow-origin', 'content-security-policy']
    const served = await serve([{ ...(ANY[0] as Paths[number]), response_headers: listed }], {
      answer: whole('<script>1</script>', { headers }),
    })
    const answer = await served.call('/passthrough/acme/page')
    expect(answer.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
    expect(answer.headers.get('x-shown')).toBe('1')
    const names = [...answer.headers.keys()]
    expect(names.filter((name) => /cookie|access-control|hidden|keep-alive/.test(name))).toEqual([])
  })
})

describe('the key of the provider', () => {
  it.each([400, 403, 404, 500])('does not leak in an answer with status %d', async (status) => {
    const served = await serve(ANY, {
      answer: whole({ error: `Bad key ${KEY}` }, { status, headers: { etag: `"${KEY}"` } }),
    })
    const answer = await served.call('/passthrough/acme/files')
    expect(answer.status).toBe(status)
    expect(`${await answer.text()}${[...answer.headers.values()]}`).not.toContain(KEY)
  })

  it('does not leak, nor does a part of it, where the provider refuses it', async () => {
    const served = await serve(ANY, { answer: whole({ error: 'Incorrect API key: sk-sec***ider' }, { status: 401 }) })
    const answer = await served.call('/passthrough/acme/files')
    expect([answer.status, await answer.text()]).toEqual([502, expect.not.stringContaining('sk-sec')])
  })
})

describe('limits of a call', () => {
  it('refuses a body above its size, announced or not, on both sides of the limit', async () => {
    const served = await serve([{ ...(ANY[0] as Paths[number]), max_request_bytes: 10 }])
    const post = (body: BodyInit) => served.call('/passthrough/acme/files', { method: 'POST', body })
    const inChunks = (text: string) => new Blob([text]).stream()
    expect((await post('x'.repeat(10))).status).toBe(200)
    expect((await post(inChunks('x'.repeat(10)))).status).toBe(200)
    expect((await post('x'.repeat(11))).status).toBe(413)
    expect((await post(inChunks('x'.repeat(11)))).status).toBe(413)
    expect(served.vendor.requests).toHaveLength(2)
  })

  it('cuts an answer above its size, also one that was compressed to less', async () => {
    const bomb = gzipSync(Buffer.alloc(1_000_000))
    const answer: Answer = async (wire) => {
      await wire.write(
        `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`,
      )
      await wire.write(bomb)
    }
    const small = await serve([{ ...(ANY[0] as Paths[number]), max_response_bytes: 999_999 }], { answer })
    const cut = await small.call('/passthrough/acme/bomb')
    await expect(cut.arrayBuffer()).rejects.toThrow()
    const large = await serve([{ ...(ANY[0] as Paths[number]), max_response_bytes: 1_000_000 }], { answer })
    const whole = await large.call('/passthrough/acme/bomb')
    expect((await whole.arrayBuffer()).byteLength).toBe(1_000_000)
  })

  it('ends a call whose body stops arriving, and the connection to the provider with it', async () => {
    const served = await serve(ANY, { settings: { server: { body_seconds: 0.05 } } })
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{')),
    })
    const answer = await served.call('/passthrough/acme/files', { method: 'POST', body }).catch(() => undefined)
    expect([408, undefined]).toContain(answer?.status)
    await served.vendor.idle()
    expect(served.vendor.requests).toEqual([])
  })

  it('ends a call at its longest time', async () => {
    const served = await serve([{ ...(ANY[0] as Paths[number]), max_seconds: 0.05 }], { answer: hang() })
    const answer = await served.call('/passthrough/acme/slow')
    expect(answer.status).toBe(504)
    await served.vendor.idle()
  })

  it('cuts an answer that is sent for longer than its longest time, and charges it once', async () => {
    const never = new Promise<void>(() => {})
    const limited = [{ ...(PRICED[0] as Paths[number]), max_seconds: 0.3 }]
    const served = await serve(limited, { answer: stream([{ n: 1 }, never]) })
    const answer = await served.call('/passthrough/acme/events')
    expect(answer.status).toBe(200)
    await expect(answer.text()).rejects.toThrow()
    await served.vendor.aborted
    const row = await charged(served, 1)
    expect(row).toMatchObject({ requests: 1, estimated: 1 })
    expect(row?.cost).toBeCloseTo(0.04, 6)
  })

  it.each([
    [4 * 1024 * 1024, 0.012],
    [4 * 1024 * 1024 + 1, 0.04],
  ])('counts the usage in an answer of %d bytes: it costs %p', async (size, cost) => {
    const usage = { in: 100, out: 50 }
    const padding = 'x'.repeat(size - JSON.stringify({ padding: '', usage }).length)
    const served = await serve(PRICED, { answer: whole({ padding, usage }) })
    expect((await (await served.call('/passthrough/acme/work')).arrayBuffer()).byteLength).toBe(size)
    expect(await charged(served, 1)).toMatchObject({ requests: 1, cost })
  })

  it('closes the connection to the provider when the client leaves, and records the call once', async () => {
    const held = Promise.withResolvers<void>()
    const served = await serve(PRICED, { answer: stream([{ n: 1 }, held.promise]) })
    const control = new AbortController()
    const answer = await served.call('/passthrough/acme/events', { signal: control.signal })
    await answer.body?.getReader().read()
    control.abort()
    await served.vendor.aborted
    held.resolve()
    await served.port.gateway.instance.drain({ deadline_ms: 1_000 })
    expect(await served.port.gateway.instance.usage({ limit: 5 })).toMatchObject([
      { model: 'passthrough/acme', requests: 1 },
    ])
  })
})
