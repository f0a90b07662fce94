import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { DEFAULT_SERVER } from '../config/config.ts'
import { createLog } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import { createApp } from './app.ts'
import type { Route } from './context.ts'

const clock = manualClock()
const log = createLog({ clock, level: 'error', pretty: false, write: () => {} })

function appOf(routes: Partial<Route>[]) {
  const app = createApp({
    routes: routes.map((route) => ({
      method: 'GET',
      path: '/v1/things/:id',
      operation: { summary: '', tag: '' },
      handle: () => new Response('body'),
      ...route,
    })),
    authenticate() {
      throw new GatewayError('invalid_api_key', 'No token.')
    },
    settings: DEFAULT_SERVER,
    clock,
    log,
    onFinished: () => {},
  })
  return (path: string, init: RequestInit = {}) =>
    app.fetch(new Request(`http://gatehouse.test${path}`, init), { address: '127.0.0.1' })
}

describe('HEAD', () => {
  test('does not read the body of a response with a known length', async () => {
    const seen: string[] = []
    const body = () =>
      new ReadableStream<Uint8Array>(
        {
          pull: () => void seen.push('read'),
          cancel: () => void seen.push('canceled'),
        },
        { highWaterMark: 0 },
      )
    const headers = { 'content-length': '123456789', 'x-more': 'kept' }
    const call = appOf([{ public: true, handle: () => new Response(body(), { headers, status: 206 }) }])
    const answer = await call('/v1/things/1', { method: 'HEAD' })
    expect([answer.status, answer.body, answer.headers.get('content-length')]).toEqual([206, null, '123456789'])
    expect(answer.headers.get('x-more')).toBe('kept')
    expect(seen).toEqual(['canceled'])
  })

  test('reports the length of a body without one', async () => {
    const answer = await appOf([{ public: true }])('/v1/things/1', { method: 'HEAD' })
    expect([answer.body, answer.headers.get('content-length')]).toEqual([null, '4'])
  })
})

test('a route can be public for some requests, by path and query, and require a token for the others', async () => {
  const call = appOf([{ public: ({ request, params }) => request.url.endsWith(`?pass=${params.id}`) }])
  expect((await call('/v1/things/7?pass=7')).status).toBe(200)
  expect((await call('/v1/things/7?pass=8')).status).toBe(401)
  const broken = appOf([
    {
      public() {
        throw new GatewayError('invalid_value', 'No.')
      },
    },
  ])
  expect((await broken('/v1/things/7')).status).toBe(400)
})

test("an error below a family's paths has the family's form, elsewhere the common form", async () => {
  const call = appOf([
    { encodeError: ({ code }) => ({ own: code }) },
    { path: '/v1/others', encodeError: ({ code }) => ({ other: code }) },
  ])
  expect(await (await call('/v1/things/1')).json()).toEqual({ own: 'invalid_api_key' })
  expect(await (await call('/v1/things/1/2/3')).json()).toEqual({ own: 'unknown_url' })
  expect(await (await call('/v1/things')).json()).toEqual({ own: 'unknown_url' })
  expect(await (await call('/v1/others', { method: 'DELETE' })).json()).toEqual({ other: 'method_not_allowed' })
  for (const path of ['/v1/thing', '/v1/thingsome/1', '/things/1', '/']) {
    expect(Object.keys((await (await call(path)).json()) as object)).toEqual(['error'])
  }
})
