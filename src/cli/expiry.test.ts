import { expect, test } from 'bun:test'
import { readExpiry } from './expiry.ts'

const NOW = Date.UTC(2026, 10, 21) / 1000

test.each([
  ['30m', NOW + 1800],
  ['12h', NOW + 43_200],
  ['30d', NOW + 2_592_000],
  ['2w', NOW + 1_209_600],
  ['1y', NOW + 31_536_000],
  ['2026-12-31', Date.UTC(2027, 0, 1) / 1000],
  ['2026-11-21', NOW + 86_400],
  ['2026-12-31T18:00Z', Date.UTC(2026, 11, 31, 18) / 1000],
  ['2026-12-31T18:00:30+02:00', Date.UTC(2026, 11, 31, 16, 0, 30) / 1000],
  ['never', null],
])('parses %s as %p', (text, seconds) => {
  expect(readExpiry(text, NOW)).toBe(seconds)
})

test.each([
  '',
  '30',
  'd',
  '30x',
  '-1d',
  '1.5d',
  '31.12.2026',
  '2026-13-01',
  '2026-02-30',
  '2026-12-31T18:00',
  'tomorrow',
])('rejects %p and says what is valid', (text) => {
  expect(readExpiry(text, NOW)).toBe(
    `found ${JSON.stringify(text)}, must be like 30d, 12h, 2026-12-31, 2026-12-31T18:00Z, or never`,
  )
})

test('rejects a time that has passed, and accepts one a second later', () => {
  expect(readExpiry('0d', NOW)).toBe('found "0d", which has already passed')
  expect(readExpiry('2026-11-20', NOW)).toBe('found "2026-11-20", which has already passed')
  expect(readExpiry('2026-11-20', NOW - 1)).toBe(NOW)
})
