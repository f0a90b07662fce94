/**
 * A vendor of videos on loopback that outlives the gateways that order from it, and keeps its own ledger: what it took,
 * what it would charge for, and whether anybody ever asked for the same video twice at once.
 */
import { randomAlphanumerics } from '../../src/kit/secret.ts'

export type PaidOrder = {
  id: string
  /** The Idempotency-Key it came with. */
  key: string
  prompt: string
  /** How often the same order came again, and was known by its key. */
  repeats: number
  polls: number
  /** How it ends. */
  end: 'completed' | 'failed'
  /** It was told to stop, and did. */
  is_canceled: boolean
}

export type VideoVendor = {
  /** `http://127.0.0.1:<port>/v1`. */
  url: string
  /** Everything that was taken, in order. */
  orders: PaidOrder[]
  /** Requests about one video that came while another about it was being answered. */
  overlaps: string[]
  /** Resolves once it has taken and answered so many orders and questions in all. */
  until(count: number): Promise<void>
  stop(): Promise<void>
}

type VendorOptions = {
  /** The same key is the same order. Default true. */
  idempotent?: boolean
  /** Questions until a video is done. Default 1. */
  polls?: number
  /** Whether the first order with this prompt is refused for the time being, by a definite answer. Default: no. */
  refusesFirst?: (prompt: string) => boolean
  /** Whether an order with this prompt is accepted, and its first answer is a 500 all the same. Default: no. */
  losesFirst?: (prompt: string) => boolean
  /** How a video ends, by its prompt. Default: completed. */
  end?: (prompt: string) => PaidOrder['end']
  /** Whether a finished video cannot be downloaded now: 404. Default: it can. */
  isGone?: () => boolean
  /** The bytes of every video. */
  file?: Uint8Array<ArrayBuffer>
}

/** How long the vendor thinks about a question. */
const ANSWER_MILLISECONDS = 5

/** The first box of an MP4 file, and nothing in it: enough to be known as one. */
const TINY_FILE = new Uint8Array([
  0, 0, 0, 24, 0x66, 0x74, 0x79, 0x70, 0x69, 0x73, 0x6f, 0x6d, 0, 0, 2, 0, 0x69, 0x73, 0x6f, 0x6d, 0x6d, 0x70, 0x34,
  0x31,
])

export function startVideoVendor(options: VendorOptions = {}): VideoVendor {
  const { idempotent = true, polls: needed = 1, end = () => 'completed', file = TINY_FILE } = options
  const refusesFirst = options.refusesFirst ?? (() => false)
  const losesFirst = options.losesFirst ?? (() => false)
  const refused = new Set<string>()
  let served = 0
  const waiting = new Set<() => void>()
  const serve = () => {
    served++
    for (const look of waiting) look()
  }
  const orders: PaidOrder[] = []
  const byKey = new Map<string, PaidOrder>()
  const byId = new Map<string, PaidOrder>()
  const asking = new Set<string>()
  const overlaps: string[] = []

  function take(key: string, prompt: string): PaidOrder {
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
      is_canceled: false,
    }
    orders.push(order)
    serve()
    byKey.set(key, order)
    byId.set(order.id, order)
    return order
  }

  const shown = (order: PaidOrder) => ({
    id: order.id,
    object: 'video',
    model: 'film',
    status: order.polls === 0 ? 'queued' : order.polls < needed ? 'in_progress' : order.end,
    progress: Math.min(100, Math.floor((100 * order.polls) / needed)),
    created_at: 1_700_000_000,
    error:
      order.polls >= needed && order.end === 'failed'
        ? { code: 'generation_failed', message: 'It did not work.' }
        : null,
  })

  async function poll(order: PaidOrder): Promise<Response> {
    if (asking.has(order.id)) overlaps.push(order.id)
    asking.add(order.id)
    order.polls++
    serve()
    // A vendor takes its time: a second question that comes meanwhile finds the first one open.
    await Bun.sleep(ANSWER_MILLISECONDS)
    asking.delete(order.id)
    return Response.json(shown(order))
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (request.method === 'POST' && pathname === '/v1/videos') {
        const { prompt } = (await request.json()) as { prompt: string }
        if (refusesFirst(prompt) && !refused.has(prompt)) {
          refused.add(prompt)
          return Response.json({ error: { message: 'Too busy.', code: 'busy' } }, { status: 429 })
        }
        const order = take(request.headers.get('idempotency-key') ?? '', prompt)
        if (losesFirst(prompt) && order.repeats === 0) {
          return Response.json({ error: { message: 'Oops.', code: 'server_error' } }, { status: 500 })
        }
        return Response.json(shown(order))
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
        const look = () => {
          if (served < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    stop: () => server.stop(true),
  }
}
