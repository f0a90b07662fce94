/** A vendor of videos for the load benchmark: each takes a while, each answer some milliseconds, and it knows when it was done. */

const [, , least = '60', most = '120', latency = '30'] = process.argv

type Order = { key: string; done_ms: number }
const orders = new Map<string, Order>()
const byKey = new Map<string, string>()
let polls = 0

/** The first box of an MP4 file, enough to be known as one. */
const FILE = new Uint8Array(24)
FILE.set([0, 0, 0, 24, 0x66, 0x74, 0x79, 0x70, 0x69, 0x73, 0x6f, 0x6d])

function take(key: string): string {
  const known = byKey.get(key)
  if (known) return known
  const id = `video_${orders.size}`
  byKey.set(key, id)
  const seconds = Number(least) + Math.random() * (Number(most) - Number(least))
  orders.set(id, { key, done_ms: Date.now() + seconds * 1000 })
  return id
}

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname === '/ledger') {
    return Response.json({ polls, orders: [...orders.values()].map(({ key, done_ms }) => [key, done_ms]) })
  }
  if (pathname.endsWith('/content')) return new Response(FILE, { headers: { 'content-type': 'video/mp4' } })
  await Bun.sleep(Number(latency))
  if (request.method === 'POST') {
    await request.text()
    const id = take(request.headers.get('idempotency-key') ?? '')
    return Response.json({ id, object: 'video', status: 'queued', progress: 0 })
  }
  polls++
  const id = pathname.slice(pathname.lastIndexOf('/') + 1)
  const order = orders.get(id)
  if (!order) return Response.json({ error: { message: 'No such video.' } }, { status: 404 })
  const status = Date.now() >= order.done_ms ? 'completed' : 'in_progress'
  return Response.json({ id, object: 'video', status, progress: 50 })
}

const server = Bun.serve({ hostname: '127.0.0.1', port: 0, development: false, fetch: answer })
process.stdout.write(`{"port":${server.port}}\n`)
