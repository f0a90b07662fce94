import { expect, test } from 'bun:test'
import { table, timeText } from './table.ts'

test('columns are as wide as their longest cell, and lines end without blanks', () => {
  expect(
    table([
      ['A', 'LONG', ''],
      ['bcd', 'e', 'f'],
      ['g', 'h', ''],
    ]),
  ).toBe('A    LONG\nbcd  e     f\ng    h\n')
  expect(table([])).toBe('')
})

test('a time is told to the minute, and none as a dash', () => {
  expect(timeText(Date.UTC(2026, 10, 21, 4, 5, 59) / 1000)).toBe('2026-11-21 04:05')
  expect([timeText(null), timeText(undefined)]).toEqual(['-', '-'])
})
