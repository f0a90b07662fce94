/** The store's contract for the ledger, tested on every engine. */
import { afterEach, describe, expect, it } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import { entry } from '../../../test/kit/ledger.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'
import type { Store } from '../store.ts'
import type { UsageDimension, UsageSum } from './ledger-store.ts'

const COLUMN: Partial<Record<UsageDimension, keyof UsageSum>> = {
  token: 'token_id',
  project: 'project_id',
  day: 'start',
  hour: 'start',
  minute: 'start',
}

const requestsOf = async (store: Store): Promise<number> =>
  (await store.usage.list({ limit: 100 })).reduce((sum, { requests }) => sum + requests, 0)

for (const engine of ENGINES) {
  describe(`the ledger on ${engine.name}`, () => {
    afterEach(() => engine.cleanup())

    it('returns an entry with every field', async () => {
      const store = await engine.open()
      const whole = entry({
        kind: 'lost_hedge',
        project_id: 'proj_a',
        end_user: 'ünïcode "quoted"',
        units: { input_tokens: 1, output_tokens: 2, video_seconds: 4.5, video_size: '720p', has_sound: true },
        amount: null,
        cost: 9_000_000_000_000_000,
        price: '2026-01-01#abc',
      })
      expect(await store.ledger.append([whole])).toBe(1)
      expect(await store.ledger.ofCall('req_a')).toEqual([whole])
    })

    it('counts an entry once, however often and in whatever company it is written', async () => {
      const store = await engine.open()
      const [one, two] = [entry(), entry()]
      expect(await store.ledger.append([one, one])).toBe(1)
      expect(await store.ledger.append([two, one])).toBe(1)
      expect(await store.ledger.append([{ ...one, requests: 7 }])).toBe(0)
      expect(await requestsOf(store)).toBe(2)
    })

    it('adds entries and further writes in one transaction, or nothing', async () => {
      const store = await engine.open()
      const failing = store.ledger.append([entry()], { alsoInTransaction: () => Promise.reject(new Error('broken')) })
      await expect(failing).rejects.toThrow('broken')
      expect(await requestsOf(store)).toBe(0)
      expect(await store.ledger.ofCall('req_a')).toEqual([])
    })

    it('passes only new entries to further writes', async () => {
      const store = await engine.open()
      const [old, fresh] = [entry(), entry()]
      await store.ledger.append([old])
      const seen: string[] = []
      const note = async (_: unknown, entries: readonly { entry_id: string }[]) => {
        seen.push(...entries.map(({ entry_id }) => entry_id))
      }
      await store.ledger.append([old, fresh], { alsoInTransaction: note })
      await store.ledger.append([old, fresh], { alsoInTransaction: note })
      expect(seen).toEqual([fresh.entry_id])
    })

    it('takes back exactly what was recorded of a task, once for each of its ends', async () => {
      const store = await engine.open()
      const task = blankTask({
        task_id: 'task_a',
        token_id: 'tok_a',
        family: 'video-generation',
        model: 'm',
        submit_time: 1,
        request: {},
        base_url: '',
        deadline_at: 9,
        due_ms: 1,
      })
      await store.tasks.add({ task })
      const of_end = { kind: 'task', call_id: 'task_a', amount: 70, cost: null, errors: 1 } as const
      for (let round = 0; round < 2; round++) {
        const [claimed] = await store.tasks.claim({ by: 'w', provider: '', now_ms: 10, until_ms: 20, limit: 1 })
        if (!claimed) throw new Error('the task was not due')
        const ended = entry({ ...of_end, entry_id: `task_a:${claimed.fence}` })
        expect(await store.tasks.save(claimed, { status: 'FAILURE', entry: ended })).toBe(true)
        expect(await requestsOf(store)).toBe(1)
        const reopening = { due_ms: 5, deadline_at: 9, copying: null, callback_id: 'c', reversal: entry() }
        expect(await store.tasks.reopen(claimed, reopening)).toBe(true)
        expect(await store.tasks.reopen(claimed, reopening)).toBe(false)
        expect(await requestsOf(store)).toBe(0)
      }
      const entries = await store.ledger.ofCall('task_a')
      expect(entries.reduce((sum, { amount }) => sum + (amount ?? 0), 0)).toBe(0)
      expect(entries.map(({ kind }) => kind).sort()).toEqual(['reversal', 'reversal', 'task', 'task'])
    })

    const DAY = Date.UTC(2026, 0, 1)
    const day = DAY / 1000
    const everything = { from: 0, to: day + 10 * 86_400 }

    it('sums up entries by every dimension, and counts requests without a price', async () => {
      const store = await engine.open()
      await store.ledger.append([
        entry({ at_ms: DAY, project_id: 'p', end_user: 'u' }),
        entry({ at_ms: DAY + 3_600_000, model: 'b', amount: null, cost: null, errors: 1, estimated: 1 }),
        entry({ at_ms: DAY + 86_400_000, token_id: 'tok_b', amount: 2 ** 52, cost: 9 }),
        entry({
          at_ms: DAY + 86_400_000,
          token_id: 'tok_b',
          amount: 2 ** 52 - 1,
          kind: 'lost_hedge',
          requests: 0,
          cost: null,
        }),
      ])
      const of = async (...by: UsageDimension[]) => {
        const { rows } = await store.ledger.usage({ by, ...everything })
        return rows.map((row) => [
          ...by.map((name) => row[COLUMN[name] ?? (name as 'model')]),
          row.requests,
          row.amount,
          row.cost,
          row.unknown_costs,
        ])
      }
      expect(await of()).toEqual([[3, 2n ** 53n + 29n, 34n, 2]])
      expect((await of('token')).sort()).toEqual([
        ['tok_a', 2, 30n, 25n, 1],
        ['tok_b', 1, 2n ** 53n - 1n, 9n, 1],
      ])
      expect((await of('day', 'model')).sort()).toEqual([
        [day, 'b', 1, 0n, 0n, 1],
        [day, 'sandbox/general', 1, 30n, 25n, 0],
        [day + 86_400, 'sandbox/general', 1, 2n ** 53n - 1n, 9n, 1],
      ])
      expect((await of('hour')).map(([start]) => start).sort()).toEqual([day, day + 3_600, day + 86_400])
      expect((await of('end_user')).sort()).toEqual([
        ['', 2, 2n ** 53n - 1n, 9n, 2],
        ['u', 1, 30n, 25n, 0],
      ])
      expect((await of('project')).map(([project]) => project).sort()).toEqual(['', 'p'])
      const [one] = (await store.ledger.usage({ by: [], from: day + 3_600, to: day + 7_200 })).rows
      expect(one).toMatchObject({ requests: 1, errors: 1, estimated: 1 })
      const [none] = (await store.ledger.usage({ by: [], ...everything, token_id: 'tok_none' })).rows
      expect(none).toMatchObject({ requests: 0, amount: 0n })
    })

    it('finds no difference after any entries, and each one that was made', async () => {
      const store = await engine.open()
      await store.ledger.append([
        entry({ at_ms: DAY, end_user: 'u' }),
        entry({ at_ms: DAY, amount: null, cost: null }),
        entry({ at_ms: DAY, kind: 'lost_hedge', requests: 0, amount: null }),
        entry({ at_ms: DAY + 1, kind: 'reversal', requests: -1, errors: -1, amount: null, cost: -9 }),
      ])
      expect(await store.ledger.differences(everything)).toEqual([])
      if (!engine.run) return
      await engine.run('update ledger_sums set amount = amount + 7 where period = 3600')
      await engine.run("update ledger_end_users set requests = requests - 1 where end_user = 'u'")
      await engine.run(
        "insert into ledger_sums select 60, 0, 'tok_x', '', '', '', '', '', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0 from ledger_sums where period = 86400",
      )
      const found = await store.ledger.differences(everything)
      expect(found.map(({ what, count, difference }) => [what, count, difference])).toEqual([
        ['minute', 'entries', '-1'],
        ['hour', 'amount', '-7'],
        ['end_users', 'requests', '1'],
      ])
    })

    it('finds an ended task without an entry, and one with two', async () => {
      const store = await engine.open()
      const finish_time = Math.floor(Date.now() / 1000) + 100
      const of_task = {
        token_id: 't',
        family: 'video-generation',
        model: 'm',
        submit_time: 1,
        request: {},
        base_url: '',
        deadline_at: 9,
        due_ms: null,
      } as const
      const ended = { ...of_task, status: 'SUCCESS', finish_time, operation: {} } as const
      for (const [task_id, more] of Object.entries({ a: {}, b: {}, c: { operation: null }, d: {} }))
        await store.tasks.add({ task: blankTask({ ...ended, task_id, ...more }) })
      const of = (call_id: string) => entry({ kind: 'task', call_id, at_ms: finish_time * 1000 })
      await store.ledger.append([of('a'), of('a'), of('d')])
      const found = await store.ledger.differences({ from: 0, to: finish_time + 1 })
      expect(found.map(({ what, of, difference }) => [what, ...of, difference]).sort()).toEqual([
        ['tasks', 'a', '1'],
        ['tasks', 'b', '-1'],
      ])
    })

    it('sums up amounts beyond what a number holds exactly, and refuses what would exceed 64 bits', async () => {
      const store = await engine.open()
      const AMOUNT = 9_000_000_000_000_001
      const many = (count: number, sign = 1) =>
        Array.from({ length: count }, () => entry({ at_ms: DAY, amount: sign * AMOUNT, cost: sign * AMOUNT }))
      const sums = async () => {
        const { rows } = await store.ledger.usage({ by: [], ...everything })
        return rows.map(({ amount, cost, requests }) => [
          amount / BigInt(AMOUNT),
          amount % BigInt(AMOUNT),
          cost - amount,
          requests,
        ])
      }
      await store.ledger.append(many(500))
      await store.ledger.append(many(11))
      expect(await sums()).toEqual([[511n, 0n, 0n, 511]])
      await expect(store.ledger.append(many(1))).rejects.toThrow('would exceed 4600000000 units')
      expect(await sums()).toEqual([[511n, 0n, 0n, 511]])
      await store.ledger.append([...many(500, -1), ...many(2)])
      expect(await sums()).toEqual([[13n, 0n, 0n, 1_013]])
      expect(await store.ledger.differences(everything)).toEqual([])
    })

    it('adds up what many sums together have, beyond 64 bits', async () => {
      const store = await engine.open()
      for (const token_id of ['tok_a', 'tok_b', 'tok_c'])
        await store.ledger.append(
          Array.from({ length: 500 }, () => entry({ at_ms: DAY, token_id, amount: 9e15, cost: 9e15 })),
        )
      const { rows } = await store.ledger.usage({ by: ['day'], ...everything })
      expect(rows).toMatchObject([{ amount: 13_500_000_000_000_000_000n, cost: 13_500_000_000_000_000_000n }])
      expect(await store.ledger.vendorDays(everything)).toMatchObject([{ cost: 13_500_000_000_000_000_000n }])
    })

    it('sums up the further end users of a token on one day', async () => {
      const store = await engine.open()
      const named = (from: number, count: number) =>
        Array.from({ length: count }, (_, index) => entry({ at_ms: DAY, end_user: `user ${from + index}` }))
      await store.ledger.append(named(0, 9_999))
      await store.ledger.append([...named(9_999, 3), ...named(0, 2)])
      await store.ledger.append(named(10_005, 1))
      await store.ledger.append([entry({ at_ms: DAY, token_id: 'tok_b', end_user: 'x' })])
      const { rows } = await store.ledger.usage({ by: ['token', 'end_user'], ...everything })
      const users = rows.filter(({ token_id }) => token_id === 'tok_a')
      expect(users).toHaveLength(10_001)
      expect(users.find(({ end_user }) => end_user === '(other)')?.requests).toBe(3)
      expect(users.find(({ end_user }) => end_user === 'user 1')?.requests).toBe(2)
      expect(rows.filter(({ token_id }) => token_id === 'tok_b')).toMatchObject([{ end_user: 'x', requests: 1 }])
      expect(await store.ledger.differences(everything)).toEqual([])
    })

    it('lists what was asked of providers, by day and upstream model', async () => {
      const store = await engine.open()
      await store.ledger.append([
        entry({ at_ms: DAY }),
        entry({ at_ms: DAY, errors: 1, units: { input_tokens: 0, output_tokens: 0 }, cost: 0 }),
        entry({ at_ms: DAY, kind: 'lost_hedge', requests: 0 }),
        entry({ at_ms: DAY, provider: 'other' }),
        entry({ at_ms: DAY, provider: '', upstream_model: '' }),
      ])
      const counts = { day, upstream_model: 'general', estimated: 0, interrupted: 0 }
      expect(await store.ledger.vendorDays({ ...everything, provider: 'sandbox' })).toEqual([
        { ...counts, requests: 2, input_tokens: 20, output_tokens: 40, cost: 50n },
      ])
      expect(await store.ledger.vendorDays(everything)).toMatchObject([{ ...counts, requests: 3 }])
    })

    it('keeps sums by minute and hour, and entries, as long as asked, and those by day for ever', async () => {
      const store = await engine.open()
      const now = day + 100 * 86_400
      const ages = [0, 1, 2, 3, 50, 99]
      const many = Array.from({ length: 600 }, (_, index) => entry({ at_ms: DAY, model: `m${index}` }))
      await store.ledger.append([
        ...many,
        ...ages.map((age) => entry({ at_ms: (now - age * 86_400) * 1000, end_user: 'u' })),
      ])
      const keep = { minutes_days: 2, hours_days: 50, entries_days: 98 }
      let batches = 0
      while (await store.ledger.prune(keep, now + 5)) batches++
      expect(batches).toBe(1)
      const requestsBy = async (dimension: UsageDimension, days: number) => {
        const { rows } = await store.ledger.usage({ by: [dimension], from: now - days * 86_400, to: now + 86_400 })
        return rows.reduce((sum, { requests }) => sum + requests, 0)
      }
      expect(await requestsBy('minute', 2)).toBe(3)
      expect(await requestsBy('hour', 50)).toBe(5)
      expect(await requestsBy('day', 100)).toBe(606)
      expect(await requestsBy('minute', 100)).toBe(606) // by day, since the minutes are gone
      expect(await requestsBy('end_user', 100)).toBe(5)
      expect(await store.ledger.ofCall('req_a')).toHaveLength(5)
      expect(await store.ledger.differences({ from: 0, to: now + 86_400 })).toEqual([])
      expect(await store.ledger.prune({ ...keep, minutes_days: 9 }, now)).toBe(false)
      expect(await requestsBy('minute', 9)).toBe(4)
    })

    const lease = (process: string, until_ms: number) => ({ process, until_ms })
    const held = entry({ entry_id: 'e', kind: 'call', amount: 99, estimated: 1 })

    it('records an open call as interrupted when the lease of its process lapses, once', async () => {
      const store = await engine.open()
      await store.ledger.open([{ entry_id: 'e', entry: held }], lease('p', 100))
      expect(await store.ledger.interruptLapsed(100)).toBe(0)
      await store.ledger.renew(lease('p', 200))
      expect(await store.ledger.interruptLapsed(199)).toBe(0)
      expect(await store.ledger.interruptLapsed(201)).toBe(1)
      expect(await store.ledger.interruptLapsed(202)).toBe(0)
      expect(await store.ledger.ofCall('req_a')).toMatchObject([
        { kind: 'interrupted', entry_id: 'e:interrupted', amount: 99, estimated: 1, at_ms: held.at_ms },
      ])
    })

    it('records nothing of a call that was settled, with or without an entry', async () => {
      const store = await engine.open()
      await store.ledger.open(
        [
          { entry_id: 'e', entry: held },
          { entry_id: 'f', entry: held },
        ],
        lease('p', 100),
      )
      await store.ledger.append([entry({ entry_id: 'e' })], { closes: ['e'] })
      await store.ledger.append([], { closes: ['f'] })
      expect(await store.ledger.interruptLapsed(1_000)).toBe(0)
      expect(await requestsOf(store)).toBe(1)
    })

    it('records the last amount of an open call, and opens none again that was recorded', async () => {
      const store = await engine.open()
      await store.ledger.open([{ entry_id: 'e', entry: held }], lease('p', 100))
      await store.ledger.raise({ entry_id: 'e', entry: { ...held, amount: 300, model: 'acme/dear' } })
      expect(await store.ledger.interruptLapsed(101)).toBe(1)
      await store.ledger.raise({ entry_id: 'e', entry: { ...held, amount: 400 } })
      expect(await store.ledger.interruptLapsed(1_000)).toBe(0)
      expect(await store.ledger.ofCall('req_a')).toMatchObject([
        { kind: 'interrupted', entry_id: 'e:interrupted', amount: 300, model: 'acme/dear' },
      ])
    })

    it('keeps the open calls of a running process when the clock is set', async () => {
      const store = await engine.open()
      await store.ledger.open([{ entry_id: 'e', entry: held }], lease('p', 100))
      await store.dueTimes.move(1_000, await store.dueTimes.moves())
      expect(await store.ledger.interruptLapsed(1_100)).toBe(0)
      expect(await store.ledger.interruptLapsed(1_101)).toBe(1)
    })

    it('takes an interrupted call back when its halted process records it after all', async () => {
      const store = await engine.open()
      await store.ledger.open([{ entry_id: 'e', entry: held }], lease('p', 100))
      await store.ledger.interruptLapsed(1_000)
      for (let time = 0; time < 2; time++)
        await store.ledger.append([entry({ entry_id: 'e', amount: 5 })], { closes: ['e'] })
      const entries = await store.ledger.ofCall('req_a')
      expect(entries.map(({ kind }) => kind).sort()).toEqual(['call', 'interrupted', 'reversal'])
      expect(entries.reduce((sum, { amount }) => sum + (amount ?? 0), 0)).toBe(5)
      expect(await store.ledger.differences({ from: 0, to: day * 2 })).toEqual([])
    })
  })
}
