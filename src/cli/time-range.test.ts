import { describe, expect, it } from 'bun:test'
import { readCommand } from './arguments.ts'
import { readTimeRange, timeOf } from './time-range.ts'

/** A Tuesday. */
const NOW = Date.UTC(2026, 2, 10, 15, 30) / 1000
const at = (text: string, now = NOW) =>
  (['from', 'to'] as const).map((flag) => {
    const seconds = timeOf(text, flag, now)
    return seconds === undefined ? undefined : new Date(seconds * 1000).toISOString().slice(0, 16)
  })

describe('a time of the command line', () => {
  it.each([
    ['2026-01-31', '2026-01-31T00:00', '2026-02-01T00:00'],
    ['2026-01-31T18:00Z', '2026-01-31T18:00', '2026-01-31T18:00'],
    ['2026-01-31T18:00:30+02:00', '2026-01-31T16:00', '2026-01-31T16:00'],
    ['1d', '2026-03-10T00:00', '2026-03-10T00:00'],
    ['7d', '2026-03-04T00:00', '2026-03-04T00:00'],
    ['today', '2026-03-10T00:00', '2026-03-11T00:00'],
    ['yesterday', '2026-03-09T00:00', '2026-03-10T00:00'],
    ['this-week', '2026-03-09T00:00', '2026-03-16T00:00'],
    ['last-week', '2026-03-02T00:00', '2026-03-09T00:00'],
    ['this-month', '2026-03-01T00:00', '2026-04-01T00:00'],
    ['last-month', '2026-02-01T00:00', '2026-03-01T00:00'],
  ])('%s begins at %s and ends at %s', (text, from, to) => {
    expect(at(text)).toEqual([from, to])
  })

  it('counts a week from Monday to Sunday, and a month across a year', () => {
    expect(at('this-week', Date.UTC(2026, 2, 9) / 1000)[0]).toBe('2026-03-09T00:00')
    expect(at('this-week', Date.UTC(2026, 2, 15, 23, 59) / 1000)[0]).toBe('2026-03-09T00:00')
    expect(at('last-month', Date.UTC(2026, 0, 31) / 1000)).toEqual(['2025-12-01T00:00', '2026-01-01T00:00'])
  })

  it.each(['31.1.', '2026-02-30', 'next-week', '', 'Last-Week', '2026-01-31T18:00'])('is not %j', (text) => {
    expect(at(text)).toEqual([undefined, undefined])
  })

  it('is refused with every word that it may be', () => {
    const parts = { help: '', terminal: { out() {} }, command: 'usage', args: ['--from', 'soon'] }
    const given = readCommand({ ...parts, flags: { from: 'text', to: 'text' } })
    expect(() => given && readTimeRange('usage', given, 30)).toThrow(
      'yesterday, this-week, last-week, this-month or last-month',
    )
  })
})
