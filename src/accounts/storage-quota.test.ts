/** Quotas of stored rows and bytes: both sides of each limit, and when the store is read. */
import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { GatewayError } from '../spec/error.ts'
import type { StoredAmount } from '../store/tokens/amount-store.ts'
import { createStorageQuota } from './storage-quota.ts'

function start({ rows = 0, bytes = 0 } = {}) {
  const clock = manualClock()
  const inStore: Record<string, StoredAmount> = { tok_a: { rows, bytes } }
  let reads = 0
  const delayed: Promise<void>[] = []
  const limits = { rows: { most: 10, setting: 'the.rows' }, bytes: { most: 1_000, setting: 'the.bytes' } }
  const quota = createStorageQuota({
    async read(token_id) {
      reads++
      const found = { ...(inStore[token_id] ?? { rows: 0, bytes: 0 }) }
      await delayed.shift()
      return found
    },
    limits: () => limits,
    texts: { stored: 'things', remedy: 'Delete some.' },
    clock,
  })
  const refusal = (amount: StoredAmount) =>
    quota.reserve('tok_a', amount).then(
      () => undefined,
      (thrown) => (thrown instanceof GatewayError ? thrown : Promise.reject(thrown)),
    )
  return { clock, inStore, limits, quota, refusal, delayed, reads: () => reads }
}

describe('a storage quota', () => {
  test('admits bytes up to the limit, and refuses one more', async () => {
    const { quota, refusal } = start({ rows: 1, bytes: 900 })
    expect(await quota.fits('tok_a', { rows: 1, bytes: 100 })).toBe(true)
    expect(await quota.fits('tok_a', { rows: 1, bytes: 101 })).toBe(false)
    expect(await refusal({ rows: 1, bytes: 101 })).toMatchObject({ code: 'storage_quota_exceeded', status: 429 })
    expect(await refusal({ rows: 1, bytes: 100 })).toBeUndefined()
  })

  test('admits rows up to the limit, and refuses one more', async () => {
    const { refusal } = start({ rows: 9 })
    expect(await refusal({ rows: 2, bytes: 0 })).toMatchObject({ code: 'storage_quota_exceeded' })
    expect(await refusal({ rows: 1, bytes: 0 })).toBeUndefined()
  })

  test('says what is stored, the limit, what to do and the setting', async () => {
    const { refusal, limits } = start({ rows: 3, bytes: 1_000 })
    expect((await refusal({ rows: 1, bytes: 50 }))?.message).toBe(
      'This token stores 1,000 bytes of things of at most 1,000, and the request needs 50 bytes more. Delete some. The operator of the gateway can raise the.bytes.',
    )
    limits.rows.most = 3
    expect((await refusal({ rows: 1, bytes: 0 }))?.message).toStartWith('This token stores 3 things of at most 3, and')
  })

  test('counts what open requests have reserved, until it is released', async () => {
    const { quota, refusal } = start()
    const release = await quota.reserve('tok_a', { rows: 1, bytes: 900 })
    expect(await refusal({ rows: 1, bytes: 101 })).toBeDefined()
    release()
    release() // a second call changes nothing
    expect(await refusal({ rows: 1, bytes: 1_000 })).toBeUndefined()
    expect(await refusal({ rows: 1, bytes: 1 })).toBeDefined()
  })

  test('admits as many simultaneous requests as fit, although each waits for the same read', async () => {
    const { refusal, reads } = start({ rows: 7 })
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => refusal({ rows: 1, bytes: 1 })))
    expect(outcomes.filter((outcome) => outcome === undefined)).toHaveLength(3)
    expect(reads()).toBe(1)
  })

  test('reads the store once in 30 seconds, and counts what is stored meanwhile', async () => {
    const { clock, quota, reads, inStore } = start()
    for (let count = 0; count < 10; count++) await quota.keep('tok_a', { rows: 1, bytes: 10 }, async () => {})
    clock.advance(29_999)
    expect(await quota.fits('tok_a', { rows: 0, bytes: 900 })).toBe(true)
    expect(reads()).toBe(1)
    inStore.tok_a = { rows: 10, bytes: 950 }
    clock.advance(1)
    expect(await quota.fits('tok_a', { rows: 0, bytes: 51 })).toBe(false)
    expect(reads()).toBe(2)
  })

  test('counts what is stored while a read runs, which may not have seen it', async () => {
    const { quota, refusal, delayed } = start()
    const slow = Promise.withResolvers<void>()
    delayed.push(slow.promise)
    const waiting = refusal({ rows: 1, bytes: 200 })
    quota.stored('tok_a', { rows: 1, bytes: 900 })
    slow.resolve()
    expect(await waiting).toMatchObject({ code: 'storage_quota_exceeded' })
  })

  test('does not count work that failed', async () => {
    const { quota, refusal } = start()
    const failing = quota.keep('tok_a', { rows: 1, bytes: 1_000 }, () => Promise.reject(new Error('disk')))
    expect(await failing.catch(String)).toBe('Error: disk')
    expect(await refusal({ rows: 1, bytes: 1_000 })).toBeUndefined()
  })

  test('refuses before the work', async () => {
    const { quota } = start({ rows: 10 })
    let ran = false
    const refused = quota.keep('tok_a', { rows: 1, bytes: 0 }, async () => {
      ran = true
    })
    expect(await refused.catch(({ code }) => code)).toBe('storage_quota_exceeded')
    expect(ran).toBe(false)
  })

  test('knows a deletion of this process at once, and one of another process after a second', async () => {
    const { clock, quota, refusal, inStore } = start({ rows: 10 })
    const one = { rows: 1, bytes: 0 }
    expect(await refusal(one)).toBeDefined()
    inStore.tok_a = { rows: 9, bytes: 0 }
    expect(await refusal(one)).toBeDefined()
    quota.freed('tok_a')
    expect(await quota.fits('tok_a', one)).toBe(true)
    inStore.tok_a = { rows: 10, bytes: 0 }
    clock.advance(30_000)
    expect(await refusal(one)).toBeDefined()
    inStore.tok_a = { rows: 9, bytes: 0 }
    clock.advance(999)
    expect(await refusal(one)).toBeDefined()
    clock.advance(1)
    expect(await refusal(one)).toBeUndefined()
  })

  test('reads the store at most once a second for a token that is refused again and again', async () => {
    const { clock, refusal, reads } = start({ rows: 10 })
    for (let count = 0; count < 100; count++) {
      await refusal({ rows: 1, bytes: 0 })
      clock.advance(50)
    }
    expect(reads()).toBe(5)
  })

  test('of one token does not limit another', async () => {
    const { quota } = start({ rows: 10 })
    expect(await quota.fits('tok_a', { rows: 1, bytes: 0 })).toBe(false)
    expect(await quota.fits('tok_b', { rows: 10, bytes: 1_000 })).toBe(true)
  })

  test('forgets the oldest of 10,000 tokens, but none with open requests', async () => {
    const { quota, reads } = start()
    const release = quota.hold('tok_a', { rows: 10, bytes: 0 })
    for (let count = 0; count < 10_001; count++) await quota.fits(`tok_${count}`, { rows: 1, bytes: 0 })
    expect(await quota.fits('tok_a', { rows: 1, bytes: 0 })).toBe(false)
    const before = reads()
    await quota.fits('tok_10000', { rows: 1, bytes: 0 })
    expect(reads()).toBe(before)
    await quota.fits('tok_0', { rows: 1, bytes: 0 })
    expect(reads()).toBe(before + 1)
    release()
  })
})
