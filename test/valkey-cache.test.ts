/** The response cache in Valkey, through whole gateways. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OWNER } from './kit/admin.ts'
import type { TestGateway } from './kit/gateway.ts'
import { startGateway } from './kit/gateway.ts'
import { fakeValkey, HELLO, hasValkey, startValkey, type ValkeyServer } from './kit/valkey.ts'
import { startVendor, type Vendor } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const QUESTION = { model: 'house/fast', messages: [{ role: 'user', content: 'private words' }], temperature: 0 }

function vendor(): Vendor {
  const acme = startVendor()
  closing.push(() => acme.stop())
  return acme
}

async function gatewayOn(url: string, acme: Vendor, cache: object = {}, store_url?: string): Promise<TestGateway> {
  const settings = {
    admin_token: OWNER,
    providers: { acme: { base_url: acme.url, key: 'k' } },
    models: { 'house/fast': { targets: [{ provider: 'acme', model: 'fast' }], cache: { scope: 'all', ...cache } } },
    cache: { storage: 'valkey', max_entries: 1, max_bytes: 1, max_vector_bytes: 1 },
    valkey: { url, prefix: 'gatehouse', timeout_ms: 100 },
  }
  const gateway = await startGateway(
    settings as Parameters<typeof startGateway>[0],
    store_url === undefined ? {} : { store_url },
  )
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

async function outcome(gateway: TestGateway, body: object = QUESTION, token = gateway.token): Promise<string | null> {
  const response = await gateway.chat(body, { headers: { authorization: `Bearer ${token}` } })
  expect(response.status).toBe(200)
  await response.text()
  return response.headers.get('x-gatehouse-cache')
}

const eventsOf = (gateway: TestGateway) =>
  [...gateway.logged().matchAll(/"event":"([^"]*(?:valkey|cache)[^"]*)"/g)].map(([, event]) => event)

describe.skipIf(!hasValkey)('a response cache in Valkey', () => {
  const start = async () => {
    const server: ValkeyServer = await startValkey()
    closing.push(server.stop)
    return server
  }

  it('with entries that something else has written asks the provider', async () => {
    const { url } = await start()
    const acme = vendor()
    const gateway = await gatewayOn(url, acme)
    const streamed = { ...QUESTION, stream: true }
    const both = async () => [await outcome(gateway), await outcome(gateway, streamed)]
    expect(await both()).toEqual(['miss', 'miss'])
    await gateway.instance.close({ deadline_ms: 0 })
    const later = await gatewayOn(url, acme)
    const client = new Bun.RedisClient(url)
    closing.push(() => client.close())
    const keys = await client.keys('*')
    expect(keys).toHaveLength(2)
    const now = later.clock.now()
    for (const answer of ['', 'x', 'null', '7', '[]', '{}', '{"text":5,"parts":5}', '{"text":["a"],"parts":[5]}']) {
      for (const key of keys) await client.set(key, `${now} ${now + 60_000}\n${answer}`)
      const before = acme.requests.length
      expect(await outcome(later)).not.toBe('hit')
      expect(await outcome(later, streamed)).not.toBe('hit')
      expect(acme.requests.length).toBe(before + 2)
    }
  })

  it('is shared by gateways, above the bounds of the other storages, and expires on the server', async () => {
    const { url } = await start()
    const acme = vendor()
    const [one, other] = [await gatewayOn(url, acme, { ttl_seconds: 60 }), await gatewayOn(url, acme)]
    const streamed = { ...QUESTION, stream: true }
    expect([await outcome(one), await outcome(one, streamed)]).toEqual(['miss', 'miss'])
    await one.instance.close({ deadline_ms: 0 })
    expect([await outcome(other), await outcome(other, streamed)]).toEqual(['hit', 'hit'])
    expect(acme.requests).toHaveLength(2)
    const client = new Bun.RedisClient(url)
    closing.push(() => client.close())
    const keys = await client.keys('*')
    expect(keys.map((key) => key.replace(/[0-9a-f]{64}$/, '<digest>'))).toEqual(
      Array(2).fill('gatehouse:cache:|house/fast|0.0|<digest>'),
    )
    for (const key of keys) {
      const left = await client.pttl(key)
      expect(left).toBeGreaterThan(30_000)
      expect(left).toBeLessThanOrEqual(60_000)
      expect(await client.get(key)).not.toContain('private words')
    }
    expect(eventsOf(other)).toEqual([])
  })

  it('forgets a response when its time has passed on the clock of the gateway', async () => {
    const { url } = await start()
    const gateway = await gatewayOn(url, vendor(), { ttl_seconds: 60 })
    expect([await outcome(gateway), await outcome(gateway)]).toEqual(['miss', 'hit'])
    gateway.clock.advance(60_000)
    expect(await outcome(gateway)).toBe('miss')
  })

  it('is purged for every gateway on the server', async () => {
    const { url } = await start()
    const acme = vendor()
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-purge-'))
    closing.push(() => rmSync(directory, { recursive: true, force: true }))
    const store_url = `sqlite:${directory}/gatehouse.db`
    const one = await gatewayOn(url, acme, {}, store_url)
    const other = await gatewayOn(url, acme, {}, store_url)
    expect(await outcome(one)).toBe('miss')
    const purge = { json: { model: 'house/fast' }, headers: { authorization: `Bearer ${OWNER}` } }
    expect(await (await one.call('/admin/v1/cache/purge', purge)).json()).toEqual({
      model: 'house/fast',
      project_id: null,
      entries: null,
    })
    // The other one looks twice a second; a call of its own shows when it has.
    const found = async () => {
      other.clock.advance(500)
      return outcome(other, QUESTION, one.token)
    }
    let last = await found()
    for (let tries = 0; last !== 'miss' && tries < 100; tries++) last = await found()
    expect(last).toBe('miss')
    expect(await outcome(one)).toBe('hit')
  })

  it('reads an entry that it did not write as none, and replaces it', async () => {
    const { url } = await start()
    const gateway = await gatewayOn(url, vendor())
    const other = await gatewayOn(url, vendor())
    expect(await outcome(gateway)).toBe('miss')
    await gateway.instance.close({ deadline_ms: 0 })
    const client = new Bun.RedisClient(url)
    closing.push(() => client.close())
    const [key = ''] = await client.keys('*')
    await client.set(key, 'something else')
    expect([await outcome(other), await outcome(other)]).toEqual(['miss', 'hit'])
  })

  it('logs one error while the server refuses to write, and answers', async () => {
    const { url } = await start()
    const gateway = await gatewayOn(url, vendor())
    const client = new Bun.RedisClient(url)
    closing.push(() => client.close())
    await client.send('CONFIG', ['SET', 'maxmemory', '1'])
    for (let n = 0; n < 3; n++) expect(await outcome(gateway, { ...QUESTION, seed: n })).toBe('miss')
    await gateway.instance.close({ deadline_ms: 0 })
    expect(eventsOf(gateway)).toEqual(['response cache not written'])
    expect(gateway.logged()).toContain('OOM')
    expect(gateway.logged()).not.toContain('private words')
  })
})

describe('without a server', () => {
  it('every request goes to the provider, one line is logged, and the password is nowhere in it', async () => {
    const server = await fakeValkey(() => {})
    server.stop()
    const acme = vendor()
    const gateway = await gatewayOn(server.url.replace('//', '//:canary-password@'), acme)
    for (let n = 0; n < 4; n++) expect(await outcome(gateway)).toBe('miss')
    expect(acme.requests).toHaveLength(4)
    expect(eventsOf(gateway)).toEqual(['valkey unavailable'])
    expect(gateway.logged()).not.toContain('canary-password')
  })

  it('a server that hangs makes three requests wait for the time-out, and no other', async () => {
    const server = await fakeValkey((socket, n) => n === 0 && socket.write(HELLO))
    closing.push(server.stop)
    const acme = vendor()
    const gateway = await gatewayOn(server.url, acme)
    const commands = () => server.received.length - 1
    for (let n = 0; n < 3; n++) {
      const answer = outcome(gateway, { ...QUESTION, seed: n })
      while (commands() <= n) await new Promise((next) => setImmediate(next))
      gateway.clock.advance(99)
      expect(acme.requests).toHaveLength(n)
      gateway.clock.advance(1)
      expect(await answer).toBe('miss')
    }
    // No time passes for these.
    expect([await outcome(gateway), await outcome(gateway)]).toEqual(['miss', 'miss'])
    expect(acme.requests).toHaveLength(5)
    expect(eventsOf(gateway).sort()).toEqual([
      'response cache not read',
      'response cache not written',
      'valkey unavailable',
    ])
  })
})
