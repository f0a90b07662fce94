/** `server.drain_seconds`: a gateway that is stopped is first no longer ready, and only then closes its port. */
import { afterEach, describe, expect, it } from 'bun:test'
import { DEFAULT_SERVER, drainSeconds, type ServerSettings } from '../src/config/config.ts'
import { type ServeProcess, serveDirectory, startServe, writeConfig } from './kit/serve-process.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Longer than any test, so that only the test ends it. */
const LONG = { drain_seconds: 600, shutdown_seconds: 600 }

async function start(server: object): Promise<ServeProcess> {
  const { directory, remove } = serveDirectory()
  closing.push(remove)
  writeConfig(directory, { server })
  const gateway = await startServe({ directory })
  closing.push(async () => {
    gateway.child.kill('SIGKILL')
    await gateway.child.exited
  })
  return gateway
}

const readyz = async ({ url }: ServeProcess) => {
  const response = await fetch(`${url}/readyz`, { keepalive: false })
  return [response.status, await response.json()]
}

const STOPPING = [503, { status: 'not ready', reason: 'the gateway is being stopped' }]

async function isRefused({ url }: ServeProcess): Promise<boolean> {
  return fetch(`${url}/healthz`, { keepalive: false }).then(
    () => false,
    () => true,
  )
}

/** A signal within half a second of the first one counts as its duplicate. */
async function stopAgain({ child }: ServeProcess): Promise<number> {
  const again = setInterval(() => child.kill('SIGTERM'), 100)
  const code = await child.exited
  clearInterval(again)
  return code
}

describe('a gateway that drains', () => {
  it('serves calls as before, but is not ready and closes each connection after its response', async () => {
    const gateway = await start(LONG)
    expect((await readyz(gateway))[0]).toBe(200)
    const before = await gateway.chat('sandbox/general')
    expect([before.status, before.headers.get('connection')]).toEqual([200, null])
    gateway.child.kill('SIGTERM')
    expect(await gateway.until('draining')).toMatchObject([{ signal: 'SIGTERM', seconds: 600 }])
    expect(await readyz(gateway)).toEqual(STOPPING)
    for (let calls = 0; calls < 3; calls++) {
      const response = await gateway.chat('sandbox/general')
      expect([response.status, response.headers.get('connection')]).toEqual([200, 'close'])
    }
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
    expect(await stopAgain(gateway)).toBe(0)
  })

  it('closes its port when the time is over, and lets open calls end in what is left of shutdown_seconds', async () => {
    const gateway = await start({ drain_seconds: 0.2, shutdown_seconds: 20 })
    gateway.child.kill('SIGTERM')
    expect(await gateway.until('stopping')).toMatchObject([{ signal: 'SIGTERM', deadline_seconds: 19.8 }])
    expect(await gateway.child.exited).toBe(0)
    expect(gateway.lines.map(({ event }) => event)).toEqual(['draining', 'stopping', 'stopped'])
    expect(await isRefused(gateway)).toBe(true)
  })

  it.each([
    ['at SIGINT, which somebody waits for', LONG, 'SIGINT'],
    ['where it is 0', { drain_seconds: 0 }, 'SIGTERM'],
    ['by default, where it has its database for itself', {}, 'SIGTERM'],
  ] as const)('closes its port at once %s', async (_, server, signal) => {
    const gateway = await start(server)
    gateway.child.kill(signal)
    expect(await gateway.child.exited).toBe(0)
    expect(gateway.lines.map(({ event }) => event)).toEqual(['stopping', 'stopped'])
  })
})

describe('a gateway with two workers that drains', () => {
  it('is not ready in either of them, and drains none that is replaced', async () => {
    const gateway = await start({ workers: 2, drain_seconds: 0.2, shutdown_seconds: 20 })
    gateway.child.kill('SIGUSR2')
    await gateway.until('rolling restart done')
    expect(gateway.lines.filter(({ event }) => event === 'stopping')).toHaveLength(2)
    expect(gateway.lines.filter(({ event }) => event === 'draining')).toEqual([])
    gateway.child.kill('SIGTERM')
    expect(await gateway.child.exited).toBe(0)
    expect(gateway.lines.filter(({ event }) => event === 'draining')).toHaveLength(2)
  })

  it('closes its port at once at SIGINT', async () => {
    const gateway = await start({ workers: 2, ...LONG })
    gateway.child.kill('SIGINT')
    expect(await gateway.child.exited).toBe(0)
    expect(gateway.lines.filter(({ event }) => event === 'draining')).toEqual([])
  })
})

describe('server.drain_seconds', () => {
  const seconds = (server: Partial<ServerSettings>, others: { store_url?: string; valkey?: boolean } = {}) =>
    drainSeconds({
      server: { ...DEFAULT_SERVER, ...server },
      store_url: others.store_url ?? 'sqlite:/data/gatehouse.db',
      valkey: others.valkey ? { url: 'redis://127.0.0.1', prefix: 'gatehouse', timeout_ms: 100 } : undefined,
    })

  it('is 5 by default where several processes share the port or the store, else 0', () => {
    expect(seconds({})).toBe(0)
    expect(seconds({ workers: 2 })).toBe(5)
    expect(seconds({ workers: 'auto' })).toBe(5)
    expect(seconds({}, { store_url: 'postgres://db/gatehouse' })).toBe(5)
    expect(seconds({}, { valkey: true })).toBe(5)
  })

  it('is what is set, within shutdown_seconds', () => {
    expect(seconds({ drain_seconds: 7 })).toBe(7)
    expect(seconds({ drain_seconds: 0, workers: 2 })).toBe(0)
    expect(seconds({ drain_seconds: 7, shutdown_seconds: 3 })).toBe(3)
    expect(seconds({ workers: 2, shutdown_seconds: 3 })).toBe(3)
  })
})
