import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { type Grant, MAX_RECENT, RECENT_MILLISECONDS, RecentSecrets } from './grant.ts'

const grant = { ends_at: null } as Grant

function setUp() {
  const clock = manualClock()
  return { clock, recent: new RecentSecrets(clock) }
}

describe('recent secrets', () => {
  test('give what they gave, and others nothing', () => {
    const { recent } = setUp()
    recent.add('secret-1', grant)
    expect(recent.get('secret-1')).toBe(grant)
    for (const other of ['secret-2', 'secret-', 'secret-11', '']) expect(recent.get(other)).toBeUndefined()
  })

  test('are forgotten a minute after the first of them was added, however often they are used', () => {
    const { recent, clock } = setUp()
    recent.add('first', grant)
    clock.advance(RECENT_MILLISECONDS - 1)
    recent.add('second', grant)
    expect(recent.get('first')).toBe(grant)
    clock.advance(1)
    expect([recent.get('first'), recent.get('second')]).toEqual([undefined, undefined])
    recent.add('second', grant)
    expect(recent.get('second')).toBe(grant)
  })

  test('are forgotten at once on request', () => {
    const { recent } = setUp()
    recent.add('secret', grant)
    recent.forget()
    expect(recent.get('secret')).toBeUndefined()
  })

  test('are bounded in number', () => {
    const { recent } = setUp()
    for (let at = 0; at < MAX_RECENT; at++) recent.add(`secret-${at}`, grant)
    recent.add('one more', grant)
    expect(recent.get('one more')).toBe(grant)
    expect(recent.get('secret-0')).toBeUndefined()
  })
})
