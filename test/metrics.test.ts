/** `GET /metrics`: who may read it, and in which format. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { type AdminGateway, OWNER, startAdminGateway } from './kit/admin.ts'
import { configOf } from './kit/gateway.ts'
import { readScrape } from './kit/metrics.ts'

const REMOTE = { address: '203.0.113.7' }

describe('GET /metrics', () => {
  let gateway: AdminGateway
  beforeAll(async () => {
    gateway = await startAdminGateway()
  })
  afterAll(() => gateway[Symbol.asyncDispose]())

  const get = (headers: Record<string, string> = {}, peer = { address: '127.0.0.1' }, of = gateway) =>
    of.instance.fetch(new Request('http://gatehouse.test/metrics', { headers }), peer)

  it('answers clients of this machine without a token', async () => {
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.8.8.8']) {
      const response = await get({}, { address })
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    }
  })

  it('refuses others without an admin token', async () => {
    const peers = ['203.0.113.7', '10.0.0.1', '192.168.1.2', '::ffff:10.0.0.1', 'fe80::1', '']
    for (const address of peers) expect((await get({}, { address })).status).toBe(401)
    const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })
    expect((await get(bearer(OWNER), REMOTE)).status).toBe(200)
    expect((await get(bearer(gateway.token), REMOTE)).status).toBe(401)
    expect((await get(bearer('wrong-but-long-enough-for-one'), REMOTE)).status).toBe(401)
  })

  it('is not for pages of other origins, although a browser on this machine may read it', async () => {
    await using open = await startAdminGateway({ server: { cors_origins: ['*'] } })
    const page = { origin: 'https://page.example' }
    const allowed = async (path: string) =>
      (await open.call(path, { headers: page })).headers.get('access-control-allow-origin')
    expect(await allowed('/healthz')).not.toBeNull()
    expect(await allowed('/metrics')).toBeNull()
  })

  it('does not take a client for local that a proxy on this machine forwards for', async () => {
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via']) {
      expect((await get({ [name]: '127.0.0.1' })).status).toBe(401)
    }
    expect((await get({ 'x-forwarded-for': '127.0.0.1' }, REMOTE)).status).toBe(401)
    const trusting = await startAdminGateway({ server: { trust_proxy: true } })
    expect((await get({ 'x-forwarded-for': '127.0.0.1' }, REMOTE, trusting)).status).toBe(401)
    expect((await get({ 'x-forwarded-for': '203.0.113.7' }, undefined, trusting)).status).toBe(401)
    expect((await get({}, undefined, trusting)).status).toBe(200)
    await trusting[Symbol.asyncDispose]()
  })

  it('asks for a token where a foreign page may have led a browser to a gateway on loopback', async () => {
    const named = await startAdminGateway({
      server: { hosts: ['Box.example'], base_url: 'https://api.example/v1', files_base_url: 'https://files.example' },
    })
    const statusAt = async (host: string, of = gateway, headers = {}) =>
      (await get({ host, ...headers }, undefined, of)).status
    const foreign = [
      'evil.example',
      'evil.example:8787',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'x.internal.evil.example',
      'a b.c',
    ]
    for (const host of foreign) {
      expect([host, await statusAt(host)]).toEqual([host, 401])
      expect([host, await statusAt(host, gateway, { authorization: `Bearer ${OWNER}` })]).toEqual([host, 200])
    }
    const own = [
      'localhost:8787',
      'a.localhost',
      '127.0.0.1:8787',
      '[::1]:8787',
      '10.1.2.3',
      'box',
      'host.docker.internal',
    ]
    for (const host of own) expect([host, await statusAt(host)]).toEqual([host, 200])
    for (const host of ['box.example', 'BOX.example.:8787', 'api.example']) {
      expect([host, await statusAt(host)]).toEqual([host, 401])
      expect([host, await statusAt(host, named)]).toEqual([host, 200])
    }
    await named[Symbol.asyncDispose]()
  })

  it('takes any name where it listens on other addresses, or where no token is ever needed', async () => {
    const { metrics } = configOf()
    for (const settings of [
      { server: { host: '0.0.0.0' } },
      { metrics: { ...metrics, host: '0.0.0.0', port: 9464 } },
      { metrics: { ...metrics, require_token: 'never' as const } },
    ]) {
      const wide = await startAdminGateway(settings)
      const peer = {
        address: '127.0.0.1',
        ...('metrics' in settings && settings.metrics?.port && { isMetrics: true as const }),
      }
      expect((await get({ host: 'box.example' }, peer, wide)).status).toBe(200)
      await wide[Symbol.asyncDispose]()
    }
    const narrow = await startAdminGateway({ server: { host: '::1' } })
    expect((await get({ host: 'box.example' }, undefined, narrow)).status).toBe(401)
    await narrow[Symbol.asyncDispose]()
  })

  it('answers everybody, or nobody without a token, where the settings say so', async () => {
    const { metrics } = configOf()
    const open = await startAdminGateway({ metrics: { ...metrics, require_token: 'never' } })
    expect((await get({}, REMOTE, open)).status).toBe(200)
    await open[Symbol.asyncDispose]()
    const closed = await startAdminGateway({ metrics: { ...metrics, require_token: 'always' } })
    expect((await get({}, undefined, closed)).status).toBe(401)
    expect((await get({ authorization: `Bearer ${OWNER}` }, undefined, closed)).status).toBe(200)
    await closed[Symbol.asyncDispose]()
    const off = await startAdminGateway({ metrics: { ...metrics, enabled: false } })
    expect((await get({}, undefined, off)).status).toBe(404)
    await off[Symbol.asyncDispose]()
  })

  it('serves nothing else at the listener of the metrics, and the metrics only there', async () => {
    const { metrics } = configOf()
    const own = await startAdminGateway({ metrics: { ...metrics, port: 9464 } })
    const at = (path: string, isMetrics?: true) =>
      own.instance.fetch(
        new Request(`http://gatehouse.test${path}`, { headers: { authorization: `Bearer ${own.token}` } }),
        {
          address: '127.0.0.1',
          ...(isMetrics && { isMetrics }),
        },
      )
    expect((await at('/metrics')).status).toBe(404)
    expect((await at('/metrics', true)).status).toBe(200)
    for (const path of ['/v1/models', '/', '/healthz', '/admin/v1/projects', '/nothing'])
      expect((await at(path, true)).status).toBe(404)
    expect((await at('/v1/models')).status).toBe(200)
    await own[Symbol.asyncDispose]()
  })

  it('writes OpenMetrics where the client prefers it', async () => {
    const prometheus = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'
    const cases: [string, boolean][] = [
      [prometheus, true],
      ['application/openmetrics-text', true],
      ['text/plain;version=0.0.4;q=0.5,application/openmetrics-text;q=0.3', false],
      ['application/openmetrics-text;q=0', false],
      ['*/*', false],
      ['', false],
    ]
    for (const [accept, isOpen] of cases) {
      const response = await get({ accept })
      expect(response.headers.get('content-type')?.startsWith('application/openmetrics-text')).toBe(isOpen)
      const body = await response.text()
      expect(body.endsWith('\n# EOF\n')).toBe(isOpen)
      expect(body).toMatch(
        isOpen ? /^# TYPE gatehouse_http_requests counter$/m : /^# TYPE gatehouse_http_requests_total counter$/m,
      )
    }
  })

  it('is answered under any load, and counts a call', async () => {
    const response = await gateway.chat({ model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] })
    await response.json()
    const scrape = readScrape(await (await get()).text())
    const labels = { gen_ai_operation_name: 'chat', gen_ai_request_model: 'sandbox/general', error_type: '' }
    expect(scrape.sum('gen_ai_server_request_duration_seconds_count', labels)).toBe(1)
    expect(scrape.sum('gatehouse_build_info', { version: '0.0.0-test' })).toBe(1)
  })
})
