import { expect, test } from 'bun:test'
import { sentencesOf } from './sentences.ts'

const timed = (text: string) => text.split(' ').map((word, at) => ({ word, start: at, end: at + 0.5 }))

test('words become sentences with the times of their first and last word', () => {
  expect(sentencesOf(timed('One two. "Three?" Four'))).toEqual([
    { text: 'One two.', start: 0, end: 1.5 },
    { text: '"Three?"', start: 2, end: 2.5 },
    { text: 'Four', start: 3, end: 3.5 },
  ])
  expect(sentencesOf([])).toEqual([])
  expect(sentencesOf([{ word: ' ', start: 0, end: 1 }])).toEqual([])
})

test('a sentence without an end is cut', () => {
  const lengths = sentencesOf(timed(Array(100).fill('word').join(' '))).map(({ text }) => text.length)
  expect(lengths).toEqual([204, 204, 89])
})
