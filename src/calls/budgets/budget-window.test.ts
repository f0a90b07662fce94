import { describe, expect, it } from 'bun:test'
import type { Budget } from '../../spec/rate-limit.ts'
import { spanAt } from './budget-window.ts'

const span = (budget: Omit<Budget, 'amount'>, now: string) => {
  const { start_ms, end_ms } = spanAt({ amount: 1, ...budget }, Date.parse(now))
  return [new Date(start_ms).toISOString(), end_ms === undefined ? undefined : new Date(end_ms).toISOString()]
}

describe('the window of a budget', () => {
  it('is a day, a week from Monday or a month, in UTC by default', () => {
    expect(span({ window: 'day' }, '2026-11-22T23:59:59.999Z')).toEqual([
      '2026-11-22T00:00:00.000Z',
      '2026-11-23T00:00:00.000Z',
    ])
    expect(span({ window: 'day' }, '2026-11-23T00:00:00Z')).toEqual([
      '2026-11-23T00:00:00.000Z',
      '2026-11-24T00:00:00.000Z',
    ])
    expect(span({ window: 'week' }, '2026-11-22T12:00:00Z')).toEqual([
      '2026-11-16T00:00:00.000Z',
      '2026-11-23T00:00:00.000Z',
    ])
    expect(span({ window: 'week' }, '2026-11-23T00:00:00Z')).toEqual([
      '2026-11-23T00:00:00.000Z',
      '2026-11-30T00:00:00.000Z',
    ])
    expect(span({ window: 'month' }, '2028-02-29T12:00:00Z')).toEqual([
      '2028-02-01T00:00:00.000Z',
      '2028-03-01T00:00:00.000Z',
    ])
  })

  it('follows the time zone, also where the clock changes', () => {
    const berlin = { window: 'day', time_zone: 'Europe/Berlin' } as const
    expect(span(berlin, '2026-03-29T12:00:00Z')).toEqual(['2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'])
    expect(span(berlin, '2026-10-25T12:00:00Z')).toEqual(['2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z'])
    // In Santiago the day of the change starts at one o'clock.
    const santiago = { window: 'day', time_zone: 'America/Santiago' } as const
    const [, end] = span(santiago, '2026-09-05T12:00:00Z')
    expect(span(santiago, '2026-09-06T12:00:00Z')[0]).toBe(end as string)
    expect(span({ ...santiago, window: 'month' }, '2026-09-06T12:00:00Z')).toEqual([
      '2026-09-01T04:00:00.000Z',
      '2026-10-01T03:00:00.000Z',
    ])
  })

  it('starts no earlier than the budget', () => {
    const starts_at = Date.parse('2026-11-10T00:00:00Z') / 1000
    expect(span({ window: 'month', starts_at }, '2026-11-22T00:00:00Z')).toEqual([
      '2026-11-10T00:00:00.000Z',
      '2026-12-01T00:00:00.000Z',
    ])
    expect(span({ window: 'month', starts_at }, '2026-12-22T00:00:00Z')[0]).toBe('2026-12-01T00:00:00.000Z')
    expect(span({ window: 'total', starts_at }, '2026-12-22T00:00:00Z')).toEqual([
      '2026-11-10T00:00:00.000Z',
      undefined,
    ])
    expect(span({ window: 'total' }, '2026-12-22T00:00:00Z')).toEqual(['1970-01-01T00:00:00.000Z', undefined])
  })

  it('of one day ends where that of the next starts, in every time zone', () => {
    for (const time_zone of ['Asia/Kathmandu', 'Pacific/Apia', 'America/Havana', 'Australia/Lord_Howe']) {
      for (const window of ['day', 'week', 'month'] as const) {
        let at = Date.UTC(2026, 0, 1)
        for (let number = 0; number < 40; number++) {
          const { start_ms, end_ms = 0 } = spanAt({ amount: 1, window, time_zone }, at)
          expect(start_ms).toBeLessThanOrEqual(at)
          expect(end_ms).toBeGreaterThan(at)
          expect(spanAt({ amount: 1, window, time_zone }, end_ms).start_ms).toBe(end_ms)
          expect(spanAt({ amount: 1, window, time_zone }, end_ms - 1).start_ms).toBe(start_ms)
          at = end_ms
        }
      }
    }
  })
})
