/**
 * Meshy on loopback, for orders with text prompts: it outlives the gateways under test and records the orders it
 * accepted and would charge for. A texture is a second order that refines the output of the first.
 */
import { randomAlphanumerics } from '../../src/kit/secret.ts'
import { TINY_GLB, TINY_PNG } from './tiny-files.ts'

export type MeshyOrder = {
  id: string
  mode: 'preview' | 'refine'
  /** The preview that a refine order refines. */
  preview_id: string | undefined
  /** For a refine order: the prompt of its preview. */
  prompt: string
  polls: number
  end: 'SUCCEEDED' | 'FAILED'
}

export type MeshyVendor = {
  /** `http://127.0.0.1:<port>/openapi`. */
  url: string
  /** All accepted orders, in order. */
  orders: MeshyOrder[]
  stop(): Promise<void>
}

type Options = {
  /** Polls until an order is done. Default 1. */
  polls?: number
  /** Whether the first order of this kind with this prompt is rejected with 429. Default: no. */
  refusesFirst?: (prompt: string, mode: MeshyOrder['mode']) => boolean
  /** How an order ends. Default: it succeeds. */
  end?: (prompt: string, mode: MeshyOrder['mode']) => MeshyOrder['end']
}

type Body = { mode: MeshyOrder['mode']; prompt?: string; preview_task_id?: string }

export function startMeshyVendor(options: Options = {}): MeshyVendor {
  const { polls: needed = 1, refusesFirst = () => false, end = () => 'SUCCEEDED' } = options
  const orders: MeshyOrder[] = []
  const refused = new Set<string>()

  function acceptOrder({ mode, prompt: text, preview_task_id }: Body): Response {
    const preview = orders.find(({ id }) => id === preview_task_id)
    if (mode === 'refine' && preview?.end !== 'SUCCEEDED') {
      return Response.json({ message: 'preview_task_id: no such finished task' }, { status: 400 })
    }
    const prompt = preview?.prompt ?? text ?? ''
    if (refusesFirst(prompt, mode) && !refused.has(`${mode} ${prompt}`)) {
      refused.add(`${mode} ${prompt}`)
      return Response.json({ message: 'NoMoreConcurrentTasks' }, { status: 429 })
    }
    const order = {
      id: randomAlphanumerics(20),
      mode,
      preview_id: preview?.id,
      prompt,
      polls: 0,
      end: end(prompt, mode),
    }
    orders.push(order)
    return Response.json({ result: order.id }, { status: 202 })
  }

  function taskResponse(order: MeshyOrder, origin: string): Response {
    order.polls++
    const is_done = order.polls >= needed
    const file = (name: string) => `${origin}/files/${order.id}/${name}?Expires=1`
    const outputs = {
      model_urls: { glb: file('model.glb'), fbx: '', obj: '', mtl: '', usdz: '' },
      thumbnail_url: file('preview.png'),
    }
    return Response.json({
      id: order.id,
      status: is_done ? order.end : order.polls === 1 ? 'PENDING' : 'IN_PROGRESS',
      progress: Math.min(100, Math.floor((100 * order.polls) / needed)),
      ...(is_done && order.end === 'SUCCEEDED' ? outputs : {}),
      task_error: is_done && order.end === 'FAILED' ? { message: 'It did not work.' } : null,
    })
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    async fetch(request) {
      const { pathname, origin } = new URL(request.url)
      if (pathname.startsWith('/files/')) {
        // A file server that does not know the format returns text/plain.
        const [bytes, type] = pathname.endsWith('.glb') ? [TINY_GLB, 'text/plain'] : [TINY_PNG, 'image/png']
        return new Response(bytes, { headers: { 'content-type': type } })
      }
      if (request.method === 'POST') return acceptOrder((await request.json()) as Body)
      const order = orders.find(({ id }) => pathname === `/openapi/v2/text-to-3d/${id}`)
      return order ? taskResponse(order, origin) : Response.json({ message: 'not found' }, { status: 404 })
    },
  })
  return { url: `http://127.0.0.1:${server.port}/openapi`, orders, stop: () => server.stop(true) }
}
