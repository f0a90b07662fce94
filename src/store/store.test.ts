/** The store's contract, tested on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { storedToken } from '../../test/kit/accounts.ts'
import { ENGINES } from '../../test/kit/engines.ts'
import { entryOf } from '../../test/kit/ledger.ts'
import type { UsageRow } from '../spec/token.ts'
import type { Store } from './store.ts'
import type { StoredToken } from './tokens/account-store.ts'

const token = (name: string, change: Partial<StoredToken> = {}) =>
  storedToken({ token_id: `tok_${name}`, name, hash: `hash of ${name}`, ...change })

function usage(change: Partial<UsageRow> = {}): UsageRow {
  return {
    token_id: 'tok_a',
    model: 'sandbox/general',
    hour: 3600,
    requests: 1,
    errors: 0,
    input_tokens: 10,
    output_tokens: 20,
    estimated: 0,
    ...change,
  }
}

const ids = (tokens: StoredToken[]) => tokens.map(({ token_id }) => token_id)

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    describe('tokens', () => {
      test('returns a stored token with every field', async () => {
        const { tokens } = await engine.open()
        const full = token('full', {
          models: ['sandbox/*', 'a"b\\c'],
          families: ['chatcompat', 'rerank'],
          expires_at: 4_000_000_000,
          disabled: true,
          last_used_at: 1_700_000_001,
          project_id: 'proj_a',
          labels: { team: 'a "b"', __proto: '1' },
          rate_limits: { requests_per_minute: 600, concurrent_requests: 0 },
          budgets: [{ amount: 0.25, window: 'month', time_zone: 'Europe/Berlin', thresholds: [50], soft: true }],
          end_users: { rate_limits: { tokens_per_day: 9 }, budgets: [{ amount: 1, window: 'day' }] },
          allowed_addresses: ['203.0.113.0/24', '2001:db8::/32'],
          previous_hash: 'hash before',
          previous_expires_at: 1_700_003_600,
        })
        const plain = token('plain — ünïcode 🗝')
        await tokens.add(full)
        await tokens.add(plain)
        expect(await tokens.find(full.token_id)).toEqual(full)
        expect(await tokens.findByHash(full.hash)).toEqual(full)
        expect(await tokens.findByHash('hash before')).toEqual(full)
        expect(await tokens.list({ project_id: 'proj_a' })).toEqual([full])
        expect(await tokens.list({ project_id: 'proj_b' })).toEqual([])
        expect(await tokens.find(plain.token_id)).toEqual(plain)
        expect(await tokens.list()).toEqual([full, plain])
      })

      test('returns undefined for a missing token', async () => {
        const { tokens } = await engine.open()
        expect(await tokens.find('tok_none')).toBeUndefined()
        expect(await tokens.findByHash('none')).toBeUndefined()
        expect(await tokens.list()).toEqual([])
      })

      test('rejects an existing id or hash and changes nothing', async () => {
        const { tokens } = await engine.open()
        const first = token('first')
        await tokens.add(first)
        const before = await tokens.revision()
        await expect(tokens.add(token('second', { token_id: first.token_id }))).rejects.toThrow()
        await expect(tokens.add(token('second', { hash: first.hash }))).rejects.toThrow()
        expect(await tokens.list()).toEqual([first])
        expect(await tokens.revision()).toBe(before)
      })

      test('lists the oldest first, and in the order of adding within a second', async () => {
        const { tokens } = await engine.open()
        await tokens.add(token('z', { created_at: 20 }))
        await tokens.add(token('a', { created_at: 20 }))
        await tokens.add(token('m', { created_at: 10 }))
        expect(ids(await tokens.list())).toEqual(['tok_m', 'tok_z', 'tok_a'])
      })

      test('updates the given fields and no other', async () => {
        const { tokens } = await engine.open()
        await tokens.add(token('a', { families: ['rerank'], expires_at: 5 }))
        await tokens.add(token('b'))
        expect(await tokens.update('tok_a', { disabled: true })).toMatchObject({ token_id: 'tok_a', disabled: true })
        expect(await tokens.find('tok_a')).toEqual(token('a', { families: ['rerank'], expires_at: 5, disabled: true }))
        const all = {
          name: 'renamed',
          prefix: 'sk-zzzzzz',
          hash: 'another',
          models: ['x/*'],
          families: null,
          expires_at: null,
          disabled: false,
          last_used_at: 9,
          project_id: 'proj_b',
          labels: { k: 'v' },
          rate_limits: { images_per_day: 1 },
          budgets: [{ amount: 1, window: 'total' as const }],
          end_users: { rate_limits: {} },
          allowed_addresses: ['10.0.0.0/8'],
          previous_hash: 'hash of a',
          previous_expires_at: 7,
        }
        expect(await tokens.update('tok_a', all)).toEqual({ ...token('a'), ...all })
        expect(await tokens.find('tok_a')).toEqual({ ...token('a'), ...all })
        expect((await tokens.findByHash('hash of a'))?.token_id).toBe('tok_a')
        await tokens.update('tok_a', { allowed_addresses: null, previous_hash: null })
        expect(await tokens.find('tok_a')).toMatchObject({ ...all, allowed_addresses: null, previous_hash: null })
        expect(await tokens.findByHash('hash of a')).toBeUndefined()
        expect(await tokens.find('tok_b')).toEqual(token('b'))
      })

      test('returns nothing for an update of a missing token, and an existing one unchanged for an empty update', async () => {
        const { tokens } = await engine.open()
        await tokens.add(token('a'))
        const before = await tokens.revision()
        expect(await tokens.update('tok_none', { disabled: true })).toBeUndefined()
        expect(await tokens.update('tok_none', {})).toBeUndefined()
        expect(await tokens.update('tok_a', {})).toEqual(token('a'))
        expect(await tokens.revision()).toBe(before)
      })

      test('rejects an update to an existing hash', async () => {
        const { tokens } = await engine.open()
        await tokens.add(token('a'))
        await tokens.add(token('b'))
        await expect(tokens.update('tok_b', { hash: 'hash of a', name: 'changed' })).rejects.toThrow()
        expect(await tokens.find('tok_b')).toEqual(token('b'))
      })

      test('increases the revision with every add and update, not with reads or touches', async () => {
        const { tokens } = await engine.open()
        const seen = [await tokens.revision()]
        await tokens.add(token('a'))
        seen.push(await tokens.revision())
        await tokens.update('tok_a', { name: 'b' })
        seen.push(await tokens.revision())
        await tokens.addFirst(token('never'))
        await tokens.touch([{ token_id: 'tok_a', last_used_at: 5 }])
        await tokens.list()
        expect(await tokens.revision()).toBe(seen[2] ?? -1)
        expect(new Set(seen).size).toBe(3)
        expect(seen.toSorted((a, b) => a - b)).toEqual(seen)
      })

      test('stores the last use of existing tokens, and never an earlier one', async () => {
        const { tokens } = await engine.open()
        await tokens.add(token('a'))
        await tokens.add(token('b', { last_used_at: 50 }))
        await tokens.touch([])
        await tokens.touch([
          { token_id: 'tok_a', last_used_at: 10 },
          { token_id: 'tok_b', last_used_at: 49 },
          { token_id: 'tok_none', last_used_at: 10 },
        ])
        expect((await tokens.list()).map((each) => each.last_used_at)).toEqual([10, 50])
        await tokens.touch([{ token_id: 'tok_b', last_used_at: 51 }])
        expect((await tokens.find('tok_b'))?.last_used_at).toBe(51)
      })

      test('adds the first token to an empty store only, also with concurrent calls', async () => {
        const store = await engine.open()
        const answers = await Promise.all(
          Array.from({ length: 10 }, (_, index) => store.tokens.addFirst(token(`t${index}`))),
        )
        expect(answers.filter(Boolean)).toHaveLength(1)
        expect(await store.tokens.list()).toHaveLength(1)
        expect(await store.tokens.addFirst(token('late'))).toBe(false)
      })

      test('does not undo concurrent writes when one fails', async () => {
        const { tokens } = await engine.open()
        await tokens.add(token('taken'))
        const results = await Promise.allSettled(
          Array.from({ length: 20 }, (_, index) =>
            tokens.add(token(`t${index}`, index % 2 ? { hash: 'hash of taken' } : {})),
          ),
        )
        expect(results.map(({ status }) => status === 'fulfilled')).toEqual(
          Array.from({ length: 20 }, (_, index) => index % 2 === 0),
        )
        expect(await tokens.list()).toHaveLength(11)
      })
    })

    describe('usage', () => {
      test('adds up counts of the same token, model and hour', async () => {
        const store = await engine.open()
        await store.ledger.append([entryOf(usage({ errors: 1, estimated: 1 })), entryOf(usage({ model: 'b' }))])
        await store.ledger.append([entryOf(usage({ requests: 2, input_tokens: 5, output_tokens: 7, estimated: 2 }))])
        expect(await store.usage.list({ limit: 10 })).toEqual([
          usage({ model: 'b' }),
          usage({ requests: 3, errors: 1, input_tokens: 15, output_tokens: 27, estimated: 3 }),
        ])
      })

      test('returns exact sums for any rows in any batches', async () => {
        const row = fc.record({
          token_id: fc.constantFrom('tok_a', 'tok_b'),
          model: fc.constantFrom('m', 'n', 'o'),
          hour: fc.constantFrom(0, 3600),
          requests: fc.nat(9),
          errors: fc.nat(9),
          input_tokens: fc.nat(1_000_000_000_000),
          output_tokens: fc.nat(9),
          estimated: fc.nat(9),
        })
        await fc.assert(
          fc.asyncProperty(fc.array(fc.array(row, { maxLength: 20 }), { maxLength: 5 }), async (batches) => {
            const store = await engine.open()
            for (const batch of batches) await store.ledger.append(batch.map(entryOf))
            const stored = await store.usage.list({ limit: 1000 })
            for (const count of ['requests', 'errors', 'input_tokens', 'output_tokens', 'estimated'] as const) {
              const sum = (rows: UsageRow[]) => rows.reduce((total, each) => total + each[count], 0)
              expect(sum(stored)).toBe(sum(batches.flat()))
            }
            const keys = new Set(batches.flat().map((each) => `${each.token_id} ${each.model} ${each.hour}`))
            expect(stored).toHaveLength(keys.size)
            await engine.cleanup()
          }),
          { numRuns: 15 },
        )
      })

      test('stores a batch larger than one statement completely', async () => {
        const store = await engine.open()
        await store.ledger.append(Array.from({ length: 1234 }, (_, index) => entryOf(usage({ model: `m${index}` }))))
        expect(await store.usage.list({ limit: 5000 })).toHaveLength(1234)
      })

      test('lists the newest first, within the filter and the limit', async () => {
        const store = await engine.open()
        await store.ledger.append([
          entryOf(usage({ hour: 3600 })),
          entryOf(usage({ hour: 10_800 })),
          entryOf(usage({ hour: 7200 })),
          entryOf(usage({ hour: 7200, token_id: 'tok_b' })),
        ])
        const hours = async (filter: Parameters<Store['usage']['list']>[0]) =>
          (await store.usage.list(filter)).map(({ hour, token_id }) => `${hour} ${token_id}`)
        expect(await hours({ limit: 10 })).toEqual(['10800 tok_a', '7200 tok_a', '7200 tok_b', '3600 tok_a'])
        expect(await hours({ limit: 2 })).toEqual(['10800 tok_a', '7200 tok_a'])
        expect(await hours({ limit: 10, since: 7200 })).toEqual(['10800 tok_a', '7200 tok_a', '7200 tok_b'])
        expect(await hours({ limit: 10, since: 7201 })).toEqual(['10800 tok_a'])
        expect(await hours({ limit: 10, token_id: 'tok_b' })).toEqual(['7200 tok_b'])
        expect(await hours({ limit: 10, token_id: 'tok_none' })).toEqual([])
      })
    })

    describe('models', () => {
      test('keeps the time at which a model was first seen', async () => {
        const { models } = await engine.open()
        expect(await models.firstSeen(['a', 'b', 'a'], 100)).toEqual(
          new Map([
            ['a', 100],
            ['b', 100],
          ]),
        )
        expect(await models.firstSeen(['b', 'c'], 200)).toEqual(
          new Map([
            ['b', 100],
            ['c', 200],
          ]),
        )
        expect(await models.firstSeen([], 300)).toEqual(new Map())
        expect(await models.ids()).toEqual(['a', 'b', 'c'])
      })

      test('returns all models, also more than fit one statement', async () => {
        const { models } = await engine.open()
        const many = Array.from({ length: 1201 }, (_, index) => `vendor/${index}`)
        expect((await models.firstSeen(many, 100)).size).toBe(1201)
        const again = await models.firstSeen(many, 200)
        expect([...again.values()].every((time) => time === 100)).toBe(true)
      })
    })

    test('answers a ping while it is open, rejects it when closed, and can be closed twice', async () => {
      const store = await engine.open()
      await store.ping()
      await store.close()
      await store.close()
      await expect(store.ping()).rejects.toThrow()
    })

    const { openAgain } = engine
    if (!openAgain) return

    test('shows every change and its revision to another process', async () => {
      const here = await engine.open()
      const there = await openAgain()
      const before = await there.tokens.revision()
      await here.tokens.add(token('a'))
      expect(await there.tokens.findByHash('hash of a')).toEqual(token('a'))
      expect(await there.tokens.revision()).toBeGreaterThan(before)
      expect(await there.tokens.addFirst(token('b'))).toBe(false)
      await there.tokens.update('tok_a', { disabled: true })
      expect((await here.tokens.find('tok_a'))?.disabled).toBe(true)
    })

    test('loses nothing when two processes write at the same time', async () => {
      const stores = [await engine.open(), await openAgain()]
      await Promise.all(
        Array.from({ length: 60 }, async (_, index) => {
          const store = stores[index % 2]
          await store?.tokens.add(token(`t${index}`))
          await store?.ledger.append([entryOf(usage())])
        }),
      )
      expect(await stores[0]?.tokens.list()).toHaveLength(60)
      expect((await stores[0]?.usage.list({ limit: 1 }))?.[0]?.requests).toBe(60)
    })

    test('keeps its data after it is closed', async () => {
      const store = await engine.open()
      await store.tokens.add(token('a'))
      await store.close()
      expect(await (await openAgain()).tokens.list()).toEqual([token('a')])
    })
  })
}
