import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import {
  createSlowDown,
  FORGIVE_MILLISECONDS,
  FREE_FAILURES,
  MAX_ADDRESSES,
  MAX_WAITING,
  MAX_WAITING_AN_ADDRESS,
  network,
} from './slow-down.ts'

const never = new AbortController().signal

function setUp() {
  const clock = manualClock()
  let logged = ''
  const log = createLog({ clock, level: 'debug', pretty: false, write: (text) => (logged += text) })
  const slowDown = createSlowDown({ clock, log })
  const useFreeFailures = (address: string) => {
    for (let index = 0; index < FREE_FAILURES; index++) expect(slowDown.failed(address, never)).toBeUndefined()
  }
  /** The delay of the next failure in milliseconds. */
  const delay = async (address: string) => {
    const waited = slowDown.failed(address, never)
    if (!waited) return 0
    let over = false
    const done = waited.then(() => {
      over = true
    })
    let ms = 0
    for (; !over && ms < 10_000; ms += 50) {
      clock.advance(50)
      await Promise.resolve()
      await Promise.resolve()
      await Promise.resolve()
    }
    await done
    return ms
  }
  const logLines = () => {
    log.flush()
    return logged
  }
  return { clock, slowDown, useFreeFailures, delay, logLines }
}

function errorOf(work: () => unknown): GatewayError {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('nothing was refused')
}

describe('slowing down', () => {
  test('answers the first failures immediately and delays the next ones more and more, up to two seconds', async () => {
    const { useFreeFailures, delay } = setUp()
    useFreeFailures('1.2.3.4')
    const delays = []
    for (let index = 0; index < 6; index++) delays.push(await delay('1.2.3.4'))
    expect(delays).toEqual([250, 500, 1000, 2000, 2000, 2000])
  })

  test('does not affect other addresses', async () => {
    const { slowDown, useFreeFailures } = setUp()
    useFreeFailures('1.2.3.4')
    expect(slowDown.failed('1.2.3.4', never)).toBeDefined()
    expect(slowDown.failed('1.2.3.5', never)).toBeUndefined()
  })

  test('ends for an address after a minute without a failure, not before', async () => {
    const { clock, slowDown, useFreeFailures } = setUp()
    useFreeFailures('1.2.3.4')
    clock.advance(FORGIVE_MILLISECONDS - 1)
    expect(slowDown.failed('1.2.3.4', never)).toBeDefined()
    clock.advance(FORGIVE_MILLISECONDS)
    expect(slowDown.failed('1.2.3.4', never)).toBeUndefined()
  })

  test('ends a delay when the client disconnects, and frees its slot and its timer', async () => {
    const { clock, slowDown, useFreeFailures } = setUp()
    useFreeFailures('1.2.3.4')
    const timers = clock.waiting()
    const leaving = new AbortController()
    const waits = Array.from({ length: MAX_WAITING_AN_ADDRESS }, () => slowDown.failed('1.2.3.4', leaving.signal))
    leaving.abort()
    await Promise.all(waits)
    expect(clock.waiting()).toBe(timers + 1) // the timer of the log
    expect(slowDown.failed('1.2.3.4', never)).toBeDefined()
  })

  test('limits the delayed responses of an address; one more gets a retry-after', () => {
    const { slowDown, useFreeFailures } = setUp()
    useFreeFailures('1.2.3.4')
    for (let index = 0; index < MAX_WAITING_AN_ADDRESS; index++) {
      expect(slowDown.failed('1.2.3.4', never)).toBeInstanceOf(Promise)
    }
    const error = errorOf(() => slowDown.failed('1.2.3.4', never))
    expect([error.code, error.detail.retry_after]).toEqual(['rate_limit_exceeded', 2])
  })

  test('limits the delayed responses of all addresses together', () => {
    const { slowDown, useFreeFailures } = setUp()
    for (let index = 0; index < MAX_WAITING; index++) {
      const address = `10.0.${Math.floor(index / MAX_WAITING_AN_ADDRESS)}.1`
      if (index % MAX_WAITING_AN_ADDRESS === 0) useFreeFailures(address)
      expect(slowDown.failed(address, never)).toBeInstanceOf(Promise)
    }
    useFreeFailures('9.9.9.9')
    expect(errorOf(() => slowDown.failed('9.9.9.9', never)).code).toBe('rate_limit_exceeded')
  })

  test('limits the addresses that it stores, and drops the one with the oldest failure', () => {
    const { slowDown, useFreeFailures } = setUp()
    useFreeFailures('old')
    useFreeFailures('lively')
    for (let index = 0; index < MAX_ADDRESSES - 2; index++) slowDown.failed(`a${index}`, never)
    expect(slowDown.failed('lively', never)).toBeDefined()
    slowDown.failed('one more', never)
    expect(slowDown.failed('lively', never)).toBeDefined()
    expect(slowDown.failed('old', never)).toBeUndefined()
  })

  test('logs an address once, when its delays begin', async () => {
    const { useFreeFailures, delay, logLines } = setUp()
    useFreeFailures('1.2.3.4')
    expect(logLines()).toBe('')
    await delay('1.2.3.4')
    await delay('1.2.3.4')
    expect(logLines().match(/1\.2\.3\.4/g)).toHaveLength(1)
  })
})

describe('the address that failures are counted by', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::9', '2001:db8:1:2::/64'],
    ['2001:db8::9', '2001:db8:0:0::/64'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
    ['unknown', 'unknown'],
  ])('%p is %p', (address, key) => {
    expect(network(address)).toBe(key)
  })
})
