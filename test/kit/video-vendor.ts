/**
 * A vendor of videos on loopback that outlives the gateways under test and records the orders it accepted and would
 * charge for, and concurrent requests for the same video.
 */
import { randomAlphanumerics } from '../../src/kit/secret.ts'
import { TINY_MP4 } from './tiny-files.ts'

export type PaidOrder = {
  id: string
  /** The Idempotency-Key it came with. */
  key: string
  prompt: string
  /** How often the same order arrived again and was recognised by its key. */
  repeats: number
  polls: number
  /** How it ends. */
  end: 'completed' | 'failed'
  /** Unix seconds. */
  created_at: number
  /** It was canceled. */
  is_canceled: boolean
}

export type VideoVendor = {
  /** `http://127.0.0.1:<port>/v1`. */
  url: string
  /** All accepted orders, in order. */
  orders: PaidOrder[]
  /** Ids of videos that were requested again during another request for them. */
  overlaps: string[]
  /** Resolves once it has accepted and answered this many orders and polls in total. */
  until(count: number): Promise<void>
  stop(): Promise<void>
}

type VendorOptions = {
  /** Whether the same idempotency key is the same order. Default true. */
  idempotent?: boolean
  /** Polls until a video is done. Default 1. */
  polls?: number
  /** Whether the first order with this prompt is rejected with 429. Default: no. */
  refusesFirst?: (prompt: string) => boolean
  /** With these statuses, each taken out, the first orders are answered, and not accepted. */
  refusals?: number[]
  /** Whether an order with this prompt is accepted although its first response is a 500. Default: no. */
  losesFirst?: (prompt: string) => boolean
  /** How a video ends, by its prompt. Default: completed. */
  end?: (prompt: string) => PaidOrder['end']
  /** Whether the download of a finished video returns 404 now. Default: no. */
  isGone?: () => boolean
  /** The bytes of every video. */
  file?: Uint8Array<ArrayBuffer>
  /** Whether it lists its orders. Default: no. */
  lists?: boolean
  /** How long an order takes: it is accepted after half of it, and answered at its end. Default 0. */
  order_ms?: number
  /** Its clock, for when an order was accepted. Unix milliseconds. */
  now?: () => number
}

/** The duration of a poll. */
const ANSWER_MILLISECONDS = 5

export function startVideoVendor(options: VendorOptions = {}): VideoVendor {
  const { idempotent = true, polls: needed = 1, end = () => 'completed', file = TINY_MP4, order_ms = 0 } = options
  const now = options.now ?? (() => 1_700_000_000_000)
  const refusesFirst = options.refusesFirst ?? (() => false)
  const losesFirst = options.losesFirst ?? (() => false)
  const refused = new Set<string>()
  let served = 0
  const waiting = new Set<() => void>()
  const serve = () => {
    served++
    for (const check of waiting) check()
  }
  const orders: PaidOrder[] = []
  const byKey = new Map<string, PaidOrder>()
  const byId = new Map<string, PaidOrder>()
  const inProgress = new Set<string>()
  const overlaps: string[] = []

  function acceptOrder(key: string, prompt: string): PaidOrder {
    const known = idempotent ? byKey.get(key) : undefined
    if (known) {
      known.repeats++
      return known
    }
    const order: PaidOrder = {
      id: `video_${randomAlphanumerics(16)}`,
      key,
      prompt,
      repeats: 0,
      polls: 0,
      end: end(prompt),
      created_at: Math.floor(now() / 1000),
      is_canceled: false,
    }
    orders.push(order)
    serve()
    byKey.set(key, order)
    byId.set(order.id, order)
    return order
  }

  const videoOf = (order: PaidOrder) => ({
    id: order.id,
    object: 'video',
    model: 'film',
    status: order.polls === 0 ? 'queued' : order.polls < needed ? 'in_progress' : order.end,
    progress: Math.min(100, Math.floor((100 * order.polls) / needed)),
    created_at: order.created_at,
    prompt: order.prompt,
    error:
      order.polls >= needed && order.end === 'failed'
        ? { code: 'generation_failed', message: 'It did not work.' }
        : null,
  })

  async function poll(order: PaidOrder): Promise<Response> {
    if (inProgress.has(order.id)) overlaps.push(order.id)
    inProgress.add(order.id)
    order.polls++
    serve()
    // The poll takes time, so that a concurrent poll overlaps with it.
    await Bun.sleep(ANSWER_MILLISECONDS)
    inProgress.delete(order.id)
    return Response.json(videoOf(order))
  }

  /** Newest first, in pages. */
  function list({ searchParams }: URL): Response {
    const newest = orders.toReversed()
    const after = searchParams.get('after')
    const rest = after === null ? newest : newest.slice(newest.findIndex(({ id }) => id === after) + 1)
    const page = rest.slice(0, Number(searchParams.get('limit') ?? 20))
    return Response.json({ object: 'list', data: page.map(videoOf), has_more: rest.length > page.length })
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    async fetch(request) {
      const url = new URL(request.url)
      const { pathname } = url
      if (options.lists && request.method === 'GET' && pathname === '/v1/videos') return list(url)
      if (request.method === 'POST' && pathname === '/v1/videos') {
        const { prompt } = (await request.json()) as { prompt: string }
        if (refusesFirst(prompt) && !refused.has(prompt)) {
          refused.add(prompt)
          return Response.json({ error: { message: 'Too busy.', code: 'busy' } }, { status: 429 })
        }
        const status = options.refusals?.shift()
        if (status !== undefined) return Response.json({ error: { message: 'Oops.', code: 'oops' } }, { status })
        if (order_ms > 0) await Bun.sleep(order_ms / 2)
        const order = acceptOrder(request.headers.get('idempotency-key') ?? '', prompt)
        if (losesFirst(prompt) && order.repeats === 0) {
          return Response.json({ error: { message: 'Oops.', code: 'server_error' } }, { status: 500 })
        }
        if (order_ms > 0) await Bun.sleep(order_ms / 2)
        return Response.json(videoOf(order))
      }
      const [, id = '', content] = /^\/v1\/videos\/([^/]+)(\/content)?$/.exec(pathname) ?? []
      const order = byId.get(id)
      if (!order) return Response.json({ error: { message: 'No such video.', code: 'not_found' } }, { status: 404 })
      if (request.method === 'DELETE') {
        order.is_canceled = true
        return Response.json({ id, object: 'video.deleted', deleted: true })
      }
      if (!content) return poll(order)
      if (options.isGone?.()) return Response.json({ error: { message: 'No such file.' } }, { status: 404 })
      return new Response(file, { headers: { 'content-type': 'video/mp4' } })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    orders,
    overlaps,
    until: (count) =>
      new Promise((resolve) => {
        const check = () => {
          if (served < count) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
    stop: () => server.stop(true),
  }
}
