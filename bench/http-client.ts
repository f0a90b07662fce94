/** A minimal HTTP/1.1 client for loads: raw sockets and one request at a time on each, so that it costs next to nothing. */
import type { Socket } from 'bun'

export type Target = { url: string; headers: Record<string, string>; body: string }

export type Handlers = {
  /** Each piece of an answer's body, chunk headers included. */
  piece?: (connection: Connection, text: string) => void
  /** A whole answer has arrived; the connection is free again. */
  answered: (connection: Connection, status: number) => void
  /** The connection is gone, with or without an answer under way. */
  closed: (connection: Connection) => void
}

export type Connection = {
  id: number
  busy: boolean
  socket: Socket<Connection>
  /** What is known of the answer under way. */
  head: string
  status: number
  /** Body bytes that are still to come; undefined while the headers are, Infinity for a chunked body. */
  left: number | undefined
  tail: string
}

/** Renders a POST once; every connection sends these bytes. */
export function renderRequest({ url, headers, body }: Target): Buffer {
  const { host, pathname } = new URL(url)
  const lines = [`POST ${pathname} HTTP/1.1`, `host: ${host}`, `content-length: ${Buffer.byteLength(body)}`]
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

export async function connect(url: string, id: number, handlers: Handlers): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<Connection>()
  await Bun.connect<Connection | undefined>({
    hostname,
    port: Number(port),
    data: undefined,
    socket: {
      open: (opened) => {
        const socket = opened as Socket<Connection>
        socket.setNoDelay(true)
        socket.data = { id, busy: false, socket, head: '', status: 0, left: undefined, tail: '' }
        resolve(socket.data)
      },
      data: (socket, bytes) => socket.data && receive(socket.data, bytes, handlers),
      close: (socket) => socket.data && handlers.closed(socket.data),
      error: (_, error) => reject(error),
      connectError: (_, error) => reject(error),
    },
  })
  return promise
}

export function post(connection: Connection, request: Buffer): void {
  connection.busy = true
  connection.head = ''
  connection.tail = ''
  connection.left = undefined
  connection.socket.write(request)
}

function receive(connection: Connection, bytes: Buffer, handlers: Handlers): void {
  let text = bytes.toString('latin1')
  if (connection.left === undefined) {
    connection.head += text
    const headEnd = connection.head.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    text = connection.head.slice(headEnd + 4)
    connection.head = connection.head.slice(0, headEnd).toLowerCase()
    connection.status = Number(connection.head.slice(9, 12))
    const length = /content-length: *(\d+)/.exec(connection.head)?.[1]
    connection.left = length === undefined ? Number.POSITIVE_INFINITY : Number(length)
  }
  connection.left -= text.length
  // Latin-1 keeps one character a byte. A chunked body ends with an empty chunk, and only there.
  if (connection.left === Number.POSITIVE_INFINITY) {
    connection.tail = (connection.tail + text).slice(-5)
    if (connection.tail === '0\r\n\r\n') connection.left = 0
  }
  handlers.piece?.(connection, text)
  if (connection.left > 0) return
  connection.busy = false
  handlers.answered(connection, connection.status)
}
