/** `gatehouse task resume` for a task whose files could not be copied: on both engines, in memory, with crashes. */
import { afterAll, describe, expect, test } from 'bun:test'
import type { CrashPoint } from '../src/families/tasks/crash-points.ts'
import { resumptionOf } from '../src/families/tasks/resumption.ts'
import { createWebhooks } from '../src/families/tasks/webhooks.ts'
import { createLog } from '../src/kit/log.ts'
import { createCleaner } from '../src/outputs/cleaner.ts'
import type { TaskProgress } from '../src/providers/provider.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { Task } from '../src/spec/task.ts'
import type { Store } from '../src/store/store.ts'
import { type ManualClock, manualClock } from './kit/clock.ts'
import { ENGINES } from './kit/engines.ts'
import {
  type EngineOptions,
  memoryFiles,
  respondInTurn,
  scriptedVendor,
  success,
  type TaskEngine,
  taskEngine,
} from './kit/task-engine.ts'

const gone = () => new GatewayError('output_gone', 'The file is no longer there.')
const endOf = ({ status, fail_code }: Task) => `${status} ${fail_code}`.trim()
const seconds = (clock: ManualClock) => Math.floor(clock.now() / 1000)
const settings = { copy_deadline_minutes: 5 }
const DAY = 86_400

/** Does the same as the command. */
async function resume(store: Store, clock: ManualClock, task: Task): Promise<boolean | string> {
  const resumption = resumptionOf(task, seconds(clock))
  if (resumption.action !== 'reopen') return resumption.action === 'none' ? resumption.reason : resumption.action
  const change = { ...resumption.reopening, due_ms: clock.now(), deadline_at: seconds(clock) + DAY }
  return store.tasks.reopen(task, change)
}

/** Files of which some are unavailable until the test enables them. */
function fussyFiles(isGone: (key: string) => boolean) {
  const state = { isGone }
  const files = memoryFiles({
    copy: (key) => (state.isGone(key) ? Promise.reject(gone()) : Promise.resolve(undefined)),
  })
  const heal = () => {
    state.isGone = () => false
  }
  return { files, heal }
}

const two = () => respondInTurn(success('https://a.test/1', 'https://a.test/2'))

async function failedGateway(
  options: EngineOptions,
  family: 'video-generation' | '3d-generation' = 'video-generation',
) {
  const gateway = await taskEngine({ settings, ...options })
  const id = await gateway.submit({}, { family })
  await gateway.run(320)
  expect(endOf(await gateway.read(id))).toBe('FAILURE output_expired')
  return { gateway, id }
}

describe.each(ENGINES.map((engine) => [engine.name, engine] as const))('a task whose copy failed (%s)', (_, engine) => {
  afterAll(() => engine.cleanup())

  test('continues where it was: one file is stored, the other is copied, and nothing is ordered again', async () => {
    await engine.cleanup()
    const store = await engine.open()
    const { files, heal } = fussyFiles((key) => key.endsWith('1.mp4'))
    const acme = scriptedVendor({ status: two() })
    const { gateway, id } = await failedGateway({ store, files, vendors: { acme } })
    await using _gateway = gateway
    const failed = await gateway.read(id)
    expect([failed.outputs.length, failed.made?.length, failed.progress]).toEqual([1, 1, 100])
    expect(await gateway.store.usage.list({ limit: 5 })).toMatchObject([{ requests: 1, errors: 1 }])

    expect(await resume(store, gateway.clock, failed)).toBe(true)
    const resumed = await gateway.read(id)
    expect(resumed).toMatchObject({
      status: 'IN_PROGRESS',
      progress: 99,
      fail_code: '',
      fail_reason: '',
      finish_time: 0,
      failures: 0,
      outputs_expire_at: null,
      deadline_at: seconds(gateway.clock) + DAY,
      operation: failed.operation,
      start_time: failed.start_time,
      outputs: failed.outputs,
      made: failed.made,
    })
    expect(await gateway.store.usage.list({ limit: 5 })).toMatchObject([{ requests: 0, errors: 0 }])
    const before = files.copied.length
    heal()
    await gateway.run(3)
    const task = await gateway.read(id)
    expect(endOf(task)).toBe('SUCCESS')
    expect(task.outputs.map(({ key }) => key)).toEqual([`${id}/0.mp4`, `${id}/1.mp4`])
    expect(files.copied.slice(before).map(({ key }) => key)).toEqual([`${id}/1.mp4`])
    expect(acme.calls).toHaveLength(1)
    expect(await gateway.store.usage.list({ limit: 5 })).toMatchObject([{ requests: 1, errors: 0 }])
  }, 120_000)

  test('is resumed by only one of two operators, and not by one who read it before it changed', async () => {
    await engine.cleanup()
    const store = await engine.open()
    const { files, heal } = fussyFiles(() => true)
    const { gateway, id } = await failedGateway({ store, files })
    await using _gateway = gateway
    const failed = await gateway.read(id)
    const both = await Promise.all([resume(store, gateway.clock, failed), resume(store, gateway.clock, failed)])
    expect(both.toSorted()).toEqual([false, true])
    heal()
    await gateway.run(3)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
    expect(await resume(store, gateway.clock, failed)).toBe(false)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
  }, 120_000)

  test('is not reopened if it was deleted, has succeeded or has not ended', async () => {
    await engine.cleanup()
    const store = await engine.open()
    const { files } = fussyFiles((key) => key.endsWith('0.mp4'))
    const { gateway, id } = await failedGateway({ store, files })
    await using _gateway = gateway
    const failed = await gateway.read(id)
    await store.tasks.remove(id, 'tok_one', seconds(gateway.clock))
    expect(await resume(store, gateway.clock, failed)).toBe(false)
    await gateway.tasks.stop({ deadline_ms: 0 })
    const under_way = await gateway.submit()
    const waiting = await gateway.read(under_way)
    expect(await store.tasks.reopen(waiting, { ...reopeningOf(failed), due_ms: 1, deadline_at: 1 })).toBe(false)
    expect(await gateway.read(under_way)).toEqual(waiting)
  }, 120_000)
})

function reopeningOf(task: Task) {
  const resumption = resumptionOf(task, 0)
  if (resumption.action !== 'reopen') throw new Error('not resumable')
  return resumption.reopening
}

describe('a resumed task', () => {
  test('of 3D is copied like a video', async () => {
    const { files, heal } = fussyFiles(() => true)
    const { gateway, id } = await failedGateway({ files }, '3d-generation')
    await using _gateway = gateway
    expect(await resume(gateway.store, gateway.clock, await gateway.read(id))).toBe(true)
    heal()
    await gateway.run(3)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
  })

  test('that fails again can be resumed again', async () => {
    const { files, heal } = fussyFiles(() => true)
    const { gateway, id } = await failedGateway({ files })
    await using _gateway = gateway
    const [first] = await gateway.store.usage.list({ limit: 1 })
    await resume(gateway.store, gateway.clock, await gateway.read(id))
    gateway.clock.advance((DAY + 1) * 1000)
    await gateway.run(2)
    expect(endOf(await gateway.read(id))).toBe('FAILURE output_expired')
    const usage = await gateway.store.usage.list({ limit: 9 })
    expect(usage.reduce((sum, { errors }) => sum + errors, 0)).toBe(first?.errors ?? -1)
    expect(await resume(gateway.store, gateway.clock, await gateway.read(id))).toBe(true)
    heal()
    await gateway.run(3)
    expect(endOf(await gateway.read(id))).toBe('SUCCESS')
  })

  test('polls its provider for all files if they were removed after a week', async () => {
    const { files, heal } = fussyFiles((key) => key.endsWith('1.mp4'))
    const acme = scriptedVendor({ status: two() })
    const { gateway, id } = await failedGateway({ files, vendors: { acme } })
    await using _gateway = gateway
    const log = createLog({ clock: gateway.clock, level: 'silent', pretty: false, write: () => {} })
    const cleaner = createCleaner({ tasks: gateway.store.tasks, outputs: files, clock: gateway.clock, log })
    gateway.clock.advance(7 * DAY * 1000 - 60_000)
    await cleaner.sweep()
    expect(files.stored.size).toBe(1)
    gateway.clock.advance(60_000)
    expect(await resume(gateway.store, gateway.clock, await gateway.read(id))).toContain(
      'its files have expired and are being removed',
    )
    await cleaner.sweep()
    expect(files.stored.size).toBe(0)
    heal()
    expect(await resume(gateway.store, gateway.clock, await gateway.read(id))).toBe(true)
    await gateway.run(3)
    const task = await gateway.read(id)
    expect([endOf(task), task.outputs.length, files.stored.size]).toEqual(['SUCCESS', 2, 2])
    expect(acme.calls).toHaveLength(1)
    // The earlier expiry does not remove the new files.
    await cleaner.sweep()
    expect(files.stored.size).toBe(2)
  })

  test('keeps its files when a sweep that began before it ends after it', async () => {
    const { files } = fussyFiles((key) => key.endsWith('1.mp4'))
    const { gateway, id } = await failedGateway({ files, vendors: { acme: scriptedVendor({ status: two() }) } })
    await using _gateway = gateway
    await resume(gateway.store, gateway.clock, await gateway.read(id))
    await gateway.store.tasks.outputsRemoved([id])
    expect(await gateway.read(id)).toMatchObject({
      outputs: [{ key: `${id}/0.mp4` }],
      made: [{ url: 'https://a.test/2' }],
    })
  })

  test('notifies its receiver of both ends, each as a separate event', async () => {
    const { files, heal } = fussyFiles(() => true)
    const clock = manualClock()
    const got: { id: string; type: string }[] = []
    await using gateway = await taskEngine({ files, clock, settings })
    const webhooks = createWebhooks({
      store: gateway.store,
      guardedFetch: async ({ headers, body, url }) => {
        const { type } = JSON.parse(String(body)) as { type: string }
        got.push({ id: (headers as Record<string, string>)['webhook-id'] ?? '', type })
        return { status: 204, headers: new Headers(), url, body: new ReadableStream() }
      },
      master_secret: 'whsec_master',
      describe: ({ task_id, status }) => ({ task_id, status }) as never,
      clock,
      log: createLog({ clock, level: 'silent', pretty: false, write: () => {} }),
    })
    const id = await gateway.submit({ callback_url: 'https://app.test/hook' })
    await gateway.run(320)
    await webhooks.idle()
    expect(got.map(({ type }) => type)).toEqual(['task.failed'])
    await resume(gateway.store, clock, await gateway.read(id))
    expect(await gateway.store.webhooks.ofTask(id)).toMatchObject({
      attempts: 0,
      delivered_at: null,
      last_status: null,
    })
    await webhooks.idle()
    expect(got).toHaveLength(1)
    heal()
    await gateway.run(3)
    await webhooks.idle()
    expect(got.map(({ type }) => type)).toEqual(['task.failed', 'task.succeeded'])
    expect(new Set(got.map(({ id }) => id)).size).toBe(2)
    await webhooks.stop({ deadline_ms: 0 })
  })

  test('that timed out and finished late is copied', async () => {
    let answer: TaskProgress = { status: 'IN_PROGRESS' }
    const acme = scriptedVendor({ status: async () => answer })
    await using gateway = await taskEngine({ vendors: { acme }, settings: { deadline_minutes: 2 } })
    const id = await gateway.submit()
    await gateway.run(125)
    expect(await resume(gateway.store, gateway.clock, await gateway.read(id))).toBe('watch')
    answer = success()
    await gateway.run(100)
    expect((await gateway.read(id)).late_outcome).toMatchObject({ status: 'SUCCESS' })
    expect(await resume(gateway.store, gateway.clock, await gateway.read(id))).toBe(true)
    await gateway.run(10)
    expect(await gateway.read(id)).toMatchObject({ status: 'SUCCESS', late_outcome: null })
    expect(acme.calls).toHaveLength(1)
  })
})

const CRASH_POINTS = [
  'copy: before the first byte',
  'copy: after the last byte',
  'copy: before the write',
  'copy: after the write',
  'end: before the write',
  'end: after the write',
] satisfies CrashPoint[]

/** Dies the nth time; from then on it has no effect. */
async function killableGateway(options: EngineOptions, point: CrashPoint, nth: number): Promise<TaskEngine> {
  let passed = 0
  let is_dead = false
  return taskEngine({
    ...options,
    crashHook(passing) {
      if (!is_dead && (passing !== point || ++passed !== nth)) return
      is_dead = true
      throw new Error('the process has ended')
    },
    wrapStore: (store): Store => ({
      ...store,
      tasks: {
        ...store.tasks,
        claim: (claim) => (is_dead ? Promise.resolve([]) : store.tasks.claim(claim)),
        save: (task, change) => (is_dead ? new Promise(() => {}) : store.tasks.save(task, change)),
      },
    }),
  })
}

describe.each(CRASH_POINTS)('a process that dies at "%s"', (point) => {
  test('during a copy, before and after a resume, loses nothing and orders nothing twice', async () => {
    const { files, heal } = fussyFiles((key) => key.endsWith('1.mp4'))
    const acme = scriptedVendor({ status: two() })
    const options = { files, vendors: { acme }, settings }
    const first = await killableGateway(options, point, 1)
    const id = await first.submit()
    await first.advance(330)
    const next = { ...options, store: first.store, clock: first.clock }
    const second = await taskEngine(next)
    await second.run(320)
    expect(endOf(await second.read(id))).toBe('FAILURE output_expired')
    await second.tasks.stop({ deadline_ms: 0 })
    expect(await resume(first.store, first.clock, await second.read(id))).toBe(true)
    const third = await killableGateway(next, point, 1)
    heal()
    await third.advance(20)
    await using last = await taskEngine(next)
    await last.run(200)
    const task = await last.read(id)
    expect([endOf(task), task.outputs.map(({ key }) => key)]).toEqual(['SUCCESS', [`${id}/0.mp4`, `${id}/1.mp4`]])
    expect(acme.calls).toHaveLength(1)
    const usage = await first.store.usage.list({ limit: 9 })
    expect([usage.reduce((n, row) => n + row.requests, 0), usage.reduce((n, row) => n + row.errors, 0)]).toEqual([1, 0])
  }, 120_000)
})
