/** The HTTP/1.1 client reads each response as Node's client and the runtime's fetch do. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { createServer, type Server, type Socket } from 'node:net'
import { systemClock } from '../src/kit/clock.ts'
import { createHttp1Client } from '../src/kit/http1/client.ts'
import { RESPONSES } from './kit/http1-responses.ts'

type Read = { status: number; body: string; headers: Record<string, string> } | { error: true }

const ok = (headers: string, body = '') => `HTTP/1.1 200 OK\r\n${headers}\r\n${body}`
const chunked = (body: string) => ok('transfer-encoding: chunked\r\n', body)
/** What is wrong in these must not be read in two ways: a client that is behind another one would be deceived. */
const BROKEN = [
  'HTTP/2 200 OK\r\n\r\n',
  'HTTP/1.1 2000 OK\r\n\r\n',
  'HTP/1.1 200 OK\r\n\r\n',
  ok('content-length: 1\r\ncontent-length: 2\r\n', 'aa'),
  ok('content-length: -1\r\n', 'a'),
  ok('content-length: 1, 1\r\n', 'a'),
  ok('content-length: 0x1\r\n', 'a'),
  ok('content-length: 1\r\ntransfer-encoding: chunked\r\n', '1\r\na\r\n0\r\n\r\n'),
  ok('x: a\0b\r\ncontent-length: 0\r\n'),
  ok(' x: a\r\ncontent-length: 0\r\n'),
  ok('x y: a\r\ncontent-length: 0\r\n'),
  ok('content-length: 2\r\n', 'a'),
  chunked('x\r\n'),
  chunked('-1\r\na\r\n0\r\n\r\n'),
  chunked('0x1\r\na\r\n0\r\n\r\n'),
  chunked('1\r\nab\r\n0\r\n\r\n'),
  chunked('5\r\nhel'),
  chunked('1\r\na\r\n'),
  'HTTP/1.1 200 OK\r\ncontent-le',
  '',
]
const ALL = [...RESPONSES.map(({ text }) => text), ...BROKEN]

const sockets = new Set<Socket>()
let server: Server
let port = 0
let byNode: Read[] | undefined

/** Asks for all of them, each on a connection of its own, and prints what it has read. */
const NODE_SCRIPT = `
const { request } = require('node:http')
const read = (number) => new Promise((resolve) => {
  const failed = () => resolve({ error: true })
  const sent = request({ host: '127.0.0.1', port: PORT, path: '/' + number, method: 'POST', agent: false }, (response) => {
    const pieces = []
    response.on('data', (piece) => pieces.push(piece))
    response.on('error', failed)
    response.on('end', () => {
      if (!response.complete) return failed()
      const { statusCode: status, headers } = response
      resolve({ status, headers, body: Buffer.concat(pieces).toString('latin1') })
    })
  })
  sent.on('error', failed)
  sent.end('{}')
})
;(async () => {
  const all = []
  for (let number = 0; number < COUNT; number++) all.push(await read(number))
  process.stdout.write(JSON.stringify(all))
})()`

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket)
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      const number = /^POST \/(\d+) /.exec(text)?.[1]
      if (!text.includes('\r\n\r\n') || number === undefined) return
      text = ''
      socket.end(Buffer.from(ALL[Number(number)] ?? '', 'latin1'))
    })
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  port = address.port
  const node = Bun.which('node')
  if (!node) return
  const script = NODE_SCRIPT.replace('PORT', String(port)).replace('COUNT', String(ALL.length))
  const child = Bun.spawn([node, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  byNode = JSON.parse(await new Response(child.stdout).text()) as Read[]
})

afterAll(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
})

async function byOwnClient(number: number): Promise<Read> {
  const client = createHttp1Client({ clock: systemClock })
  const url = new URL(`http://127.0.0.1:${port}/${number}`)
  try {
    const call = client.send({ url, method: 'POST', headers: {}, body: '{}', pool: 'one', connect_ms: 5_000 })
    const { status, headers, body } = await call.response
    const pieces: Uint8Array[] = []
    for (;;) {
      const read = await body?.read()
      if (!read || read.done || !read.value) break
      pieces.push(read.value)
    }
    return { status, headers: Object.fromEntries(headers), body: Buffer.concat(pieces).toString('latin1') }
  } catch {
    return { error: true }
  } finally {
    client.close()
  }
}

async function byFetch(number: number): Promise<Read> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/${number}`, {
      method: 'POST',
      body: '{}',
      redirect: 'manual',
      keepalive: false,
    })
    const body = Buffer.from(await response.arrayBuffer()).toString('latin1')
    return { status: response.status, headers: Object.fromEntries(response.headers), body }
  } catch {
    return { error: true }
  }
}

/** Without what a client may add or take away, and what several headers of a name are joined by. */
function comparable(read: Read): unknown {
  if ('error' in read) return read
  const { status, body, headers } = read
  const { connection: _, 'keep-alive': __, 'set-cookie': ___, ...others } = headers
  return { status, body, headers: others }
}

describe('the HTTP/1.1 client', () => {
  it.each(RESPONSES.map(({ name }, number) => [name, number] as const))(
    'reads %s as Node and fetch do',
    async (_, number) => {
      const own = comparable(await byOwnClient(number))
      const { status, body } = RESPONSES[number] ?? {}
      expect(own).toMatchObject({ status, body })
      expect(comparable(await byFetch(number))).toEqual(own)
      if (byNode) expect(comparable(byNode[number] ?? { error: true })).toEqual(own)
    },
  )

  it.each(BROKEN.map((text, at) => [JSON.stringify(text), RESPONSES.length + at] as const))(
    'refuses %s',
    async (_, number) => {
      expect(await byOwnClient(number)).toEqual({ error: true })
    },
  )
})
