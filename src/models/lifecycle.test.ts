import { expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { lifecycleHeaders, statusAt } from './lifecycle.ts'

test('a date takes effect in its second, not before', () => {
  expect(statusAt({ deprecated_at: 100 }, 99)).toBe('active')
  expect(statusAt({ deprecated_at: 100 }, 100)).toBe('deprecated')
  expect(statusAt({ deprecated_at: 100, retired_at: 200 }, 199)).toBe('deprecated')
  expect(statusAt({ deprecated_at: 100, retired_at: 200 }, 200)).toBe('retired')
})

test('the configured status holds until a date is reached', () => {
  expect(statusAt({ status: 'deprecated' }, 0)).toBe('deprecated')
  expect(statusAt({ status: 'deprecated', retired_at: 10 }, 10)).toBe('retired')
  expect(statusAt({ status: 'retired', deprecated_at: 10 }, 10)).toBe('retired')
})

test('an active model has no headers; a deprecated one has its dates and its successor', () => {
  const clock = manualClock(1_000_000)
  expect(lifecycleHeaders({ deprecated_at: 2000 }, clock)).toEqual({})
  expect(lifecycleHeaders({ status: 'deprecated' }, clock)).toEqual({ deprecation: 'true' })
  expect(lifecycleHeaders({ deprecated_at: 900, retired_at: 86_400, replaced_by: 'p/new one' }, clock)).toEqual({
    deprecation: '@900',
    sunset: 'Fri, 02 Jan 1970 00:00:00 GMT',
    link: '</v1/models/p/new%20one>; rel="successor-version"',
    'x-model-replaced-by': 'p/new one',
  })
})
