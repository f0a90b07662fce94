/**
 * Three gateways share one store, each may serve any request and run any step, and one after the other is killed: every
 * task is processed by one of them at a time, and paid for once. `GATEHOUSE_RIVAL_TASKS` sets how many tasks.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom } from '../packages/sandbox/src/random.ts'
import { compiled } from './kit/compiled.ts'
import { type CrashPlan, FILM } from './kit/crash-gateway.ts'
import { GatewayProcess, TOKEN, waitForEnd } from './kit/gateway-process.ts'
import { startPostgres } from './kit/postgres.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

const PROGRAM = await compiled('crash-gateway')
const TASKS = Number(process.env.GATEHOUSE_RIVAL_TASKS ?? 1_000)
const GATEWAYS = 3
const KILLS = 12
const SPEED = 30
/** Concurrent orders of a client. */
const AT_A_TIME = 50

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-rivalry-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Gateways of which one at a time is killed and replaced. */
class Rivals {
  readonly gateways: GatewayProcess[]
  readonly #plan: CrashPlan
  constructor(plan: CrashPlan) {
    this.#plan = plan
    this.gateways = Array.from({ length: GATEWAYS }, () => new GatewayProcess(PROGRAM, plan))
  }
  async kill(index: number): Promise<void> {
    const gateway = this.gateways[index] as GatewayProcess
    // A gateway that does not listen yet has done nothing that a kill could break.
    await gateway.url
    gateway.process.kill('SIGKILL')
    await gateway.process.exited
    this.gateways[index] = new GatewayProcess(PROGRAM, this.#plan)
  }
  async stop(): Promise<void> {
    for (const { process } of this.gateways) process.kill('SIGKILL')
    await Promise.all(this.gateways.map(({ process }) => process.exited))
  }
}

/** Calls one gateway after the other until one responds, like a client behind a load balancer. */
async function submit(rivals: Rivals, index: number): Promise<string> {
  for (let attempt = index; ; attempt++) {
    const gateway = rivals.gateways[attempt % GATEWAYS] as GatewayProcess
    try {
      const response = await gateway.call('/v1/video/generations', {
        method: 'POST',
        headers: { 'idempotency-key': `order-${index}` },
        body: JSON.stringify({ model: FILM, prompt: `film ${index}`, seconds: 4 }),
      })
      const { data } = (await response.json()) as { data: { task_id: string } }
      return data.task_id
    } catch {
      // Its gateway was killed: the next one is called with the same key.
    }
  }
}

async function endOf(rivals: Rivals, task_id: string): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    try {
      return (await waitForEnd(rivals.gateways[attempt % GATEWAYS] as GatewayProcess, task_id)).status
    } catch (error) {
      if (attempt > 1_000) throw error
    }
  }
}

/** Processes the items in order, a limited number at a time. */
async function inHands<T, R>(items: T[], concurrency: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const hand = async () => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T)
  }
  await Promise.all(Array.from({ length: concurrency }, hand))
  return results
}

const stores = [
  { engine: 'SQLite file', store: async () => `sqlite:${join(directory, 'rivals', 'gatehouse.db')}` },
  { engine: 'PostgreSQL', store: async () => (await startPostgres()).createDatabase() },
]

describe.each(stores)('three gateways on one $engine', ({ engine, store }) => {
  test('run every step once and order once, whichever is killed', async () => {
    const vendor = startVideoVendor({ idempotent: true, polls: 2 })
    const plan: CrashPlan = {
      store_url: await store(),
      data_dir: join(directory, engine.replace(/\W/g, '')),
      vendor_url: vendor.url,
      token: TOKEN,
      is_idempotent: true,
      speed: SPEED,
      epoch_ms: Date.now(),
    }
    const rivals = new Rivals(plan)
    const random = createRandom('rivalry')
    try {
      const orders = Array.from({ length: TASKS }, (_, index) => index)
      const killing = (async () => {
        for (let kill = 0; kill < KILLS; kill++) {
          // An order and two polls for each task, so that the kills are spread evenly over the work.
          await vendor.until((3 * TASKS * (kill + 0.5)) / KILLS)
          await rivals.kill(Math.floor(random.next() * GATEWAYS))
        }
      })()
      const task_ids = await inHands(orders, AT_A_TIME, (index) => submit(rivals, index))
      await killing
      const ends = await inHands(task_ids, AT_A_TIME, (task_id) => endOf(rivals, task_id))
      expect(new Set(task_ids).size).toBe(TASKS)
      expect(ends.filter((status) => status !== 'SUCCESS')).toEqual([])
      expect(vendor.orders.length).toBe(TASKS)
      expect(new Set(vendor.orders.map(({ prompt }) => prompt)).size).toBe(TASKS)
      expect(vendor.overlaps).toEqual([])
    } finally {
      await rivals.stop()
      await vendor.stop()
    }
  }, 600_000)
})
