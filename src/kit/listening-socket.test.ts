import { afterEach, describe, expect, it } from 'bun:test'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listeningSocket } from './listening-socket.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A server on loopback, and what a system tells of its process that has only these lists of sockets. */
function start(lists: string[]) {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('ok') })
  closing.push(() => server.stop(true))
  const process_files = mkdtempSync(join(tmpdir(), 'listening-'))
  closing.push(() => rmSync(process_files, { recursive: true }))
  mkdirSync(join(process_files, 'net'))
  for (const name of lists) copyFileSync(`/proc/self/net/${name}`, join(process_files, 'net', name))
  symlinkSync('/proc/self/fd', join(process_files, 'fd'))
  const isServed = () =>
    fetch(server.url, { keepalive: false }).then(
      () => true,
      () => false,
    )
  const port = server.port ?? 0
  return { socket: listeningSocket(port, process_files), port, isServed }
}

/** What a connection gets for a request: the response, or the code of its error. */
function responseOn(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let response = ''
    socket
      .on('data', (bytes) => {
        response += bytes.toString('latin1')
      })
      .on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)))
      .on('close', () => resolve(response))
      .write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  })
}

describe.skipIf(process.platform !== 'linux')('the listening socket of a port', () => {
  it('is found on a system without IPv6, and accepts nothing any more once it is shut down', async () => {
    const { socket, isServed } = start(['tcp'])
    socket?.acceptAtOnce()
    expect(await isServed()).toBe(true)
    await socket?.shutDown()
    expect(await isServed()).toBe(false)
  })

  it('serves a connection that waits to be accepted when it shuts down, and refuses the next without a reset', async () => {
    const { socket, port } = start(['tcp'])
    socket?.acceptAtOnce()
    const waiting = connect(port, '127.0.0.1')
    await new Promise((resolve) => waiting.once('connect', resolve))
    const closed = socket?.shutDown()
    const late = responseOn(connect(port, '127.0.0.1'))
    await closed
    expect(await responseOn(waiting)).toStartWith('HTTP/1.1 200')
    expect(await late).toBe('ECONNREFUSED')
  })

  it('is not found where the system does not tell', async () => {
    const { socket, isServed } = start([])
    expect([socket, await isServed()]).toEqual([undefined, true])
  })
})
