/** A full disk, a frozen PostgreSQL, a locked SQLite file: what is answered, and when. With the real clock. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_OUTPUTS } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { FILM } from './kit/crash-gateway.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { startPostgres } from './kit/postgres.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

/** Far above the 1.5 s that a probe may take, on a busy machine; below the ten seconds of a statement that hangs. */
const READY_MILLISECONDS = 6_000
/** A connection and a statement that hang, or a lock that is waited for: ten seconds, and what a busy machine takes. */
const ORDER_MILLISECONDS = 25_000

let vendor: ReturnType<typeof startVideoVendor>
let directory: string
beforeAll(() => {
  vendor = startVideoVendor({ polls: 100 })
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-faults-'))
})
afterAll(async () => {
  await vendor.stop()
  rmSync(directory, { recursive: true, force: true })
})

const start = (store_url: string, outputs = join(directory, 'outputs')) =>
  startGateway(
    {
      providers: { acme: { kind: 'chatcompat-video', base_url: vendor.url, key: 'acme-key' } },
      models: { [FILM]: { families: ['video-generation'] } },
      outputs: { ...DEFAULT_OUTPUTS, directory: outputs },
    },
    { store_url, clock: systemClock },
  )

async function timed(answer: Promise<Response>) {
  const start = performance.now()
  const response = await answer
  return { status: response.status, response, ms: performance.now() - start }
}
const chat = (gateway: TestGateway) =>
  timed(gateway.chat({ model: 'sandbox/general', messages: [{ role: 'user', content: 'Hi' }] }))
const order = (gateway: TestGateway) =>
  timed(gateway.call('/v1/video/generations', { json: { model: FILM, prompt: 'A kite' } }))
const readiness = (gateway: TestGateway) => timed(gateway.call('/readyz'))

async function expectServing(gateway: TestGateway) {
  const end = performance.now() + 20_000
  while ((await readiness(gateway)).status !== 200 && performance.now() < end) await Bun.sleep(50)
  expect((await order(gateway)).status).toBe(200)
  expect((await chat(gateway)).status).toBe(200)
}

async function expectRefused({ status, response, ms }: Awaited<ReturnType<typeof timed>>) {
  expect({ status, retry_after: response.headers.get('retry-after') }).toEqual({ status: 503, retry_after: '5' })
  expect(await response.json()).toMatchObject({ error: { code: 'storage_unavailable' } })
  expect(ms).toBeLessThan(ORDER_MILLISECONDS)
}

/** Everything at once, and orders again when the fault is known. */
async function expectFault(gateway: TestGateway, reason: string) {
  const orders = [order(gateway), order(gateway), order(gateway)]
  const [ready, reply] = await Promise.all([readiness(gateway), chat(gateway)])
  expect(ready.status).toBe(503)
  expect(await ready.response.json()).toEqual({ status: 'not ready', reason })
  expect(ready.ms).toBeLessThan(READY_MILLISECONDS)
  expect(reply.status).toBe(200)
  expect(reply.ms).toBeLessThan(READY_MILLISECONDS)
  for (const one of orders) await expectRefused(await one)
  await expectRefused(await order(gateway))
  expect((await readiness(gateway)).ms).toBeLessThan(READY_MILLISECONDS)
}

const DATABASE = 'the database cannot be written'

describe('storage that fails while the gateway runs', () => {
  test('a frozen PostgreSQL', async () => {
    const server = await startPostgres()
    const gateway = await start(await server.createDatabase())
    await expectServing(gateway)
    const thaw = server.freeze()
    try {
      await expectFault(gateway, DATABASE)
    } finally {
      thaw()
    }
    await expectServing(gateway)
    await gateway.instance.close({ deadline_ms: 0 })
  }, 120_000)

  test('an SQLite file that another process has locked', async () => {
    const path = join(directory, 'locked.db')
    const gateway = await start(`sqlite:${path}`)
    await expectServing(gateway)
    const other = new Database(path)
    other.run('begin exclusive')
    try {
      await expectFault(gateway, DATABASE)
    } finally {
      other.run('rollback')
      other.close()
    }
    await expectServing(gateway)
    await gateway.instance.close({ deadline_ms: 0 })
  }, 120_000)
})

/** A disk of two megabytes; only root may mount one. */
function mountSmallDisk(name: string): string | undefined {
  const path = join(directory, `disk-${name}`)
  mkdirSync(path)
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', path])
  return status === 0 ? path : undefined
}

function fill(path: string): () => void {
  const file = join(path, 'filler')
  for (const size of [65_536, 4_096, 1]) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: 'a' })
    } catch {} // full, for blocks of this size
  }
  return () => rmSync(file)
}

describe.skipIf(process.platform !== 'linux' || process.getuid?.() !== 0)('a full disk', () => {
  test.each(['database', 'outputs'])(
    'of the %s',
    async (what) => {
      const disk = mountSmallDisk(what)
      if (disk === undefined) return // a container may forbid it, even to root
      try {
        const holds_database = what === 'database'
        const gateway = await start(
          holds_database ? `sqlite:${disk}/gatehouse.db` : 'sqlite::memory:',
          holds_database ? undefined : disk,
        )
        await expectServing(gateway)
        const free = fill(disk)
        if (holds_database) await expectFault(gateway, DATABASE)
        else {
          const { status, response, ms } = await readiness(gateway)
          expect([status, (await response.json()).reason]).toEqual([503, 'the directory of outputs cannot be written'])
          expect(ms).toBeLessThan(READY_MILLISECONDS)
          expect([(await order(gateway)).status, (await chat(gateway)).status]).toEqual([200, 200])
        }
        free()
        await expectServing(gateway)
        await gateway.instance.close({ deadline_ms: 0 })
      } finally {
        spawnSync('umount', ['-l', disk])
      }
    },
    120_000,
  )
})
