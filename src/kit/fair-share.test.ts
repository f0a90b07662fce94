import { expect, test } from 'bun:test'
import { fairShare } from './fair-share.ts'

test.each([
  [[], 10, Number.POSITIVE_INFINITY],
  [[4, 6], 10, Number.POSITIVE_INFINITY],
  [[4, 7], 10, 6],
  [[100], 10, 10],
  [[1, 1, 100, 100], 10, 4],
  [[5, 5, 5], 0, 0],
])('the share of %j in a capacity of %d is %d', (demands, capacity, share) => {
  expect(fairShare(demands, capacity)).toBe(share)
})
