import { afterEach, describe, expect, it } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../../test/kit/clock.ts'
import { entry } from '../../../test/kit/ledger.ts'
import { createLog } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import type { AppendOptions } from '../../store/ledger/ledger-store.ts'
import { openStore } from '../../store/open-store.ts'
import type { Store } from '../../store/store.ts'
import { createJournal, type Journal } from './journal.ts'
import { createLedger } from './ledger.ts'
import { createSpool, type Spool } from './spool.ts'

const stores: Store[] = []
const directories: string[] = []
const spools: Spool[] = []
afterEach(async () => {
  for (const spool of spools.splice(0)) await spool.close()
  for (const store of stores.splice(0)) await store.close()
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

const away = () =>
  new GatewayError('storage_unavailable', 'The store is away.', { cause: new Error('database or disk is full') })
/** Lets work that waits for promises finish. */
const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
/** Waits for the local disk: how long that takes is not known. */
const until = async (isSo: () => boolean | Promise<boolean>) => {
  while (!(await isSo())) await settle()
}

async function setUp({ isSpooled = true, isJournaled = false, isDurable = false, max_bytes = 1_000_000 } = {}) {
  const store = await openStore({ url: 'sqlite::memory:' })
  stores.push(store)
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-ledger-'))
  directories.push(directory)
  const clock = manualClock(Date.now() + 1_000_000)
  let logged = ''
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => (logged += text) })
  const state = {
    failure: undefined as Error | undefined,
    /** The entry that the store rejects. */
    rejected: undefined as string | undefined,
    held: undefined as Promise<void> | undefined,
    writes: [] as number[],
  }
  const append = async (entries: readonly LedgerEntry[], options?: AppendOptions) => {
    if (entries.length > 0) state.writes.push(entries.length)
    await state.held
    if (state.failure) throw state.failure
    if (entries.some(({ entry_id }) => entry_id === state.rejected)) throw new Error('rejected')
    return store.ledger.append(entries, options)
  }
  const spool = createSpool({ directory: join(directory, 'spool'), max_bytes, now: clock.now })
  spools.push(spool)
  let syncs = 0
  const observed = (journal: Journal): Journal => ({
    ...journal,
    sync() {
      syncs++
      return journal.sync()
    },
  })
  const used: string[] = []
  const create = () =>
    createLedger({
      store: { append },
      ...(isSpooled ? { spool } : {}),
      ...(isJournaled
        ? { journal: observed(createJournal({ directory: join(directory, 'spool'), now: clock.now, log })) }
        : {}),
      settings: { durable: isDurable },
      clock,
      log,
      onUsed: (token_id) => used.push(token_id),
    })
  return {
    ledger: create(),
    create,
    clock,
    state,
    spool,
    used,
    syncs: () => syncs,
    directory: join(directory, 'spool'),
    async stored() {
      return (await store.ledger.ofCall('req_a')).length
    },
    open: (entry_id: string) =>
      store.ledger.open([{ entry_id, entry: entry({ entry_id }) }], { process: 'p', until_ms: 1 }),
    /** Records what its process left open, and returns what the call has then. */
    async interrupted() {
      await store.ledger.interruptLapsed(1_000)
      return (await store.ledger.ofCall('req_a')).map(({ kind }) => kind)
    },
    differences: () => store.ledger.differences({ from: 0, to: 4_000_000_000 }),
    async advance(ms: number) {
      clock.advance(ms)
      await settle()
    },
    logged() {
      log.flush()
      return logged
    },
  }
}

const entries = (count: number) => Array.from({ length: count }, () => entry())

describe('the ledger', () => {
  it('commits the entries of 50 ms together, and sets no timer without any', async () => {
    const { ledger, clock, advance, state, stored, used } = await setUp()
    expect(clock.waiting()).toBe(0)
    expect(ledger.record([entry()])).toBeUndefined()
    ledger.record(entries(2))
    await advance(49)
    expect(state.writes).toEqual([])
    expect(ledger.health()).toEqual({ queued: 3, lag_ms: 49, spool_bytes: 0, lost: 0, is_store_away: false })
    await advance(1)
    expect(state.writes).toEqual([3])
    expect(await stored()).toBe(3)
    expect(clock.waiting()).toBe(0)
    expect(used).toEqual(['tok_a', 'tok_a', 'tok_a'])
  })

  it('in durable mode resolves once the entries are in the store', async () => {
    const { ledger, clock, state } = await setUp({ isDurable: true })
    const held = Promise.withResolvers<void>()
    state.held = held.promise
    let isDone = false
    const recorded = ledger.record([entry()])?.then(() => {
      isDone = true
    })
    clock.advance(0)
    await settle()
    expect(isDone).toBe(false)
    held.resolve()
    await recorded
    expect(isDone).toBe(true)
  })

  it('writes many entries in several transactions', async () => {
    const { ledger, advance, state } = await setUp({ isSpooled: false })
    for (const one of entries(1_200)) ledger.record([one])
    while (ledger.health().queued > 0) await advance(50)
    expect(state.writes).toEqual([500, 500, 200])
  })

  it('writes the rest on close, also after a write that fails', async () => {
    const { ledger, state, stored, clock } = await setUp({ isSpooled: false })
    ledger.record(entries(3))
    state.failure = away()
    clock.advance(50)
    await settle()
    state.failure = undefined
    await ledger.close()
    expect(await stored()).toBe(3)
  })

  it('logs what is lost when the store stays away at the end and there is no spool', async () => {
    const { ledger, state, logged, clock } = await setUp({ isSpooled: false })
    state.failure = away()
    ledger.record(entries(3))
    clock.advance(50)
    await ledger.close()
    expect(logged()).toContain('ledger entries lost: the store failed at shutdown","entries":3')
    expect(ledger.health().lost).toBe(3)
    ledger.record([entry()])
    expect(logged()).toContain('recorded after shutdown')
  })

  it('bounds what waits in memory, and counts what is lost', async () => {
    const { ledger, state, logged } = await setUp({ isSpooled: false })
    state.failure = away()
    for (const one of entries(20_000)) ledger.record([one])
    expect(ledger.health().lost).toBe(0)
    ledger.record([entry()])
    expect(ledger.health()).toMatchObject({ lost: 1, queued: 20_000 })
    expect(logged()).toContain('too many wait for the store')
  })

  it('stores the others where one entry is rejected', async () => {
    const { ledger, stored, advance, logged } = await setUp()
    ledger.record([entry(), entry({ token_id: null as unknown as string }), entry()])
    await advance(50)
    expect(await stored()).toBe(2)
    expect(ledger.health().lost).toBe(1)
    expect(logged()).toContain('rejected by the store')
  })
})

describe('an open call that ends without an entry', () => {
  it('is closed once the store is back', async () => {
    const { ledger, state, open, interrupted, advance } = await setUp({ isDurable: true })
    await open('x')
    ledger.start()
    state.failure = away()
    ledger.closeCall('x')
    await advance(50)
    await advance(5_000)
    expect(ledger.health().is_store_away).toBe(true)
    state.failure = undefined
    await until(async () => {
      await advance(1_000)
      return !ledger.health().is_store_away
    })
    for (let seconds = 0; seconds < 10; seconds++) await advance(1_000)
    expect(await interrupted()).toEqual([])
    await ledger.close()
  })

  it('is closed though another entry of its commit is rejected', async () => {
    const { ledger, state, open, interrupted, advance } = await setUp({ isDurable: true })
    await open('x')
    state.rejected = 'bad'
    ledger.closeCall('x')
    void ledger.record([entry({ entry_id: 'bad' })])
    await advance(50)
    expect(ledger.health().lost).toBe(1)
    expect(await interrupted()).toEqual([])
  })

  it('does not keep a stopping gateway waiting for a store that stays away', async () => {
    const { ledger, state, open, interrupted, advance } = await setUp({ isDurable: true })
    await open('x')
    state.failure = away()
    ledger.closeCall('x')
    await advance(50)
    await ledger.close()
    expect(await interrupted()).toEqual(['interrupted'])
  })
})

describe('the journal', () => {
  const journaled = (directory: string) =>
    existsSync(directory)
      ? readdirSync(directory).flatMap((name) => readFileSync(join(directory, name), 'utf8').split('\n').slice(0, -1))
          .length
      : 0

  it('has an entry once it is recorded, however long the store takes, until it is in the store', async () => {
    const { ledger, state, advance, stored, directory } = await setUp({ isJournaled: true })
    const held = Promise.withResolvers<void>()
    state.held = held.promise
    await ledger.record(entries(2))
    expect(journaled(directory)).toBe(2)
    await advance(50)
    await ledger.record(entries(1)) // during the commit
    expect(journaled(directory)).toBe(3)
    state.held = undefined
    held.resolve()
    await until(async () => (await stored()) === 2)
    await advance(50)
    await until(async () => (await stored()) === 3)
    await settle()
    expect(journaled(directory)).toBe(0)
    await ledger.close()
    expect(readdirSync(directory)).toEqual([])
  })

  it('is written once for all calls that end in one turn of the event loop, before any of them goes on', async () => {
    const { ledger, directory } = await setUp({ isJournaled: true })
    const [first, second] = [ledger.record(entries(1)), ledger.record(entries(2))]
    expect(journaled(directory)).toBe(0)
    await first
    expect(journaled(directory)).toBe(3)
    expect(second).toBe(first)
    await ledger.close()
  })

  it('does not get what the store has taken in the same turn', async () => {
    const { ledger, directory, stored } = await setUp({ isJournaled: true })
    const recorded = ledger.record(entries(2))
    await ledger.flush()
    await recorded
    expect([journaled(directory), await stored()]).toEqual([0, 2])
    await ledger.close()
  })

  it('is synced to the disk while a commit takes longer than 50 ms, again and again', async () => {
    const { ledger, state, advance, syncs, clock } = await setUp({ isJournaled: true })
    const held = Promise.withResolvers<void>()
    state.held = held.promise
    ledger.record(entries(2))
    await advance(50)
    await advance(49)
    expect(syncs()).toBe(0)
    await advance(1)
    expect(syncs()).toBe(1)
    ledger.record(entries(1))
    await advance(50)
    expect(syncs()).toBe(2)
    state.held = undefined
    held.resolve()
    while (ledger.health().queued > 0) await advance(10)
    await settle()
    expect(syncs()).toBe(2)
    expect(clock.waiting()).toBe(0)
  })

  it('is not used in durable mode, where the call waits for the store', async () => {
    const { ledger, clock, directory } = await setUp({ isJournaled: true, isDurable: true })
    const recorded = ledger.record([entry()])
    expect(journaled(directory)).toBe(0)
    clock.advance(0)
    await recorded
  })

  it('keeps entries for the next start that neither the store nor the spool takes at the end', async () => {
    const { ledger, create, state, clock, advance, stored, differences, directory } = await setUp({
      isJournaled: true,
      isSpooled: true,
      max_bytes: 10,
    })
    state.failure = away()
    ledger.record(entries(3))
    await advance(50)
    await ledger.close()
    expect(ledger.health().lost).toBe(0)
    state.failure = undefined
    for (const name of readdirSync(directory)) utimesSync(join(directory, name), 1, 1)
    create().start()
    clock.advance(1_000)
    await until(async () => (await stored()) === 3)
    expect(await differences()).toEqual([])
  })

  it('of a process that was killed is replayed by one that runs, once it is old enough', async () => {
    const { create, clock, advance, stored, directory, differences } = await setUp()
    create().start()
    await advance(1_000)
    const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
    createJournal({ directory, now: clock.now, log }).write(entries(3))
    const written_ms = clock.now()
    for (const name of readdirSync(directory)) utimesSync(join(directory, name), 1, written_ms / 1000)
    while ((await stored()) === 0) {
      await advance(500)
      await until(() => clock.waiting() > 0) // it looks again later
      if (clock.now() - written_ms < 10_000) expect(await stored()).toBe(0)
      expect(clock.now() - written_ms).toBeLessThan(60_000)
    }
    expect(await stored()).toBe(3)
    await until(() => journaled(directory) === 0)
    expect(await differences()).toEqual([])
  })
})

describe('the spool', () => {
  it('keeps entries on the disk while the store is away, and replays them when it is back', async () => {
    const { ledger, state, advance, stored, directory, differences, logged } = await setUp()
    state.failure = away()
    ledger.record(entries(3))
    await advance(50)
    await until(() => ledger.health().queued === 0)
    ledger.record(entries(2))
    await advance(50)
    await until(() => ledger.health().queued === 0)
    expect(ledger.health().is_store_away).toBe(true)
    expect(ledger.health().spool_bytes).toBeGreaterThan(1_000)
    expect(readdirSync(directory)).toHaveLength(1)
    await advance(1_000)
    expect(ledger.health().is_store_away).toBe(true)
    state.failure = undefined
    while (ledger.health().is_store_away) await advance(30_000)
    expect(await stored()).toBe(5)
    expect(ledger.health()).toMatchObject({ spool_bytes: 0, lost: 0 })
    expect(readdirSync(directory)).toEqual([])
    expect(await differences()).toEqual([])
    expect(logged().match(/could not be written/g)).toHaveLength(1)
    expect(logged()).toContain('database or disk is full')
    ledger.record([entry()])
    await advance(50)
    await until(async () => (await stored()) === 6)
  })

  it('takes entries whose commit takes too long, and counts them once', async () => {
    const { ledger, state, advance, stored, differences } = await setUp()
    const held = Promise.withResolvers<void>()
    state.held = held.promise
    ledger.record(entries(2))
    await advance(50)
    await advance(999)
    expect(ledger.health().is_store_away).toBe(false)
    await advance(1)
    await until(() => ledger.health().queued === 0)
    expect(ledger.health().is_store_away).toBe(true)
    held.resolve()
    state.held = undefined
    await until(async () => (await stored()) === 2)
    while (ledger.health().is_store_away) await advance(30_000)
    expect(await stored()).toBe(2)
    expect(ledger.health().spool_bytes).toBe(0)
    expect(await differences()).toEqual([])
  })

  it('is replayed by another process after its own has died, without a line that was cut', async () => {
    const { create, spool, directory, advance, stored } = await setUp()
    await spool.append(entries(3))
    writeFileSync(
      join(directory, '0_dead.entries'),
      `${JSON.stringify(entry())}\n${JSON.stringify(entry()).slice(0, 50)}`,
    )
    const next = create()
    next.start()
    await advance(1_000)
    await until(() => readdirSync(directory).length === 0)
    expect(await stored()).toBe(4)
  })

  it('writes entries again when its file was taken in the meantime', async () => {
    const { spool, directory } = await setUp()
    const [one, two] = [entry(), entry()]
    await spool.append([one])
    const seen: string[] = []
    for (const name of readdirSync(directory)) rmSync(join(directory, name))
    await spool.append([two])
    await spool.replay(async (found) => void seen.push(...found.map(({ entry_id }) => entry_id)))
    expect(seen).toEqual([two.entry_id])
  })

  it('is kept where its replay fails', async () => {
    const { spool } = await setUp()
    await spool.append(entries(3))
    await expect(spool.replay(() => Promise.reject(away()))).rejects.toThrow('away')
    const seen: LedgerEntry[] = []
    await spool.replay(async (found) => void seen.push(...found))
    expect(seen).toHaveLength(3)
  })

  it('rejects more than its limit, and keeps entries in memory then', async () => {
    const { ledger, state, advance, logged, stored } = await setUp({ max_bytes: 2_000 })
    state.failure = away()
    ledger.record(entries(3))
    await advance(50)
    await until(() => ledger.health().queued === 0)
    ledger.record(entries(3))
    await advance(50)
    await until(() => logged().includes('ledger.spool_megabytes is 0.002'))
    expect(ledger.health().queued).toBe(3)
    state.failure = undefined
    while ((await stored()) < 6) await advance(30_000)
    expect(ledger.health().lost).toBe(0)
  })

  it('creates nothing before it is needed', async () => {
    const { spool, directory } = await setUp()
    await spool.replay(() => Promise.resolve())
    expect(existsSync(directory)).toBe(false)
  })
})

it('a flush and the one of the timer, at the same time, lose nothing that is recorded meanwhile', async () => {
  const store = await openStore({ url: 'sqlite::memory:' })
  stores.push(store)
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
  const gates: PromiseWithResolvers<void>[] = []
  const append: Store['ledger']['append'] = async (...given) => {
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    await gate.promise
    return store.ledger.append(...given)
  }
  const ledger = createLedger({ store: { append }, clock, log })
  ledger.record([entry({ entry_id: 'a' })])
  const drained = ledger.flush()
  await settle()
  ledger.record([entry({ entry_id: 'b' })])
  clock.advance(50)
  await settle()
  ledger.record([entry({ entry_id: 'c' })])
  for (let turn = 0; turn < 10; turn++) {
    for (const gate of gates) gate.resolve()
    clock.advance(100)
    await settle()
  }
  await drained
  const found = await store.ledger.ofCall(entry({}).call_id)
  expect(found.map(({ entry_id }) => entry_id)).toEqual(['a', 'b', 'c'])
  expect(ledger.health()).toMatchObject({ queued: 0, lost: 0 })
})
