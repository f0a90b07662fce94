/** The HTTP/1.1 client against servers that write what each test says. */
import { afterEach, describe, expect, it } from 'bun:test'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { manualClock } from '../../../test/kit/clock.ts'
import { systemClock } from '../clock.ts'
import type { Http1Call, Http1Request } from './call.ts'
import { createHttp1Client } from './client.ts'
import { openConnection } from './connection.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Peer = { socket: Socket; text: string; number: number }

/** Calls `received` with all that a connection has sent so far, whenever it sends more. */
async function serve(received: (peer: Peer) => void) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    const peer = { socket, text: '', number: sockets.push(socket) }
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      peer.text += bytes.toString('latin1')
      received(peer)
    })
  })
  const port = await listening(server)
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: new URL(`http://127.0.0.1:${port}/v1/chat?a=b`), sockets }
}

async function listening(server: Server): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

function clientOf(clock = systemClock) {
  const client = createHttp1Client({ clock })
  closing.push(client.close)
  const post = (url: URL, more: Partial<Http1Request> = {}) =>
    client.send({ url, method: 'POST', headers: { 'x-a': 'b' }, body: '{}', pool: 'one', connect_ms: 5_000, ...more })
  return { client, post }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

async function textOf(call: Http1Call): Promise<string> {
  const { body } = await call.response
  let text = ''
  for (;;) {
    const next = await body?.read()
    if (!next || next.done) return text
    text += Buffer.from(next.value ?? []).toString()
  }
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (error: { code?: string; message: string }) => error.code ?? error.message,
  )

const ok = (body: string, headers = '') => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${headers}\r\n${body}`
/** Whether the request has arrived whole. */
const isWhole = ({ text }: Peer, body = '{}') => text.endsWith(`\r\n\r\n${body}`)

describe('the client', () => {
  it('writes the request in one piece, and reads the response', async () => {
    let seen = ''
    const { url } = await serve((peer) => {
      seen = peer.text
      if (isWhole(peer)) peer.socket.write(ok('hello', 'X-B: c\r\n'))
    })
    const { post } = clientOf()
    const call = post(url)
    const { status, headers } = await call.response
    expect([status, headers.get('x-b'), await textOf(call), call.isSent()]).toEqual([200, 'c', 'hello', true])
    expect(seen).toBe(`POST /v1/chat?a=b HTTP/1.1\r\nhost: ${url.host}\r\nx-a: b\r\ncontent-length: 2\r\n\r\n{}`)
  })

  it.each([
    ['GET', undefined, ''],
    ['DELETE', undefined, 'content-length: 0\r\n'],
    ['POST', '', 'content-length: 0\r\n'],
    ['POST', 'é', 'content-length: 2\r\n'],
  ])('writes the length of the body of %s %p', async (method, body, expected) => {
    let seen = ''
    const { url } = await serve(({ socket, text }) => {
      seen = text
      socket.write(ok(''))
    })
    await textOf(clientOf().post(url, { method, body, headers: {} }))
    expect(seen).toStartWith(`${method} /v1/chat?a=b HTTP/1.1\r\nhost: ${url.host}\r\n${expected}\r\n`)
  })

  it('reuses a connection whose response was read whole, within a pool', async () => {
    const { url, sockets } = await serve(({ socket }) => socket.write(ok('a')))
    const { client, post } = clientOf()
    for (let at = 0; at < 3; at++) expect(await textOf(post(url))).toBe('a')
    expect([sockets.length, client.idle()]).toEqual([1, 1])
    await textOf(post(url, { pool: 'two' }))
    expect([sockets.length, client.idle()]).toEqual([2, 2])
  })

  it.each([
    ['closes', ok('a', 'connection: close\r\n')],
    ['ends with the connection', 'HTTP/1.1 200 OK\r\n\r\na'],
    ['is one of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na'],
  ])('does not reuse the connection of a response that %s', async (_, response) => {
    const { url, sockets } = await serve(({ socket }) => socket.end(response))
    const { client, post } = clientOf()
    for (let at = 0; at < 2; at++) expect(await textOf(post(url))).toBe('a')
    expect([sockets.length, client.idle()]).toEqual([2, 0])
  })

  it('sends a request once more where an idle connection was closed before a byte of its response', async () => {
    const clock = manualClock()
    const { url, sockets } = await serve(({ socket, number, text }) => {
      if (number === 2 || text.split('POST').length === 2) return socket.write(ok('a'))
      clock.advance(499) // of the 500 ms that a round trip may take
      return socket.destroy()
    })
    const { post } = clientOf(clock)
    expect(await textOf(post(url))).toBe('a')
    clock.advance(1_000)
    expect(await textOf(post(url))).toBe('a')
    expect(sockets.length).toBe(2)
    expect(clock.waiting()).toBe(0)
  })

  it('does not repeat a request that the server has had for half a second, before it closed a connection that was idle', async () => {
    const arrived = Promise.withResolvers<Socket>()
    const { url, sockets } = await serve(({ socket, text }) => {
      if (text.split('POST').length === 3) arrived.resolve(socket)
      else socket.write(ok('a'))
    })
    const clock = manualClock()
    const { post } = clientOf(clock)
    expect(await textOf(post(url))).toBe('a')
    clock.advance(1_000)
    const call = post(url)
    const socket = await arrived.promise
    clock.advance(500)
    socket.destroy()
    expect(await codeOf(textOf(call))).toBe('ECONNRESET')
    expect(sockets.length).toBe(1)
    expect(clock.waiting()).toBe(0)
  })

  it('does not repeat a request on a connection that was idle for less than a second', async () => {
    const { url, sockets } = await serve(({ socket, text }) => {
      if (text.split('POST').length === 3) socket.destroy()
      else socket.write(ok('a'))
    })
    const clock = manualClock()
    const { post } = clientOf(clock)
    expect(await textOf(post(url))).toBe('a')
    clock.advance(999)
    expect(await codeOf(textOf(post(url)))).toBe('ECONNRESET')
    expect(sockets.length).toBe(1)
  })

  it('never repeats a request on a new connection, nor after a byte of the response', async () => {
    let requests = 0
    const { url } = await serve(({ socket, number }) => {
      requests++
      if (number === 1 && requests === 1) socket.write(ok('a'))
      else if (number === 1) socket.end('HTTP/1.1 2')
      else socket.destroy()
    })
    const clock = manualClock()
    const { post } = clientOf(clock)
    expect(await textOf(post(url))).toBe('a')
    clock.advance(2_000)
    expect(await codeOf(textOf(post(url)))).toBe('HPE_INVALID_EOF_STATE')
    expect(await codeOf(textOf(post(url)))).toBe('ECONNRESET')
    expect(requests).toBe(3)
  })

  it('opens a connection of its own for a request that must not be repeated, and says so', async () => {
    const seen: string[] = []
    const { url, sockets } = await serve(({ socket, text }) => {
      seen.push(text)
      socket.write(ok('a'))
    })
    const { client, post } = clientOf()
    await textOf(post(url))
    await textOf(post(url, { is_single: true }))
    expect([sockets.length, client.idle()]).toEqual([2, 1])
    expect(seen[1]).toContain('connection: close\r\n')
  })

  it('writes nothing before it may, and nothing at all where that is refused', async () => {
    let seen = ''
    const { url } = await serve(({ socket, text }) => {
      seen = text
      socket.write(ok('a'))
    })
    const { post } = clientOf()
    const refused = post(url, { beforeSend: () => Promise.reject(new Error('not recorded')), is_single: true })
    expect(await codeOf(textOf(refused))).toBe('not recorded')
    expect([refused.isSent(), seen]).toEqual([false, ''])
    const { promise, resolve } = Promise.withResolvers<void>()
    const call = post(url, { beforeSend: () => promise, is_single: true })
    expect(call.isSent()).toBe(false)
    resolve()
    expect(await textOf(call)).toBe('a')
    expect(call.isSent()).toBe(true)
  })

  it('knows that nothing was sent where the server leaves before it may write', async () => {
    const left = Promise.withResolvers<void>()
    const server = createServer((socket) => {
      socket.on('error', () => {}).on('close', () => left.resolve())
      socket.destroy()
    })
    const port = await listening(server)
    closing.push(() => void server.close())
    const { promise, resolve } = Promise.withResolvers<void>()
    const url = new URL(`http://127.0.0.1:${port}/`)
    const call = clientOf().post(url, { beforeSend: () => promise, is_single: true })
    await left.promise
    for (let turns = 0; turns < 20; turns++) await turn()
    resolve()
    expect(['ECONNABORTED', 'ECONNRESET']).toContain(await codeOf(textOf(call)))
    expect(call.isSent()).toBe(false)
  })

  it('does not keep a connection on which more than the response arrives with it', async () => {
    const { url, sockets } = await serve(({ socket }) => socket.write(`${ok('a')}HTTP/1.1 200 OK\r\n`))
    const { client, post } = clientOf()
    for (let at = 0; at < 3; at++) expect(await textOf(post(url, { pool: `${at}` }))).toBe('a')
    while (client.idle() > 0) await turn()
    expect(await textOf(post(url, { pool: '0' }))).toBe('a')
    expect(sockets.length).toBe(4)
  })

  it('closes an idle connection on which the server speaks unasked, and forgets one that it closes', async () => {
    const { url, sockets } = await serve(({ socket }) => socket.write(ok('a')))
    const { client, post } = clientOf()
    const [one, two] = [post(url), post(url)]
    await Promise.all([textOf(one), textOf(two)])
    expect(client.idle()).toBe(2)
    const closed = Promise.withResolvers<void>()
    sockets[0]?.once('close', () => closed.resolve())
    sockets[0]?.write('HTTP/1.1 408 Request Timeout\r\n\r\n')
    sockets[1]?.end()
    await closed.promise
    while (client.idle() > 0) await turn()
    expect(await textOf(post(url))).toBe('a')
    expect(sockets.length).toBe(3)
  })

  it('closes its idle connections when it is closed', async () => {
    const { url, sockets } = await serve(({ socket }) => socket.write(ok('a', 'keep-alive: timeout=30\r\n')))
    const { client, post } = clientOf()
    await Promise.all([textOf(post(url)), textOf(post(url)), textOf(post(url, { pool: 'two' }))])
    expect(client.idle()).toBe(3)
    client.close()
    expect(client.idle()).toBe(0)
    await Promise.all(
      sockets.map((socket) => socket.destroyed || new Promise((resolve) => socket.once('close', resolve))),
    )
  })

  it.each([
    ['', 3_999, 4_000],
    ['keep-alive: timeout=5\r\n', 3_999, 4_000],
    ['Keep-Alive: max=3, timeout=20\r\n', 18_999, 19_000],
    ['keep-alive: timeout=900\r\n', 29_999, 30_000],
    ['keep-alive: timeout=1\r\n', undefined, 0],
  ])('keeps an idle connection as long as %p allows', async (headers, within, beyond) => {
    const { url, sockets } = await serve(({ socket }) => socket.write(ok('a', headers)))
    const clock = manualClock()
    const { post } = clientOf(clock)
    await textOf(post(url))
    if (within !== undefined) {
      clock.advance(within)
      await textOf(post(url))
      expect(sockets.length).toBe(1)
    }
    clock.advance(beyond)
    await textOf(post(url))
    expect(sockets.length).toBe(2)
  })

  it('closes an idle connection of which nobody asks for more', async () => {
    const { url } = await serve(({ socket }) => socket.write(ok('a', 'keep-alive: timeout=2\r\n')))
    const { client, post } = clientOf()
    await textOf(post(url))
    await turn()
    expect(client.idle()).toBe(1)
    while (client.idle() > 0) await turn() // after a second, which the runtime counts roughly
  })

  it('reads an early response while the server does not read the request, and does not reuse the connection', async () => {
    const { url, sockets } = await serve(({ socket }) => {
      socket.pause()
      socket.write(ok('too large'))
    })
    const { client, post } = clientOf()
    const call = post(url, { body: new Uint8Array(64 * 1024 * 1024) })
    expect(await textOf(call)).toBe('too large')
    expect([client.idle(), sockets.length]).toEqual([0, 1])
  })

  it('writes a long body as fast as the server reads', async () => {
    const body = Buffer.alloc(8 * 1024 * 1024, 'abcdefgh')
    let length = 0
    let headLength = 0
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (bytes) => {
        length += bytes.length
        socket.pause()
        setImmediate(() => socket.resume())
        if (length >= body.length + headLength) socket.write(ok(String(length)))
      })
    })
    const port = await listening(server)
    closing.push(() => void server.close())
    const { post } = clientOf()
    headLength = `POST / HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-length: ${body.length}\r\n\r\n`.length
    const call = post(new URL(`http://127.0.0.1:${port}/`), { body, headers: {} })
    expect(await textOf(call)).toBe(String(body.length + headLength))
  })

  it('stops a server that is faster than its reader', async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x')
    let sent = 0
    const { url } = await serve(({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const more = () => {
        while (sent < 4_096) {
          sent++
          if (!socket.write(chunk)) return
        }
        socket.end()
      }
      socket.on('drain', more)
      more()
    })
    const call = clientOf().post(url)
    await call.response
    for (let turns = 0; turns < 2_000; turns++) await turn()
    expect(sent).toBeLessThan(1_024)
    expect((await textOf(call)).length).toBe(4_096 * chunk.length)
  })

  it('ends wherever it is aborted, with the reason', async () => {
    const { url, sockets } = await serve(({ socket }) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'),
    )
    const { client, post } = clientOf()
    const early = post(url)
    early.abort(new Error('early'))
    expect(await codeOf(early.response)).toBe('early')
    const late = post(url)
    const { body } = await late.response
    await body?.read()
    const reading = codeOf(body?.read() ?? Promise.resolve())
    late.abort(new Error('late'))
    late.abort(new Error('again'))
    expect(await reading).toBe('late')
    expect(await codeOf(body?.read() ?? Promise.resolve())).toBe('late')
    const dropped = await post(url).response
    await dropped.body?.cancel()
    expect(await codeOf(dropped.body?.read() ?? Promise.resolve())).toBe('ECONNABORTED')
    await Promise.all(
      sockets.map((socket) => socket.destroyed || new Promise((resolve) => socket.once('close', resolve))),
    )
    expect(client.idle()).toBe(0)
  })

  it('gives up a connection that is not established in time', async () => {
    const server = createTlsServer({}, () => {})
    server.removeAllListeners('connection') // never answers the handshake
    const port = await listening(server)
    closing.push(() => void server.close())
    const clock = manualClock()
    const call = clientOf(clock).post(new URL(`https://127.0.0.1:${port}/`))
    clock.advance(4_999)
    clock.advance(1)
    expect(await codeOf(call.response)).toBe('ETIMEDOUT')
    expect(call.isSent()).toBe(false)
  })

  it('knows that nothing was sent where no connection is possible', async () => {
    const server = createServer()
    const port = await listening(server)
    await new Promise((resolve) => server.close(resolve))
    const call = clientOf().post(new URL(`http://127.0.0.1:${port}/`))
    expect(await codeOf(call.response)).toBe('ECONNREFUSED')
    expect(call.isSent()).toBe(false)
  })

  it.each([
    [{ 'x-a': 'b\r\nx-c: d' }, 'ERR_INVALID_CHAR'],
    [{ 'x-a\r\nx-c': 'd' }, 'ERR_INVALID_CHAR'],
    [{ 'x-a': 'b\0' }, 'ERR_INVALID_CHAR'],
    [{ 'x-a': '€' }, 'ERR_INVALID_CHAR'],
    [{ 'Content-Length': '1' }, 'ERR_INVALID_ARG_VALUE'],
    [{ 'transfer-encoding': 'chunked' }, 'ERR_INVALID_ARG_VALUE'],
    [{ host: 'other.example' }, 'ERR_INVALID_ARG_VALUE'],
  ])('refuses the headers %p', async (headers, code) => {
    let seen = ''
    const { url } = await serve((peer) => {
      seen = peer.text
    })
    expect(await codeOf(clientOf().post(url, { headers: headers as Record<string, string> }).response)).toBe(code)
    expect(seen).toBe('')
  })
})

describe('an encrypted connection', () => {
  const files = `${import.meta.dir}/../../../test/fixtures/tls`

  async function secureServer() {
    const key = await Bun.file(`${files}/files.example.com.key`).text()
    const cert = await Bun.file(`${files}/files.example.com.crt`).text()
    const server = createTlsServer(
      { key, cert, ALPNProtocols: ['http/1.1'] },
      (socket) => void socket.on('error', () => {}),
    )
    const port = await listening(server)
    closing.push(() => void server.close())
    return { host: '127.0.0.1', port, cert }
  }

  it.each([
    ['of a name with a trusted certificate is established', 'files.example.com', true, 'no error'],
    ['of another name is refused', 'other.example.com', true, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['with a certificate that nobody trusts is refused', 'files.example.com', false, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ])('%s', async (_, server_name, isTrusted, expected) => {
    const { host, port, cert } = await secureServer()
    const { connected } = openConnection({ host, port, server_name, ca: isTrusted ? cert : undefined })
    expect(await codeOf(connected)).toBe(expected)
    await connected.then((connection) => connection.destroy()).catch(() => {})
  })
})

it('a connection whose TLS handshake does not end in time is closed', async () => {
  const closed = Promise.withResolvers<void>()
  const silent = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {})
    socket.on('close', () => closed.resolve())
  })
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as { port: number }
  const client = createHttp1Client({ clock: systemClock })
  try {
    const url = new URL(`https://127.0.0.1:${port}/`)
    const call = client.send({ url, method: 'POST', headers: {}, body: '{}', pool: 'a', connect_ms: 200 })
    await expect(call.response).rejects.toThrow()
    await closed.promise
  } finally {
    client.close()
    silent.close()
  }
})
