/** How much memory open requests may hold: bodies that arrive, bodies that wait for a provider, and unread answers. */
import { afterEach, describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { systemClock } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { openPort, type Port } from './kit/served.ts'
import { chunk, completion, hang, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const LIMITS = { max_bytes_in_flight: 200_000, max_token_bytes_in_flight: 100_000 }
const settingsOf = (vendor: Vendor) => ({
  providers: { v: { base_url: vendor.url, key: 'vendor-key' } },
  models: { 'v/m': {} },
  server: LIMITS,
})

function vendorOf(): Vendor {
  const vendor = startVendor()
  open.push(vendor.stop)
  return vendor
}

async function start(
  parts: Parameters<typeof startGateway>[1] = { clock: systemClock },
): Promise<TestGateway & { vendor: Vendor; tokenOf(name: string): Promise<string> }> {
  const vendor = vendorOf()
  const gateway = await startGateway(settingsOf(vendor), parts)
  open.push(() => gateway[Symbol.asyncDispose]())
  const tokenOf = async (name: string) => (await gateway.instance.tokens.issue({ name })).secret
  return { ...gateway, vendor, tokenOf }
}

/** A body of exactly so many bytes. */
function bodyOf(bytes: number, more: object = {}): string {
  const frame = JSON.stringify({ model: 'v/m', messages: [{ role: 'user', content: '' }], ...more })
  return frame.replace('"content":""', `"content":"${'x'.repeat(bytes - frame.length)}"`)
}

type Asking = Pick<TestGateway, 'call'> & { token?: string; signal?: AbortSignal; path?: string; more?: object }

function ask({ call, token, signal, path = '/v1/chat/completions', more }: Asking, bytes: number): Promise<Response> {
  const json = bodyOf(bytes, more)
  const length = { 'content-length': String(json.length) }
  const headers = token === undefined ? length : { ...length, authorization: `Bearer ${token}` }
  return call(path, { json, headers, ...(signal ? { signal } : {}) })
}

/** The answer once it is not refused any more: a request that was given up ends when its usage is known. */
async function accepted(asking: Asking, bytes: number): Promise<Response> {
  for (;;) {
    const response = await ask(asking, bytes)
    if (response.status !== 429) return response
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function outcome(answer: Response | Promise<Response>) {
  const response = await answer
  const body = await response.json()
  return { status: response.status, code: body.error?.code, retry_after: response.headers.get('retry-after') }
}
const OK = { status: 200, code: undefined, retry_after: null }
const OVER_TOKEN = { status: 429, code: 'rate_limit_exceeded', retry_after: '1' }
const OVER_ALL = { status: 503, code: 'server_is_overloaded', retry_after: '1' }

describe('bodies that wait for a silent provider', () => {
  test('are refused beyond the limit of their token, at the very byte', async () => {
    const { call, vendor } = await start()
    vendor.answer(hang(), whole(completion('Hello')))
    void ask({ call }, 60_000)
    await vendor.request(1)
    expect(await outcome(ask({ call }, 40_001))).toEqual(OVER_TOKEN)
    expect(await outcome(ask({ call }, 40_000))).toEqual(OK)
  })

  test('are refused beyond the limit of all tokens, at the very byte', async () => {
    const { call, vendor, tokenOf } = await start()
    vendor.answer(hang(), hang(), whole(completion('Hello')))
    const [second, third] = [await tokenOf('second'), await tokenOf('third')]
    void ask({ call }, 100_000)
    void ask({ call, token: second }, 60_000)
    await vendor.request(2)
    expect(await outcome(ask({ call, token: third }, 40_001))).toEqual(OVER_ALL)
    expect(await outcome(ask({ call, token: third }, 40_000))).toEqual(OK)
  })

  test('leave their room once they are answered, refused or given up', async () => {
    const { call, vendor } = await start()
    vendor.answer(whole(completion('Hello')), hang(), whole(completion('Hello')))
    expect(await outcome(ask({ call }, 60_000))).toEqual(OK)
    expect((await ask({ call, more: { temperature: 9 } }, 60_000)).status).toBe(400)
    const control = new AbortController()
    void ask({ call, signal: control.signal }, 60_000).catch(() => {})
    const { aborted } = await vendor.request(2)
    control.abort()
    await aborted
    expect(await outcome(accepted({ call }, 60_000))).toEqual(OK)
  })

  test('are refused in the form of their protocol', async () => {
    const { call, vendor } = await start()
    vendor.answer(hang())
    void ask({ call }, 60_000)
    await vendor.request(1)
    const refused = await ask({ call, path: '/v1/messages', more: { max_tokens: 1 } }, 60_000)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    expect(await refused.json()).toMatchObject({ type: 'error', error: { type: 'rate_limit_error' } })
  })

  test('count while their answer is streamed', async () => {
    const { call, vendor } = await start()
    vendor.answer(stream([chunk({ content: 'Hello' })], { hangAfter: 1 }), whole(completion('Hello')))
    const streamed = await ask({ call, more: { stream: true } }, 60_000)
    expect(await outcome(ask({ call }, 60_000))).toEqual(OVER_TOKEN)
    await streamed.body?.cancel()
    await vendor.aborted
    expect(await outcome(accepted({ call }, 60_000))).toEqual(OK)
  })
})

describe('bodies that have not arrived', () => {
  async function startPort(): Promise<Port & { vendor: Vendor }> {
    const vendor = vendorOf()
    const port = await openPort(settingsOf(vendor))
    open.push(() => port.close())
    return { ...port, vendor }
  }

  function dial({ url }: Port): Socket {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
    socket.on('error', () => {})
    open.push(() => socket.destroy())
    return socket
  }

  const headOf = ({ token }: Port, framing: string) =>
    `POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${token}\r\n` +
    `content-type: application/json\r\n${framing}\r\n\r\n`

  const post = ({ url, token }: Port, bytes: number) =>
    fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: bodyOf(bytes),
    })

  test('count when they are announced, until their client leaves', async () => {
    const port = await startPort()
    expect((await post(port, 1_000)).status).toBe(200)
    const socket = dial(port)
    socket.write(`${headOf(port, 'content-length: 60000')}{"model"`)
    while (port.requests.length < 2) await new Promise((resolve) => setImmediate(resolve))
    expect((await post(port, 60_000)).status).toBe(429)
    socket.destroy()
    for (let status = 429; status !== 200; ) status = (await post(port, 60_000)).status
  })
})

describe('a large answer that nobody reads', () => {
  // Beyond the basic plane: a slice must not cut a character in two.
  const LONG = `a${'🦭'.repeat(300_000)}`

  test('counts until it is read, and arrives whole', async () => {
    const { call, vendor } = await start()
    vendor.answer(whole(completion(LONG)), whole(completion('Hello')))
    const large = await ask({ call }, 1_000)
    expect(await outcome(ask({ call }, 1_000))).toEqual(OVER_ALL)
    expect((await large.json()).choices[0].message.content).toBe(LONG)
    expect(await outcome(ask({ call }, 1_000))).toEqual(OK)
  })

  test('counts until its client leaves', async () => {
    const { call, vendor, logged } = await start()
    vendor.answer(whole(completion(LONG)), whole(completion('Hello')))
    const large = await ask({ call }, 1_000)
    await large.body?.cancel()
    expect(await outcome(ask({ call }, 1_000))).toEqual(OK)
    expect(logged()).toContain('"outcome":"client_gone"')
  })

  test('counts until its client has read nothing for a minute', async () => {
    const { call, vendor, clock } = await start({})
    vendor.answer(whole(completion(LONG)), whole(completion('Hello')))
    const large = await ask({ call }, 1_000)
    clock.advance(59_999)
    expect(await outcome(ask({ call }, 1_000))).toEqual(OVER_ALL)
    clock.advance(1)
    expect(await outcome(ask({ call }, 1_000))).toEqual(OK)
    expect(large.text()).rejects.toThrow()
  })

  test('is paid for, so it is sent even if the gateway holds too much already', async () => {
    const { call, vendor, tokenOf } = await start()
    const other = await tokenOf('other')
    vendor.answer(whole(completion(LONG)), whole(completion(LONG)))
    const [first, second] = await Promise.all([ask({ call }, 1_000), ask({ call, token: other }, 1_000)])
    expect([first.status, second.status]).toEqual([200, 200])
    expect(await outcome(ask({ call }, 1_000))).toEqual(OVER_ALL)
    await Promise.all([first.arrayBuffer(), second.arrayBuffer()])
  })
})
