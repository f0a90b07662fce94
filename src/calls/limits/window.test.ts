import { describe, expect, it } from 'bun:test'
import fc from 'fast-check'
import { RATE_WINDOWS, type RateWindow } from '../../spec/rate-limit.ts'
import { add, createWindow, eachPart, emptyAt, expire, freeAt, takeBack, WINDOW_MS, type Window } from './window.ts'

/** Admits as a limit does. */
function admit(window: Window, { limit, amount, now }: { limit: number; amount: number; now: number }): boolean {
  expire(window, now)
  if (window.total + amount > limit) return false
  add(window, amount, now)
  return true
}

type Admitted = { at: number; amount: number }

/** The most that any window of this length holds: it begins with one of the calls. */
const most = (calls: Admitted[], length: number) =>
  Math.max(
    0,
    ...calls.map(({ at }) =>
      calls.filter((other) => other.at >= at && other.at < at + length).reduce((sum, { amount }) => sum + amount, 0),
    ),
  )

/** The same limit, counted exactly. */
function exactly(calls: Admitted[], { limit, length }: { limit: number; length: number }): number {
  const admitted: Admitted[] = []
  let first = 0
  let inside = 0
  let sum = 0
  for (const call of calls) {
    for (let old = admitted[first]; old && old.at + length <= call.at; old = admitted[++first]) inside -= old.amount
    if (inside + call.amount > limit) continue
    admitted.push(call)
    inside += call.amount
    sum += call.amount
  }
  return sum
}

const calls = fc.array(
  fc.record({ pause: fc.double({ min: 0, max: 400, noNaN: true }), amount: fc.integer({ min: 0, max: 20 }) }),
  {
    maxLength: 300,
  },
)

describe('a sliding window', () => {
  it('never holds more than the limit in any window of its length', () => {
    fc.assert(
      fc.property(calls, fc.integer({ min: 0, max: 100 }), (list, limit) => {
        const window = createWindow('requests', 'second')
        const admitted: Admitted[] = []
        let now = 1_767_225_600_123.4
        for (const { pause, amount } of list) {
          now += pause
          if (admit(window, { limit, amount, now })) admitted.push({ at: now, amount })
        }
        expect(most(admitted, 1_000)).toBeLessThanOrEqual(limit)
      }),
    )
  })

  it.each([...RATE_WINDOWS])('admits at least 99 %% of what an exact count of a %s would', (name: RateWindow) => {
    const length = WINDOW_MS[name]
    for (const [limit, amount] of [
      [1, 1],
      [10, 1],
      [600, 1],
      [100_000, 37],
    ] as const) {
      const window = createWindow('requests', name)
      const offered: Admitted[] = []
      let admitted = 0
      const step = length / 1_500
      for (let now = 1_767_225_600_001; offered.length < 150_000; now += step) {
        offered.push({ at: now, amount })
        if (admit(window, { limit, amount, now })) admitted += amount
      }
      const exact = exactly(offered, { limit, length })
      expect(admitted).toBeGreaterThanOrEqual(exact * 0.99)
      expect(admitted).toBeLessThanOrEqual(exact)
    }
  })

  it('admits the whole limit at once, and again when the last part has left', () => {
    const window = createWindow('requests', 'minute')
    const start = 60_000_000
    for (let count = 0; count < 10; count++) expect(admit(window, { limit: 10, amount: 1, now: start })).toBe(true)
    expect(admit(window, { limit: 10, amount: 1, now: start + 60_468 })).toBe(false)
    expect(freeAt(window, 1)).toBe(start + 60_468.75)
    expect(emptyAt(window, start)).toBe(start + 60_468.75)
    expect(admit(window, { limit: 10, amount: 10, now: start + 60_468.75 })).toBe(true)
  })

  it('counts what is in its parts, whatever is added and taken back', () => {
    const change = fc.record({
      pause: fc.double({ min: 0, max: 600, noNaN: true }),
      amount: fc.integer({ min: 0, max: 50 }),
      back: fc.integer({ min: 0, max: 60 }),
      which: fc.nat(),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
        const window = createWindow('tokens', 'second')
        const times: number[] = []
        let now = 5_000
        for (const { pause, amount, back, which } of changes) {
          now += pause
          expire(window, now)
          add(window, amount, now)
          times.push(now)
          takeBack(window, back, times[which % times.length] ?? now)
          let sum = 0
          let before = 0
          eachPart(window, (leaves_at, part) => {
            expect(part).toBeGreaterThanOrEqual(0)
            expect(leaves_at).toBeGreaterThan(before)
            expect(leaves_at).toBeGreaterThan(now)
            before = leaves_at
            sum += part
          })
          expect(window.total).toBe(sum)
        }
        expire(window, now + 2_000)
        expect(window).toMatchObject({ total: 0, count: 0, expires_at: Number.POSITIVE_INFINITY })
      }),
    )
  })

  it('takes back nothing that has left it', () => {
    const window = createWindow('tokens', 'second')
    add(window, 5, 100)
    expire(window, 2_000)
    add(window, 3, 2_000)
    takeBack(window, 5, 100)
    expect(window.total).toBe(3)
    takeBack(window, 5, 2_000)
    expect(window.total).toBe(0)
  })

  it('holds at most 129 parts', () => {
    const window = createWindow('requests', 'day')
    for (let now = 0; now < 3 * WINDOW_MS.day; now += 60_000) admit(window, { limit: 1e9, amount: 1, now })
    expect(window.count).toBeLessThanOrEqual(129)
    expect(window.ring.length).toBeLessThanOrEqual(512)
  })
})
