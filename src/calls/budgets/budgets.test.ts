import { afterEach, describe, expect, it } from 'bun:test'
import fc from 'fast-check'
import { type ManualClock, manualClock } from '../../../test/kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import { fromNano, toNano } from '../../spec/price.ts'
import type { Budget } from '../../spec/rate-limit.ts'
import type { Engine } from '../../store/engine.ts'
import { openSqlite } from '../../store/engines/sqlite.ts'
import type { Charged } from '../../store/ledger/budget-store.ts'
import { budgetStore } from '../../store/ledger/budgets.ts'
import { chargeBudgets, holdForTask } from '../../store/ledger/ledger-append.ts'
import type { BudgetOwner } from './budget-accounts.ts'
import type { PresentOwner } from './budget-owners.ts'
import { type BudgetCallHold, type Budgets, createBudgets, type ReachedThreshold, type RefusedCall } from './budgets.ts'

const engines: Engine[] = []
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
})

/** Lets promises that wait for the database go on. */
const settled = async () => {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
}

async function world({ installation = [] as Budget[] } = {}) {
  const clock = manualClock()
  const engine = await openSqlite(':memory:')
  engines.push(engine)
  const settings = { budgets: installation, tokens: {} }
  const store = budgetStore(engine)
  const requests = { leases: 0 }
  /** What leases wait for; undefined: nothing. */
  const gate: { opened?: Promise<void> | undefined } = {}
  let isAway = false
  const reached: ReachedThreshold[] = []
  const refusing: RefusedCall[] = []
  /** By the key of the scope: what the owners have now. */
  const owners = new Map<string, PresentOwner>()
  const log = createLog({ clock, level: 'error', pretty: false, write: () => {} })
  const away = () => Promise.reject(new GatewayError('storage_unavailable', 'The store is away.'))

  function process(process_id: string) {
    const queue: Charged[] = []
    const created = createBudgets({
      store: {
        ...store,
        async lease(...given) {
          requests.leases++
          await gate.opened
          return isAway ? away() : store.lease(...given)
        },
        renew: (...given) => (isAway ? away() : store.renew(...given)),
        release: (...given) => (isAway ? away() : store.release(...given)),
      },
      process_id,
      settings: () => settings,
      currency: () => 'USD',
      findOwner: async (scope_key) => owners.get(scope_key),
      alertsFor: () => [],
      onThreshold: (one) => void reached.push(one),
      onRefusing: (one) => void refusing.push(one),
      clock,
      log,
    })
    const budgets = {
      ...created,
      admit: (owner: BudgetOwner, end_user: string | undefined, most: number, now_ms = clock.now()) =>
        created.admit(owner, end_user, most, now_ms),
    }
    budgets.start()
    let number = 0
    return {
      budgets,
      queue,
      /** What the pipeline does at the end of a call. */
      charge(
        hold: BudgetCallHold | undefined,
        owner: BudgetOwner,
        amount: number,
        end_user: string | null = null,
      ): void {
        hold?.settle(amount)
        queue.push({
          call_id: `${process_id}-${number++}`,
          token_id: owner.token_id,
          project_id: owner.project?.project_id ?? null,
          end_user,
          at_ms: clock.now(),
          amount,
          kind: 'call',
        })
      },
      async append(): Promise<void> {
        const charges = queue.splice(0)
        const changes = await engine.write((rows) => chargeBudgets(rows, charges, process_id))
        budgets.appended(charges, changes)
      },
      holdForTask: (call_id: string, hold: BudgetCallHold) =>
        engine.write((rows) => holdForTask(rows, call_id, hold.forTask())),
    }
  }
  const states = async () =>
    (await store.list({ now_ms: clock.now(), limit: 100 })).map(({ account_key, settled, held }) => ({
      account_key,
      settled,
      held,
    }))
  return {
    clock,
    engine,
    process,
    requests,
    gate,
    reached,
    refusing,
    owners,
    states,
    setAway: (value: boolean) => {
      isAway = value
    },
  }
}

const DAY = (amount: number, more: Partial<Budget> = {}): Budget => ({ amount, window: 'day', ...more })
const refusedBy = async (admitting: () => unknown) => {
  try {
    await admitting()
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown
    throw thrown
  }
  return undefined
}
const advance = async (clock: ManualClock, ms: number) => {
  clock.advance(ms)
  await settled()
}

describe('a budget', () => {
  it('admits calls up to its amount and not one nano-unit more', async () => {
    const { process } = await world()
    const { budgets, charge } = process('p1')
    const owner = { token_id: 'tok_a', name: 'laptop', budgets: [DAY(10)] }
    const first = await budgets.admit(owner, undefined, toNano(6))
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(4) + 1))).toMatchObject({
      code: 'insufficient_quota',
      message:
        'The budget of the token "laptop" is 10 USD a day; 0 USD is used, and this call may cost up to 4.000000001 USD: the rest is held for other calls.',
      detail: { retry_after: 1, retry: true },
    })
    const second = await budgets.admit(owner, undefined, toNano(4))
    charge(first, owner, toNano(6))
    charge(second, owner, toNano(4))
    const refused = await refusedBy(() => budgets.admit(owner, undefined, 1))
    expect(refused?.message).toBe(
      'The budget of the token "laptop" is 10 USD a day; 10 USD is used, and this call may cost up to 0.000000001 USD: it starts again at 2026-01-02T00:00:00.000Z.',
    )
    expect(refused?.detail.retry_after).toBeUndefined()
  })

  it('names no time to a call that costs more than all of it', async () => {
    const { process } = await world()
    const { budgets } = process('p1')
    const owner = { token_id: 'tok_a', name: 'laptop', budgets: [DAY(10)] }
    expect((await refusedBy(() => budgets.admit(owner, undefined, toNano(11))))?.message).toEndWith(
      'this call may cost up to 11 USD: it is more than the whole budget, which the operator of the gateway can raise.',
    )
  })

  it('frees what a call did not use', async () => {
    const { process } = await world()
    const { budgets, charge } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    for (let call = 0; call < 30; call++) charge(await budgets.admit(owner, undefined, toNano(7)), owner, toNano(0.1))
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(7.000000001)))).toBeDefined()
    expect(await budgets.admit(owner, undefined, toNano(7))).toBeDefined()
  })

  it('is not forgotten after a long silence while its next call waits for the store', async () => {
    const { clock, process, gate, states } = await world()
    const { budgets } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    ;(await budgets.admit(owner, undefined, toNano(1)))?.settle(0)
    const idle = () => [...budgets.accounts()][0]?.idle
    while (idle() !== 20) await advance(clock, 3_000)
    const opened = Promise.withResolvers<void>()
    gate.opened = opened.promise
    const waiting = budgets.admit(owner, undefined, toNano(6))
    await settled()
    await advance(clock, 3_000) // the renewal that forgets it is due, after the lease
    opened.resolve()
    await waiting
    const next = await budgets.admit(owner, undefined, toNano(1))
    for (let renewal = 0; renewal < 4; renewal++) await advance(clock, 3_000)
    expect((await states())[0]?.held).toBeGreaterThanOrEqual(toNano(7))
    expect(await refusedBy(() => process('p2').budgets.admit(owner, undefined, toNano(4)))).toBeDefined()
    next?.settle(0)
    ;(await waiting)?.settle(0)
    for (let renewal = 0; renewal < 30; renewal++) await advance(clock, 3_000)
    expect((await states())[0]?.held).toBe(0)
  })

  /** What metrics show: the owner, the limit and what is used. */
  const shown = ({ accounts }: Pick<Budgets, 'accounts'>) =>
    [...accounts()].map(({ name, limit, settled }) => [name.scope_key, fromNano(limit), fromNano(settled)])

  it('is known until its window ends, although no call comes, but that of an end user', async () => {
    const { clock, process, owners } = await world()
    const { budgets, charge, append } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)], end_users: { budgets: [DAY(5)] } }
    owners.set('token:tok_a', { label: 'the token "a"', project_id: null, budgets: owner.budgets })
    charge(await budgets.admit(owner, 'ann', toNano(1)), owner, toNano(1), 'ann')
    await append()
    const still = async (times: number, ms = 3_000) => {
      for (let time = 0; time < times; time++) await advance(clock, ms)
    }
    expect(shown(budgets)).toEqual([
      ['token:tok_a', 10, 1],
      ['user:tok_a/ann', 5, 1],
    ])
    await still(30)
    expect(shown(budgets)).toEqual([['token:tok_a', 10, 1]])
    const end = Date.parse('2026-01-02') - clock.now()
    await still(1, end - 3_000)
    expect(shown(budgets)).toEqual([['token:tok_a', 10, 1]])
    await still(1)
    expect(shown(budgets)).toEqual([])
  })

  it('that its owner has changed or lost is shown so within minutes, although no call comes', async () => {
    const { clock, process, owners } = await world()
    const { budgets, charge, append } = process('p1')
    const both = [
      { token_id: 'tok_a', budgets: [DAY(10)] },
      { token_id: 'tok_b', budgets: [DAY(10)] },
    ]
    for (const owner of both) charge(await budgets.admit(owner, undefined, toNano(1)), owner, toNano(1))
    await append()
    owners.set('token:tok_a', { label: 'the token "a"', project_id: null, budgets: [DAY(20)] })
    for (let renewal = 0; renewal < 99; renewal++) await advance(clock, 3_000)
    expect(shown(budgets)).toEqual([
      ['token:tok_a', 10, 1],
      ['token:tok_b', 10, 1],
    ])
    await advance(clock, 3_000)
    expect(shown(budgets)).toEqual([['token:tok_a', 20, 1]])
  })

  it('is known after a restart without a call, where its owner still has it', async () => {
    const { process, owners } = await world({ installation: [DAY(100)] })
    const { budgets, charge, append } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const lost = { token_id: 'tok_b', budgets: [DAY(10)] }
    for (const one of [owner, lost]) charge(await budgets.admit(one, 'ann', toNano(4)), one, toNano(4), 'ann')
    await append()
    await budgets.close()
    owners.set('installation', { label: 'the installation', project_id: null, budgets: [DAY(100)] })
    owners.set('token:tok_a', { label: 'the token "a"', project_id: null, budgets: [DAY(12)] })
    const { budgets: next } = process('p2')
    await settled()
    expect(shown(next)).toEqual([
      ['installation', 100, 8],
      ['token:tok_a', 12, 4],
    ])
    expect(await next.admit({ ...owner, budgets: [DAY(12)] }, undefined, toNano(8))).toBeDefined()
    expect(await refusedBy(() => next.admit({ ...owner, budgets: [DAY(12)] }, undefined, 1))).toBeDefined()
  })

  it('that starts later limits nothing before', async () => {
    const { process, clock } = await world()
    const { budgets } = process('p1')
    const starts_at = clock.now() / 1000 + 60
    for (const window of ['day', 'month', 'total'] as const) {
      const owner = { token_id: `tok_${window}`, budgets: [{ amount: 1, window, starts_at }] }
      expect(budgets.admit(owner, undefined, toNano(2))).toBeUndefined()
      expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(2), clock.now() + 60_000))).toBeDefined()
    }
  })

  it('holds and counts a call in the window of its admission, also where the clock is set back', async () => {
    const { process, clock } = await world()
    const { budgets } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const [now_ms, tomorrow] = [clock.now(), clock.now() + 86_400_000]
    const held = await budgets.admit(owner, undefined, toNano(9), tomorrow)
    expect(await budgets.admit(owner, undefined, toNano(9), now_ms)).toBeDefined()
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(9), now_ms))).toBeDefined()
    held?.settle(0)
    expect(await budgets.admit(owner, undefined, toNano(9), tomorrow)).toBeDefined()
  })

  it('that was lowered admits nothing beyond its new amount, although more was leased', async () => {
    const { process } = await world()
    const { budgets, charge } = process('p1')
    const before = { token_id: 'tok_a', budgets: [DAY(100)] }
    for (let call = 0; call < 50; call++)
      charge(await budgets.admit(before, undefined, toNano(0.1)), before, toNano(0.1))
    const after = { token_id: 'tok_a', budgets: [DAY(5.2)] }
    const last = await budgets.admit(after, undefined, toNano(0.2))
    expect(await refusedBy(() => budgets.admit(after, undefined, 1))).toMatchObject({ code: 'insufficient_quota' })
    charge(last, after, 0)
    expect(await budgets.admit(after, undefined, toNano(0.2))).toBeDefined()
    const raised = { token_id: 'tok_a', budgets: [DAY(7)] }
    expect(await budgets.admit(raised, undefined, toNano(1.8))).toBeDefined()
    expect(await refusedBy(() => budgets.admit(raised, undefined, 1))).toMatchObject({ code: 'insufficient_quota' })
  })

  it('that was changed keeps its new amount, although a caller that was read before still calls', async () => {
    const { process } = await world()
    const { budgets } = process('p1')
    const project = (amount: number, as_of: number) => ({
      token_id: 'tok_a',
      as_of,
      project: { project_id: 'prj_a', name: 'team', budgets: [DAY(amount)] },
    })
    const [open, after] = [project(100, 1), project(5, 2)]
    await budgets.admit(after, undefined, toNano(4))
    expect(await refusedBy(() => budgets.admit(open, undefined, toNano(2)))).toMatchObject({
      code: 'insufficient_quota',
    })
    await budgets.admit(open, undefined, toNano(1))
    expect(await refusedBy(() => budgets.admit(after, undefined, 1))).toMatchObject({ code: 'insufficient_quota' })
  })

  it('does not ask the store for each call', async () => {
    const { process, requests, clock } = await world()
    const { budgets, charge, append } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(100)] }
    for (let call = 0; call < 1_000; call++) {
      const hold = budgets.admit(owner, undefined, toNano(0.01))
      charge(hold instanceof Promise ? await hold : hold, owner, toNano(0.005))
      if (call % 100 === 99) {
        await append()
        await advance(clock, 1_000)
      }
    }
    expect(requests.leases).toBeLessThan(20)
  })

  it('starts again with its window, and what was charged before does not count', async () => {
    const { process, clock } = await world()
    const { budgets, charge } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    charge(await budgets.admit(owner, undefined, toNano(10)), owner, toNano(10))
    expect(await refusedBy(() => budgets.admit(owner, undefined, 1))).toBeDefined()
    await advance(clock, 86_400_000)
    expect(await budgets.admit(owner, undefined, toNano(10))).toBeDefined()
  })

  it('of the installation, the project, the token and its end user apply together', async () => {
    const shared = [DAY(100)]
    const owner = {
      token_id: 'tok_a',
      budgets: [DAY(50)],
      end_users: { budgets: [DAY(5)] },
      project: { project_id: 'prj_a', name: 'search', budgets: [DAY(20)], end_users: { budgets: [DAY(8)] } },
    }
    const { process } = await world({ installation: shared })
    const { budgets, charge } = process('p1')
    const refused = async (end_user: string | undefined, most: number) =>
      (await refusedBy(() => budgets.admit(owner, end_user, toNano(most))))?.message.split(' is ')[0]
    expect(await refused('ann', 5.1)).toBe('The budget of the end user "ann"')
    charge(await budgets.admit(owner, 'ann', toNano(5)), owner, toNano(5), 'ann')
    expect(await refused('ann', 0.1)).toBe('The budget of the end user "ann"')
    expect(await refused(undefined, 15.1)).toBe('The budget of the project "search"')
    charge(await budgets.admit(owner, 'bob', toNano(5)), owner, toNano(5), 'bob')
    charge(await budgets.admit(owner, undefined, toNano(10)), owner, toNano(10))
    expect(await refused(undefined, 0.1)).toBe('The budget of the project "search"')
  })

  it('that is soft refuses nothing and notifies', async () => {
    const { process, reached } = await world()
    const { budgets, charge, append } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(1, { soft: true, thresholds: [50, 200] })] }
    for (const cost of [0.5, 5]) {
      charge(await budgets.admit(owner, undefined, toNano(cost)), owner, toNano(cost))
      await settled()
      await append()
      await settled()
    }
    expect(reached.map(({ threshold }) => threshold)).toEqual([50, 200])
  })

  it('notifies of each threshold once', async () => {
    const { process, reached, clock } = await world()
    const [one, two] = [process('p1'), process('p2')]
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const use = async ({ budgets, charge, append }: typeof one, cost: number) => {
      charge(await budgets.admit(owner, undefined, toNano(cost)), owner, toNano(cost))
      await append()
      for (let tick = 0; tick < 4; tick++) await advance(clock, 3_000)
    }
    await use(one, 4.9)
    expect(reached).toEqual([])
    await use(two, 0.1)
    await use(one, 0.1)
    await use(two, 2.9)
    await use(one, 2)
    expect(reached.map(({ threshold }) => threshold)).toEqual([50, 80, 100])
  })

  it('is not used up by a call that it could never pay, and notifies of its thresholds after it', async () => {
    const { process, reached } = await world()
    const { budgets, charge, append } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(10) + 1))).toBeDefined()
    await settled()
    expect(reached).toEqual([])
    charge(await budgets.admit(owner, undefined, toNano(5)), owner, toNano(5))
    await append()
    await settled()
    expect(reached.map(({ threshold }) => threshold)).toEqual([50])
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(10)))).toBeDefined()
    await settled()
    expect(reached.map(({ threshold }) => threshold)).toEqual([50, 100])
  })

  it('is not used after the lease has ended while the store is away', async () => {
    const { process, clock, setAway } = await world()
    const { budgets, charge } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    charge(await budgets.admit(owner, undefined, toNano(1)), owner, toNano(0.01))
    setAway(true)
    await advance(clock, 9_000)
    expect(budgets.admit(owner, undefined, toNano(0.1))).not.toBeInstanceOf(Promise)
    await advance(clock, 6_000)
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(0.1)))).toMatchObject({
      code: 'storage_unavailable',
    })
    setAway(false)
    expect(await budgets.admit(owner, undefined, toNano(0.1))).toBeDefined()
  })

  it('of a process that was killed is free again after its lease', async () => {
    const { process, clock } = await world()
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const { budgets } = process('p2')
    await advance(clock, 10_000) // right after its start it leaves leases that have expired to processes that still run
    await process('killed').budgets.admit(owner, undefined, toNano(8))
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(3)))).toBeDefined()
    clock.jump(58_000) // its timers stand still, as those of a killed process do
    await advance(clock, 1_000)
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(3)))).toBeDefined()
    await advance(clock, 1_001)
    expect(await budgets.admit(owner, undefined, toNano(10))).toBeDefined()
  })

  it('is returned whole, although charges were being appended during a renewal', async () => {
    const { process, clock, engine, states } = await world()
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const { budgets, charge, queue } = process('p1')
    const hold = await budgets.admit(owner, undefined, toNano(5))
    for (let second = 0; second < 12; second += 3) await advance(clock, 3_000)
    charge(hold, owner, toNano(2))
    const charges = queue.splice(0)
    const changes = await engine.write((rows) => chargeBudgets(rows, charges, 'p1'))
    await advance(clock, 3_000) // committed, and this process does not know it yet
    budgets.appended(charges, changes)
    for (let second = 0; second < 120; second += 3) await advance(clock, 3_000)
    expect(await states()).toMatchObject([{ settled: toNano(2), held: 0 }])
  })

  it('of an end user is returned, also where the store was away until nothing else was known of it', async () => {
    const { process, clock, states, setAway } = await world()
    const owner = { token_id: 'tok_a', end_users: { budgets: [DAY(10)] } }
    const { budgets } = process('p1')
    ;(await budgets.admit(owner, 'ann', toNano(5)))?.settle(0)
    setAway(true)
    for (let second = 0; second < 90; second += 3) await advance(clock, 3_000)
    setAway(false)
    for (let second = 0; second < 120; second += 3) await advance(clock, 3_000)
    expect(await states()).toMatchObject([{ settled: 0, held: 0 }])
    expect([...budgets.accounts()]).toEqual([])
  })

  it('stays held by a process that stops before a call has ended', async () => {
    const { process, states } = await world()
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const { budgets } = process('p1')
    await budgets.admit(owner, undefined, toNano(6))
    await budgets.close()
    const [state] = await states()
    expect(state?.held).toBeGreaterThanOrEqual(toNano(6))
  })

  it('does not keep a process from stopping while the store is away', async () => {
    const { process, setAway } = await world()
    const { budgets } = process('p1')
    ;(await budgets.admit({ token_id: 'tok_a', budgets: [DAY(10)] }, undefined, toNano(6)))?.settle(0)
    setAway(true)
    expect(await refusedBy(() => budgets.close())).toBeUndefined()
  })

  it('is held by a task in the store', async () => {
    const { process, states, clock } = await world()
    const { budgets, holdForTask: holdFor } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const hold = await budgets.admit(owner, undefined, toNano(6))
    if (!hold) throw new Error('not admitted')
    await holdFor('task_1', hold)
    hold.moved()
    hold.settle(0)
    for (let tick = 0; tick < 5; tick++) await advance(clock, 3_000)
    expect(await states()).toMatchObject([{ settled: 0, held: toNano(6) }])
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(4) + 1))).toBeDefined()
    expect(await budgets.admit(owner, undefined, toNano(4))).toBeDefined()
  })

  it('returns what is not used, so that another process can have it', async () => {
    const { process, clock, states } = await world()
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const one = process('p1')
    one.charge(await one.budgets.admit(owner, undefined, toNano(9)), owner, toNano(1))
    await one.append()
    for (let tick = 0; tick < 4; tick++) await advance(clock, 3_000)
    expect(await process('p2').budgets.admit(owner, undefined, toNano(9))).toBeDefined()
    await one.budgets.close()
    expect((await states())[0]?.settled).toBe(toNano(1))
  })

  it('holds more where a dearer model takes over, or refuses and holds what it held', async () => {
    const { process } = await world()
    const { budgets, charge } = process('p1')
    const owner = { token_id: 'tok_a', budgets: [DAY(10)] }
    const hold = await budgets.admit(owner, undefined, toNano(1))
    const other = await budgets.admit(owner, undefined, toNano(5))
    expect(() => hold?.raise(toNano(6))).toThrow('The budget of the token tok_a')
    charge(other, owner, 0)
    hold?.raise(toNano(6))
    expect(await refusedBy(() => budgets.admit(owner, undefined, toNano(4) + 1))).toBeDefined()
    hold?.settle(0)
    expect(await budgets.admit(owner, undefined, toNano(10))).toBeDefined()
  })

  it('says what the whole call may cost where a dearer model takes over', async () => {
    const { process, refusing } = await world()
    const { budgets } = process('p1')
    const hold = await budgets.admit({ token_id: 'tok_a', budgets: [DAY(10)] }, undefined, toNano(4))
    const refused = await refusedBy(() => hold?.raise(toNano(12)))
    expect(refused?.message).toEndWith(
      'may cost up to 12 USD: it is more than the whole budget, which the operator of the gateway can raise.',
    )
    expect(refusing.map(({ reason, most }) => [reason, most])).toEqual([['too_large', toNano(12)]])
  })
})

describe('several processes on one store', () => {
  type Step = { process: number; kind: 'call' | 'end' | 'append' | 'tick' | 'kill' | 'task'; cost: number }
  const steps = fc.array(
    fc.record({
      process: fc.nat(2),
      kind: fc.constantFrom<Step['kind']>('call', 'call', 'call', 'end', 'end', 'append', 'tick', 'kill', 'task'),
      cost: fc.nat(60),
    }),
    { maxLength: 40 },
  )

  it('never admit more than a budget, and lose nothing of it, whatever happens to them', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (script) => {
        const { clock, process, states } = await world({ installation: [{ amount: 150 / 1e9, window: 'total' }] })
        const owner = { token_id: 'tok_a', budgets: [{ amount: 100 / 1e9, window: 'total' as const }] }
        let generation = 0
        const spawn = () => ({ ...process(`p${generation++}`), open: [] as { hold: BudgetCallHold; most: number }[] })
        const processes = [spawn(), spawn(), spawn()]
        let charged = 0
        for (const { process: number, kind, cost } of script) {
          const one = processes[number]
          if (!one) continue
          if (kind === 'call' || kind === 'task') {
            const admitted = await Promise.resolve()
              .then(() => one.budgets.admit(owner, undefined, cost))
              .catch((thrown) => {
                if (thrown instanceof GatewayError && thrown.code === 'insufficient_quota') return undefined
                throw thrown
              })
            if (!admitted) continue
            if (kind === 'call') one.open.push({ hold: admitted, most: cost })
            else {
              await one.holdForTask(`task_${generation++}`, admitted)
              admitted.moved()
              admitted.settle(0)
            }
          } else if (kind === 'end') {
            const ended = one.open.shift()
            if (!ended) continue
            const amount = Math.min(ended.most, cost)
            charged += amount
            one.charge(ended.hold, owner, amount)
          } else if (kind === 'append') await one.append()
          else if (kind === 'tick') await advance(clock, 3_000)
          else {
            // What it had not appended is lost here, and what its calls held; its spool is tested elsewhere.
            for (const { amount } of one.queue) charged -= amount ?? 0
            processes[number] = spawn()
          }
          const held = processes.flatMap(({ open }) => open).reduce((sum, { most }) => sum + most, 0)
          const unsettled = processes.flatMap(({ queue }) => queue).reduce((sum, { amount }) => sum + (amount ?? 0), 0)
          for (const state of await states()) {
            const limit = state.account_key.startsWith('token') ? 100 : 150
            expect(state.settled + state.held).toBeLessThanOrEqual(limit)
            expect(held + unsettled).toBeLessThanOrEqual(state.held)
          }
        }
        for (const one of processes) {
          for (const { hold } of one.open) hold.settle(0)
          await one.append()
        }
        for (const state of await states()) expect(state.settled).toBe(charged)
        while (engines.length > 0) await engines.pop()?.close()
      }),
      { numRuns: 300 },
    )
  }, 120_000)
})
