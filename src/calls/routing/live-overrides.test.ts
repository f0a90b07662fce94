import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { settled } from '../../../test/kit/router.ts'
import { createLog } from '../../kit/log.ts'
import type { Override, OverrideStore } from '../../store/admin/override-store.ts'
import { createLiveOverrides } from './live-overrides.ts'

const TARGET = { kind: 'target', name: 'acme/large' } as const
const AT = { provider: { id: 'acme' }, model: 'large' }

/** A store of one override for several processes. */
function memoryStore(): OverrideStore & { fail: boolean; reads: number } {
  let row: Override | undefined
  let revision = 0
  return {
    fail: false,
    reads: 0,
    async list() {
      this.reads++
      return row ? [row] : []
    },
    async set(of, change, by) {
      const before = row
      row = { ...of, weight: null, state: null, ...change, ...by }
      revision++
      return { before, after: row }
    },
    async revision() {
      if (this.fail) throw new Error('unreachable')
      return revision
    },
  }
}

function setUp(store = memoryStore()) {
  const clock = manualClock()
  let logged = ''
  const log = createLog({
    clock,
    level: 'info',
    pretty: false,
    write: (text) => {
      logged += text
    },
  })
  let applied = 0
  const live = createLiveOverrides({ store, apply: () => void applied++, clock, log })
  const stateOf = () => live.current().stateOf(AT)
  const lines = () => {
    log.flush()
    return logged
  }
  return { live, store, clock, stateOf, lines, applied: () => applied }
}

describe('overrides in force', () => {
  test('are those of the store from the start', async () => {
    const { live, store, stateOf } = setUp()
    await store.set(TARGET, { state: 'drained' }, { set_by: 'x', set_at: 1 })
    await live.start()
    expect(stateOf()).toBe('drained')
  })

  test('of another process take effect within a second', async () => {
    const { live: other, store } = setUp()
    const { live, clock, stateOf } = setUp(store)
    await live.start()
    await other.set(TARGET, { state: 'disabled' }, 'op')
    expect(stateOf()).toBeUndefined()
    clock.advance(999)
    await settled()
    expect(stateOf()).toBe('disabled')
    await other.set(TARGET, { state: null }, 'op')
    clock.advance(999)
    await settled()
    expect(stateOf()).toBeUndefined()
  })

  test('of this process take effect before the change is confirmed', async () => {
    const { live, stateOf } = setUp()
    await live.start()
    await live.set(TARGET, { state: 'drained' }, 'op')
    expect(stateOf()).toBe('drained')
    expect(live.list()).toMatchObject([{ ...TARGET, state: 'drained', set_by: 'op' }])
  })

  test('are read and applied only after a change', async () => {
    const { live, store, clock, applied } = setUp()
    await live.start()
    for (let i = 0; i < 5; i++) {
      clock.advance(500)
      await settled()
    }
    expect([store.reads, applied()]).toEqual([1, 1])
  })

  test('stay while the store is unreachable, which is logged once', async () => {
    const { live, store, clock, stateOf, lines } = setUp()
    await store.set(TARGET, { state: 'drained' }, { set_by: 'x', set_at: 1 })
    await live.start()
    store.fail = true
    for (let i = 0; i < 3; i++) {
      clock.advance(500)
      await settled()
    }
    expect(stateOf()).toBe('drained')
    expect(lines().match(/could not be read/g)).toHaveLength(1)
    store.fail = false
    await store.set(TARGET, { state: 'disabled' }, { set_by: 'x', set_at: 1 })
    clock.advance(500)
    await settled()
    expect(stateOf()).toBe('disabled')
  })

  test('are not polled after the end', async () => {
    const { live, clock } = setUp()
    await live.start()
    await live.close()
    expect(clock.waiting()).toBe(0)
  })
})
