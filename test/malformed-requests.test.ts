/** Requests without a usable host, or with invalid references: rejected or served, never an internal error. */
import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { DEFAULT_SERVER } from '../src/config/config.ts'
import { createApp } from '../src/http/app.ts'
import { createLog } from '../src/kit/log.ts'
import { listen } from '../src/listen.ts'
import { GatewayError } from '../src/spec/error.ts'
import { manualClock } from './kit/clock.ts'
import { startGateway } from './kit/gateway.ts'

/** The complete response to bytes that no HTTP library would send. */
const exchanged = (port: number, bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(bytes))
    socket.on('data', (piece) => {
      answer += piece
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })

const HOSTS: Record<string, string> = {
  'no host': '',
  'an empty host': 'host:\r\n',
  'a host with blanks': 'host: a b c\r\n',
  'a host with a bad port': 'host: example.com:99999999\r\n',
  'a host of brackets': 'host: [::\r\n',
  'a host of a path': 'host: ///\r\n',
  'a host of percent signs': 'host: %%%\r\n',
  'a host beyond ASCII': 'host: h\u00f6st\r\n',
}
const chat = JSON.stringify({ model: 'sandbox/general', messages: [{ role: 'user', content: 'x' }], max_tokens: 1 })
const contents = JSON.stringify({ contents: [{ parts: [{ text: 'x' }] }] })
const video = JSON.stringify({ model: 'sandbox/text-to-video', prompt: 'x' })
const REQUESTS: [method: string, path: string, body?: string][] = [
  ['GET', '/v1/models'],
  ['GET', '/v1/models?limit=2'],
  ['GET', '/v1/models/none'],
  ['GET', '/v1beta/models?pageSize=2'],
  ['GET', '/v1/responses/resp_x'],
  ['GET', '/v1/responses/resp_x/input_items?limit=2'],
  ['GET', '/v1/video/generations?limit=2'],
  ['GET', '/v1/video/generations/x/content?index=0'],
  ['GET', '/v1/videos'],
  ['GET', '/none'],
  ['PUT', '/v1/models'],
  ['GET', '/'],
  ['GET', '/healthz'],
  ['OPTIONS', '/v1/models'],
  ['HEAD', '/v1/models'],
  ['POST', '/v1/chat/completions', chat],
  ['POST', '/v1/messages', chat],
  ['POST', '/v1beta/models/sandbox/general:generateContent', contents],
  ['POST', '/v1beta/models/sandbox/general:streamGenerateContent?alt=sse', contents],
  ['POST', '/v1/video/generations', video],
]

for (const host of ['127.0.0.1', '::']) {
  test(`a request gets a response whatever its host header, on ${host}`, async () => {
    await using gateway = await startGateway({ server: { host } })
    const log = createLog({ clock: manualClock(), level: 'silent', pretty: false, write() {} })
    const { fetch, drain } = gateway.instance
    const listener = await listen({ gateway: { fetch, drain }, server: { host: '127.0.0.1', port: 0 }, log })
    for (const [name, line] of Object.entries(HOSTS)) {
      for (const version of ['1.0', '1.1']) {
        for (const [method, path, body = ''] of REQUESTS) {
          const length = body === '' ? '' : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
          const head = `${method} ${path} HTTP/${version}\r\n${line}authorization: Bearer ${gateway.token}\r\nconnection: close\r\n`
          const [status = ''] = (await exchanged(listener.port, `${head}${length}\r\n${body}`)).split('\r\n', 1)
          expect([name, version, method, path, status]).toEqual([
            name,
            version,
            method,
            path,
            expect.stringMatching(/^$|^HTTP\/1\.1 [234]/),
          ])
        }
      }
    }
    await listener.stop({ deadline_ms: 0 })
    expect(gateway.logged()).not.toContain('internal error')
  })
}

describe('a request with several Host headers', () => {
  for (const [name, lines, status] of [
    ['of two hosts', 'Host: a.example\r\nHost: b.example\r\n', 400],
    ['of one host twice', 'Host: a.example\r\nhost: a.example\r\n', 400],
    ['as a list', 'Host: a.example, b.example\r\n', 400],
    ['of which there is one', 'Host: a.example\r\n', 200],
  ] as const) {
    test(`${name} is answered with ${status}`, async () => {
      await using gateway = await startGateway()
      const log = createLog({ clock: manualClock(), level: 'silent', pretty: false, write() {} })
      const { fetch, drain } = gateway.instance
      const listener = await listen({ gateway: { fetch, drain }, server: { host: '127.0.0.1', port: 0 }, log })
      for (const path of ['/healthz', '/v1/models']) {
        const head = `GET ${path} HTTP/1.1\r\n${lines}authorization: Bearer ${gateway.token}\r\nconnection: close\r\n\r\n`
        const answer = await exchanged(listener.port, head)
        expect(answer).toStartWith(`HTTP/1.1 ${status} `)
        expect(answer.includes('several Host headers')).toBe(status === 400)
      }
      await listener.stop({ deadline_ms: 0 })
    })
  }
})

describe('an item_reference', () => {
  const references = [{}, { id: 1 }, { id: null }, { id: {} }, { id: ['msg_x'] }, { id: '' }, { id: 'msg_none' }]
  for (const reference of references) {
    test(`${JSON.stringify(reference)} is rejected with an error that names it`, async () => {
      await using gateway = await startGateway()
      for (const path of ['/v1/responses', '/v1/responses/input_tokens']) {
        for (const more of [{}, { background: true }, { previous_response_id: 'resp_none' }]) {
          const item = { type: 'item_reference', ...reference }
          const response = await gateway.call(path, { json: { model: 'sandbox/general', input: [item], ...more } })
          expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('"param":')])
        }
      }
      expect(gateway.logged()).not.toContain('internal error')
    })
  }
})

describe('an error that cannot be encoded', () => {
  const throwing = () => {
    throw new Error('The writer is broken.')
  }
  const app = (handle: () => never) => {
    const clock = manualClock()
    const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
    const authenticate = () => ({ token_id: 't', mayUseModel: () => true, mayUseFamily: () => true })
    const route = {
      method: 'GET' as const,
      path: '/x',
      operation: { summary: '', tag: '' },
      encodeError: throwing,
      handle,
    }
    return createApp({ routes: [route], authenticate, settings: DEFAULT_SERVER, clock, log, onFinished: () => {} })
  }
  const ask = (handle: () => never) => app(handle).fetch(new Request('http://a.test/x'), { address: '' })

  test('by its API is returned in the common format', async () => {
    const response = await ask(() => {
      throw new GatewayError('invalid_value', 'No.', { param: 'x' })
    })
    expect([response.status, (await response.json()).error.code]).toEqual([400, 'invalid_value'])
  })

  for (const thrown of [
    Object.create(null),
    undefined,
    null,
    0,
    'text',
    Symbol('x'),
    new Proxy({}, { get: throwing }),
  ]) {
    test(`is an internal error if the thrown value is of type ${typeof thrown}`, async () => {
      const response = await ask(() => {
        throw thrown
      })
      expect([response.status, (await response.json()).error.code]).toEqual([500, 'internal_error'])
    })
  }

  test('has no retry-after if the wait is not a number', async () => {
    for (const retry_after of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const response = await ask(() => {
        throw new GatewayError('rate_limit_exceeded', 'No.', { retry_after })
      })
      expect([response.status, response.headers.get('retry-after')]).toEqual([429, null])
    }
  })
})
