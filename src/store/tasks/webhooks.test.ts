/** The store's contract for webhooks, tested on every engine: due with the end of their task, claimed one at a time. */
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'
import type { Task } from '../../spec/task.ts'
import type { Store } from '../store.ts'

const TRIED = { at_ms: 1, error: null, took_ms: 5 }

const NOW = 1_800_000_000

const taskOf = (number: number): Task =>
  blankTask({
    task_id: `task_${String(number).padStart(32, '0')}`,
    token_id: 'tok_a',
    family: 'video-generation',
    model: 'sandbox/text-to-video',
    status: 'QUEUED',
    progress: 20,
    submit_time: NOW - 10,
    request: {},
    base_url: 'http://gateway.test',
    provider: 'sandbox',
    upstream_model: 'text-to-video',
    sent_at: NOW - 9,
    operation: { id: '1' },
    deadline_at: NOW + 3600,
    due_ms: NOW * 1000,
  })

describe.each(ENGINES.map((engine) => [engine.name, engine] as const))('%s', (_, engine) => {
  let store: Store
  beforeEach(async () => {
    await engine.cleanup()
    store = await engine.open()
  }, 120_000)
  afterAll(() => engine.cleanup())

  const add = (number: number) =>
    store.tasks.add({ task: taskOf(number), callback: { callback_id: `evt_${number}`, url: 'https://app.test/hook' } })
  const end = (number: number, finish_time = NOW) =>
    store.tasks.save(taskOf(number), { status: 'SUCCESS', finish_time, due_ms: null })
  const claim = (now_ms: number, limit = 10) => store.webhooks.claim({ now_ms, until_ms: now_ms + 60_000, limit })
  const idsOf = (webhooks: { callback_id: string }[]) => webhooks.map(({ callback_id }) => callback_id)
  const MS = NOW * 1000

  test('makes a webhook due with the end of its task, and not before', async () => {
    await add(1)
    expect(await store.webhooks.earliest()).toBe(null)
    expect(await claim(MS * 2)).toEqual([])
    await end(1)
    expect(await store.webhooks.earliest()).toBe(MS)
    expect(await claim(MS - 1)).toEqual([])
    expect(await claim(MS)).toEqual([
      {
        callback_id: 'evt_1',
        task_id: taskOf(1).task_id,
        token_id: 'tok_a',
        url: 'https://app.test/hook',
        attempts: 0,
      },
    ])
  })

  test('does not claim a claimed webhook until its lease expires', async () => {
    await add(1)
    await end(1)
    await claim(MS)
    expect(await claim(MS + 59_999)).toEqual([])
    expect(await store.webhooks.earliest()).toBe(MS + 60_000)
    expect(idsOf(await claim(MS + 60_000))).toEqual(['evt_1'])
  })

  test('counts a saved attempt, and not a postponed one', async () => {
    await add(1)
    await end(1)
    await claim(MS)
    await store.webhooks.postpone([{ callback_id: 'evt_1', due_ms: MS + 2_000 }])
    expect(await claim(MS + 1_999)).toEqual([])
    expect((await claim(MS + 2_000))[0]).toMatchObject({ attempts: 0 })
    await store.webhooks.save('evt_1', { due_ms: MS + 5_000, delivered_at: null, status: 503, ...TRIED })
    expect(await store.webhooks.ofTask(taskOf(1).task_id)).toMatchObject({ attempts: 1, last_status: 503 })
    expect((await claim(MS + 5_000))[0]).toMatchObject({ attempts: 1 })
    await store.webhooks.save('evt_1', { due_ms: null, delivered_at: NOW + 5, status: 200, ...TRIED })
    expect(await store.webhooks.ofTask(taskOf(1).task_id)).toMatchObject({ attempts: 2, delivered_at: NOW + 5 })
    expect(await store.webhooks.earliest()).toBe(null)
    await store.webhooks.postpone([])
  })

  test('claims the longest due first, up to the limit', async () => {
    for (const number of [1, 2, 3]) await add(number)
    await end(2, NOW + 1)
    await end(1, NOW + 2)
    await end(3, NOW)
    expect(idsOf(await claim(MS + 9_000, 2)).sort()).toEqual(['evt_2', 'evt_3'])
    expect(idsOf(await claim(MS + 9_000, 2))).toEqual(['evt_1'])
    expect(await claim(MS + 9_000, 0)).toEqual([])
  })

  test('gives each webhook to one of several concurrent claims', async () => {
    const others = [store]
    if (engine.openAgain) others.push(await engine.openAgain(), await engine.openAgain())
    for (let number = 1; number <= 30; number++) {
      await add(number)
      await end(number)
    }
    const got: string[] = []
    for (let round = 0; round < 10 && got.length < 30; round++) {
      const claims = others.map((one) => one.webhooks.claim({ now_ms: MS, until_ms: MS + 60_000, limit: 4 }))
      got.push(...(await Promise.all(claims)).flatMap(idsOf))
    }
    expect(got).toHaveLength(30)
    expect(new Set(got).size).toBe(30)
  })

  test('returns no webhook for a task without a callback URL', async () => {
    await store.tasks.add({ task: taskOf(1) })
    await end(1)
    expect(await store.webhooks.ofTask(taskOf(1).task_id)).toBeUndefined()
    expect(await store.webhooks.earliest()).toBe(null)
  })

  test('lists those of ended tasks with their attempts, by state and by project', async () => {
    for (const number of [1, 2, 3, 4]) {
      const task = { ...taskOf(number), project_id: number === 2 ? 'proj_a' : null }
      await store.tasks.add({ task, callback: { callback_id: `evt_${number}`, url: 'https://app.test/hook' } })
    }
    for (const number of [1, 2, 3]) await end(number, NOW + number)
    const outcome = { due_ms: MS + 9_000, delivered_at: null, status: 503, error: null, took_ms: 7 }
    await store.webhooks.save('evt_1', { ...outcome, at_ms: MS })
    await store.webhooks.save('evt_1', { ...outcome, due_ms: null, status: 0, error: 'timeout', at_ms: MS + 5_000 })
    await store.webhooks.save('evt_2', {
      ...outcome,
      due_ms: null,
      delivered_at: NOW + 3,
      status: 200,
      at_ms: MS + 3_000,
    })
    const ids = async (filter: object = {}) => idsOf((await store.webhooks.page({ limit: 9, ...filter })).rows)
    expect(await ids()).toEqual(['evt_3', 'evt_2', 'evt_1'])
    expect(await ids({ state: 'pending' })).toEqual(['evt_3'])
    expect(await ids({ state: 'delivered' })).toEqual(['evt_2'])
    expect(await ids({ state: 'given_up' })).toEqual(['evt_1'])
    expect(await ids({ project_id: 'proj_a' })).toEqual(['evt_2'])
    const first = await store.webhooks.page({ limit: 2 })
    expect(await ids({ after: first.next })).toEqual(['evt_1'])
    expect((await store.webhooks.delivery('evt_1'))?.tries).toEqual([
      { at_ms: MS, status: 503, error: null, took_ms: 7 },
      { at_ms: MS + 5_000, status: 0, error: 'timeout', took_ms: 7 },
    ])
    expect(await store.webhooks.delivery('evt_4')).toBeUndefined()
  })

  test('forgets attempts after 90 days', async () => {
    await add(1)
    await end(1)
    const outcome = { due_ms: null, delivered_at: NOW, status: 200, error: null, took_ms: 7 }
    await store.webhooks.save('evt_1', { ...outcome, at_ms: MS })
    await store.webhooks.save('evt_1', { ...outcome, at_ms: MS + 91 * 86_400_000 })
    expect((await store.webhooks.delivery('evt_1'))?.tries).toHaveLength(1)
  })
})
