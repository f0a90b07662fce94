/**
 * The same for orders in two parts: the process is killed at every crash point of a 3D model, whose texture is a second
 * order for the result of the first; in the end nothing may be paid for twice, and no accepted result may be lost.
 */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CRASH_POINTS, type CrashPoint } from '../src/families/tasks/crash-points.ts'
import type { TaskAnswer, TaskData } from '../src/spec/task.ts'
import { compiled } from './kit/compiled.ts'
import { type CrashPlan, SOLID } from './kit/crash-gateway.ts'
import { GatewayProcess, TOKEN, waitForEnd } from './kit/gateway-process.ts'
import { type MeshyOrder, startMeshyVendor } from './kit/meshy-vendor.ts'

const PROGRAM = await compiled('crash-gateway')
/** Each point twice: for the first order, and for a later one. */
const KILLS = Math.max(50, Number(process.env.GATEHOUSE_KILLS ?? 0) / 4)
const SPEED = 30
const PATH = '/v1/3d/generations'
/** This provider cannot cancel, honours no keys, and its files are small. */
const ELSEWHERE: CrashPoint[] = [
  'doubt: before the order',
  'cancel: before the provider',
  'cancel: after the provider',
  'copy: in the middle',
]
const KINDS = ['plain', 'busy', 'busy-later', 'fails', 'fails-later', 'cancel']

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-crash-3d-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** One submission of a client: repeated with its key until it gets a response. */
type Submission = { key: string; prompt: string; task_id?: string }

async function submitAll(gateway: GatewayProcess, submissions: Submission[]): Promise<void> {
  for (const submission of submissions) {
    if (submission.task_id !== undefined) continue
    const response = await gateway.call(PATH, {
      method: 'POST',
      headers: { 'idempotency-key': submission.key },
      body: JSON.stringify({ model: SOLID, prompt: submission.prompt }),
    })
    submission.task_id = ((await response.json()) as TaskAnswer).data.task_id
  }
}

/** A client that cancels its model once the provider has the order. */
async function cancelWhereWanted(gateway: GatewayProcess, submissions: Submission[]): Promise<void> {
  for (const { prompt, task_id } of submissions) {
    if (!prompt.startsWith('cancel') || task_id === undefined) continue
    let status = ''
    while (['', 'NOT_START', 'SUBMITTED'].includes(status)) {
      const { data } = (await (await gateway.call(`${PATH}/${task_id}?wait=20`)).json()) as TaskAnswer
      status = data.status
    }
    await gateway.call(`${PATH}/${task_id}/cancel`, { method: 'POST' })
  }
}

/** The outcomes of a task that the provider's ledger allows. */
function allowed(orders: MeshyOrder[], prompt: string): string[] {
  const [preview, refine] = [
    orders.find(({ mode }) => mode === 'preview'),
    orders.find(({ mode }) => mode === 'refine'),
  ]
  const always = ['FAILURE submit_outcome_unknown', ...(prompt.startsWith('cancel') ? ['FAILURE canceled'] : [])]
  if (preview?.end === 'FAILED' || refine?.end === 'FAILED') return ['FAILURE generation_failed', ...always]
  return refine ? ['SUCCESS ', ...always] : always
}

test(
  'after kills between and within its parts, no 3D model is lost, stuck or paid for twice',
  async () => {
    const vendor = startMeshyVendor({
      polls: 2,
      refusesFirst: (prompt, mode) => (mode === 'preview' ? /^busy \d/ : /^busy-later/).test(prompt),
      end: (prompt, mode) =>
        (mode === 'preview' ? /^fails \d/ : /^fails-later/).test(prompt) ? 'FAILED' : 'SUCCEEDED',
    })
    const base: Omit<CrashPlan, 'kill'> = {
      store_url: `sqlite:${join(directory, 'gatehouse.db')}`,
      data_dir: directory,
      vendor_url: 'http://127.0.0.1:9/v1', // of videos, which nobody orders here
      meshy_url: vendor.url,
      token: TOKEN,
      is_idempotent: false,
      speed: SPEED,
      epoch_ms: Date.now(),
    }
    const points = CRASH_POINTS.filter((point) => !ELSEWHERE.includes(point))
    const submissions: Submission[] = []
    const died = new Set<CrashPoint>()
    try {
      for (let kill = 0; kill < KILLS; kill++) {
        const point = points[kill % points.length] as CrashPoint
        const gateway = new GatewayProcess(PROGRAM, {
          ...base,
          kill: { point, nth: 1 + (Math.floor(kill / points.length) % 3) },
        })
        for (const kind of KINDS) submissions.push({ key: `${kill}-${kind}`, prompt: `${kind} ${kill}` })
        // A client sees a kill as a broken connection.
        const clients = async () => {
          await submitAll(gateway, submissions.slice(-3 * KINDS.length))
          await cancelWhereWanted(gateway, submissions.slice(-KINDS.length))
        }
        await clients().catch(() => {})
        if ((await gateway.exited()) === 'at the point') died.add(point)
      }
      const gateway = new GatewayProcess(PROGRAM, base)
      await submitAll(gateway, submissions)
      const ended = new Map<string, TaskData>()
      for (const { task_id = '' } of submissions) ended.set(task_id, await waitForEnd(gateway, task_id, PATH))
      gateway.process.kill('SIGKILL')
      await gateway.process.exited

      const wrong: string[] = []
      for (const { prompt, task_id = '' } of submissions) {
        const orders = vendor.orders.filter((order) => order.prompt === prompt)
        const modes = orders.map(({ mode }) => mode)
        if (new Set(modes).size < modes.length) wrong.push(`${prompt}: paid for ${modes.join(', ')}`)
        const { status, fail_code, outputs = [] } = ended.get(task_id) ?? { status: 'none', fail_code: '' }
        if (!allowed(orders, prompt).includes(`${status} ${fail_code}`)) {
          wrong.push(`${prompt}: ${status} ${fail_code}, orders ${modes.join(', ')}`)
        }
        if (status === 'SUCCESS' && outputs.length !== 2) wrong.push(`${prompt}: ${outputs.length} files`)
      }
      expect(wrong).toEqual([])
      expect(new Set(submissions.map(({ task_id }) => task_id)).size).toBe(submissions.length)
      // Nothing was ordered without a client's request.
      const known = new Set(submissions.map(({ prompt }) => prompt))
      expect(vendor.orders.filter(({ prompt }) => !known.has(prompt))).toEqual([])
      expect(points.filter((point) => !died.has(point))).toEqual([])
      // Most orders meet no kill and finish.
      const ends = [...ended.values()].filter(({ status }) => status === 'SUCCESS').length
      expect(ends).toBeGreaterThan(submissions.length / 4)
    } finally {
      await vendor.stop()
    }
  },
  KILLS * 30_000,
)
