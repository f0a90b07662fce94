/** GET /admin/v1/ledger/reconcile and GET /admin/v1/cache of a running gateway. */
import { describe, expect, it } from 'bun:test'
import { OWNER } from './kit/admin.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

async function start() {
  const vendor = startVendor()
  vendor.otherwise(whole(completion('hi')))
  const gateway = await startGateway(
    configOf({
      admin_token: OWNER,
      providers: { v: { base_url: vendor.url } },
      models: {
        m: { targets: [{ provider: 'v', model: 'm' }], prices: { input: 1, output: 2 }, cache: { requests: 'all' } },
      },
    }),
  )
  const read = async (path: string) => {
    const response = await gateway.call(`/admin/v1${path}`, { headers: { authorization: `Bearer ${OWNER}` } })
    return { status: response.status, body: await response.json() }
  }
  return {
    gateway,
    read,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]()
      vendor.stop()
    },
  }
}

describe('GET /admin/v1/ledger/reconcile', () => {
  it('says that the sums are those of the entries, and refuses ranges that are too long or empty', async () => {
    await using running = await start()
    await (await running.gateway.chat({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })).text()
    const { body } = await running.read('/ledger/reconcile')
    expect(body).toMatchObject({ difference: 0, differences: [], unknown_costs: 0 })
    expect(body.to - body.from).toBe(7 * 86_400)
    expect((await running.read('/ledger/reconcile?from=1000000&to=8948800')).status).toBe(200)
    expect(await running.read('/ledger/reconcile?from=1000000&to=8948801')).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_value', param: 'from' } },
    })
    expect((await running.read('/ledger/reconcile?from=2026-01-02&to=2026-01-01')).status).toBe(400)
  })
})

describe('GET /admin/v1/cache', () => {
  it('counts cached responses with their bytes', async () => {
    await using running = await start()
    expect((await running.read('/cache')).body).toEqual({ storage: 'memory', entries: 0, bytes: 0 })
    await (await running.gateway.chat({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })).text()
    const { body } = await running.read('/cache')
    expect(body).toMatchObject({ storage: 'memory', entries: 1 })
    expect(body.bytes).toBeGreaterThan(50)
  })
})
