/** Sums of the request log in the store, on every engine: kept with the rows, joined, summed up by hour and day, deleted. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import { entry as ledgerEntry } from '../../../test/kit/ledger.ts'
import { requestRow } from '../../../test/kit/request-rows.ts'
import type { Store } from '../store.ts'
import type { RequestRow } from './request-row.ts'
import type { SumsQuery } from './request-sums.ts'

const DAY = 86_400
const HOUR = 3_600
/** The start of a day. */
const START = 1_767_225_600
const KEPT = { minutes: 24 * HOUR, hours: 40 * DAY, days: 1_100 * DAY }

let row_id = 0
const row = (seconds: number, given: Partial<RequestRow> = {}): RequestRow =>
  requestRow({ row_id: ++row_id, at_ms: (START + seconds) * 1_000, project_id: 'p1', ...given })

async function upkeep({ requestSums }: Store, now: number, kept = KEPT): Promise<void> {
  let steps = 0
  while (await requestSums.upkeep(START + now, kept)) if (++steps > 200) throw new Error('it does not end')
}

const ALL: SumsQuery = { from: START, to: START + DAY, step: 'hour', kind: 'all', keys: [''] }

/** The calls at each time, of the scope and of its parts. */
async function callsOf({ requestSums }: Store, query: Partial<SumsQuery> = {}) {
  const found = await requestSums.read({ ...ALL, ...query })
  return [...found].map(([key, points]) => [
    key,
    [...points].map(([time, { total, parts }]) => [
      time - START,
      total.calls,
      Object.fromEntries([...parts].map(([name, { calls }]) => [name, calls])),
    ]),
  ])
}

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('counts rows by minute, hour and day with all that they have used', async () => {
      const store = await engine.open()
      await store.requestLog.append([
        row(10, {
          cost: 300,
          total_ms: 100,
          detail: { units: { input_tokens: 5, output_tokens: 7 }, provider_cost: 200, first_byte_ms: 20, cache: 'hit' },
        }),
        row(50, { error: 'rate_limit_exceeded', cost: null }),
        row(70),
        row(HOUR + 10),
      ])
      expect(await callsOf(store, { step: 'minute' })).toEqual([
        [
          '',
          [
            [0, 2, {}],
            [60, 1, {}],
            [HOUR, 1, {}],
          ],
        ],
      ])
      expect(await callsOf(store)).toEqual([
        [
          '',
          [
            [0, 3, {}],
            [HOUR, 1, {}],
          ],
        ],
      ])
      expect(await callsOf(store, { step: 'day' })).toEqual([['', [[0, 4, {}]]]])
      const [[, points] = []] = await store.requestSums.read({ ...ALL, step: 'minute' })
      expect(points?.get(START)?.total).toMatchObject({
        calls: 2,
        input_tokens: 5,
        output_tokens: 7,
        charge: 300,
        cost: 200,
        cache_hits: 1,
        errors: new Map([['rate_limit_exceeded', 1]]),
      })
      expect([...(points?.get(START)?.total.first_byte.values() ?? [])]).toEqual([1])
    })

    test('counts what a task is charged at its end, and no further call', async () => {
      const store = await engine.open()
      await store.requestLog.append([row(10, { model: 'video', end_user: 'ann' })])
      const entry = ledgerEntry({
        kind: 'task',
        entry_id: 'e1',
        at_ms: (START + 300) * 1_000,
        project_id: 'p1',
        model: 'video',
        end_user: 'ann',
        amount: 500,
        cost: 400,
      })
      await store.ledger.append([entry])
      await store.ledger.append([entry])
      await store.ledger.append([{ ...entry, kind: 'call', entry_id: 'e2' }])
      for (const by of ['model', 'user'] as const) {
        const [[, points] = []] = await store.requestSums.read({ ...ALL, by })
        const { parts } = points?.get(START) ?? {}
        expect(parts?.get(by === 'user' ? 'ann' : 'video')).toMatchObject({ calls: 1, charge: 500, cost: 400 })
      }
    })

    test('counts a row that is written again once', async () => {
      const store = await engine.open()
      const rows = [row(1), row(2)]
      await store.requestLog.append(rows, { is_repeated: false })
      await store.requestLog.append([...rows, row(3)])
      expect(await callsOf(store)).toEqual([['', [[0, 3, {}]]]])
    })

    test('returns the same for minutes, hours and days before and after they are summed up', async () => {
      const store = await engine.open()
      for (let hour = 0; hour < 30; hour++) {
        await store.requestLog.append([
          row(hour * HOUR, { model: `m${hour % 3}`, token_id: 'a', end_user: 'ann', tags: ['x', 'y'] }),
          row(hour * HOUR + 60, { model: 'm0', token_id: 'b', project_id: null, error: 'upstream_error' }),
        ])
      }
      const queries: Partial<SumsQuery>[] = [
        { to: START + 2 * DAY, step: 'day', by: 'model' },
        { to: START + 2 * DAY, by: 'tag' },
        { to: START + 2 * DAY, kind: 'project', keys: ['p1', 'p2'], by: 'user' },
        { to: START + 2 * DAY, kind: 'token', keys: ['a', 'b'], by: 'project', step: 'day' },
        { to: START + 2 * DAY, kind: 'user', keys: ['ann'], by: 'project' },
      ]
      const read = () => Promise.all(queries.map((query) => store.requestSums.read({ ...ALL, ...query })))
      const before = await read()
      await upkeep(store, 31 * HOUR)
      expect(await read()).toEqual(before)
      expect(await callsOf(store, queries[0])).toEqual([
        [
          '',
          [
            [0, 48, { m0: 32, m1: 8, m2: 8 }],
            [DAY, 12, { m0: 8, m1: 2, m2: 2 }],
          ],
        ],
      ])
    })

    test('joins the rows of one minute, once it is over', async () => {
      const store = await engine.open()
      for (let count = 0; count < 5; count++) await store.requestLog.append([row(count, { end_user: `u${count}` })])
      const before = await store.requestSums.read({ ...ALL, by: 'user' })
      await upkeep(store, 60)
      await upkeep(store, 200)
      expect(await store.requestSums.read({ ...ALL, by: 'user' })).toEqual(before)
      await store.requestLog.append([row(30)])
      await upkeep(store, 300)
      expect(await callsOf(store)).toEqual([['', [[0, 6, {}]]]])
    })

    test('counts a row whose hour was summed up in the next minute', async () => {
      const store = await engine.open()
      await store.requestLog.append([row(10)])
      await upkeep(store, HOUR + 1_300)
      await store.requestLog.append([row(20)])
      expect(await callsOf(store)).toEqual([
        [
          '',
          [
            [0, 1, {}],
            [HOUR, 1, {}],
          ],
        ],
      ])
    })

    test('keeps the parts of a scope with the most calls or the highest charge', async () => {
      const store = await engine.open()
      const rows = Array.from({ length: 130 }, (_, at) => row(at, { model: `m${at}`, cost: at === 7 ? 9 : 0 }))
      await store.requestLog.append([...rows, row(1, { model: 'm99' }), row(1, { model: 'm99' })])
      await upkeep(store, HOUR + 1_300)
      const [[, points] = []] = await store.requestSums.read({ ...ALL, by: 'model' })
      const { total, parts } = points?.get(START) ?? {}
      expect(total?.calls).toBe(132)
      expect(parts?.size).toBeLessThanOrEqual(100)
      expect([parts?.get('m99')?.calls, parts?.get('m7')?.charge]).toEqual([3, 9])
    })

    test('deletes sums whose time has passed, and keeps minutes that no hour contains yet', async () => {
      const store = await engine.open()
      await store.requestLog.append([row(0), row(DAY), row(3 * DAY)])
      const kept = { minutes: 2 * HOUR, hours: DAY, days: 3 * DAY }
      await upkeep(store, 3 * DAY + 600, kept)
      const range = { to: START + 4 * DAY }
      expect(await callsOf(store, { ...range, step: 'minute' })).toEqual([['', [[3 * DAY, 1, {}]]]])
      expect(await callsOf(store, range)).toEqual([['', [[3 * DAY, 1, {}]]]])
      expect(await callsOf(store, { ...range, step: 'day' })).toEqual([
        [
          '',
          [
            [DAY, 1, {}],
            [3 * DAY, 1, {}],
          ],
        ],
      ])
    })

    test('one process keeps them in each minute', async () => {
      const { requestSums } = await engine.open()
      const claims = await Promise.all([1, 2, 3].map(() => requestSums.claimUpkeep(START)))
      expect(claims.filter(Boolean)).toEqual([true])
      expect(await requestSums.claimUpkeep(START + 59)).toBe(false)
      expect(await requestSums.claimUpkeep(START + 60)).toBe(true)
    })

    test('an erased end user is in no sum by end user any more, and its calls are counted', async () => {
      const store = await engine.open()
      const calls = [row(0, { end_user: 'ann%' }), row(1, { end_user: 'bob' })]
      await store.requestLog.append(calls)
      await upkeep(store, HOUR + 1_300)
      await store.requestLog.append([row(HOUR + 2_000, { end_user: 'ann%' }), row(HOUR + 2_001, { end_user: 'ann-' })])
      while ((await store.endUsers.erase({ end_user: 'ann%' }, START + 2 * HOUR)).requests > 0);
      expect(await callsOf(store, { by: 'user' })).toEqual([
        [
          '',
          [
            [0, 2, { bob: 1 }],
            [HOUR, 2, { 'ann-': 1 }],
          ],
        ],
      ])
      expect(await callsOf(store, { kind: 'user', keys: ['ann%'] })).toEqual([])
    })
  })
}
