/** Attacks from outside that no other file tries: origins, HTML in names, the timing of tokens, trailers, slow bodies. */
import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { createTokens } from '../src/accounts/tokens.ts'
import { systemClock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { openStore } from '../src/store/open-store.ts'
import { startGateway } from './kit/gateway.ts'
import { openPort } from './kit/served.ts'

describe('an origin that is not configured', () => {
  test.each([
    'https://app.example.evil.example',
    'https://evil-app.example',
    'https://app.example:8443',
    'http://app.example',
    'https://APP.example',
    'https://app.example/',
    'https://app.example, https://evil.example',
    'null',
    '*',
    'file://',
  ])('%s gets no permission where another one is configured', async (origin) => {
    await using gateway = await startGateway({ server: { cors_origins: ['https://app.example'] } })
    const headers = { origin, 'access-control-request-method': 'POST' }
    for (const method of ['GET', 'OPTIONS']) {
      const answer = await gateway.call('/v1/models', { method, headers })
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    }
  })

  test('changes nothing in an answer where none is configured', async () => {
    await using gateway = await startGateway()
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' }
    for (const method of ['GET', 'OPTIONS']) {
      const answer = await gateway.call('/v1/models', { method, headers })
      const found = ['vary', 'access-control-allow-origin', 'access-control-allow-methods'].map((name) =>
        answer.headers.get(name),
      )
      expect(found).toEqual([null, null, null])
    }
  })

  test('is added to what an answer varies by already', async () => {
    await using gateway = await startGateway({ server: { cors_origins: ['https://app.example'] } })
    const { headers } = await gateway.call('/', { headers: { origin: 'https://app.example' } })
    expect(headers.get('vary')?.toLowerCase().split(/, */)).toEqual(['accept', 'origin'])
  })

  test('never gets credentials, and neither does any other', async () => {
    await using gateway = await startGateway({ server: { cors_origins: ['*', 'https://app.example'] } })
    for (const method of ['GET', 'OPTIONS']) {
      const answer = await gateway.call('/v1/models', { method, headers: { origin: 'https://app.example' } })
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    }
  })
})

describe('HTML', () => {
  const HTML = '<script>alert(1)</script>'

  test('in the id of a model is in no page', async () => {
    await using gateway = await startGateway({
      providers: { v: { base_url: 'http://127.0.0.1:9/v1', key: 'k' } },
      models: { [`v/${HTML}`]: {}, 'v/"><img src=x onerror=alert(1)>': {} },
    })
    const listed = (await (await gateway.call('/v1/models')).json()) as { data: { id: string }[] }
    expect(listed.data.map(({ id }) => id)).toContain(`v/${HTML}`)
    for (const path of ['/', '/docs', '/manual', `/manual/search?q=${encodeURIComponent(HTML)}`]) {
      const page = await (await gateway.call(path)).text()
      expect(page).not.toContain('alert(1)</script>')
      expect(page).not.toContain('<img src=x')
    }
  })

  test('in a request is returned as JSON only', async () => {
    await using gateway = await startGateway()
    const answers = [
      await gateway.chat({ model: HTML, messages: [] }),
      await gateway.call(`/v1/${encodeURIComponent(HTML)}`),
      await gateway.call(`/v1/models/${encodeURIComponent(HTML)}`),
    ]
    for (const answer of answers) {
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(answer.headers.get('content-type')).toContain('application/json')
    }
  })
})

test('a wrong token takes as long whether it begins like a valid one or not', async () => {
  const log = createLog({ clock: systemClock, level: 'error', pretty: false, write: () => {} })
  const store = await openStore({ url: 'sqlite::memory:' })
  const tokens = createTokens({
    store: store.tokens,
    projects: store.projects,
    clock: systemClock,
    log,
    defaults: { models: ['*'] },
  })
  const { secret } = await tokens.issue({ name: 'one', models: ['*'] })
  const other = secret.slice(0, 6) + [...secret.slice(6)].reverse().join('')
  /** Each guess is new, as those of an attacker are, and comes from an address of its own, which is not delayed. */
  const guess = (base: string, round: number) => base.slice(0, -4) + String(round).padStart(4, '0')
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < 2_000; round++) {
    for (const [at, base] of [secret, other].entries()) {
      const start = Bun.nanoseconds()
      const from = { address: `10.${at}.${round >> 8}.${round & 255}`, signal: new AbortController().signal }
      const refused = await Promise.try(() => tokens.authenticate(guess(base, round), from)).catch(() => true)
      times[at]?.push(Bun.nanoseconds() - start)
      expect(refused).toBe(true)
    }
  }
  const [near, far] = times.map((list) => list.toSorted((one, two) => one - two)[1_000] ?? 0)
  expect(Math.abs((near ?? 0) - (far ?? 0))).toBeLessThan(0.5 * Math.min(near ?? 0, far ?? 0))
  await tokens.close()
  await store.close()
})

/** The responses on a connection to a gateway that gets this text, until the connection is closed. */
async function raw(url: string, text: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const closed = Promise.withResolvers<void>()
  let seen = ''
  socket.on('data', (bytes) => {
    seen += bytes.toString('latin1')
  })
  socket.on('close', () => closed.resolve())
  socket.on('error', () => closed.resolve())
  socket.write(text)
  await closed.promise
  return seen
}

test('trailers of a chunked body give nobody a second request', async () => {
  const port = await openPort()
  const smuggled = 'GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n'
  const head = (framing: string) =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${port.token}\r\n` +
    `Content-Type: application/json\r\nTrailer: x-a\r\n${framing}\r\n\r\n`
  const body = JSON.stringify({ model: 'sandbox/general', messages: [{ role: 'user', content: 'x' }] })
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n`
  try {
    const answers = await raw(port.url, `${head('Transfer-Encoding: chunked')}${chunk}x-a: 1\r\n\r\n${smuggled}`)
    // The runtime does not know trailers: it answers the request, and closes the connection with a 400 at most.
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
    expect(statuses.slice(1).every((status) => status === '400')).toBe(true)
    expect(port.requests.map(({ path }) => path)).toEqual(['/v1/chat/completions'])
  } finally {
    await port.close()
  }
})

describe('pages that need no token', () => {
  const PAGES = ['/', '/docs', '/manual', '/openapi.json', '/healthz']

  test('are served at any host by default, since a proxy may pass on any', async () => {
    await using gateway = await startGateway()
    for (const path of PAGES) expect((await gateway.call(path, { headers: { host: 'evil.example' } })).status).toBe(200)
  })

  test('are served only at known hosts where server.hosts lists names', async () => {
    await using gateway = await startGateway({ server: { hosts: ['api.example'] } })
    const statusAt = async (path: string, host: string) => (await gateway.call(path, { headers: { host } })).status
    for (const path of PAGES) {
      for (const host of ['api.example', 'API.example:443', 'localhost:8787', '10.0.0.1']) {
        expect([path, host, await statusAt(path, host)]).toEqual([path, host, 200])
      }
      for (const host of ['evil.example', 'api.example.evil.example']) {
        expect([path, host, await statusAt(path, host)]).toEqual([path, host, 404])
      }
    }
    expect(await statusAt('/v1/models', 'evil.example')).toBe(200)
  })
})
