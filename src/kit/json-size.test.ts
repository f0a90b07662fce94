/** The size of a value is that of its JSON text. */
import { expect, test } from 'bun:test'
import { jsonSize } from './json-size.ts'

test.each([
  [null],
  [true],
  [-1.5e300],
  [''],
  ['plain'],
  ['ü — 中文 😀'],
  [[]],
  [[1, [2, []], 'x']],
  [{}],
  [{ a: 1, 'ü b': { c: [null, { d: 'e' }] }, empty: {} }],
])('counts the bytes of %j', (value) => {
  expect(jsonSize(value)).toBe(Buffer.byteLength(JSON.stringify(value)))
})

test('does not count members without a value, which JSON omits', () => {
  expect(jsonSize({ a: undefined, b: 1 })).toBe('{"b":1}'.length)
})

test('does not fail on deep values', () => {
  let deep: unknown = 1
  for (let depth = 0; depth < 100_000; depth++) deep = [deep]
  expect(jsonSize(deep)).toBe(200_001)
})
