/**
 * The process is killed while it sends orders, repeatedly: with a provider that recognises orders by their keys, with one
 * that lists them, and with one whose list is complete. In the end no order is paid for twice, and each accepted order
 * belongs to one task. Only with a list that may be incomplete, orders that were never accepted end as unknown.
 *
 * `GATEHOUSE_KILLS=1000` kills that often, at random times instead of at the crash points, and prints what became of the
 * orders; `GATEHOUSE_SEED` repeats the times of a run.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CrashPoint } from '../src/families/tasks/crash-points.ts'
import type { TaskData } from '../src/spec/task.ts'
import { compiled } from './kit/compiled.ts'
import { type CrashPlan, FILM, fastClock } from './kit/crash-gateway.ts'
import { GatewayProcess, TOKEN, waitForEnd } from './kit/gateway-process.ts'
import { startVideoVendor, type VideoVendor } from './kit/video-vendor.ts'

const PROGRAM = await compiled('crash-gateway')
const RANDOM_KILLS = Number(process.env.GATEHOUSE_KILLS ?? 0)
const SPEED = 30
const POINTS: CrashPoint[] = [
  'send: before sent_at',
  'send: after sent_at',
  'send: before the operation',
  'send: after the operation',
]
const KILLS = RANDOM_KILLS || 2 * POINTS.length
/** How long the vendor takes for an order; a random kill comes within twice that time. */
const ORDER_MILLISECONDS = RANDOM_KILLS ? 300 : 20

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-crash-orders-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

type Chain = { name: string; is_idempotent: boolean; list: 'no' | 'yes' | 'complete' }
type Submission = { key: string; prompt: string; task_id?: string }

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Sends the submissions that have no response yet; `first` resolves with the first response to any of them. */
function submitAll(
  gateway: GatewayProcess,
  submissions: Submission[],
): { first: Promise<void>; all: Promise<unknown> } {
  const { promise: first, resolve } = Promise.withResolvers<void>()
  const submit = async (submission: Submission) => {
    const response = await gateway.call('/v1/video/generations', {
      method: 'POST',
      headers: { 'idempotency-key': submission.key },
      body: JSON.stringify({ model: FILM, prompt: submission.prompt, seconds: 4 }),
    })
    submission.task_id = ((await response.json()) as { data: { task_id: string } }).data.task_id
    resolve()
  }
  const sent = submissions.filter(({ task_id }) => task_id === undefined).map(submit)
  return { first, all: Promise.allSettled(sent) } // a kill is a broken connection
}

/** Two orders of their own, and two that are equal. */
const promptsOf = (kill: number) => [`one ${kill}`, `two ${kill}`, `equal ${kill}`, `equal ${kill}`]

async function run({ name, is_idempotent, list }: Chain, vendor: VideoVendor, epoch_ms: number) {
  const random = randomFrom(Number(process.env.GATEHOUSE_SEED ?? 1))
  const base: CrashPlan = {
    store_url: `sqlite:${join(directory, name, 'gatehouse.db')}`,
    data_dir: join(directory, name),
    vendor_url: vendor.url,
    token: TOKEN,
    is_idempotent,
    list,
    speed: SPEED,
    epoch_ms,
  }
  const submissions: Submission[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    const point = POINTS[kill % POINTS.length] as CrashPoint
    const nth = 1 + (Math.floor(kill / POINTS.length) % 3)
    const gateway = new GatewayProcess(PROGRAM, RANDOM_KILLS ? base : { ...base, kill: { point, nth } })
    const given = promptsOf(kill).map((prompt, index) => ({ key: `${name}-${kill}-${index}`, prompt }))
    submissions.push(...given)
    const submitting = submitAll(gateway, submissions.slice(-2 * given.length))
    if (RANDOM_KILLS) {
      await Promise.race([submitting.first, gateway.exited()])
      await Bun.sleep(random() * 2 * ORDER_MILLISECONDS)
      gateway.process.kill('SIGKILL')
    }
    const end = await gateway.exited(60_000) // each reaches its point, on a busy machine later
    await submitting.all
    if (!RANDOM_KILLS) expect([point, end]).toEqual([point, 'at the point'])
  }
  const gateway = new GatewayProcess(PROGRAM, base)
  await submitAll(gateway, submissions).all
  const ended: { submission: Submission; data: TaskData }[] = []
  for (const submission of submissions) {
    ended.push({ submission, data: await waitForEnd(gateway, submission.task_id ?? '') })
  }
  gateway.process.kill('SIGKILL')
  await gateway.process.exited
  return ended
}

const chains: Chain[] = [
  { name: 'keys', is_idempotent: true, list: 'no' },
  { name: 'complete-list', is_idempotent: false, list: 'complete' },
  { name: 'list', is_idempotent: false, list: 'yes' },
  ...(process.env.GATEHOUSE_CONTROL ? [{ name: 'neither', is_idempotent: false, list: 'no' as const }] : []),
]

describe.each(chains)('a process that is killed while it sends orders to a provider ($name)', (chain) => {
  test.concurrent(
    'orders nothing twice, and loses no order that was accepted',
    async () => {
      const epoch_ms = Date.now()
      const { now } = fastClock({ speed: SPEED, epoch_ms })
      const vendor = startVideoVendor({
        idempotent: chain.is_idempotent,
        lists: chain.list !== 'no',
        order_ms: ORDER_MILLISECONDS,
        now,
      })
      try {
        const ended = await run(chain, vendor, epoch_ms)
        const counts = {
          tasks: ended.length,
          accepted: vendor.orders.length,
          unknown: 0,
          unknown_accepted: 0,
          twice: 0,
          shared: 0,
        }
        const prompts = new Set(ended.map(({ submission }) => submission.prompt))
        for (const prompt of prompts) {
          const tasks = ended.filter(({ submission }) => submission.prompt === prompt)
          const done = tasks.filter(({ data }) => data.status === 'SUCCESS')
          const unknown = tasks.filter(({ data }) => data.fail_code === 'submit_outcome_unknown')
          const accepted = vendor.orders.filter((order) => order.prompt === prompt).length
          expect(done.length + unknown.length).toBe(tasks.length)
          counts.unknown += unknown.length
          counts.unknown_accepted += Math.max(0, accepted - done.length)
          counts.twice += Math.max(0, accepted - tasks.length)
          counts.shared += Math.max(0, done.length - accepted)
        }
        if (RANDOM_KILLS) process.stderr.write(`${chain.name}: ${KILLS} kills, ${JSON.stringify(counts)}\n`)
        expect(counts.twice).toBe(0)
        if (chain.name === 'neither') return
        expect(counts.unknown_accepted).toBe(0)
        expect(counts.shared).toBe(0)
        // Of an order that is missing from a list that may be incomplete nobody can say that it was not accepted.
        expect(counts.unknown).toBe(chain.list === 'yes' ? counts.tasks - counts.accepted : 0)
      } finally {
        await vendor.stop()
      }
    },
    120_000 + KILLS * 60_000,
  )
})
