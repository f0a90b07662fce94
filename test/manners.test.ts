/** The manners of the whole house: who is let in and how, what is said of faults, and how an open stream ends at a stop. */
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { chunk, completion, startVendor, stream, whole } from './kit/vendor.ts'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

const gateway = await startGateway()
afterAll(() => gateway[Symbol.asyncDispose]())

describe('a token', () => {
  const { token } = gateway
  const ways: [string, string, Record<string, string>][] = [
    ['Authorization: Bearer', '', { authorization: `Bearer ${token}` }],
    ['authorization: bearer', '', { authorization: `bearer ${token}` }],
    ['Authorization: BEARER and spaces', '', { authorization: `BEARER   ${token}` }],
    ['x-api-key', '', { 'x-api-key': token }],
    ['x-goog-api-key', '', { 'x-goog-api-key': token }],
    ['?key=', `?key=${token}`, {}],
    ['?alt=sse&key=', `?alt=sse&key=${token}`, {}],
  ]

  test.each(ways)('is read from %s on every route that needs one', async (_, query, headers) => {
    const given = { authorization: '', ...headers }
    const body = { model: 'general', messages: [{ role: 'user', content: '@sandbox tokens=1' }] }
    expect((await gateway.call(`/v1/models${query}`, { headers: given })).status).toBe(200)
    expect((await gateway.call(`/v1/models/general${query}`, { headers: given })).status).toBe(200)
    expect((await gateway.call(`/v1/chat/completions${query}`, { headers: given, json: body })).status).toBe(200)
  })

  test.each<[string, string, Record<string, string>]>([
    ['none', '', {}],
    ['another scheme', '', { authorization: `Basic ${token}` }],
    ['no scheme', '', { authorization: token }],
    ['a letter more', '', { authorization: `Bearer ${token}x` }],
    ['a letter less', '', { authorization: `Bearer ${token.slice(0, -1)}` }],
    ['another case', '', { authorization: `Bearer ${token.toUpperCase()}` }],
    ['a cookie', '', { cookie: `key=${token}` }],
    ['another field of the query', `?api_key=${token}`, {}],
  ])('that is %s returns 401 with the same message as any other', async (_, query, headers) => {
    for (const path of ['/v1/models', '/v1/models/general', '/v1/models/nobody', '/v1/chat/completions']) {
      // A clock that moves on forgives the failures before; they would be slowed, and this clock stands still.
      gateway.clock.advance(60_000)
      const options = { headers: { authorization: '', ...headers } }
      const answer = await gateway.call(
        path + query,
        path.endsWith('completions') ? { ...options, json: '{' } : options,
      )
      expect([path, answer.status, answer.headers.get('www-authenticate')]).toEqual([path, 401, 'Bearer'])
      const { error } = await answer.json()
      expect(error).toEqual({ message: REFUSAL, type: 'authentication_error', param: null, code: 'invalid_api_key' })
    }
  })
  const REFUSAL = 'Missing or invalid API key. Send it as "Authorization: Bearer <token>".'

  test('is in no line of the log, however it was sent, valid or not', async () => {
    for (const [, query, headers] of ways) {
      await gateway.call(`/nowhere${query}`, { headers: { authorization: '', ...headers } })
      await gateway.call(`/v1/models${query}`, { headers: { authorization: '', ...headers, 'x-api-key': `${token}x` } })
    }
    const lines = gateway.logged().split('\n')
    expect(lines.length).toBeGreaterThan(20)
    for (const line of lines) expect(line).not.toContain(token)
  })
})

describe('an internal error', () => {
  test('is returned without its message, logged with it, and does not disturb other requests', async () => {
    const broken = await startGateway()
    open.push(() => broken[Symbol.asyncDispose]())
    // What no caller can do: a part of the house that fails.
    broken.instance.tasks.list = () => {
      throw new Error('the inner secret')
    }
    const answer = await broken.call('/v1/videos', { headers: { 'x-request-id': 'find-me' } })
    const body = await answer.json()
    expect([answer.status, body.error.code, body.error.type]).toEqual([500, 'internal_error', 'server_error'])
    expect(JSON.stringify(body)).not.toContain('secret')
    expect(body.error.message).toContain('find-me')
    const fault =
      broken
        .logged()
        .split('\n')
        .find((line) => line.includes('"internal error"')) ?? ''
    expect(fault).toContain('the inner secret')
    expect(fault).toContain('find-me')
    expect((await broken.call('/healthz')).status).toBe(200)
  })
})

/** A stream of which the vendor has said one word, and says the rest when the test lets it. */
async function openStream() {
  const vendor = startVendor()
  const busy = await startGateway({ providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
  open.push(
    () => busy[Symbol.asyncDispose](),
    () => vendor.stop(),
  )
  const rest = Promise.withResolvers<void>()
  const items = [chunk({ content: 'Hello' }), rest.promise, chunk({ content: ' world' }), chunk({}, 'stop')]
  vendor.answer(stream(items))
  const answer = await busy.chat({ model: 'v/m', stream: true, messages: [{ role: 'user', content: 'x' }] })
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  const read = async () => {
    const { done, value } = await reader.read()
    if (value) text += decoder.decode(value)
    return !done
  }
  while (!text.includes('Hello')) await read()
  return {
    vendor,
    busy,
    finish: rest.resolve,
    async toEnd() {
      while (await read());
      return text
    },
  }
}

const refusedWhileStopping = async ({ call, chat }: TestGateway) => {
  for (const answer of [await call('/v1/models'), await call('/healthz'), await call('/readyz'), await chat({})]) {
    expect([answer.status, (await answer.json()).error.code]).toEqual([503, 'shutting_down'])
    expect([answer.headers.get('connection'), answer.headers.get('retry-after')]).toEqual(['close', '1'])
    expect(answer.headers.get('x-request-id')).toStartWith('req_')
  }
}

describe('a stop', () => {
  test('lets an open stream finish and rejects new requests', async () => {
    const { busy, finish, toEnd } = await openStream()
    const drained = busy.instance.drain({ deadline_ms: 60_000 })
    await refusedWhileStopping(busy)
    busy.clock.advance(14_000)
    finish()
    const text = await toEnd()
    expect(text).toContain('world')
    expect(text).toEndWith('data: [DONE]\n\n')
    await drained
  })

  test('ends a stream at the deadline with one error event, without [DONE], and cancels the call of the provider', async () => {
    const { vendor, busy, toEnd } = await openStream()
    const drained = busy.instance.drain({ deadline_ms: 10_000 })
    busy.clock.advance(9_999)
    expect(vendor.connections()).toBe(1)
    busy.clock.advance(1)
    const text = await toEnd()
    const events = text.split('\n\n').filter(Boolean)
    expect(JSON.parse(events.at(-1)?.replace('data: ', '') ?? '')).toEqual({
      error: {
        message: 'The gateway was stopped before the response was complete.',
        type: 'service_unavailable_error',
        param: null,
        code: 'shutting_down',
      },
    })
    expect(text.split('"error"').length).toBe(2)
    expect(text).not.toContain('[DONE]')
    await vendor.idle()
    await drained
    const line = busy
      .logged()
      .split('\n')
      .find((one) => one.includes('/v1/chat/completions'))
    expect(JSON.parse(line ?? '')).toMatchObject({ status: 200, outcome: 'cut', error: 'shutting_down', stream: true })
  })

  test('returns 503 for a request without a stream that it aborts', async () => {
    const vendor = startVendor(async (wire) => wire.aborted)
    const busy = await startGateway({ providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
    open.push(
      () => busy[Symbol.asyncDispose](),
      () => vendor.stop(),
    )
    const asked = busy.chat({ model: 'v/m', messages: [{ role: 'user', content: 'x' }] })
    const { aborted: gone } = await vendor.request()
    const drained = busy.instance.drain({ deadline_ms: 5 })
    busy.clock.advance(5)
    const answer = await asked
    expect([answer.status, (await answer.json()).error.code]).toEqual([503, 'shutting_down'])
    await gone
    await drained
  })
})

test('the log has exactly one line for each request, with its outcome', async () => {
  const vendor = startVendor()
  const busy = await startGateway({ providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} } })
  open.push(
    () => busy[Symbol.asyncDispose](),
    () => vendor.stop(),
  )
  const ask = (more: object, id: string) =>
    busy.chat(
      { model: 'v/m', messages: [{ role: 'user', content: 'x' }], ...more },
      { headers: { 'x-request-id': id } },
    )
  const words = [chunk({ content: 'Hello' }), chunk({}, 'stop')]
  const lost = Promise.withResolvers<void>()
  vendor.answer(whole(completion('Hello')), stream(words), stream(words, { hangAfter: 1 }))
  vendor.answer(stream([...words.slice(0, 1), lost.promise, ...words.slice(1)], { cutAfter: 1 }))
  await ask({}, 'whole')
  await (await ask({ stream: true }, 'streamed')).text()
  const left = (await ask({ stream: true }, 'left')).body?.getReader()
  await left?.read()
  await left?.cancel()
  await vendor.aborted
  const cut = await ask({ stream: true }, 'cut')
  lost.resolve()
  expect(await cut.text()).toContain('upstream_cut')
  await ask({ temperature: 3 }, 'refused')
  await busy.instance.drain({ deadline_ms: 1_000 })
  const lines = busy
    .logged()
    .split('\n')
    .filter((line) => line.includes('"event":"request"'))
  const said = lines.map((line) => JSON.parse(line))
  // The line of a failed call waits for its usage, so another may come first.
  const order = ['whole', 'streamed', 'left', 'cut', 'refused']
  said.sort((one, other) => order.indexOf(one.request_id) - order.indexOf(other.request_id))
  expect(said.map(({ request_id, status, outcome, error }) => [request_id, status, outcome, error])).toEqual([
    ['whole', 200, 'done', undefined],
    ['streamed', 200, 'done', undefined],
    ['left', 200, 'client_gone', undefined],
    ['cut', 200, 'cut', 'upstream_cut'],
    ['refused', 400, 'done', 'invalid_value'],
  ])
  for (const line of said.slice(0, 4)) {
    expect(line).toMatchObject({ model: 'v/m', target: 'v/m', path: '/v1/chat/completions', method: 'POST' })
    expect(line).toMatchObject({ token_id: expect.stringMatching(/^tok_/), first_byte_ms: 0, total_ms: 0 })
    expect(line.input_tokens).toBeGreaterThan(0)
  }
})
