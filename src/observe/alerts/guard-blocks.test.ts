import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { AlertsConfig } from '../../config/schema/alerts-schema.ts'
import type { RaisedAlert } from './alerts.ts'
import { createGuardBlocks } from './guard-blocks.ts'

function setUp(settings: AlertsConfig = {}) {
  const clock = manualClock()
  clock.advance(60_000 - (clock.now() % 60_000)) // the start of a minute
  const raised: RaisedAlert[] = []
  const blocked = createGuardBlocks({
    alerts: { raise: (alert) => void raised.push(alert) },
    settings: () => settings,
    clock,
  })
  const times = (count: number, guard = 'house') => {
    for (let n = 0; n < count; n++) blocked(guard)
    return raised.splice(0)
  }
  return { clock, times }
}

describe('the alert of a guard that blocks much', () => {
  it('is raised at the number that is set, within one minute, for each guard', () => {
    const { clock, times } = setUp({ guard_blocks_per_minute: 3 })
    expect(times(2)).toEqual([])
    expect(times(2, 'other')).toEqual([])
    clock.advance(59_000)
    expect(times(1)).toMatchObject([
      { type: 'guard.blocking', key: 'guard.blocking house', data: { guard: 'house', blocks: 3 } },
    ])
    expect(times(5)).toEqual([])
    clock.advance(1_000)
    expect(times(2)).toEqual([])
    expect(times(1)).toHaveLength(1)
  })

  it('is raised at 30 where nothing is set', () => {
    const { times } = setUp()
    expect(times(29)).toEqual([])
    expect(times(1)).toHaveLength(1)
  })
})
