/** The lists of orders of the vendors that have one: how they are read, and by what an order is recognised in them. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProviderKind } from '../src/config/schema/provider-kinds.ts'
import { type OrderList, shows } from '../src/providers/orders/order-list.ts'
import type { OrderCall } from '../src/providers/provider.ts'
import { createProvider } from '../src/providers/registry.ts'
import { providerParts } from './kit/provider-parts.ts'
import { type Answer, startVendor, type Vendor, whole } from './kit/vendor.ts'

const SIGNAL = new AbortController().signal
const KEY = 'key-of-the-operator'
const TASK_ID = 'task_0123456789abcdefghijABCDEFGHIJ45'
/** 2026-11-20 10:00:00. */
const SINCE = 1_795_168_800

type Case = {
  kind: ProviderKind
  /** The path of the base URL. */
  version: string
  model: string
  /** 3D models; default: videos. */
  isThreeD?: true
  order?: object
  fixtures: string[]
  /** The requests for the pages. */
  pages: string[]
  /** The ids of the listed orders; `own`: the first one is this order. */
  ids: string[]
  operation: unknown
  /** For each listed order: whether it is this one; undefined: the list does not say. */
  recognised: (boolean | undefined)[]
  /** An order that the list does not show well enough. */
  hidden?: object
}

const VIDEO = {
  prompt: 'A red kite',
  n: 1,
  aspect_ratio: '16:9',
  duration: 4,
  size: '720p',
  audio_enable: false,
}
const IMAGE = { image: 'https://files.example/a.png' }

const CASES: Case[] = [
  {
    kind: 'replicate',
    version: '/v1',
    model: 'wan-video/wan-2.5-t2v',
    fixtures: ['list', 'list-end'],
    pages: ['/v1/predictions?created_after=2026-11-20T10%3A00%3A00.000Z', '/v1/predictions?cursor=cD0yMDIz'],
    ids: ['aaaa1111', 'bbbb2222', 'cccc3333', 'dddd4444'],
    operation: {
      model: 'wan-video/wan-2.5-t2v',
      operation: { getUrl: 'https://api.replicate.com/v1/predictions/aaaa1111' },
    },
    recognised: [true, false, false, false],
  },
  {
    kind: 'fal',
    version: '',
    model: 'fal-ai/veo3.1',
    fixtures: ['list', 'list-end'],
    pages: ['', '&cursor=Mg%3D%3D'].map(
      (cursor) =>
        `/v1/models/requests/by-endpoint?endpoint_id=fal-ai%2Fveo3.1&start=2026-11-20T10%3A00%3A00.000Z&limit=100&expand=payloads${cursor}`,
    ),
    ids: ['a1b2c3d4-0001', 'a1b2c3d4-0002', 'a1b2c3d4-0003'],
    operation: {
      model: 'fal-ai/veo3.1',
      operation: {
        responseUrl: 'https://queue.fal.run/fal-ai/veo3.1/requests/a1b2c3d4-0001',
        submitUrl: 'https://queue.fal.run/fal-ai/veo3.1',
      },
    },
    recognised: [true, false, false],
  },
  {
    kind: 'fal',
    version: '',
    model: 'fal-ai/trellis',
    isThreeD: true,
    order: { ...IMAGE, format: 'glb' },
    fixtures: ['list-end'],
    pages: [
      '/v1/models/requests/by-endpoint?endpoint_id=fal-ai%2Ftrellis&start=2026-11-20T10%3A00%3A00.000Z&limit=100&expand=payloads',
    ],
    ids: ['a1b2c3d4-0003'],
    operation: { path: '/fal-ai/trellis/requests/a1b2c3d4-0003', format: 'glb' },
    recognised: [true],
  },
  {
    kind: 'luma',
    version: '/v1',
    model: 'ray-2',
    fixtures: ['list'],
    pages: ['/v1/generations?limit=100&offset=0'],
    ids: ['7a1c6f1e-0001', '7a1c6f1e-0002', '7a1c6f1e-0003'],
    operation: { id: '7a1c6f1e-0001' },
    recognised: [true, false, false],
  },
  {
    kind: 'chatcompat-video',
    version: '/v1',
    model: 'wan-video',
    fixtures: ['list', 'list-end'],
    pages: ['/v1/videos?limit=100&order=desc', '/v1/videos?limit=100&order=desc&after=video_0003'],
    ids: ['video_0001', 'video_0002', 'video_0003', 'video_0004'],
    operation: { id: 'video_0001' },
    recognised: [true, false, false, undefined],
    hidden: IMAGE,
  },
  {
    kind: 'meshy',
    version: '/openapi',
    model: 'meshy-6',
    isThreeD: true,
    order: { prompt: 'A red kite', format: 'glb', texture: false },
    fixtures: ['list'],
    pages: ['/openapi/v2/text-to-3d?page_num=1&page_size=50&sort_by=-created_at'],
    ids: ['018a210d-0001', '018a210d-0002', '018a210d-0003'],
    operation: { way: 'text', id: '018a210d-0001', model: 'meshy-6', format: 'glb' },
    recognised: [true, false, false],
    hidden: { ...IMAGE, prompt: undefined },
  },
]

const started: Vendor[] = []
afterEach(async () => {
  for (const vendor of started.splice(0)) await vendor.stop()
})

function open({ kind, version, isThreeD }: Pick<Case, 'kind' | 'version' | 'isThreeD'>, ...answers: Answer[]) {
  const vendor = startVendor(...answers)
  started.push(vendor)
  const provider = createProvider(providerParts({ kind, base_url: vendor.origin + version, key: KEY }))
  const orders = isThreeD ? provider.threeD : provider.video
  if (!orders?.orderList) throw new Error(`${kind} lists no orders`)
  return { vendor, list: orders.orderList as OrderList<OrderCall<object>> }
}

const callOf = ({ model, isThreeD, order }: Case, changed: object = {}): OrderCall<object> => ({
  model,
  request: { model: `acme/${model}`, ...(isThreeD ? {} : VIDEO), ...order, ...changed },
  task_id: TASK_ID,
  idempotency_key: 'the-key',
})

const fixture = (kind: string, name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dir, 'fixtures', kind, `${name}.json`), 'utf8'))

const titled = CASES.map((given) => [`${given.kind} (${given.model})`, given] as const)

describe.each(titled)('the list of orders of %s', (_, given) => {
  const answers = () => given.fixtures.map((name) => whole(fixture(given.kind, name)))

  test('is read in pages with the key, and shows the orders with their times', async () => {
    const { vendor, list } = open(given, ...answers())
    const orders = (await list.since(callOf(given), SINCE, SIGNAL)) ?? []
    expect(vendor.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(
      given.pages.map((path) => `GET ${path}`),
    )
    for (const { headers } of vendor.requests) expect(headers.authorization).toContain(KEY)
    expect(orders.map(({ id }) => id)).toEqual(given.ids)
    expect(orders[0]?.operation).toEqual(given.operation as null)
    for (const { created_at } of orders) expect(Math.floor(created_at / 10)).toBe(SINCE / 10)
  })

  test('ends with an order from before the time asked for, or where the vendor ends it by that time', async () => {
    const { vendor, list } = open(given, ...answers())
    await list.since(callOf(given), SINCE + 4, SIGNAL)
    const hasFilter = /start=|created_after=/.test(given.pages[0] ?? '')
    expect(vendor.requests).toHaveLength(hasFilter ? given.fixtures.length : 1)
  })

  test('recognises an order by what it shows of it', async () => {
    const { list } = open(given, ...answers())
    const fields = await list.fieldsOf?.(callOf(given))
    if (!fields) throw new Error('not recognisable')
    const orders = (await list.since(callOf(given), SINCE, SIGNAL)) ?? []
    expect(orders.map((one) => shows(one, fields))).toEqual(given.recognised)
    if (given.hidden) expect(await list.fieldsOf?.(callOf(given, given.hidden))).toBeUndefined()
  })

  test.each([404, 405, 501])('does not exist where the upstream responds with %d', async (status) => {
    const { list } = open(given, whole({ error: 'no such path' }, { status }))
    expect(await list.since(callOf(given), SINCE, SIGNAL)).toBeUndefined()
  })

  test.each([
    ['a failure', whole({ error: 'oops' }, { status: 500 })],
    ['a refused key', whole({ error: 'no' }, { status: 401 })],
    ['a web page', whole('<html>')],
    ['something else', whole({ object: 'thing' })],
  ])('is unreadable after %s, which says nothing of an order', async (_title, answer) => {
    const { list } = open(given, answer)
    const thrown = await list.since(callOf(given), SINCE, SIGNAL).catch((error: unknown) => error)
    expect(thrown).toMatchObject({ code: 'bad_upstream_response' })
  })

  test('is not taken for complete unless the operator says so', () => {
    expect(open(given).list.absent).toBe('unknown')
  })
})

describe('the list of orders of ark', () => {
  const ark = { kind: 'ark', version: '/api/v3' } as const
  const call = { model: 'm', request: { ...VIDEO, model: 'acme/m' }, task_id: TASK_ID, idempotency_key: 'k' }

  test('shows the task id that came with an order', async () => {
    const { vendor, list } = open(ark, whole(fixture('ark', 'list')))
    const orders = await list.since(call, SINCE, SIGNAL)
    expect(vendor.requests[0]?.path).toBe('/api/v3/contents/generations/tasks?page_num=1&page_size=100')
    expect(orders?.filter(({ label }) => label === TASK_ID)).toMatchObject([
      { id: 'cgt-20261120100005-aaaaa', operation: { id: 'cgt-20261120100005-aaaaa' }, created_at: SINCE + 5 },
    ])
    expect(list.fieldsOf).toBeUndefined()
  })
})

test('an account with thousands of orders in the time asked for is not searched to the end', async () => {
  const page = { has_more: true, data: [{ id: 'video_1', created_at: SINCE + 1, prompt: 'x' }] }
  const given = { kind: 'chatcompat-video', version: '/v1' } as const
  const { vendor, list } = open(given)
  vendor.otherwise(whole(page))
  const call = { model: 'm', request: VIDEO, task_id: TASK_ID, idempotency_key: 'k' }
  const thrown = await list.since(call, SINCE, SIGNAL).catch((error: unknown) => error)
  expect(thrown).toMatchObject({ code: 'bad_upstream_response' })
  expect(vendor.requests).toHaveLength(30)
})
