/**
 * The process is killed while it copies unavailable files, and again while it copies them after a resume: every task is
 * delivered in the end, and paid for once. The command runs beside a gateway, on each engine.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CrashPoint } from '../src/families/tasks/crash-points.ts'
import type { TaskAnswer } from '../src/spec/task.ts'
import { compiled } from './kit/compiled.ts'
import { type CrashPlan, FILM } from './kit/crash-gateway.ts'
import { GatewayProcess, TOKEN, waitForEnd } from './kit/gateway-process.ts'
import { startPostgres } from './kit/postgres.ts'
import { startVideoVendor } from './kit/video-vendor.ts'

const PROGRAM = await compiled('crash-gateway')
const COMMAND = join(import.meta.dir, '../bin/gatehouse')
const SPEED = 30
const ORDERS = 6
/** More than the copying deadline, at which the points of the end are reached: 24 s of wall-clock time. */
const PATIENCE_MILLISECONDS = 60_000
const WHILE_GONE: CrashPoint[] = [
  'copy: before the first byte',
  'copy: before the write',
  'copy: after the write',
  'end: before the write',
  'end: after the write',
]
const WHEN_BACK: CrashPoint[] = [
  'copy: before the first byte',
  'copy: after the last byte',
  'end: before the write',
  'end: after the write',
]

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-crash-resume-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

async function submit(gateway: GatewayProcess, key: string): Promise<string> {
  const response = await gateway.call('/v1/video/generations', {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: JSON.stringify({ model: FILM, prompt: `film ${key}`, seconds: 4 }),
  })
  return ((await response.json()) as TaskAnswer).data.task_id
}

async function taken(gateway: GatewayProcess, id: string): Promise<void> {
  let status = ''
  while (['', 'NOT_START', 'SUBMITTED'].includes(status)) {
    const answer = await gateway.call(`/v1/video/generations/${id}?wait=20`)
    status = ((await answer.json()) as TaskAnswer).data.status
  }
}

async function resume(task_id: string, env: Record<string, string>): Promise<number> {
  const child = Bun.spawn([COMMAND, 'task', 'resume', task_id], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  return child.exited
}

async function kill(gateway: GatewayProcess): Promise<void> {
  gateway.process.kill('SIGKILL')
  await gateway.process.exited
}

describe.each([
  ['sqlite', async () => `sqlite:${join(directory, 'sqlite', 'gatehouse.db')}`],
  ['postgres', async () => (await startPostgres()).createDatabase()],
] as const)('a gateway on %s that is killed during copies', (name, store) => {
  test.concurrent('fails no task permanently, and delivers all after a resume, paid for once', async () => {
    let is_gone = true
    const vendor = startVideoVendor({ idempotent: false, isGone: () => is_gone })
    const store_url = await store()
    const data_dir = join(directory, name)
    const plan: CrashPlan = {
      store_url,
      data_dir,
      vendor_url: vendor.url,
      token: TOKEN,
      is_idempotent: false,
      speed: SPEED,
      epoch_ms: Date.now(),
      copy_deadline_minutes: 12, // 24 s of wall-clock time: the kills at the copy come before it
    }
    const env: Record<string, string> =
      name === 'sqlite' ? { GATEHOUSE_DATA_DIR: data_dir } : { GATEHOUSE_DATABASE_URL: store_url }
    try {
      const first = new GatewayProcess(PROGRAM, plan)
      const ids: string[] = []
      for (let order = 0; order < ORDERS; order++) ids.push(await submit(first, `order-${order}`))
      // Another suite covers kills before the order is accepted.
      for (const id of ids) await taken(first, id)
      await kill(first)
      for (const point of WHILE_GONE) {
        expect([
          point,
          await new GatewayProcess(PROGRAM, { ...plan, kill: { point, nth: 1 } }).exited(PATIENCE_MILLISECONDS),
        ]).toEqual([point, 'at the point'])
      }
      const gateway = new GatewayProcess(PROGRAM, plan)
      for (const id of ids) {
        expect(await waitForEnd(gateway, id)).toMatchObject({ status: 'FAILURE', fail_code: 'output_expired' })
      }
      for (const id of ids) expect(await resume(id, env)).toBe(0)
      const again = (await (await gateway.call(`/v1/video/generations/${ids[0]}`)).json()) as TaskAnswer
      expect(again.data).toMatchObject({ status: 'IN_PROGRESS', progress: '99%', fail_code: '', finish_time: 0 })
      await kill(gateway)
      is_gone = false
      for (const point of WHEN_BACK) {
        expect([
          point,
          await new GatewayProcess(PROGRAM, { ...plan, kill: { point, nth: 1 } }).exited(PATIENCE_MILLISECONDS),
        ]).toEqual([point, 'at the point'])
      }
      const last = new GatewayProcess(PROGRAM, plan)
      for (const id of ids) expect(await waitForEnd(last, id)).toMatchObject({ status: 'SUCCESS', fail_code: '' })
      await kill(last)
      expect(vendor.orders).toHaveLength(ORDERS)
    } finally {
      await vendor.stop()
    }
  }, 300_000)
})
