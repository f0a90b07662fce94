import { afterEach, describe, expect, it } from 'bun:test'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
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
  return { socket: listeningSocket(server.port ?? 0, process_files), isServed }
}

describe.skipIf(process.platform !== 'linux')('the listening socket of a port', () => {
  it('is found on a system without IPv6, and accepts nothing any more once it is shut down', async () => {
    const { socket, isServed } = start(['tcp'])
    socket?.acceptAtOnce()
    expect(await isServed()).toBe(true)
    socket?.shutDown()
    expect(await isServed()).toBe(false)
  })

  it('is not found where the system does not tell', async () => {
    const { socket, isServed } = start([])
    expect([socket, await isServed()]).toEqual([undefined, true])
  })
})
