/** GET /v1/usage: what a token can see of what it has used. */
import { describe, expect, it } from 'bun:test'
import { startGateway } from './kit/gateway.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

async function setUp() {
  const vendor = startVendor()
  const usage = { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 }
  vendor.otherwise(whole(completion('Hello', { usage })))
  const gateway = await startGateway({
    sandbox: false,
    providers: { v: { base_url: vendor.url, key: 'k' } },
    models: { 'v/priced': { prices: { input: 1, output: 2 } }, 'v/free': {} },
  })
  const get = async (path: string) => {
    const response = await gateway.call(path)
    return { status: response.status, body: await response.json() }
  }
  const chat = (model: string) => gateway.chat({ model, messages: [{ role: 'user', content: 'Hi' }] })
  const stop = async () => {
    await gateway[Symbol.asyncDispose]()
    await vendor.stop()
  }
  return { gateway, chat, get, stop }
}

describe('GET /v1/usage', () => {
  it('returns what the token used and was charged, and null where the price is unknown', async () => {
    const { gateway, chat, get, stop } = await setUp()
    for (const model of ['v/priced', 'v/priced', 'v/free']) expect((await chat(model)).status).toBe(200)
    for (let sum = 0; sum < 3; ) {
      gateway.clock.advance(60)
      await new Promise((resolve) => setTimeout(resolve, 5))
      sum = (await gateway.instance.usage({ limit: 9 })).reduce((total, { requests }) => total + requests, 0)
    }
    const { body } = await get('/v1/usage?by=model,day')
    const counts = { day: '2026-01-01', errors: 0, estimated: 0 }
    expect(body).toMatchObject({
      object: 'list',
      currency: 'USD',
      data: [
        {
          ...counts,
          model: 'v/free',
          requests: 1,
          input_tokens: 1_000,
          output_tokens: 500,
          cost: null,
          unknown_requests: 1,
        },
        {
          ...counts,
          model: 'v/priced',
          requests: 2,
          input_tokens: 2_000,
          output_tokens: 1_000,
          cost: 0.004,
          unknown_requests: 0,
        },
      ],
    })
    expect((await get('/v1/usage?from=2026-01-01&to=2026-01-01')).body.data).toMatchObject([
      { requests: 3, cost: 0.004 },
    ])
    expect((await get('/v1/usage?from=2025-01-01&to=2025-12-31')).body.data).toMatchObject([{ requests: 0, cost: 0 }])
    await stop()
  })

  it.each([
    ['from=yesterday', 'from'],
    ['from=2026-01-02&to=2026-01-01', 'from'],
    ['by=token', 'by'],
  ])('rejects %s', async (query, param) => {
    const { get, stop } = await setUp()
    const { status, body } = await get(`/v1/usage?${query}`)
    expect([status, body.error.param]).toEqual([400, param])
    await stop()
  })
})
