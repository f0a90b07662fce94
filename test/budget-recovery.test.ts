/**
 * Several processes share a budget, and one of them is killed, halted or cut off from the store: what its calls have cost
 * counts, although it reaches the ledger late, and nobody else spends it meanwhile. On every engine, with one injected clock.
 */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BudgetOwner } from '../src/calls/budgets/budget-accounts.ts'
import { type BudgetCallHold, createBudgets } from '../src/calls/budgets/budgets.ts'
import { createJournal } from '../src/calls/recording/journal.ts'
import { createLedger } from '../src/calls/recording/ledger.ts'
import { createSpool } from '../src/calls/recording/spool.ts'
import type { Clock } from '../src/kit/clock.ts'
import { createLog } from '../src/kit/log.ts'
import { randomAlphanumerics } from '../src/kit/secret.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { LedgerEntry } from '../src/store/ledger/ledger-entry.ts'
import type { Store } from '../src/store/store.ts'
import { manualClock } from './kit/clock.ts'
import { ENGINES } from './kit/engines.ts'
import { entry } from './kit/ledger.ts'

const LIMIT = 1_000
const OWNER: BudgetOwner = { token_id: 'tok_a', budgets: [{ amount: LIMIT / 1e9, window: 'total' }] }
const SECOND = 1_000

/** Lets work that waits for the store or the disk go on. */
const settle = async () => {
  for (let turn = 0; turn < 40; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
const until = async (isSo: () => boolean | Promise<boolean>, meanwhile: () => Promise<void> = settle) => {
  while (!(await isSo())) await meanwhile()
}

const directories: string[] = []
const ended: (() => unknown)[] = []

function createWorld(store: Store) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
  const settings = { budgets: [], tokens: {} }
  /** How many requests to the store are under way. */
  let running = 0

  function start(name: string, directory = mkdtempSync(join(tmpdir(), 'gatehouse-recovery-'))) {
    directories.push(directory)
    const state = {
      isDead: false,
      isHalted: false,
      suspended_ms: 0,
      isLedgerAway: false,
      isStoreAway: false,
      isDiskFull: false,
    }
    const late: (() => void)[] = []
    const own: Clock = {
      now: clock.now,
      steady: () => clock.steady() - state.suspended_ms,
      after: (ms, work) =>
        clock.after(ms, () => {
          if (state.isHalted) late.push(work)
          else if (!state.isDead) work()
        }),
    }
    async function ask<T>(isAway: boolean, work: () => Promise<T>): Promise<T> {
      if (state.isDead) return new Promise<T>(() => {})
      if (isAway || state.isStoreAway) throw new GatewayError('storage_unavailable', 'The store is away.')
      running++
      return work().finally(() => running--)
    }
    const budgets = createBudgets({
      store: {
        ...store.budgets,
        lease: (...given) => ask(false, () => store.budgets.lease(...given)),
        renew: (...given) => ask(false, () => store.budgets.renew(...given)),
        release: (...given) => ask(false, () => store.budgets.release(...given)),
      },
      process_id: name,
      settings: () => settings,
      currency: () => 'USD',
      findOwner: async () => undefined,
      alertsFor: () => [],
      onThreshold() {},
      onRefusing() {},
      clock: own,
      log,
    })
    const onDisk = createSpool({ directory, max_bytes: 1_000_000, now: clock.now })
    const spool = {
      ...onDisk,
      append: (entries: readonly LedgerEntry[]) =>
        state.isDiskFull ? Promise.reject(new Error('The disk is full.')) : onDisk.append(entries),
    }
    const ledger = createLedger({
      store: { append: (...given) => ask(state.isLedgerAway, () => store.ledger.append(...given)) },
      journal: createJournal({ directory, now: clock.now, log }),
      spool,
      process_id: name,
      budgets,
      clock: own,
      log,
    })
    budgets.start()
    ledger.start()
    ended.push(() => {
      state.isDead = true
      return spool.close()
    })
    const process = {
      directory,
      state,
      ledger,
      budgets,
      admit: async (most: number) => budgets.admit(OWNER, undefined, most, clock.now()) as Promise<BudgetCallHold>,
      /** What the pipeline does at the end of a call. */
      end(hold: BudgetCallHold, amount: number): void {
        void ledger.record([entry({ entry_id: randomAlphanumerics(24), at_ms: clock.now(), amount })])
        hold.settle(amount)
      },
      /** As much as it can get, a call at a time; returns how much it has spent. */
      async spendAll(): Promise<number> {
        let spent = 0
        for (let cost = LIMIT; cost >= 1; ) {
          try {
            process.end(await process.admit(cost), cost)
            spent += cost
          } catch (thrown) {
            if (!(thrown instanceof GatewayError)) throw thrown
            cost = Math.floor(cost / 2)
          }
        }
        return spent
      },
      /** What was due meanwhile happens now. */
      resume(): void {
        state.isHalted = false
        for (const work of late.splice(0)) work()
      },
      fillDisk(): void {
        state.isDiskFull = true
      },
      kill(): void {
        state.isDead = true
      },
      async stop(): Promise<void> {
        await ledger.close()
        await budgets.close()
      },
    }
    return process
  }

  /** In small steps, so that what waits for the store and the disk keeps up with the timers. */
  async function pass(seconds: number): Promise<void> {
    for (let step = 0; step < seconds * 4; step++) {
      clock.advance(250)
      await settle()
      await until(() => running === 0)
    }
  }
  const budget = async () => {
    const [state] = await store.budgets.list({ now_ms: clock.now(), limit: 10 })
    return { settled: state?.settled ?? 0, held: state?.held ?? 0 }
  }
  return { clock, start, pass, budget }
}

/** Makes the files of a killed process as old as they are by the clock of the test. */
function ageFiles(directory: string, at_ms: number): void {
  for (const name of readdirSync(directory)) utimesSync(join(directory, name), at_ms / 1000, at_ms / 1000)
}

for (const kind of ENGINES.filter(({ url }) => url)) {
  describe(`a budget of several processes on ${kind.name}`, () => {
    afterEach(async () => {
      for (const end of ended.splice(0)) await end()
      await kind.cleanup()
      for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
    })
    const open = async () => createWorld(await kind.open())

    it('is not spent again while what was charged waits in the spool', async () => {
      const { start, pass, budget } = await open()
      const [one, other] = [start('p1'), start('p2')]
      const hold = await one.admit(600)
      one.state.isLedgerAway = true
      one.end(hold, 600)
      await until(
        () => one.ledger.health().spool_bytes > 0,
        () => pass(0.25),
      )
      await pass(12) // it renews its leases, and returns what it does not need
      const spent = await other.spendAll()
      expect(spent).toBeGreaterThan(200)
      one.state.isLedgerAway = false
      await pass(60)
      expect(await budget()).toEqual({ settled: 600 + spent, held: 0 })
      expect(600 + spent).toBeLessThanOrEqual(LIMIT)
    })

    it('is not spent again before the journal of a killed process is replayed half a minute later', async () => {
      const { start, pass, clock, budget } = await open()
      const killed = start('p1')
      const other = start('p2')
      const hold = await killed.admit(600)
      killed.state.isLedgerAway = true
      killed.fillDisk() // it is in the journal only: what still goes to the spool would look younger than the kill
      killed.end(hold, 600)
      await settle()
      killed.kill()
      ageFiles(killed.directory, clock.now())
      await pass(30)
      const spent = await other.spendAll()
      start('p3', killed.directory)
      await until(
        async () => (await budget()).settled >= 600 + spent,
        () => pass(1),
      )
      expect(600 + spent).toBeLessThanOrEqual(LIMIT)
      await pass(60)
      expect(await other.spendAll()).toBe(LIMIT - 600 - spent)
      await pass(3)
      expect((await budget()).settled).toBe(LIMIT)
    })

    it('is not spent again while a process that has open calls is halted for half a minute', async () => {
      const { start, pass, budget } = await open()
      const [halted, other] = [start('p1'), start('p2')]
      const hold = await halted.admit(600)
      halted.state.isHalted = true
      await pass(30)
      const spent = await other.spendAll()
      halted.resume()
      halted.end(hold, 600)
      await pass(30)
      expect((await budget()).settled).toBe(600 + spent)
      expect(600 + spent).toBeLessThanOrEqual(LIMIT)
    })

    it('is not spent again by the first process that reaches a store which was away for minutes', async () => {
      const { start, pass, budget } = await open()
      const [one, other] = [start('p1'), start('p2')]
      const hold = await one.admit(600)
      await other.admit(1)
      for (const { state } of [one, other]) state.isStoreAway = true
      one.end(hold, 600)
      await pass(180)
      for (const { state } of [one, other]) state.isStoreAway = false
      const spent = await other.spendAll()
      await pass(60)
      expect((await budget()).settled).toBe(600 + spent)
      expect(601 + spent).toBeLessThanOrEqual(LIMIT)
    })

    it('is not spent by a process that was suspended for minutes and has lost its lease', async () => {
      const { start, pass, budget } = await open()
      const [suspended, other] = [start('p1'), start('p2')]
      suspended.end(await suspended.admit(600), 1)
      await pass(0.25)
      suspended.state.isHalted = true
      const lease = (await budget()).held
      expect(lease).toBeGreaterThan(400)
      await pass(120)
      suspended.state.suspended_ms = 120 * SECOND
      const spent = await other.spendAll()
      expect(spent).toBe(LIMIT - 1)
      suspended.resume()
      await pass(0.25)
      await expect(suspended.admit(1)).rejects.toThrow('The budget of the token tok_a')
      await pass(20)
      expect((await budget()).settled).toBe(LIMIT)
    })

    it('holds what a full ledger has dropped no longer than the store is away', async () => {
      const { start, pass, budget } = await open()
      const one = start('p1')
      const hold = await one.admit(600)
      one.state.isLedgerAway = true
      one.fillDisk()
      for (let count = 0; count < 20_000; count++) void one.ledger.record([entry({ amount: 0 })])
      one.end(hold, 600)
      expect(one.ledger.health().lost).toBe(1)
      await pass(5)
      expect((await budget()).held).toBeGreaterThanOrEqual(600)
      one.state.isLedgerAway = false
      await until(
        () => !one.ledger.health().is_store_away && one.ledger.health().queued === 0,
        () => pass(1),
      )
      await pass(15)
      expect(await one.spendAll()).toBe(LIMIT)
    })

    it('is free again where another process with the same data_dir has replayed what was spooled', async () => {
      const { start, pass, budget } = await open()
      const one = start('p1')
      const hold = await one.admit(600)
      one.state.isLedgerAway = true
      one.end(hold, 600)
      await until(
        () => one.ledger.health().spool_bytes > 0,
        () => pass(0.25),
      )
      start('p2', one.directory)
      await until(
        async () => (await budget()).settled === 600,
        () => pass(1),
      )
      one.state.isLedgerAway = false
      await until(
        () => !one.ledger.health().is_store_away,
        () => pass(1),
      )
      await pass(15)
      expect(one.ledger.health().spool_bytes).toBe(0)
      expect(await budget()).toEqual({ settled: 600, held: 0 })
    })

    it('keeps what a stopping process could only spool', async () => {
      const { start, pass, clock, budget } = await open()
      const [stopping, other] = [start('p1'), start('p2')]
      const hold = await stopping.admit(600)
      stopping.state.isLedgerAway = true
      stopping.end(hold, 600)
      await until(
        () => stopping.ledger.health().spool_bytes > 0,
        () => pass(0.25),
      )
      await stopping.stop()
      ageFiles(stopping.directory, clock.now())
      await pass(5)
      const spent = await other.spendAll()
      start('p3', stopping.directory)
      await until(
        async () => (await budget()).settled >= 600 + spent,
        () => pass(1),
      )
      expect(600 + spent).toBeLessThanOrEqual(LIMIT)
    })
  })
}
