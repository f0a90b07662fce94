import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { GatewayError } from '../../spec/error.ts'
import { createLateReads, MOST_LATE_READS } from './late-reads.ts'

const LEFT = new GatewayError('client_closed_request', 'The client has left.', { has_left: true })

function setUp({ seconds = 30 } = {}) {
  const clock = manualClock()
  const ended: string[] = []
  const reads = createLateReads({ seconds: () => seconds, clock })
  const admits = (name: string) => {
    const own = {
      end() {
        ended.push(name)
        reads.ended(own)
      },
    }
    return { isAdmitted: reads.admits(own, LEFT), own }
  }
  return { clock, ended, reads, admits }
}

describe('a whole response whose client has left', () => {
  it('is read for so many seconds, and is ended then', () => {
    const { clock, ended, reads, admits } = setUp()
    expect(admits('a').isAdmitted).toBe(true)
    clock.advance(29_999)
    expect([ended, reads.open()]).toEqual([[], 1])
    clock.advance(1)
    expect([ended, reads.open()]).toEqual([['a'], 0])
  })

  it('is not ended once it has arrived', () => {
    const { clock, ended, reads, admits } = setUp()
    reads.ended(admits('a').own)
    clock.advance(60_000)
    expect([ended, reads.open()]).toEqual([[], 0])
  })

  it('is not read where that is turned off, or as many are read as may be', () => {
    expect(setUp({ seconds: 0 }).admits('a').isAdmitted).toBe(false)
    const { reads, admits } = setUp()
    const [first] = Array.from({ length: MOST_LATE_READS }, (_, at) => admits(`${at}`))
    expect([reads.open(), admits('one more').isAdmitted]).toEqual([MOST_LATE_READS, false])
    if (first) reads.ended(first.own)
    expect(admits('one more').isAdmitted).toBe(true)
  })

  it('is ended by a stop, after which none is read', () => {
    const { ended, reads, admits } = setUp()
    admits('a')
    admits('b')
    reads.close()
    expect([ended, reads.open(), admits('c').isAdmitted]).toEqual([['a', 'b'], 0, false])
  })
})
