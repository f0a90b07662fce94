/** Connections against file descriptors: idle ones are closed when few are left, and health is always answered. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../src/kit/log.ts'
import { listen } from '../src/listen.ts'
import { startGateway } from './kit/gateway.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

/** A connection that is kept alive after one response; `status` is that of the response. */
function keepAlive(port: number, path = '/healthz'): Promise<{ socket: Socket; status: number }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    open.push(() => socket.destroy())
    socket.on('error', () => {})
    socket.once('close', () => reject(new Error('closed without a response')))
    socket.once('data', (bytes: Buffer) => resolve({ socket, status: Number(String(bytes).slice(9, 12)) }))
    socket.write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`)
  })
}

describe('when few file descriptors are left', () => {
  /** A gateway whose process seems to have so many of 100 descriptors open. */
  async function start(opened: number) {
    const gateway = await startGateway()
    open.push(() => gateway[Symbol.asyncDispose]())
    const log = createLog({ clock: gateway.clock, level: 'silent', pretty: false, write: () => {} })
    let looks = 0
    const now = { opened }
    const descriptors = {
      open() {
        looks++
        return now.opened
      },
      limit: 100,
    }
    const server = { host: '127.0.0.1', port: 0 }
    const listener = await listen({ gateway: gateway.instance, server, log, descriptors })
    open.push(() => listener.stop({ deadline_ms: 0 }))
    /** Waits until the number was looked at twice: what the first look does is done then. */
    const looked = async () => {
      const end = looks + 2
      while (looks < end) await new Promise((resolve) => setImmediate(resolve))
    }
    const models = () => fetch(`${listener.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.token}` } })
    return { ...listener, looked, now, models }
  }

  test('idle connections stay open up to seven tenths of the limit, and are closed beyond', async () => {
    const { port, looked, now } = await start(70)
    const { socket } = await keepAlive(port)
    await looked()
    expect(socket.destroyed).toBe(false)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    now.opened = 71
    await closed
  })

  test('requests are served up to nine tenths, and refused beyond; health is answered', async () => {
    const { looked, now, models, url } = await start(90)
    await looked()
    expect((await models()).status).toBe(200)
    now.opened = 91
    await looked()
    const refused = await models()
    expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('connection')]).toEqual([
      503,
      '1',
      'close',
    ])
    expect(await refused.json()).toMatchObject({ error: { code: 'server_is_overloaded' } })
    for (const path of ['/healthz', '/readyz']) expect((await fetch(`${url}${path}`)).status).toBe(200)
    now.opened = 90
    await looked()
    expect((await models()).status).toBe(200)
  })
})

describe.skipIf(process.platform !== 'linux')('a gateway process', () => {
  async function startProcess(limits: string): Promise<{ port: number; pid: number }> {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-descriptors-'))
    open.push(() => rmSync(directory, { recursive: true, force: true }))
    const gatehouse = join(import.meta.dir, '..', 'bin', 'gatehouse')
    const command = `${limits}; exec ${gatehouse} serve --port 0 --json --data-dir ${directory}`
    const child = Bun.spawn(['sh', '-c', command], {
      cwd: directory,
      env: { ...process.env, GATEHOUSE_DISCOVER: 'off', GATEHOUSE_LOG: 'silent' },
      stdout: 'pipe',
      stderr: 'ignore',
    })
    open.push(async () => {
      child.kill('SIGKILL')
      await child.exited
    })
    let text = ''
    const reader = child.stdout.getReader()
    while (!text.includes('\n')) text += new TextDecoder().decode((await reader.read()).value)
    return { port: Number(new URL(JSON.parse(text).url).port), pid: child.pid }
  }

  test('raises its limit of open files as far as it may', async () => {
    const { pid } = await startProcess('ulimit -Sn 256; ulimit -Hn 4000')
    const limits = readFileSync(`/proc/${pid}/limits`, 'utf8')
    expect(limits).toMatch(/^Max open files +4000 +4000/m)
  })

  test('with a limit of 200 serves more clients than that, which all keep their connections', async () => {
    const { port } = await startProcess('ulimit -n 200')
    for (let round = 0; round < 12; round++) {
      const clients = await Promise.all(Array.from({ length: 50 }, () => keepAlive(port)))
      expect(new Set(clients.map(({ status }) => status))).toEqual(new Set([200]))
    }
  })
})
