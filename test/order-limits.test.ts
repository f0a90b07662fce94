/** Orders count against the rate limits of their providers: each is sent once, elsewhere or later. */
import { afterEach, describe, expect, it } from 'bun:test'
import type { ModelConfig, ProviderConfig } from '../src/config/schema/schema.ts'
import type { RateLimits } from '../src/spec/rate-limit.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type Answer, failure, startVendor, type Vendor, whole } from './kit/vendor.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const ordersOf = ({ requests }: Vendor) => requests.filter(({ method }) => method === 'POST')

/** A vendor of videos that never ends one; `answers` are for its first orders. */
function videoVendor(...answers: Answer[]): Vendor {
  const vendor = startVendor()
  closing.push(() => vendor.stop())
  let count = 0
  vendor.otherwise((wire) => {
    const isOrder = wire.request.method === 'POST'
    const id = isOrder ? `job-${++count}` : (wire.request.path.split('/').at(-1) ?? '')
    const scripted = isOrder ? answers.shift() : undefined
    return (scripted ?? whole({ id, object: 'video', status: 'in_progress', model: 'clip-1', progress: 1 }))(wire)
  })
  return vendor
}

const providerOf = ({ url }: Vendor, rate_limits?: RateLimits): ProviderConfig => ({
  kind: 'chatcompat-video',
  base_url: url,
  options: { api: 'videos', cancel: 'delete', list: 'no' },
  ...(rate_limits && { rate_limits }),
})

async function gatewayOf(providers: Record<string, ProviderConfig>, rest: Partial<ModelConfig> = {}) {
  const targets = Object.keys(providers).map((provider) => ({ provider, model: 'clip-1' }))
  const models = { 'v/clip': { families: ['video-generation' as const], targets, ...rest } }
  const gateway = await startGateway({ providers, models, sandbox: false })
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Lets the worker run while the clock advances. */
async function advance(gateway: TestGateway, seconds: number): Promise<void> {
  for (let quarters = 0; quarters < seconds * 4; quarters++) {
    gateway.clock.advance(250)
    await turn()
    await gateway.instance.tasks.idle()
  }
}

async function order(gateway: TestGateway, headers: Record<string, string> = {}): Promise<string> {
  const json = { model: 'v/clip', prompt: 'a cat', duration: 5 }
  const response = await gateway.call('/v1/video/generations', { json, headers })
  const { data } = (await response.json()) as { data: { task_id: string } }
  expect(response.status).toBe(200)
  return data.task_id
}

const taskOf = async (gateway: TestGateway, task_id: string) => {
  const response = await gateway.call(`/v1/video/generations/${task_id}`)
  return ((await response.json()) as { data: { status: string; fail_code: string; fail_reason: string } }).data
}

describe('orders at a provider with rate limits', () => {
  it('wait until the limit has place, are sent once each, and are not tried before', async () => {
    const acme = videoVendor()
    const gateway = await gatewayOf({ acme: providerOf(acme, { requests_per_minute: 2 }) })
    const ids: string[] = []
    for (let count = 0; count < 5; count++) ids.push(await order(gateway))
    await advance(gateway, 30)
    expect(ordersOf(acme)).toHaveLength(2)
    // The next step is due when there is place: at most so many seconds are reported to clients.
    const later = await Promise.all(ids.map((id) => gateway.call(`/v1/videos/${id}`)))
    expect(later.filter(({ headers }) => Number(headers.get('retry-after')) >= 15)).toHaveLength(3)
    await advance(gateway, 45)
    expect(ordersOf(acme)).toHaveLength(4)
    await advance(gateway, 75)
    expect(ordersOf(acme)).toHaveLength(5)
    for (const id of ids) expect((await taskOf(gateway, id)).status).toBe('IN_PROGRESS')
    expect(gateway.logged()).not.toContain('order refused')
  })

  it('go to another target that is below its limits', async () => {
    const [acme, film] = [videoVendor(), videoVendor()]
    const limited = providerOf(acme, { videos_per_hour: 1 })
    const gateway = await gatewayOf({ acme: limited, film: providerOf(film) })
    for (let count = 0; count < 3; count++) await order(gateway)
    await advance(gateway, 5)
    expect([ordersOf(acme).length, ordersOf(film).length]).toEqual([1, 2])
  })

  it('do not fall back to another target where the caller forbids it', async () => {
    const [acme, film] = [videoVendor(), videoVendor()]
    const limited = providerOf(acme, { requests_per_minute: 1 })
    const gateway = await gatewayOf({ acme: limited, film: providerOf(film) })
    // Both choose the first target before one of them is sent.
    for (let count = 0; count < 2; count++) await order(gateway, { 'x-gatehouse-no-fallback': '1' })
    await advance(gateway, 5)
    expect([ordersOf(acme).length, ordersOf(film).length]).toEqual([1, 0])
    await advance(gateway, 65)
    expect([ordersOf(acme).length, ordersOf(film).length]).toEqual([2, 0])
  })

  it('give back the units of one that was refused, whose request still counts', async () => {
    const acme = videoVendor(failure(400))
    const gateway = await gatewayOf({ acme: providerOf(acme, { videos_per_day: 1, requests_per_day: 2 }) })
    const refused = await order(gateway)
    await advance(gateway, 3)
    expect((await taskOf(gateway, refused)).status).toBe('FAILURE')
    await order(gateway)
    await advance(gateway, 3)
    expect(ordersOf(acme)).toHaveLength(2)
    await order(gateway)
    await advance(gateway, 120)
    expect(ordersOf(acme)).toHaveLength(2)
  })

  it('fail where the provider can never take them', async () => {
    const acme = videoVendor()
    const gateway = await gatewayOf({ acme: providerOf(acme, { video_seconds_per_day: 4 }) })
    const id = await order(gateway)
    await advance(gateway, 5)
    expect(ordersOf(acme)).toHaveLength(0)
    const { status, fail_code, fail_reason } = await taskOf(gateway, id)
    expect([status, fail_code]).toEqual(['FAILURE', 'upstream_rate_limited'])
    expect(fail_reason).toContain('provider acme: video_seconds_per_day is 4')
  })
})
