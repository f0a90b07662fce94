import { expect, test } from 'bun:test'
import { createTextSet } from './text-set.ts'

test('knows each of 100,000 texts once it was added, and no other', () => {
  const set = createTextSet()
  for (let at = 0; at < 100_000; at++) expect(set.add(`line-${at}`)).toBe(true)
  for (let at = 0; at < 100_000; at++) expect(set.add(`line-${at}`)).toBe(false)
  expect([set.add(''), set.add('')]).toEqual([true, false])
})
