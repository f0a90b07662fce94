/** Two gateways on one data directory behind a real nginx, restarted one after the other: no call may fail. */
import { afterEach, describe, expect, it } from 'bun:test'
import { freePort } from './kit/free-port.ts'
import { bySample, NGINX, startNginx } from './kit/nginx.ts'
import { SERVE_TOKEN, type ServeProcess, serveDirectory, startServe, writeConfig } from './kit/serve-process.ts'

const CALLS = 3_000
const CLIENTS = 8
/** nginx avoids a server for 10 whole seconds after it has failed (fail_timeout). */
const LONGER_THAN_NGINX_AVOIDS = 11

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** nginx with nothing but its defaults. */
const byDefault = (gateways: number[], port: number): string => `
  upstream gatehouse { ${gateways.map((one) => `server 127.0.0.1:${one};`).join(' ')} }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://gatehouse; } }`

type Setup = { nginx: (gateways: number[], port: number) => string; drain_seconds: number }

async function setUp({ nginx, drain_seconds }: Setup) {
  const { directory, remove } = serveDirectory()
  closing.push(remove)
  writeConfig(directory, { server: { drain_seconds } })
  const start = async (port: number): Promise<ServeProcess> => {
    const gateway = await startServe({ directory, port, environment: { GATEHOUSE_LOG: 'error' } })
    closing.push(async () => {
      gateway.child.kill('SIGKILL')
      await gateway.child.exited
    })
    return gateway
  }
  const gateways = [await start(0), await start(0)]
  const port = await freePort()
  const ports = gateways.map((gateway) => gateway.port)
  const proxy = await startNginx(nginx(ports, port), port)
  closing.push(proxy.stop)

  /** As an operator does it: a gateway is stopped once the one before is ready again. */
  async function restartAll(): Promise<void> {
    for (const gateway of gateways) {
      gateway.child.kill('SIGTERM')
      expect(await gateway.child.exited).toBe(0)
      await start(gateway.port)
    }
  }
  return { proxy, restartAll }
}

/** Calls until `isOver` and so many calls were made; the statuses that were not 200. */
async function callUntil(url: string, isOver: () => boolean) {
  let calls = 0
  const failures: Record<string, number> = {}
  const headers = { authorization: `Bearer ${SERVE_TOKEN}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] })
  async function client(): Promise<void> {
    while (calls < CALLS || !isOver()) {
      calls++
      const result = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body }).then(
        async (response) => {
          await response.arrayBuffer()
          return String(response.status)
        },
        (error: Error) => error.message,
      )
      if (result !== '200') failures[result] = (failures[result] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return { calls, failures }
}

describe.skipIf(NGINX === null)('a rolling restart behind nginx', () => {
  it.each<[string, Setup]>([
    ['with its defaults', { nginx: byDefault, drain_seconds: LONGER_THAN_NGINX_AVOIDS }],
    ['with our sample', { nginx: bySample, drain_seconds: 1 }],
  ])(
    'fails no call of 3,000 %s',
    async (_, setup) => {
      const { proxy, restartAll } = await setUp(setup)
      let isOver = false
      const restarted = restartAll().finally(() => {
        isOver = true
      })
      const { calls, failures } = await callUntil(proxy.url, () => isOver)
      await restarted
      const errors = Object.keys(failures).length > 0 ? await proxy.errors() : []
      expect({ failures, errors }).toEqual({ failures: {}, errors: [] })
      expect(calls).toBeGreaterThanOrEqual(CALLS)
    },
    120_000,
  )
})
