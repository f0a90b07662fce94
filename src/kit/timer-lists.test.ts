import { describe, expect, it } from 'bun:test'
import { createTimerLists } from './clock.ts'

/** The runtime's timers, by hand. */
function setUp() {
  let now = 0
  let timers: { due: number; work: () => void }[] = []
  const called: string[] = []
  const { after, wait } = createTimerLists({
    now: () => now,
    set: (ms, work) => void timers.push({ due: now + ms, work }),
  })
  return {
    after,
    wait,
    called,
    note: (name: string) => () => void called.push(name),
    timers: () => timers.length,
    /** Runs what is due, as the runtime does. */
    to(ms: number) {
      now = ms
      const due = timers.filter((timer) => timer.due <= now)
      timers = timers.filter((timer) => timer.due > now)
      for (const { work } of due) work()
    },
  }
}

describe('timer lists', () => {
  it('call each work once, at its time and not before', () => {
    const { after, called, note, to } = setUp()
    after(2000, note('first'))
    to(500)
    after(2000, note('second'))
    to(1999)
    expect(called).toEqual([])
    to(2000)
    expect(called).toEqual(['first'])
    to(2499)
    expect(called).toEqual(['first'])
    to(2500)
    to(9000)
    expect(called).toEqual(['first', 'second'])
  })

  it('call an object once, unless it is deleted from its list', () => {
    const { wait, called, note, to } = setUp()
    const [first, second] = ['first', 'second'].map((name) => {
      const none = undefined
      return { due: 0, work: note(name), set: none, earlier: none, later: none } as Parameters<typeof wait>[1]
    })
    if (!first || !second) throw new Error('two objects')
    wait(1000, first)
    wait(1000, second)
    second.set?.delete(second)
    to(1000)
    to(9000)
    expect(called).toEqual(['first'])
    expect(wait(1500, first)).toBe(false)
  })

  it('do not call what was cancelled, and call the rest', () => {
    const { after, called, note, to } = setUp()
    const cancel = after(1000, note('cancelled'))
    after(1000, note('other'))
    cancel?.()
    cancel?.()
    to(1000)
    expect(called).toEqual(['other'])
  })

  it('set one timer of the runtime for all of one duration, and none while nothing waits', () => {
    const { after, note, timers, to } = setUp()
    const cancels = Array.from({ length: 100 }, () => after(3000, note('limit')))
    expect(timers()).toBe(1)
    for (const cancel of cancels) cancel?.()
    to(3000)
    expect(timers()).toBe(0)
    after(3000, note('later'))
    expect(timers()).toBe(1)
  })

  it('keep each duration apart', () => {
    const { after, called, note, to } = setUp()
    after(60_000, note('minute'))
    after(1000, note('second'))
    to(1000)
    expect(called).toEqual(['second'])
    to(60_000)
    expect(called).toEqual(['second', 'minute'])
  })

  it('call what was added by a work at its own time', () => {
    const { after, called, note, to } = setUp()
    after(1000, () => void after(1000, note('again')))
    to(1000)
    to(1999)
    expect(called).toEqual([])
    to(2000)
    expect(called).toEqual(['again'])
  })

  it('call what waits in its own time, although a work before it adds another', () => {
    const { after, called, note, timers, to } = setUp()
    after(2000, () => void after(2000, note('again')))
    to(500)
    after(2000, note('waiting'))
    to(2000)
    expect(timers()).toBe(1)
    to(2500)
    expect(called).toEqual(['waiting'])
    to(4000)
    expect(called).toEqual(['waiting', 'again'])
  })

  it('call the rest after a work that throws', () => {
    const { after, called, note, to } = setUp()
    after(1000, () => {
      throw new Error('It failed.')
    })
    after(1000, note('next'))
    expect(() => to(1000)).toThrow('It failed.')
    to(1001)
    expect(called).toEqual(['next'])
  })

  it('take whole seconds up to a day, of at most 64 durations', () => {
    const { after, note } = setUp()
    for (const ms of [-1000, 0, 999, 1001, 1500, 2000.5, 86_401_000, Number.POSITIVE_INFINITY, Number.NaN])
      expect(after(ms, note('none'))).toBeUndefined()
    expect(after(86_400_000, note('one'))).toBeFunction()
    for (let seconds = 1; seconds <= 63; seconds++) expect(after(seconds * 1000, note('one'))).toBeFunction()
    expect(after(64_000, note('none'))).toBeUndefined()
    expect(after(63_000, note('one'))).toBeFunction()
  })
})
