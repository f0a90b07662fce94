import { afterEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import type { UsageRow } from '../spec/token.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { createLedger, type Use } from './usage-ledger.ts'

const stores: Store[] = []
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
})

/** Lets all work that waits only for promises finish. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

async function setUp() {
  const store = await openStore({ url: 'sqlite::memory:' })
  stores.push(store)
  const clock = manualClock(Date.UTC(2026, 0, 1, 12, 30))
  let logged = ''
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => (logged += text) })
  const state = {
    failing: false,
    held: undefined as Promise<void> | undefined,
    writes: [] as number[],
    used: [] as string[],
  }
  const usage = {
    async add(rows: UsageRow[]) {
      state.writes.push(rows.length)
      await state.held
      if (state.failing) throw new Error('disk full')
      await store.usage.add(rows)
    },
  }
  const ledger = createLedger({ usage, clock, log, onUsed: (token_id) => state.used.push(token_id) })
  return {
    clock,
    ledger,
    state,
    stored: () => store.usage.list({ limit: 100_000 }),
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

const use = (change: Partial<Use> = {}): Use => ({
  token_id: 'tok_a',
  model: 'sandbox/general',
  input_tokens: 10,
  output_tokens: 20,
  error: false,
  estimated: false,
  ...change,
})

const requests = (rows: UsageRow[]) => rows.reduce((sum, row) => sum + row.requests, 0)

describe('the ledger', () => {
  test('writes nothing before its interval, then one row for a token, model and hour', async () => {
    const { ledger, state, stored, advance } = await setUp()
    ledger.record(use())
    ledger.record(use({ error: true, estimated: true, input_tokens: 1, output_tokens: 0 }))
    ledger.record(use({ model: 'sandbox/compact' }))
    await advance(1_999)
    expect(await stored()).toEqual([])
    await advance(1)
    const hour = Date.UTC(2026, 0, 1, 12) / 1000
    expect(await stored()).toEqual([
      {
        token_id: 'tok_a',
        model: 'sandbox/compact',
        hour,
        requests: 1,
        errors: 0,
        input_tokens: 10,
        output_tokens: 20,
        estimated: 0,
      },
      {
        token_id: 'tok_a',
        model: 'sandbox/general',
        hour,
        requests: 2,
        errors: 1,
        input_tokens: 11,
        output_tokens: 20,
        estimated: 1,
      },
    ])
    expect(state.writes).toEqual([2])
  })

  test('adds to the stored row, and begins a new row with the hour', async () => {
    const { ledger, stored, advance } = await setUp()
    ledger.record(use())
    await advance(2_000)
    ledger.record(use())
    await advance(30 * 60_000)
    ledger.record(use())
    await advance(2_000)
    expect((await stored()).map((row) => [row.hour, row.requests])).toEqual([
      [Date.UTC(2026, 0, 1, 13) / 1000, 1],
      [Date.UTC(2026, 0, 1, 12) / 1000, 2],
    ])
  })

  test('sets no timer while it has nothing to write', async () => {
    const { ledger, clock, advance } = await setUp()
    expect(clock.waiting()).toBe(0)
    ledger.record(use())
    expect(clock.waiting()).toBe(1)
    await advance(2_000)
    expect(clock.waiting()).toBe(0)
  })

  test('retains rows that the store rejected, retries with backoff, and neither loses nor doubles anything', async () => {
    const { ledger, state, stored, advance, logged } = await setUp()
    state.failing = true
    ledger.record(use())
    await advance(2_000)
    ledger.record(use())
    await advance(4_000 - 1)
    expect(state.writes).toHaveLength(1)
    await advance(1)
    expect(state.writes).toHaveLength(2)
    await advance(300_000) // each attempt waits for a turn of the event loop, so one long step is one attempt
    expect(state.writes).toHaveLength(3)
    state.failing = false
    ledger.record(use())
    await advance(30_000)
    expect(requests(await stored())).toBe(3)
    await advance(60_000)
    expect(requests(await stored())).toBe(3)
    expect(logged().match(/usage could not be written/g)).toHaveLength(1)
    expect(logged()).toContain('usage written after failures')
    expect(logged()).toContain('disk full')
  })

  test('limits its rows while the store is unavailable, still adds to those, and logs what it drops', async () => {
    const { ledger, state, stored, advance, logged } = await setUp()
    state.failing = true
    for (let index = 0; index < 10_000; index++) ledger.record(use({ model: `m${index}` }))
    expect(logged()).toBe('')
    ledger.record(use({ model: 'one too many' }))
    ledger.record(use({ model: 'm0' }))
    await advance(2_000)
    expect(logged()).toContain('"dropped":1,"max_rows":10000')
    state.failing = false
    for (let turn = 0; turn < 30; turn++) await advance(30_000)
    const rows = await stored()
    expect([rows.length, requests(rows)]).toEqual([10_000, 10_001])
  })

  test('writes many rows in batches and yields to other work between them', async () => {
    const { ledger, state, advance, stored } = await setUp()
    for (let index = 0; index < 1_200; index++) ledger.record(use({ model: `m${index}` }))
    await advance(2_000)
    expect(state.writes).toEqual([500])
    await advance(20)
    await advance(20)
    expect(state.writes).toEqual([500, 500, 200])
    expect(await stored()).toHaveLength(1_200)
  })

  test('writes the rest on close, also during a write', async () => {
    const { ledger, clock, stored } = await setUp()
    for (let index = 0; index < 700; index++) ledger.record(use({ model: `m${index}` }))
    clock.advance(2_000)
    ledger.record(use({ model: 'late' }))
    await ledger.close()
    expect(requests(await stored())).toBe(701)
    expect(clock.waiting()).toBe(0)
  })

  test('writes on close what the current write could not', async () => {
    const { ledger, state, clock, stored } = await setUp()
    let release = () => {}
    state.held = new Promise((resolve) => {
      release = resolve
    })
    ledger.record(use())
    clock.advance(2_000)
    state.failing = true
    const closing = ledger.close()
    release()
    await Promise.resolve()
    await state.held
    state.failing = false
    await closing
    expect(requests(await stored())).toBe(1)
  })

  test('gives up on close if the store stays unavailable, and logs what was lost', async () => {
    const { ledger, state, stored, logged } = await setUp()
    state.failing = true
    ledger.record(use())
    await ledger.close()
    expect(state.writes).toHaveLength(3)
    expect(logged()).toContain('usage lost')
    expect(await stored()).toEqual([])
  })

  test('accepts nothing after close, and logs it', async () => {
    const { ledger, clock, logged } = await setUp()
    await ledger.close()
    ledger.record(use())
    await ledger.close()
    expect(logged()).toContain('recorded after shutdown')
    expect(clock.waiting()).toBeLessThanOrEqual(1) // the timer of the log
  })

  test('reports which tokens were used', async () => {
    const { ledger, state } = await setUp()
    ledger.record(use())
    ledger.record(use({ token_id: 'tok_b' }))
    expect(state.used).toEqual(['tok_a', 'tok_b'])
  })

  test.each([Number.NaN, -5, Number.POSITIVE_INFINITY, 1e300, 0.4])(
    'a count of %p does not corrupt the sums',
    async (odd) => {
      const { ledger, stored, advance } = await setUp()
      ledger.record(use({ input_tokens: odd, output_tokens: 1 }))
      await advance(2_000)
      const [row] = await stored()
      expect(row?.input_tokens).toBe(odd > 1 ? 1_000_000_000 : 0)
      expect(row?.output_tokens).toBe(1)
    },
  )

  test('the sums are correct for random records and random failures of the store', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('use' as const), model: fc.constantFrom('a', 'b'), tokens: fc.nat(1000) }),
      fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 40_000 }) }),
      fc.record({ kind: fc.constant('store' as const), failing: fc.boolean() }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { ledger, state, stored, advance } = await setUp()
        const sum = { requests: 0, tokens: 0 }
        for (const one of steps) {
          if (one.kind === 'pass') await advance(one.ms)
          else if (one.kind === 'store') state.failing = one.failing
          else {
            ledger.record(use({ model: one.model, input_tokens: one.tokens }))
            sum.requests++
            sum.tokens += one.tokens
          }
        }
        state.failing = false
        await ledger.close()
        const rows = await stored()
        expect(requests(rows)).toBe(sum.requests)
        expect(rows.reduce((total, row) => total + row.input_tokens, 0)).toBe(sum.tokens)
      }),
      { numRuns: 25 },
    )
  })
})
