import { afterEach, describe, expect, test } from 'bun:test'
import { type ManualClock, manualClock } from '../../test/kit/clock.ts'
import { ENGINES } from '../../test/kit/engines.ts'
import { blankTask } from '../families/tasks/lifecycle.ts'
import { createLog } from '../kit/log.ts'
import type { Store } from './store.ts'
import { createStoreClock, writeAtTime } from './store-clock.ts'
import { type DueTimes, DueTimesMoved } from './tasks/due-times.ts'

const HOUR = 3_600_000
const START = Date.UTC(2026, 0, 1)

type Options = { suspended?: () => number; database?: () => number; store: Pick<Store, 'dueTimes'> }

/** A gateway's clock at this store; `database`: the store has a clock of its own. */
async function open(clock: ManualClock, { store, database, suspended = () => 0 }: Options) {
  let logged = ''
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ clock, level: 'info', pretty: false, write })
  const { moves, move } = store.dueTimes
  const dueTimes: DueTimes = { moves, move, ...(database && { now: async () => database() }) }
  const own = await createStoreClock({ clock, dueTimes, suspended_ms: suspended, log })
  return {
    own,
    logged() {
      log.flush()
      return logged
    },
  }
}

async function addRows({ tasks, responseRuns }: Store) {
  const fields = { token_id: 't', model: 'm', base_url: '', request: {}, submit_time: START / 1000 }
  const family = 'video-generation' as const
  const running = { deadline_at: START / 1000 + 3_600, sent_at: START / 1000, due_ms: START + 90_000 }
  const callback = { callback_id: 'callback_a', url: 'https://client.test' }
  await tasks.add({ task: blankTask({ ...fields, family, ...running, task_id: 'task_running' }), callback })
  await tasks.add({
    task: blankTask({ ...fields, family, ...running, task_id: 'task_ended' }),
    callback: { ...callback, callback_id: 'callback_b' },
  })
  await tasks.save({ task_id: 'task_ended', fence: 0 }, { status: 'FAILURE', finish_time: START / 1000, due_ms: null })
  const response = {
    response_id: 'resp_a',
    token_id: 't',
    previous_id: null,
    created_at: 1,
    expires_at: 9e9,
    input: [],
    response: {},
  }
  await responseRuns.add({ response, request: {}, events: undefined, due_ms: START }, [])
}

async function dueTimesOf({ tasks, webhooks, responseRuns }: Store) {
  const { due_ms, deadline_at, sent_at, submit_time } = (await tasks.find('task_running')) ?? {}
  const ended = await tasks.find('task_ended')
  return {
    running: [due_ms, (deadline_at ?? 0) * 1000, (sent_at ?? 0) * 1000].map((ms) => (ms ?? 0) - START),
    submit_time,
    ended: [ended?.due_ms, ended?.deadline_at],
    webhook: ((await webhooks.earliest()) ?? 0) - START,
    run: ((await responseRuns.earliest()) ?? 0) - START,
  }
}

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test.each([2 * HOUR, -2 * HOUR])('due times follow a clock that is set by %d ms, and by no more', async (step) => {
      const store = await engine.open()
      await addRows(store)
      const clock = manualClock(START)
      const { own, logged } = await open(clock, { store })
      clock.advance(1_000)
      clock.jump(step)
      expect(own.now()).toBe(START + 1_000) // until the due times are moved
      await own.align?.()
      expect(own.now()).toBe(START + 1_000 + step)
      expect(own.align?.()).toBeUndefined()
      expect(await dueTimesOf(store)).toEqual({
        running: [90_000 + step, HOUR + step, step],
        submit_time: START / 1000,
        ended: [null, START / 1000 + 3_600],
        webhook: step,
        run: step,
      })
      expect(logged()).toContain(`"the clock was set","seconds":${step / 1000},"moved_due_times":true`)
    })

    test.each([2 * HOUR, -2 * HOUR])('what is written while they are moved by %d ms is moved once', async (step) => {
      const store = await engine.open()
      await addRows(store)
      const clock = manualClock(START)
      const { own } = await open(clock, { store })
      const save = (due_ms: number) => store.tasks.save({ task_id: 'task_running', fence: 0 }, { due_ms })
      const saveRun = (due_ms: number) => store.responseRuns.renew({ response_id: 'resp_a', fence: 0 }, due_ms)
      await Promise.all(Array.from({ length: 6 }, () => save(START))) // connects as often as is needed
      clock.jump(step)
      const aligning = own.align?.()
      const before = saveRun(own.now() + 30_000) // by the old time, and before the move
      while (own.now() === START) await Promise.resolve()
      const after = save(own.now() + 30_000) // by the new time
      await Promise.all([aligning, before, after])
      const { running, run } = await dueTimesOf(store)
      expect([running[0], run]).toEqual([30_000 + step, 30_000 + step])
    })

    test('a lease whose time was read before another process moved them is not stored', async () => {
      const store = await engine.open()
      const clock = manualClock(START)
      const { own } = await open(clock, { store })
      const time = { now_ms: own.now(), expires_ms: own.now() + 15_000, moves: own.moves?.() }
      expect(await store.dueTimes.move(HOUR, await store.dueTimes.moves())).toBe(true)
      await expect(store.rateLimits.exchange('one', [], time)).rejects.toThrow(DueTimesMoved)
      await expect(store.budgets.renew('one', [], time)).rejects.toThrow(DueTimesMoved)
      await expect(store.budgets.lease('one', [], time)).rejects.toThrow(DueTimesMoved)
      // This process knew the new time already when it started, so that its clock does not change.
      const times: (number | undefined)[] = []
      await writeAtTime(own, async ({ now_ms, moves }) => {
        times.push(moves)
        await store.rateLimits.exchange('one', [], { now_ms, moves })
      })
      expect([times, own.now()]).toEqual([[0, 1], START])
    })

    test('the lock of a conversation ends after the same time', async () => {
      const { conversations, dueTimes } = await engine.open()
      const key = { conversation_id: 'conv_a', token_id: 't', now: START / 1000 }
      const { now: _, ...own } = key
      await conversations.add({ ...own, created_at: 0, expires_at: 9e9, metadata: {} }, [])
      const lockAt = (owner: string, ms: number) =>
        conversations.lock(key, { owner, now_ms: START + ms, until_ms: START + ms + 60_000 })
      expect(await lockAt('one', 0)).toBe('held')
      expect(await dueTimes.move(-HOUR, await dueTimes.moves())).toBe(true)
      expect(await lockAt('two', 59_999 - HOUR)).toBe('locked')
      expect(await lockAt('two', 60_000 - HOUR)).toBe('held')
    })

    test('of two processes that see the same step, one moves the due times', async () => {
      const store = await engine.open()
      await addRows(store)
      const clock = manualClock(START)
      const gateways = [await open(clock, { store }), await open(clock, { store })]
      for (const step of [2 * HOUR, -HOUR]) {
        clock.jump(step)
        await Promise.all(gateways.map(({ own }) => own.align?.()))
      }
      expect(gateways.map(({ own }) => own.now())).toEqual([START + HOUR, START + HOUR])
      expect((await dueTimesOf(store)).running).toEqual([90_000 + HOUR, 2 * HOUR, HOUR])
      expect(gateways.flatMap(({ logged }) => logged().match(/moved_due_times":true/g) ?? [])).toHaveLength(2)
    })
  })
}

test('PostgreSQL returns its own time', async () => {
  const [engine] = ENGINES.filter(({ name }) => name === 'postgres')
  const store = await engine?.open()
  const before = Date.now()
  const now = await store?.dueTimes.now?.()
  expect(Math.abs((now ?? 0) - before)).toBeLessThan(10_000)
  await engine?.cleanup()
})

describe('a store clock', () => {
  const moved: number[] = []
  afterEach(() => void moved.splice(0))
  const dueTimes: DueTimes = { moves: async () => moved.length, move: async (by_ms) => moved.push(by_ms) > 0 }
  const store = { dueTimes }

  test.each([4_999, -4_999, 5_000, -5_000])('is set by %d ms: smaller steps move nothing', async (step) => {
    const clock = manualClock(START)
    const { own } = await open(clock, { store })
    clock.jump(step)
    await own.align?.()
    expect(own.now()).toBe(START + step)
    expect(moved).toEqual(Math.abs(step) < 5_000 ? [] : [step])
  })

  test('does not move due times by the time for which the machine was suspended', async () => {
    const clock = manualClock(START)
    let suspended_ms = 0
    const { own } = await open(clock, { store, suspended: () => suspended_ms })
    suspended_ms = 2 * HOUR
    clock.jump(2 * HOUR)
    await own.align?.()
    expect([own.now(), moved]).toEqual([START + 2 * HOUR, []])
    suspended_ms += HOUR
    clock.jump(4 * HOUR)
    await own.align?.()
    expect(moved).toEqual([3 * HOUR])
  })

  test('follows the clock of the database, whatever that of the machine says', async () => {
    const clock = manualClock(START)
    let database = START + 10 * HOUR
    const { own } = await open(clock, { store, database: () => database })
    expect(own.now()).toBe(database)
    clock.jump(-5 * HOUR)
    for (const step of [0, 2 * HOUR]) {
      clock.advance(1_000)
      database += 1_000 + step
      await own.align?.()
    }
    expect([own.now(), moved]).toEqual([database, [2 * HOUR]])
  })

  test('takes a database that answers late for slow, not for set', async () => {
    const clock = manualClock(START)
    let database = START
    let delay = 0
    const slow = () => {
      clock.advance(delay) // its time is read at the beginning, and arrives late
      const read = database
      database += delay
      return read
    }
    const { own } = await open(clock, { store, database: slow })
    delay = 30_000
    clock.advance(1_000)
    database += 1_000
    await own.align?.()
    expect([own.now(), moved]).toEqual([START + 31_000, []])
  })

  test('tries again when the due times could not be moved', async () => {
    const clock = manualClock(START)
    let failures = 1
    const move: DueTimes['move'] = async (by_ms) => {
      if (failures-- > 0) throw new Error('locked')
      return moved.push(by_ms) > 0
    }
    const { own } = await open(clock, { store: { dueTimes: { ...dueTimes, move } } })
    clock.jump(-2 * HOUR)
    await expect(own.align?.()).rejects.toThrow('locked')
    expect(own.now()).toBe(START)
    await own.align?.()
    expect([own.now(), moved]).toEqual([START - 2 * HOUR, [-2 * HOUR]])
  })
})
