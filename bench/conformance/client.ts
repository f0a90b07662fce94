/** A streaming client on a bare socket: sees each event as it comes, and how the stream ends. */
import { connect, type Socket } from 'node:net'

export type Gateway = {
  /** The base of the API, such as `http://127.0.0.1:8000/v1`. */
  url: string
  token: string
  model: string
  headers?: Record<string, string>
}

/** `whole`: the body ended as HTTP says. `broken`: the connection ended before. `open`: it has not ended. */
export type End = 'whole' | 'broken' | 'open'

export type Stream = {
  status: number
  headers: Map<string, string>
  /** The data of the events so far, with `[DONE]` and errors. */
  events: string[]
  /** Everything of the body so far. */
  body: string
  end: End
  socket: Socket
  /** Resolves when the condition holds, and when the answer has ended. Rejects after the time. */
  until(condition: () => boolean, seconds?: number): Promise<void>
}

/** Sends a chat request whose only message is `name`, by which the vendor knows its script. */
export function ask(gateway: Gateway, name: string, fields: object = {}): Stream {
  const { hostname, port, pathname, host } = new URL(`${gateway.url}/chat/completions`)
  const body = JSON.stringify({
    model: gateway.model,
    messages: [{ role: 'user', content: name }],
    stream: true,
    ...fields,
  })
  const socket = connect({ host: hostname, port: Number(port || 80) })
  const headers = {
    host,
    authorization: `Bearer ${gateway.token}`,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
    ...gateway.headers,
  }
  const lines = Object.entries(headers).map(([key, value]) => `${key}: ${value}`)
  socket.write(`POST ${pathname} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)

  const watchers = new Set<() => void>()
  let received: Buffer = Buffer.alloc(0)
  let isClosed = false
  const stream: Stream = {
    status: 0,
    headers: new Map(),
    events: [],
    body: '',
    end: 'open',
    socket,
    until(condition, seconds = 10) {
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          watchers.delete(look)
          reject(new Error(`it did not come within ${seconds} s`))
        }, seconds * 1000)
        const look = () => {
          if (!condition() && stream.end === 'open') return
          clearTimeout(late)
          watchers.delete(look)
          resolve()
        }
        watchers.add(look)
        look()
      })
    },
  }
  const update = () => {
    readAnswer(stream, received, isClosed)
    for (const look of [...watchers]) look()
  }
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes])
    update()
  })
  const close = () => {
    isClosed = true
    update()
  }
  socket.on('close', close)
  socket.on('error', close)
  return stream
}

/** Reads all that has come once more: the answers are small. */
function readAnswer(stream: Stream, received: Buffer, isClosed: boolean): void {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) {
    if (isClosed) stream.end = 'broken'
    return
  }
  const [first = '', ...lines] = received.subarray(0, end).toString('latin1').split('\r\n')
  stream.status = Number(first.split(' ')[1])
  stream.headers = new Map(
    lines.map((line) => {
      const at = line.indexOf(':')
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const
    }),
  )
  const { body, isWhole } = bodyOf(received.subarray(end + 4), stream.headers, isClosed)
  stream.body = body.toString('utf8')
  stream.events = dataOf(stream.body)
  if (isWhole) stream.end = 'whole'
  else if (isClosed) stream.end = 'broken'
}

function bodyOf(bytes: Buffer, headers: Map<string, string>, isClosed: boolean): { body: Buffer; isWhole: boolean } {
  const length = headers.get('content-length')
  if (length !== undefined) return { body: bytes, isWhole: bytes.length >= Number(length) }
  if (headers.get('transfer-encoding')?.toLowerCase() !== 'chunked') return { body: bytes, isWhole: isClosed }
  const pieces: Buffer[] = []
  for (let at = 0; ; ) {
    const line = bytes.indexOf('\r\n', at)
    const size = line < 0 ? Number.NaN : Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16)
    if (Number.isNaN(size)) return { body: Buffer.concat(pieces), isWhole: false }
    pieces.push(bytes.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
    if (size === 0) return { body: Buffer.concat(pieces), isWhole: true }
  }
}

/** The data of complete events; several lines of one event are joined, as the standard of event streams says. */
function dataOf(body: string): string[] {
  const blocks = body.split(/\r\n\r\n|\n\n|\r\r/)
  blocks.pop()
  return blocks.flatMap((block) => {
    const lines = block.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:'))
    return lines.length === 0 ? [] : [lines.map((line) => line.slice(line[5] === ' ' ? 6 : 5)).join('\n')]
  })
}
