/** The clock is set while a step has a task: its stored times are moved, and those that the step has read are not. */
import { expect, test } from 'bun:test'
import { GatewayError } from '../src/spec/error.ts'
import { openStore } from '../src/store/open-store.ts'
import type { Store } from '../src/store/store.ts'
import { manualClock } from './kit/clock.ts'
import { memoryFiles, scriptedVendor, success, taskEngine } from './kit/task-engine.ts'

const STEP = 2 * 3_600_000

async function setUp(copy: () => Promise<undefined> = async () => undefined) {
  const store = await openStore({ url: 'sqlite::memory:' })
  const clock = manualClock()
  const state = { step: 0, isDone: false }
  const setClock = async (by_ms: number) => {
    clock.jump(by_ms)
    expect(await store.dueTimes.move(by_ms, await store.dueTimes.moves())).toBe(true)
  }
  const wrapStore = (plain: Store): Store => ({
    ...plain,
    tasks: {
      ...plain.tasks,
      async claim(claim) {
        const step = state.step
        // As another process moves them before the claim, and this one notices afterwards.
        if (step < 0) await store.dueTimes.move(step, await store.dueTimes.moves())
        const tasks = await plain.tasks.claim(claim)
        if (step === 0 || tasks.length === 0) return tasks
        state.step = 0
        if (step < 0) clock.jump(step)
        else await setClock(step)
        return tasks
      },
    },
  })
  const vendor = scriptedVendor({ status: async () => (state.isDone ? success() : { status: 'IN_PROGRESS' }) })
  const settings = { copy_deadline_minutes: 60 }
  const engine = await taskEngine({
    vendors: { acme: vendor },
    store,
    clock,
    settings,
    wrapStore,
    files: memoryFiles({ copy }),
  })
  return { engine, state, setClock }
}

test.each([STEP, -STEP])('a clock that is set by %d ms after a claim ends no task at its deadline', async (step) => {
  const { engine, state } = await setUp()
  await using _ = engine
  const task_id = await engine.submit()
  await engine.run(20)
  expect((await engine.read(task_id)).status).toBe('IN_PROGRESS')
  state.step = step
  await engine.run(30)
  expect(state.step).toBe(0)
  expect((await engine.read(task_id)).status).toBe('IN_PROGRESS')
  state.isDone = true
  await engine.run(60)
  expect((await engine.read(task_id)).status).toBe('SUCCESS')
  const [entry] = await engine.store.ledger.ofCall(task_id)
  expect(entry?.errors).toBe(0)
})

test('a clock that is set forward during a copy ends no task at its deadline', async () => {
  let fails = true
  const { engine, state, setClock } = await setUp(async () => {
    if (!fails) return undefined
    fails = false
    await setClock(STEP)
    throw new GatewayError('upstream_cut', 'Only 1 of 24 bytes of the file arrived.')
  })
  await using _ = engine
  const task_id = await engine.submit()
  state.isDone = true
  await engine.run(120)
  expect(fails).toBe(false)
  expect((await engine.read(task_id)).status).toBe('SUCCESS')
})
