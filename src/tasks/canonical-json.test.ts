import { expect, test } from 'bun:test'
import { canonicalJson } from './canonical-json.ts'

test('two bodies are the same text when they say the same, in whatever order', () => {
  expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: true })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}')
  expect(canonicalJson({ a: true, b: [1, { c: 'x', d: null }] })).toBe(
    canonicalJson({ b: [1, { d: null, c: 'x' }], a: true }),
  )
})

test('what is not there is not said; order in a list, and types, are', () => {
  expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}')
  expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]))
  expect(canonicalJson({ a: '1' })).not.toBe(canonicalJson({ a: 1 }))
})
