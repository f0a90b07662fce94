/**
 * The process is killed at every crash point of a task, and restarted, repeatedly; in the end the provider's ledger and
 * the gateway's responses to clients must agree. `GATEHOUSE_KILLS=2000` kills more often; with fewer than four times the
 * number of points some points are skipped.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CRASH_POINTS, type CrashPoint } from '../src/families/tasks/crash-points.ts'
import type { TaskAnswer, TaskData } from '../src/spec/task.ts'
import { compiled } from './kit/compiled.ts'
import { type CrashPlan, FILM } from './kit/crash-gateway.ts'
import { GatewayProcess, TOKEN, waitForEnd } from './kit/gateway-process.ts'
import { startPostgres } from './kit/postgres.ts'
import { startVideoVendor, type VideoVendor } from './kit/video-vendor.ts'

const PROGRAM = await compiled('crash-gateway')
/** With the 50 of crash-3d.test.ts: 300. */
const KILLS = Number(process.env.GATEHOUSE_KILLS ?? 250)
/** Leases of 90 s expire after 3 s, and a task is polled every 130 ms. */
const SPEED = 30
/** Points that only some tasks reach: with a provider that honours keys, and with one that does not. */
const ONLY_SAFE: CrashPoint[] = ['doubt: before the order', 'cancel: before the provider', 'cancel: after the provider']
const ONLY_UNSAFE: CrashPoint[] = ['late: before the write', 'late: after the write']
/** Points of files larger than one step can copy, and of tasks with several files: not with this provider. */
const ELSEWHERE: CrashPoint[] = [
  'copy: in the middle',
  'copy: before the write',
  'copy: after the write',
  // Orders in two parts: crash-3d.test.ts.
  'proceed: before the mark',
  'proceed: after the mark',
]

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-crash-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** `busy` is refused at first; `lost` is accepted, and the response is a 500. */
const KINDS = ['plain', 'busy', 'lost', 'fails', 'cancel']

/** One submission of a client: repeated with its key until it gets a response. */
type Submission = { key: string; prompt: string; task_id?: string }

type Chain = { name: string; is_idempotent: boolean; store_url: string; kills: number }

/** Sends the submissions that have no response yet. A client sees a kill as a broken connection. */
async function submitAll(gateway: GatewayProcess, submissions: Submission[]): Promise<void> {
  for (const submission of submissions) {
    if (submission.task_id !== undefined) continue
    try {
      const response = await gateway.call('/v1/video/generations', {
        method: 'POST',
        headers: { 'idempotency-key': submission.key },
        body: JSON.stringify({ model: FILM, prompt: submission.prompt, seconds: 4 }),
      })
      const { data } = (await response.json()) as { data: { task_id: string } }
      submission.task_id = data.task_id
    } catch {
      return
    }
  }
}

/** A client that cancels its video once the provider has the order; an earlier cancel would test nothing. */
async function cancelWhereWanted(gateway: GatewayProcess, submissions: Submission[]): Promise<void> {
  for (const { prompt, task_id } of submissions) {
    if (!prompt.startsWith('cancel') || task_id === undefined) continue
    const path = `/v1/video/generations/${task_id}`
    try {
      let status = ''
      while (['', 'NOT_START', 'SUBMITTED'].includes(status)) {
        const { data } = (await (await gateway.call(`${path}?wait=20`)).json()) as TaskAnswer
        status = data.status
      }
      await gateway.call(`${path}/cancel`, { method: 'POST' })
    } catch {
      return
    }
  }
}

/** Kills and restarts, then lets all tasks end; returns what each client submitted and the outcome it reads. */
async function run(chain: Chain, vendor: VideoVendor) {
  const epoch_ms = Date.now()
  const base: Omit<CrashPlan, 'kill'> = {
    store_url: chain.store_url,
    data_dir: join(directory, chain.name),
    vendor_url: vendor.url,
    token: TOKEN,
    is_idempotent: chain.is_idempotent,
    speed: SPEED,
    epoch_ms,
  }
  const foreign = [...(chain.is_idempotent ? ONLY_UNSAFE : ONLY_SAFE), ...ELSEWHERE]
  const points = CRASH_POINTS.filter((point) => !foreign.includes(point))
  const submissions: Submission[] = []
  const died = new Set<CrashPoint>()
  for (let kill = 0; kill < chain.kills; kill++) {
    const point = points[kill % points.length] as CrashPoint
    const gateway = new GatewayProcess(PROGRAM, {
      ...base,
      kill: { point, nth: 1 + (Math.floor(kill / points.length) % 3) },
    })
    for (const kind of KINDS) {
      submissions.push({ key: `${chain.name}-${kill}-${kind}`, prompt: `${kind} ${kill}` })
    }
    await submitAll(gateway, submissions.slice(-3 * KINDS.length)).catch(() => {})
    await cancelWhereWanted(gateway, submissions.slice(-KINDS.length))
    if ((await gateway.exited()) === 'at the point') died.add(point)
  }
  const gateway = new GatewayProcess(PROGRAM, base)
  await submitAll(gateway, submissions)
  const ended = new Map<string, TaskData>()
  for (const { task_id = '' } of submissions) ended.set(task_id, await waitForEnd(gateway, task_id))
  gateway.process.kill('SIGKILL')
  await gateway.process.exited
  return { submissions, ended, missed: points.slice(0, chain.kills).filter((point) => !died.has(point)) }
}

/** The outcomes of a task that the provider's ledger allows. */
function allowed(chain: Chain, orders: VideoVendor['orders'], prompt: string): string[] {
  const [order] = orders
  const canceled = prompt.startsWith('cancel') ? ['FAILURE canceled'] : []
  const doubt = chain.is_idempotent ? [] : ['FAILURE submit_outcome_unknown']
  if (!order) return [...canceled, ...doubt]
  // Without idempotency keys the gateway never learns that a lost order was accepted.
  if (prompt.startsWith('lost') && !chain.is_idempotent) return doubt
  return [order.end === 'failed' ? 'FAILURE generation_failed' : 'SUCCESS ', ...canceled, ...doubt]
}

const stores = {
  sqlite: async (name: string) => `sqlite:${join(directory, name, 'gatehouse.db')}`,
  postgres: async () => (await startPostgres()).createDatabase(),
}

const chains = Object.entries(stores).flatMap(([engine, store]) =>
  [true, false].map((is_idempotent) => ({
    name: `${engine}-${is_idempotent ? 'safe' : 'unsafe'}`,
    is_idempotent,
    store,
  })),
)

describe.each(chains)('killed $name', ({ name, is_idempotent, store }) => {
  test.concurrent(
    'no task is lost, stuck or paid for twice, and each ends as the ledger states',
    async () => {
      const chain: Chain = {
        name,
        is_idempotent,
        store_url: await store(name),
        kills: Math.ceil(KILLS / chains.length),
      }
      const vendor = startVideoVendor({
        idempotent: is_idempotent,
        polls: 2,
        end: (prompt) => (prompt.startsWith('fails') ? 'failed' : 'completed'),
        refusesFirst: (prompt) => prompt.startsWith('busy'),
        losesFirst: (prompt) => prompt.startsWith('lost'),
      })
      try {
        const { submissions, ended, missed } = await run(chain, vendor)
        expect(new Set(submissions.map(({ task_id }) => task_id)).size).toBe(submissions.length)
        const wrong: string[] = []
        for (const { task_id = '', prompt } of submissions) {
          const orders = vendor.orders.filter(({ key }) => key.startsWith(task_id))
          if (orders.length > 1) wrong.push(`${prompt}: paid ${orders.length} times`)
          const data = ended.get(task_id)
          const end = `${data?.status} ${data?.fail_code}`
          if (!allowed(chain, orders, prompt).includes(end)) wrong.push(`${prompt}: ${end}, orders ${orders.length}`)
        }
        expect(wrong).toEqual([])
        expect(vendor.orders.length).toBeLessThanOrEqual(submissions.length)
        expect(vendor.orders.filter(({ prompt }) => prompt.startsWith('lost')).length).toBeGreaterThan(chain.kills / 2)
        // Nothing was ordered without a client's request.
        const known = new Set(submissions.map(({ task_id }) => task_id))
        expect(vendor.orders.filter(({ key }) => !known.has(key.slice(0, 'task_'.length + 32)))).toEqual([])
        expect(missed).toEqual([])
      } finally {
        await vendor.stop()
      }
    },
    KILLS * 30_000,
  )
})
