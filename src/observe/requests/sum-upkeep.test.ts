/** When the sums of the request log are kept, and that a batch of unknown end counts once. */
import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { CallRecord } from '../../calls/call.ts'
import { createLog } from '../../kit/log.ts'
import { openStore } from '../../store/open-store.ts'
import type { RequestRow } from '../../store/requests/request-row.ts'
import { createRequestLog } from './request-log.ts'
import { createSumUpkeep } from './sum-upkeep.ts'

function setUp() {
  const clock = manualClock()
  let logged = ''
  const write = (text: string) => {
    logged += text
  }
  return { clock, log: createLog({ clock, level: 'error', pretty: false, write }), logged: () => logged }
}

const turns = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}

describe('the upkeep of sums', () => {
  function start(claims: boolean, more: { upkeep?: () => Promise<boolean> } = {}) {
    const { clock, log, logged } = setUp()
    const steps: number[] = []
    let left = 3
    const store = {
      claimUpkeep: async () => claims,
      upkeep: async (now: number) => {
        steps.push(now)
        return --left > 0
      },
      ...more,
    }
    const settings = () => ({ minutes_keep_hours: 2, hours_keep_days: 1, days_keep_days: 1 })
    return { upkeep: createSumUpkeep({ store, settings, clock, log }), steps, clock, logged }
  }

  test('takes steps until nothing is left, at most once a minute', async () => {
    const { upkeep, steps, clock } = start(true)
    upkeep.start()
    await turns()
    expect(steps).toEqual([])
    clock.advance(60_000)
    upkeep.start()
    upkeep.start()
    await turns()
    expect(steps).toHaveLength(3)
    clock.advance(59_000)
    upkeep.start()
    await turns()
    expect(steps).toHaveLength(3)
    expect(clock.waiting()).toBe(0)
  })

  test('leaves it to the process that has claimed the minute', async () => {
    const { upkeep, steps, clock } = start(false)
    clock.advance(60_000)
    upkeep.start()
    await turns()
    expect(steps).toEqual([])
  })

  test('logs a failure, and starts again a minute later', async () => {
    let calls = 0
    const { upkeep, clock, logged } = start(true, {
      upkeep: async () => {
        if (++calls === 1) throw new Error('the store is away')
        return false
      },
    })
    for (let minute = 0; minute < 2; minute++) {
      clock.advance(60_000)
      upkeep.start()
      await turns()
    }
    expect(calls).toBe(2)
    expect(logged()).toContain('the sums of the request log were not kept')
  })

  test('ends with the step that runs when the gateway stops', async () => {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    let calls = 0
    const { upkeep, clock } = start(true, {
      upkeep: () => {
        calls++
        return promise
      },
    })
    clock.advance(60_000)
    upkeep.start()
    await turns()
    const stopped = upkeep.stop()
    resolve(true)
    await stopped
    clock.advance(60_000)
    upkeep.start()
    await turns()
    expect(calls).toBe(1)
  })
})

test('a batch that was written although its write has failed counts once', async () => {
  const { clock, log } = setUp()
  const store = await openStore({ url: 'sqlite::memory:' })
  let failures = 1
  const written: number[] = []
  const requestLog = createRequestLog({
    store: {
      ...store.requestLog,
      async append(rows: readonly RequestRow[], options) {
        await store.requestLog.append(rows, options)
        written.push(rows.length)
        if (failures-- > 0) throw new Error('the connection was lost after the commit')
      },
    },
    settings: () => ({ enabled: true, keep_days: 7 }),
    clock,
    log,
  })
  const record = {
    call: { caller: { token_id: 'tok_a' }, arrived: 0, request_id: 'r' },
    attempts: [],
    family: 'chatcompat',
    model: 'm',
  } as unknown as CallRecord
  const each = (ended: readonly { record: CallRecord }[], use: (one: never) => void) => {
    for (const one of ended) use(one as never)
  }
  const recording = { offset: clock.now(), each: each as never }
  requestLog.record([{ record, at: 1, left: undefined }], recording)
  await requestLog.flush()
  requestLog.record([{ record, at: 1, left: undefined }], recording)
  await requestLog.flush()
  expect(written).toEqual([1, 2])
  const range = { from: 0, to: Number.MAX_SAFE_INTEGER, step: 'minute', kind: 'all', keys: [''] } as const
  const [[, points] = []] = await store.requestSums.read(range)
  expect([...(points?.values() ?? [])].map(({ total }) => total.calls)).toEqual([2])
  await store.close()
})
