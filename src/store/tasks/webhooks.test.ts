/** The store's contract for webhooks, tested on every engine: due with the end of their task, claimed one at a time. */

import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'
import type { Task } from '../../spec/task.ts'
import type { Store } from '../store.ts'

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
  }, 60_000)
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
    await store.webhooks.save('evt_1', { due_ms: MS + 5_000, delivered_at: null, status: 503 })
    expect(await store.webhooks.ofTask(taskOf(1).task_id)).toMatchObject({ attempts: 1, last_status: 503 })
    expect((await claim(MS + 5_000))[0]).toMatchObject({ attempts: 1 })
    await store.webhooks.save('evt_1', { due_ms: null, delivered_at: NOW + 5, status: 200 })
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
})
