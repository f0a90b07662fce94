/** A simulated vendor of chat completions whose answers are written byte by byte, as each case needs them. */
import { createServer, type Server, type Socket } from 'node:net'

/** A request at the vendor, and the connection on which its answer is written. */
export type Exchange = {
  body: { messages: { content: unknown }[]; stream?: boolean }
  socket: Socket
  /** Resolves when the gateway has closed the connection. */
  closed: Promise<void>
  /** The head of an event stream; further header lines as given. */
  begin(lines?: string[]): void
  /** One write of an HTTP chunk. Resolves when the socket takes more. */
  chunk(bytes: string | Uint8Array): Promise<void>
  /** One event of a chat completion. */
  event(delta: object): Promise<void>
  /** The last event, `[DONE]`, and the end of the body. */
  finish(reason?: string): Promise<void>
  /** A whole JSON answer. */
  json(status: number, body: unknown, lines?: string[]): void
}

export type Script = (exchange: Exchange) => Promise<void> | void

export type Vendor = {
  port: number
  /** What answers requests whose last message is the name; each answers until it is replaced. */
  scripts: Map<string, Script>
  /** How many requests came, by name. */
  requests: Map<string, number>
  close(): Promise<void>
}

const ID = 'chatcmpl-conformance'

/** Listens on loopback. `port` 0: one that is free. */
export async function startVendor(port = 0): Promise<Vendor> {
  const scripts = new Map<string, Script>()
  const requests = new Map<string, number>()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.setMaxListeners(0)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let received: Buffer = Buffer.alloc(0)
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes])
      for (;;) {
        const request = takeRequest(received)
        if (!request) return
        received = request.rest
        answer(request.body, socket)
      }
    })
  })
  function answer(text: string, socket: Socket): void {
    const body = text === '' ? { messages: [] } : (JSON.parse(text) as Exchange['body'])
    const name = String(body.messages.at(-1)?.content ?? '')
    requests.set(name, (requests.get(name) ?? 0) + 1)
    const exchange = createExchange(body, socket)
    const script = scripts.get(name)
    if (script) Promise.resolve(script(exchange)).catch(() => socket.destroy())
    else exchange.json(404, { error: { message: `no script for ${JSON.stringify(name)}` } })
  }
  await listening(server, port)
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : port,
    scripts,
    requests,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

const listening = (server: Server, port: number) =>
  new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })

/** A complete request: its body as text, and the bytes after it. */
function takeRequest(received: Buffer): { body: string; rest: Buffer } | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.subarray(0, end).toString('latin1')
  const first = end + 4
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) return takeChunked(received, first)
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  if (received.length < first + length) return undefined
  const body = received.subarray(first, first + length).toString('utf8')
  return { body, rest: Buffer.from(received.subarray(first + length)) }
}

function takeChunked(received: Buffer, first: number): { body: string; rest: Buffer } | undefined {
  const pieces: Buffer[] = []
  for (let at = first; ; ) {
    const line = received.indexOf('\r\n', at)
    if (line < 0) return undefined
    const length = Number.parseInt(received.subarray(at, line).toString('latin1'), 16)
    const next = line + 2 + length + 2
    if (received.length < next) return undefined
    if (length === 0)
      return { body: Buffer.concat(pieces).toString('utf8'), rest: Buffer.from(received.subarray(next)) }
    pieces.push(received.subarray(line + 2, line + 2 + length))
    at = next
  }
}

function createExchange(body: Exchange['body'], socket: Socket): Exchange {
  const closed = new Promise<void>((resolve) => {
    if (socket.destroyed) resolve()
    socket.once('close', () => resolve())
    socket.once('end', () => resolve())
  })
  const write = async (bytes: string | Uint8Array): Promise<void> => {
    if (socket.destroyed) throw new Error('The gateway has closed the connection.')
    if (socket.write(bytes)) return
    const drained = new Promise<void>((resolve) => socket.once('drain', () => resolve()))
    await Promise.race([drained, closed])
  }
  const exchange: Exchange = {
    body,
    socket,
    closed,
    begin(lines = []) {
      const head = ['HTTP/1.1 200 OK', 'content-type: text/event-stream', 'transfer-encoding: chunked', ...lines]
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
    },
    chunk(bytes) {
      const data = Buffer.from(bytes as string)
      return write(Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]))
    },
    event: (delta) => exchange.chunk(eventOf(delta)),
    async finish(reason = 'stop') {
      await exchange.chunk(eventOf({}, { finish_reason: reason }))
      await exchange.chunk('data: [DONE]\n\n')
      await write('0\r\n\r\n')
    },
    json(status, answer, lines = []) {
      const text = JSON.stringify(answer)
      const head = [`HTTP/1.1 ${status} Status`, 'content-type: application/json', ...lines]
      socket.write(`${head.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
    },
  }
  return exchange
}

/** The text of one event. */
export function eventOf(delta: object, { finish_reason = null, ...rest }: Record<string, unknown> = {}): string {
  const choices = [{ index: 0, delta, finish_reason }]
  const event = {
    id: ID,
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'conformance',
    choices,
    ...rest,
  }
  return `data: ${JSON.stringify(event)}\n\n`
}
