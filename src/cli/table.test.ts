import { expect, test } from 'bun:test'
import { table, timeText } from './table.ts'

test('pads columns to their longest cell, without trailing spaces', () => {
  expect(
    table([
      ['A', 'LONG', ''],
      ['bcd', 'e', 'f'],
      ['g', 'h', ''],
    ]),
  ).toBe('A    LONG\nbcd  e     f\ng    h\n')
  expect(table([])).toBe('')
})

test('formats a time to the minute, and a missing one as a dash', () => {
  expect(timeText(Date.UTC(2026, 10, 21, 4, 5, 59) / 1000)).toBe('2026-11-21 04:05')
  expect([timeText(null), timeText(undefined)]).toEqual(['-', '-'])
})
