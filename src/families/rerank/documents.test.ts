import { expect, test } from 'bun:test'
import { textsOf } from './documents.ts'

test('a field that is named repeatedly is read once', () => {
  const documents = [{ title: 'A kite', text: 'It flies.' }]
  const rank_fields = ['text', 'title', ...Array.from({ length: 1_000 }, () => 'text')]
  expect(textsOf({ documents, rank_fields })).toEqual(['It flies.\nA kite'])
})
