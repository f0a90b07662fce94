import { expect, test } from 'bun:test'
import { scoresOf } from './rerank.ts'

const DOCUMENTS = [
  'Boats leave the harbour at noon.',
  'The snow melts in April, and the river rises.',
  'Snow fell all night.',
  'Recipes for onion soup',
]

test('a document with more of the significant words scores higher; one without any scores 0', () => {
  const [boats = -1, melts = -1, fell = -1, soup = -1] = scoresOf('When does the snow melt?', DOCUMENTS)
  expect(melts).toBeGreaterThan(fell)
  expect(fell).toBeGreaterThan(0)
  expect([boats, soup]).toEqual([0, 0])
})

test('scores are between 0 and 1, however often a word is repeated', () => {
  const scores = scoresOf('snow', [...DOCUMENTS, 'snow '.repeat(2_000)])
  for (const score of scores) {
    expect(score).toBeGreaterThanOrEqual(0)
    expect(score).toBeLessThanOrEqual(1)
  }
  expect(Math.max(...scores)).toBe(scores[4] as number)
})

test('a query of stop words only is scored by its stop words', () => {
  const [one = 0, other = 0] = scoresOf('to be or not to be', ['To be is to do', 'Onion soup'])
  expect(one).toBeGreaterThan(other)
})

test('an empty query scores 0', () => {
  expect(scoresOf('?!', DOCUMENTS)).toEqual([0, 0, 0, 0])
  expect(scoresOf('snow', [''])).toEqual([0])
})
