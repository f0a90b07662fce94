/** The store's contract for budgets, tested on every engine. */
import { afterEach, describe, expect, it } from 'bun:test'
import { sql } from 'kysely'
import { ENGINES } from '../../../test/kit/engines.ts'
import { entry } from '../../../test/kit/ledger.ts'
import type { Engine } from '../engine.ts'
import { openPostgres } from '../engines/postgres.ts'
import { openSqlite } from '../engines/sqlite.ts'
import { openStore } from '../open-store.ts'
import { type BudgetLease, type BudgetName, type Charged, NEVER } from './budget-store.ts'
import { budgetStore } from './budgets.ts'
import { chargeBudgets, holdForTask } from './ledger-append.ts'
import type { LedgerEntry } from './ledger-entry.ts'
import { interruptLapsed, openCalls } from './open-calls.ts'

const NOW = 1_000_000
const TIMES = { now_ms: NOW, expires_ms: NOW + 15_000 }
const budget = (change: Partial<BudgetName> = {}): BudgetName => ({
  account_key: 'token:tok_a/day/UTC/0',
  scope_key: 'token:tok_a',
  window: 'day',
  start_ms: 0,
  end_ms: 86_400_000,
  ...change,
})
const lease = (need: number, change: Partial<BudgetLease> = {}): BudgetLease => ({
  budget: budget(),
  limit: 100,
  need,
  want: 0,
  ...change,
})
const charge = (amount: number, change: Partial<Charged> = {}): Charged => ({
  call_id: 'call_1',
  token_id: 'tok_a',
  project_id: null,
  end_user: null,
  at_ms: NOW,
  amount,
  kind: 'call',
  ...change,
})

for (const kind of ENGINES.filter(({ url }) => url)) {
  describe(kind.name, () => {
    const engines: Engine[] = []
    afterEach(async () => {
      for (const engine of engines.splice(0)) await engine.close()
      await kind.cleanup()
    })

    async function opened() {
      await kind.open()
      const url = kind.url?.() ?? ''
      const engine = await (url.startsWith('sqlite:') ? openSqlite(url.slice('sqlite:'.length)) : openPostgres(url))
      engines.push(engine)
      const store = budgetStore(engine)
      return {
        store,
        engine,
        charge: (process_id: string, ...charges: Charged[]) =>
          engine.write((rows) => chargeBudgets(rows, charges, process_id)),
        holdForTask: (process_id: string, call_id: string, amount: number) =>
          engine.write((rows) => holdForTask(rows, call_id, { process_id, holds: [{ ...budget(), amount }] })),
        state: async (now_ms = NOW) =>
          (await store.list({ now_ms, limit: 10 })).map(({ settled, credit, held }) => [settled, credit, held]),
      }
    }

    it('leases what is needed, and an eighth of the rest at most', async () => {
      const { store, state } = await opened()
      expect(await store.lease('p1', [lease(20, { want: 10 })], TIMES)).toEqual([
        { settled: 0, credit: 0, held: 30, granted: 30, lapsed: true },
      ])
      expect(await store.lease('p2', [lease(10, { want: 1000 })], TIMES)).toMatchObject([{ granted: 17, held: 47 }])
      expect(await store.lease('p1', [lease(53)], TIMES)).toMatchObject([{ granted: 53, held: 100, lapsed: false }])
      expect(await store.lease('p1', [lease(1)], TIMES)).toMatchObject([{ granted: 0, held: 100 }])
      expect(await state()).toEqual([[0, 0, 100]])
    })

    it('leases less than is needed where less is left', async () => {
      const { store } = await opened()
      expect(await store.lease('p1', [lease(101)], TIMES)).toMatchObject([{ granted: 100 }])
    })

    it('charges reduce the lease of their process, and never what another has leased', async () => {
      const { store, charge: append, state } = await opened()
      await store.lease('p1', [lease(60)], TIMES)
      await store.lease('p2', [lease(40)], TIMES)
      expect(await append('p1', charge(25))).toEqual([
        { account_key: budget().account_key, start_ms: 0, settled: 25, credit: 0, held: 75 },
      ])
      // More than was leased: the provider charged more than could be known.
      await append('p1', charge(50))
      expect(await state()).toEqual([[75, 0, 40]])
      expect(await store.lease('p1', [lease(1)], TIMES)).toMatchObject([{ granted: 0 }])
    })

    it('counts charges by scope and window', async () => {
      const { store, charge: append } = await opened()
      const names = [
        budget({ account_key: 'installation/day/UTC/0', scope_key: 'installation' }),
        budget({ account_key: 'project:prj_a/day/UTC/0', scope_key: 'project:prj_a' }),
        budget({ account_key: 'user:tok_a/ann/day/UTC/0', scope_key: 'user:tok_a/ann' }),
        budget({ account_key: 'user:prj_a/ann/day/UTC/0', scope_key: 'user:prj_a/ann' }),
        budget(),
        budget({ account_key: 'token:tok_a/day/UTC/later', start_ms: NOW + 1 }),
      ]
      await store.lease(
        'p1',
        names.map((name) => lease(0, { budget: name })),
        TIMES,
      )
      await append(
        'p1',
        charge(1, { end_user: 'ann', project_id: 'prj_a' }),
        charge(2, { end_user: 'bob' }),
        charge(4, { token_id: 'tok_b' }),
      )
      const sums = (await store.list({ now_ms: NOW + 1, limit: 10 })).map(({ account_key, settled }) => [
        account_key,
        settled,
      ])
      expect(Object.fromEntries(sums)).toEqual({
        'installation/day/UTC/0': 7,
        'project:prj_a/day/UTC/0': 1,
        'user:tok_a/ann/day/UTC/0': 1,
        'user:prj_a/ann/day/UTC/0': 1,
        'token:tok_a/day/UTC/0': 3,
        'token:tok_a/day/UTC/later': 0,
      })
    })

    it('credit counts for a budget that never starts again', async () => {
      const { store, charge: append } = await opened()
      const total = budget({ account_key: 'token:tok_a/total/UTC/0', window: 'total', end_ms: NEVER })
      const prepaid = (need: number) => store.lease('p1', [lease(need, { budget: total, limit: 0 })], TIMES)
      expect(await prepaid(1)).toMatchObject([{ granted: 0 }])
      await append('p1', charge(-50, { kind: 'credit' }))
      expect(await prepaid(51)).toMatchObject([{ granted: 50, credit: 50, settled: 0 }])
    })

    it('a dead process loses its lease at its end, and not before', async () => {
      const { store, state } = await opened()
      await store.lease('p1', [lease(70)], TIMES)
      const before = { now_ms: TIMES.expires_ms - 1, expires_ms: TIMES.expires_ms + 10_000 }
      expect(await store.lease('p2', [lease(50)], before)).toMatchObject([{ granted: 30 }])
      const at = { ...before, now_ms: TIMES.expires_ms }
      expect(await store.lease('p2', [lease(50)], at)).toMatchObject([{ granted: 50, held: 80 }])
      expect(await store.lease('p1', [lease(5)], at)).toMatchObject([{ granted: 5, lapsed: true }])
      expect(await state()).toEqual([[0, 0, 85]])
    })

    it('a dead process keeps its lease where nobody could renew, and its own renewal revives it', async () => {
      const { store, state } = await opened()
      await store.lease('p1', [lease(70)], TIMES)
      const later = { now_ms: TIMES.expires_ms + 1, expires_ms: TIMES.expires_ms + 10_000 }
      expect(await store.lease('p2', [lease(50)], { ...later, keeps_dead: true })).toMatchObject([{ granted: 30 }])
      const { account_key, start_ms } = budget()
      expect(await store.renew('p1', [], later)).toEqual([{ account_key, start_ms }])
      expect(await store.lease('p2', [lease(50)], later)).toMatchObject([{ granted: 0 }])
      expect(await state()).toEqual([[0, 0, 100]])
    })

    it('a renewal tells that another process has ended the lease', async () => {
      const { store } = await opened()
      await store.lease('p1', [lease(70)], TIMES)
      const later = { now_ms: TIMES.expires_ms, expires_ms: TIMES.expires_ms + 10_000 }
      await store.lease('p2', [lease(50)], later)
      expect(await store.renew('p1', [], later)).toEqual([])
    })

    it('a process that renews keeps no row for long of what it has returned or used up', async () => {
      const { store, engine, state } = await opened()
      const of = (scope_key: string) => budget({ account_key: `${scope_key}/day/UTC/0`, scope_key })
      const [ann, bob] = [of('user:tok_a/ann'), of('user:tok_a/bob')]
      await store.lease('p1', [lease(70), lease(10, { budget: ann }), lease(10, { budget: bob })], TIMES)
      await engine.write((rows) => chargeBudgets(rows, [charge(70)], 'p1'))
      const at = (now_ms: number) => ({ now_ms, expires_ms: now_ms + 15_000 })
      const { account_key, start_ms } = bob
      const kept = await store.renew('p1', [{ account_key: ann.account_key, start_ms, amount: 0 }], at(NOW + 3_000))
      expect(kept).toHaveLength(3) // what a task takes at the same time is no lost lease
      expect(await store.renew('p1', [], at(NOW + 15_000))).toEqual([{ account_key, start_ms }])
      expect(await state()).toEqual([
        [70, 0, 0],
        [0, 0, 0],
        [0, 0, 10],
      ])
    })

    it('a dead process keeps its lease until its open calls are recorded as interrupted, and charged', async () => {
      const { store, engine, state } = await opened()
      await store.lease('p1', [lease(70)], TIMES)
      const call = { entry_id: 'a', entry: entry({ entry_id: 'a', amount: 60, at_ms: NOW }) }
      await openCalls(engine, [call], { process: 'p1', until_ms: TIMES.expires_ms + 45_000 })
      const later = { now_ms: TIMES.expires_ms + 45_000, expires_ms: TIMES.expires_ms + 60_000 }
      expect(await store.lease('p2', [lease(100)], later)).toMatchObject([{ granted: 30 }])
      expect(await interruptLapsed(engine, later.now_ms + 1)).toBe(1)
      expect(await store.lease('p2', [lease(100)], later)).toMatchObject([{ granted: 10 }])
      expect(await state(later.now_ms)).toEqual([[60, 0, 40]])
    })

    it('renews leases, and returns what a process does not keep, once', async () => {
      const { store, state } = await opened()
      await store.lease('p1', [lease(70)], TIMES)
      const later = { now_ms: NOW + 10_000, expires_ms: NOW + 25_000 }
      for (const _ of [1, 2]) await store.renew('p1', [{ ...budget(), amount: 20 }], later)
      expect(await state()).toEqual([[0, 0, 20]])
      await store.renew('p1', [{ ...budget(), amount: 60 }], later)
      expect(await state()).toEqual([[0, 0, 20]])
      expect(await store.lease('p2', [lease(100)], { now_ms: NOW + 24_999, expires_ms: NOW + 30_000 })).toMatchObject([
        { granted: 80 },
      ])
      await store.release('p1')
      await store.release('p2')
      expect(await state()).toEqual([[0, 0, 0]])
    })

    it.if(kind.name === 'postgres')('a renewal waits for a task that takes its amount at the same time', async () => {
      const { store, engine, state } = await opened()
      await store.lease('p1', [lease(70)], TIMES)
      const isWaiting = async () => {
        const { rows } = await sql<{ waiting: number }>`
          select count(*) as waiting from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(engine.db)
        return Number(rows[0]?.waiting) > 0
      }
      let renewed: Promise<unknown> | undefined
      await engine.write(async (rows) => {
        await holdForTask(rows, 'task_1', { process_id: 'p1', holds: [{ ...budget(), amount: 40 }] })
        renewed = store.renew('p1', [{ ...budget(), amount: 10 }], { now_ms: NOW + 1, expires_ms: NOW + 15_001 })
        while (!(await isWaiting()));
      })
      await renewed
      expect(await state()).toEqual([[0, 0, 50]]) // of the task, and of the lease
    })

    it('a task holds its amount until it is charged, whatever becomes of its process', async () => {
      const { store, charge: append, holdForTask: holdFor, state } = await opened()
      await store.lease('p1', [lease(70)], TIMES)
      await holdFor('p1', 'task_1', 40)
      await store.release('p1')
      expect(await state()).toEqual([[0, 0, 40]])
      for (const _ of [1, 2]) await append('p2', charge(0, { call_id: 'task_2', kind: 'task' }))
      expect(await state()).toEqual([[0, 0, 40]])
      await append('p2', charge(35, { call_id: 'task_1', kind: 'task' }))
      expect(await state()).toEqual([[35, 0, 0]])
    })

    it('notifies of a threshold once', async () => {
      const { store } = await opened()
      await store.lease('p1', [lease(70)], TIMES)
      expect(await store.notify(budget(), { threshold: 50, alerts: [] })).toBe(true)
      expect(await store.notify(budget(), { threshold: 50, alerts: [] })).toBe(false)
      expect(await store.notify(budget(), { threshold: 80, alerts: [] })).toBe(true)
    })

    it('adds up: charges of the ledger before and after it was created, credits, and what is held', async () => {
      await kind.open()
      const url = kind.url?.() ?? ''
      const store = await openStore({ url })
      try {
        const at = Date.UTC(2026, 10, 22, 13, 30)
        const entry = (number: number, change: Partial<LedgerEntry> = {}): LedgerEntry => ({
          entry_id: `entry_${number}`,
          kind: 'call',
          at_ms: at + number,
          call_id: 'req',
          token_id: 'tok_a',
          project_id: null,
          end_user: 'ann',
          family: 'chatcompat',
          model: 'v/m',
          provider: 'v',
          upstream_model: 'm',
          units: { input_tokens: 1, output_tokens: 1 },
          requests: 1,
          errors: 0,
          estimated: 0,
          amount: 10,
          cost: 10,
          price: null,
          ...change,
        })
        const days = 86_400_000
        const hours = 3_600_000
        const before = [
          entry(1),
          entry(2, { at_ms: at - 2 * days }),
          entry(3, { at_ms: at - 2 * hours }),
          entry(4, { at_ms: at - 20 * 60_000 }),
          entry(5, { kind: 'credit', amount: -500, requests: 0, end_user: null }),
          entry(6, { token_id: 'tok_b', end_user: null }),
        ]
        await store.ledger.append(before)
        const windows = {
          total: { start_ms: 0, end_ms: NEVER },
          day: { start_ms: at - 13.5 * hours, end_ms: at + 10.5 * hours },
          // A day in a time zone of half hours.
          odd: { start_ms: at - hours, end_ms: at + 23 * hours },
        }
        const names = ['installation', 'token:tok_a', 'user:tok_a/ann'].flatMap((scope_key) =>
          Object.entries(windows).map(([window, span]) =>
            budget({ account_key: `${scope_key}/${window}`, scope_key, window, ...span }),
          ),
        )
        const times = { now_ms: at, expires_ms: at + 15_000 }
        await store.budgets.lease(
          'p1',
          names.map((name) => lease(40, { budget: name, limit: 1000 })),
          times,
        )
        const states = async () =>
          Object.fromEntries(
            (await store.budgets.list({ now_ms: at, limit: 20 })).map(({ account_key, settled, credit }) => [
              account_key,
              [settled, credit],
            ]),
          )
        expect(await states()).toEqual({
          'installation/total': [50, 0],
          'installation/day': [40, 0],
          'installation/odd': [30, 0],
          'token:tok_a/total': [40, 500],
          'token:tok_a/day': [30, 500],
          'token:tok_a/odd': [20, 500],
          'user:tok_a/ann/total': [40, 0],
          'user:tok_a/ann/day': [30, 0],
          'user:tok_a/ann/odd': [20, 0],
        })
        await store.ledger.append([entry(7), entry(8, { kind: 'credit', amount: -5, requests: 0, end_user: null })], {
          process_id: 'p1',
        })
        expect((await states())['token:tok_a/total']).toEqual([50, 505])
        const everything = { from: 0, to: at / 1000 + 86_400 }
        expect(await store.ledger.differences(everything)).toEqual([])
        await kind.run?.(
          "update budget_accounts set settled = settled + 1, held = held - 2 where account_key = 'token:tok_a/odd'",
        )
        expect(
          (await store.ledger.differences(everything)).map(({ what, count, difference }) => [what, count, difference]),
        ).toEqual([
          ['budgets', 'held', '2'],
          ['budgets', 'settled', '-1'],
        ])
      } finally {
        await store.close()
      }
    })

    it('never grants more than the limit to processes that lease, charge and die at the same time', async () => {
      const { store, charge: append } = await opened()
      const other = budget({ account_key: 'installation/day/UTC/0', scope_key: 'installation' })
      const processes = ['p1', 'p2', 'p3', 'p4']
      const work = processes.map(async (process_id, number) => {
        for (let round = 0; round < 12; round++) {
          const both = [lease(3 + number, { want: 5 }), lease(2, { budget: other, want: 9 })]
          await store.lease(process_id, round % 2 ? both : both.reverse(), TIMES)
          await append(process_id, charge(1))
          if (round % 5 === 4) await store.release(process_id)
          await store.renew(process_id, [{ ...budget(), amount: 1 }], TIMES)
        }
      })
      await Promise.all(work)
      for (const { settled, held } of await store.list({ now_ms: NOW, limit: 10 })) {
        expect(settled).toBe(48)
        expect(held).toBeLessThanOrEqual(52)
      }
      for (const process_id of processes) await store.release(process_id)
      expect((await store.list({ now_ms: NOW, limit: 10 })).map(({ held }) => held)).toEqual([0, 0])
    })
  })
}
