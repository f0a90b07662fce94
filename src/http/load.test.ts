import { describe, expect, test } from 'bun:test'
import { createLog } from '../kit/log.ts'
import type { GatewayError } from '../spec/error.ts'
import { createLoad } from './load.ts'

function setUp(max_delay_ms = 100) {
  let time = 0
  let tick = () => {}
  let period = 0
  const log = createLog({
    clock: { now: () => 0, steady: () => 0, after: () => () => {} },
    level: 'silent',
    pretty: false,
    write() {},
  })
  const load = createLoad({
    settings: { max_delay_ms },
    now: () => time,
    every(ms, work) {
      period = ms
      tick = work
      return () => {}
    },
    log,
  })
  load.start()
  /** One turn of the event loop, late by so much. */
  const turn = (delay: number) => {
    time += period + delay
    tick()
  }
  const isAdmitted = (token: string) => {
    try {
      load.admit(token)
      return true
    } catch (error) {
      const { code, status, detail } = error as GatewayError
      expect([code, status, detail.retry_after]).toEqual(['server_is_overloaded', 503, 2])
      return false
    }
  }
  /** So many requests of a token; how many were admitted. */
  const ask = (requests: number, token = 'tok_a') =>
    Array.from({ length: requests }, () => isAdmitted(token)).filter(Boolean).length
  /** A second in which each turn is late by so much. */
  const second = (delay: number) => {
    const end = time + 1_000
    while (time < end) turn(delay)
  }
  return { turn, ask, second }
}

describe('admission by the delay of the event loop', () => {
  test('admits everything while the delay is at its limit, however long', () => {
    const { ask, second } = setUp()
    for (let seconds = 0; seconds < 10; seconds++) {
      expect(ask(1_000)).toBe(1_000)
      second(100)
    }
  })

  test('refuses some once the delay has been above its limit for a second', () => {
    const { ask, second } = setUp()
    expect(ask(1_000)).toBe(1_000)
    second(200)
    expect(ask(1_000)).toBe(500)
  })

  test('admits everything if the delay fell below its limit once: one large body is no overload', () => {
    const { ask, second, turn } = setUp()
    expect(ask(1_000)).toBe(1_000)
    turn(800)
    turn(0)
    second(200)
    expect(ask(1_000)).toBe(1_000)
  })

  test('admits everything after one body that took seconds, even if nothing else was measured meanwhile', () => {
    const { ask, second, turn } = setUp()
    second(0)
    ask(1_000)
    turn(3_000)
    turn(0)
    second(0)
    expect(ask(1_000)).toBe(1_000)
  })

  test('does not count what waits elsewhere: ten thousand open streams are no load', () => {
    const { ask, second } = setUp()
    expect(ask(10_000)).toBe(10_000)
    for (let seconds = 0; seconds < 60; seconds++) second(0)
    expect(ask(10_000)).toBe(10_000)
  })

  test('refuses the busiest token first, and never a token below its share', () => {
    const { ask, second } = setUp()
    ask(1_000, 'tok_busy')
    ask(10, 'tok_quiet')
    second(200)
    ask(1_000, 'tok_busy')
    ask(10, 'tok_quiet')
    second(200)
    expect(ask(1_000, 'tok_busy')).toBeLessThan(505)
    expect(ask(10, 'tok_quiet')).toBe(10)
  })

  test('admits at least one request of each token', () => {
    const { ask, second } = setUp()
    for (let seconds = 0; seconds < 20; seconds++) {
      ask(100)
      for (let turns = 0; turns < 3; turns++) second(10_000)
    }
    expect([ask(1, 'tok_a'), ask(1, 'tok_b')]).toEqual([1, 1])
  })

  test('admits more and more once the delay is back at its limit, and in the end everything', () => {
    const { ask, second } = setUp()
    ask(1_000)
    second(400)
    const admitted: number[] = []
    for (let seconds = 0; seconds < 12; seconds++) {
      admitted.push(ask(1_000))
      second(0)
    }
    expect(admitted[0]).toBe(300)
    expect(admitted).toEqual(admitted.toSorted((one, other) => one - other))
    expect(admitted.at(-1)).toBe(1_000)
  })

  test('refuses nothing where the operator has turned it off', () => {
    const { ask, second } = setUp(0)
    ask(1_000)
    second(5_000)
    expect(ask(1_000)).toBe(1_000)
  })
})
