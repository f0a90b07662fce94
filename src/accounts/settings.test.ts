import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../spec/error.ts'
import { type AccountSettings, readSettings } from './settings.ts'

const NOW = 1_700_000_000
const read = (given: object) => readSettings(given as Partial<AccountSettings>, NOW)

function refusal(given: object): string {
  try {
    return `accepted: ${JSON.stringify(read(given))}`
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'invalid_value') return error.message
    throw error
  }
}

const many = <Value>(count: number, make: (index: number) => Value) =>
  Array.from({ length: count }, (_, at) => make(at))
const labels = (count: number) => Object.fromEntries(many(count, (at) => [`l${at}`, 'x']))
const networks = (count: number) => many(count, (at) => `10.${at >> 8}.${at & 255}.0/24`)
const budget = { amount: 5, window: 'month' }

describe('settings of a token or a project', () => {
  test('that are absent stay absent', () => {
    expect(read({})).toEqual({})
    expect(read({ name: ' a ' })).toEqual({ name: 'a' })
  })

  test.each<[string, object]>([
    ['64 labels', { labels: labels(64) }],
    ['a label with 63 characters and a value with 256', { labels: { ['x'.repeat(63)]: 'y'.repeat(256) } }],
    ['no labels', { labels: {} }],
    ['1000 ranges of addresses', { allowed_addresses: networks(1_000) }],
    ['every address', { allowed_addresses: null }],
    ['the least and the greatest rate limit', { rate_limits: { requests_per_day: 0, tokens_per_day: 1e12 } }],
    [
      'the least and the greatest budget',
      {
        budgets: [
          { amount: 0, window: 'day' },
          { amount: 9e6, window: 'total' },
        ],
      },
    ],
    [
      'a budget with everything',
      {
        budgets: [
          {
            ...budget,
            time_zone: 'Europe/Berlin',
            starts_at: 1,
            thresholds: many(10, (at) => 10 * at + 10),
            soft: true,
          },
        ],
      },
    ],
    ['limits of end users', { end_users: { rate_limits: { requests_per_day: 1 }, budgets: [budget] } }],
    ['no limits of end users', { end_users: {} }],
    ['an end', { expires_at: NOW + 1 }],
  ])('may be %s', (_, given) => {
    expect(read(given)).toEqual(given)
  })

  test('hold a range of addresses once, as its network', () => {
    const allowed_addresses = ['203.0.113.9/24', '203.0.113.0/24', '2001:DB8::1']
    expect(read({ allowed_addresses })).toEqual({ allowed_addresses: ['203.0.113.0/24', '2001:db8::1/128'] })
  })

  test.each<[string, object, string]>([
    ['65 labels', { labels: labels(65) }, 'labels: must hold at most 64 labels.'],
    ['a label with 64 characters', { labels: { ['x'.repeat(64)]: '' } }, 'must be 1 to 63 letters, digits and . _ / -'],
    ['an empty label', { labels: { '': 'x' } }, 'labels: "" must be 1 to 63'],
    ['a label that begins with a dot', { labels: { '.a': 'x' } }, 'the first a letter or digit'],
    [
      'a value with 257 characters',
      { labels: { a: 'y'.repeat(257) } },
      'labels.a: must have at most 256 characters; it has 257.',
    ],
    ['a value with a line break', { labels: { a: 'b\n' } }, 'labels.a: must not hold control characters.'],
    ['1001 ranges', { allowed_addresses: networks(1_001) }, 'allowed_addresses: must hold at most 1000 ranges.'],
    ['no range', { allowed_addresses: [] }, 'allowed_addresses: must hold at least one range; null is every address.'],
    [
      'a name in place of a range',
      { allowed_addresses: ['10.0.0.0/8', 'host'] },
      'allowed_addresses[1]: found "host", must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32.',
    ],
    ['an unknown limit', { rate_limits: { requests_per_minut: 1 } }, 'did you mean "requests_per_minute"?'],
    [
      'a negative limit',
      { rate_limits: { requests_per_day: -1 } },
      'rate_limits.requests_per_day: must be a whole number from 0',
    ],
    ['a fraction', { rate_limits: { requests_per_day: 1.5 } }, 'found 1.5.'],
    [
      'too great a limit',
      { rate_limits: { requests_per_day: 1e12 + 1 } },
      'must be a whole number from 0 to 1000000000000',
    ],
    [
      'a negative budget',
      { budgets: [{ ...budget, amount: -1 }] },
      'budgets[0].amount: must be a number from 0 to 9000000; found -1.',
    ],
    ['too great a budget', { budgets: [{ ...budget, amount: 9_000_001 }] }, 'budgets[0].amount'],
    ['a budget of no number', { budgets: [{ ...budget, amount: Number.NaN }] }, 'budgets[0].amount'],
    [
      'an unknown window',
      { budgets: [{ ...budget, window: 'year' }] },
      'budgets[0].window: found "year", must be one of day, week, month, total',
    ],
    [
      'two budgets for a window',
      { budgets: [budget, budget] },
      'budgets[1].window: another budget has the window month too.',
    ],
    ['an unknown time zone', { budgets: [{ ...budget, time_zone: 'Berlin' }] }, 'budgets[0].time_zone: found "Berlin"'],
    ['a start in fractions', { budgets: [{ ...budget, starts_at: 0.5 }] }, 'budgets[0].starts_at'],
    [
      '11 thresholds',
      { budgets: [{ ...budget, thresholds: many(11, () => 5) }] },
      'budgets[0].thresholds: must hold at most 10',
    ],
    ['a threshold of 0', { budgets: [{ ...budget, thresholds: [0] }] }, 'percentages above 0 and at most 100'],
    ['a threshold above 100', { budgets: [{ ...budget, thresholds: [101] }] }, 'budgets[0].thresholds'],
    ['an unknown limit of end users', { end_users: { rate_limits: { x: 1 } } }, 'end_users.rate_limits: found "x"'],
    ['two budgets of end users', { end_users: { budgets: [budget, budget] } }, 'end_users.budgets[1].window'],
    ['an end that has passed', { expires_at: NOW }, 'expires_at: must lie in the future'],
    ['an end in milliseconds', { expires_at: NOW * 1000 }, 'expires_at: must be a time in whole unix seconds'],
  ])('must not be %s', (_, given, message) => {
    expect(refusal(given)).toContain(message)
  })
})
