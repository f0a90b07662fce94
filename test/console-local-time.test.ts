/** Ranges of the console that have days of their own. */
import { expect, test } from 'bun:test'
import { lastWeek } from '../console/src/lib/local-time.ts'

const seconds = (text: string) => new Date(text).getTime() / 1000

test.each([
  ['a Monday', '2026-11-23T00:00:00'],
  ['a Wednesday', '2026-11-25T13:30:00'],
  ['a Sunday', '2026-11-29T23:59:59'],
])('last week is from Monday to Monday on %s', (_, now) => {
  expect(lastWeek(seconds(now))).toEqual({ start: seconds('2026-11-16T00:00:00'), end: seconds('2026-11-23T00:00:00') })
})
