/** Rate limits in Valkey, through whole gateways: each has a database of its own, so that they share nothing else. */
import { afterEach, describe, expect, it } from 'bun:test'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { hasValkey, startValkey } from './kit/valkey.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

async function setUp() {
  const server = await startValkey()
  closing.push(server.stop)
  const vendor = startVendor()
  closing.push(() => vendor.stop())
  vendor.otherwise(whole(completion('hi', { usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 } })))
  const client = new Bun.RedisClient(server.url)
  closing.push(() => client.close())
  async function scripts(): Promise<number> {
    const stats = (await client.send('INFO', ['commandstats'])) as string
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
  }
  async function start(): Promise<TestGateway> {
    const gateway = await startGateway({
      providers: { v: { base_url: vendor.url } },
      models: { 'v/m': {} },
      tokens: { models: ['*'], rate_limits: { requests_per_minute: 100 } },
      rate_limits: { requests_per_minute: 6 },
      limits: { store: 'valkey', queue_seconds: 0, max_end_users: 100, when_store_fails: 'share' },
      valkey: { url: server.url, prefix: 'gatehouse', timeout_ms: 1_000 },
    })
    closing.push(() => gateway[Symbol.asyncDispose]())
    // Once Valkey decides, it is also asked for what is left. The session of the gateway begins with two scripts.
    for (let asked = 0; asked < 4; ) {
      const before = await scripts()
      await (await gateway.call('/v1/limits')).text()
      asked = (await scripts()) > before ? asked + 1 : 0
      await turns(1)
    }
    return gateway
  }
  async function chat(gateway: TestGateway): Promise<Response> {
    const json = { model: 'v/m', max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] }
    const response = await gateway.chat(json)
    await response.text()
    return response
  }
  return { server, start, chat }
}

const eventsOf = (gateway: TestGateway) =>
  [...gateway.logged().matchAll(/"event":"([^"]*valkey[^"]*)"/g)].map(([, event]) => event)

describe.skipIf(!hasValkey)('rate limits in Valkey', () => {
  it('are shared by gateways, and go on by themselves when the server is away', async () => {
    const { server, start, chat } = await setUp()
    const [one, other] = [await start(), await start()]
    const remaining: (string | null)[] = []
    for (const gateway of [one, other, one, other]) {
      const { status, headers } = await chat(gateway)
      expect(status).toBe(200)
      remaining.push(headers.get('x-ratelimit-remaining-requests'))
    }
    expect(remaining).toEqual(['5', '4', '3', '2'])
    expect((await chat(other)).status).toBe(200)
    expect((await chat(other)).status).toBe(200)
    const refused = await chat(one)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(59)
    await server.stop()
    const statuses: number[] = []
    for (let count = 0; count < 6; count++) {
      const answer = chat(one).then(({ status }) => void statuses.push(status))
      while (statuses.length === count) {
        one.clock.advance(10) // the first call waits until its database knows what was used
        await turns(5)
      }
      await answer
    }
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429]) // its own database knows of two
    one.clock.advance(20_000)
    await turns(50)
    expect(eventsOf(one).filter((event) => event?.startsWith('rate limits'))).toEqual([
      'rate limits are not counted in valkey',
    ])
    expect(one.logged()).not.toContain(server.password)
  }, 240_000) // many turns: on a busy machine they take half a minute

  it('are neither lost nor closed when the server is killed under calls, and are counted there again when it is back', async () => {
    const { server, start, chat } = await setUp()
    const gateway = await start()
    expect([(await chat(gateway)).status, (await chat(gateway)).status]).toEqual([200, 200])
    const statuses: number[] = []
    const send = () => void chat(gateway).then(({ status }) => statuses.push(status))
    for (let count = 0; count < 4; count++) send()
    const killed = server.stop() // SIGKILL
    for (let count = 0; count < 4; count++) send()
    while (statuses.length < 8) {
      gateway.clock.advance(10)
      await turns(5)
    }
    await killed
    // Two of six were used before: neither more than the limit, nor nothing.
    expect(statuses.filter((status) => status === 200)).toHaveLength(4)
    expect(statuses.filter((status) => status === 429)).toHaveLength(4)
    const again = await startValkey(server.port)
    closing.push(again.stop)
    const isBack = () => eventsOf(gateway).at(-1) === 'rate limits are counted in valkey again'
    // Connecting takes real time, of which each step gives a millisecond; well within the window of a minute.
    for (let count = 0; count < 4_000 && !isBack(); count++) {
      gateway.clock.advance(10)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    expect(isBack()).toBe(true)
    expect((await chat(gateway)).status).toBe(429) // the window was written again
    gateway.clock.advance(61_000)
    await turns(50)
    const later = chat(gateway)
    let isOver = false
    void later.then(() => {
      isOver = true
    })
    while (!isOver) {
      await turns(20)
      gateway.clock.advance(10)
    }
    expect((await later).status).toBe(200)
  }, 240_000)
})
