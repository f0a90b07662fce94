import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { releaseIdleMemory } from './idle-memory.ts'

function watched() {
  const clock = manualClock()
  const requests = { open: 0, started: 0 }
  const drops_code: boolean[] = []
  const stop = releaseIdleMemory({ requests: () => requests, release: (drops) => void drops_code.push(drops), clock })
  return { clock, requests, stop, drops_code, released: () => drops_code.length }
}

describe('the memory of an idle gateway', () => {
  it('is returned once after the start', () => {
    const { clock, released } = watched()
    clock.advance(5_000)
    expect(released()).toBe(1)
    clock.advance(600_000)
    expect(released()).toBe(1)
  })

  it('is returned again after a burst, once few requests begin', () => {
    const { clock, requests, released } = watched()
    clock.advance(5_000)
    for (let second = 0; second < 60; second += 5) {
      requests.started += 500
      clock.advance(5_000)
    }
    expect(released()).toBe(1)
    requests.started += 10
    clock.advance(5_000)
    expect(released()).toBe(2)
    requests.started += 10
    clock.advance(5_000)
    expect(released()).toBe(2)
  })

  it('is not returned while a request is open, nor while many begin', () => {
    const { clock, requests, released } = watched()
    requests.open = 1
    clock.advance(60_000)
    expect(released()).toBe(0)
    requests.open = 0
    requests.started += 11
    clock.advance(5_000)
    expect(released()).toBe(0)
    clock.advance(5_000)
    expect(released()).toBe(1)
  })

  it('is returned without the compiled code from the thousandth request on', () => {
    const { clock, requests, drops_code } = watched()
    requests.started = 999
    clock.advance(10_000)
    expect(drops_code).toEqual([true])
    requests.started += 1_000
    clock.advance(10_000)
    expect(drops_code).toEqual([true, false])
    const busy = watched()
    busy.requests.started = 1_000
    busy.clock.advance(10_000)
    expect(busy.drops_code).toEqual([false])
  })

  it('is no longer looked at once stopped', () => {
    const { clock, stop, released } = watched()
    stop()
    clock.advance(60_000)
    expect(released()).toBe(0)
    expect(clock.waiting()).toBe(0)
  })
})
