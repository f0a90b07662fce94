import { describe, expect, test } from 'bun:test'
import { canonicalJson } from './json.ts'

describe('canonicalJson', () => {
  test('returns the same text for equal values, whatever the order of their members', () => {
    expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: true })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}')
    expect(canonicalJson({ a: true, b: [1, { c: 'x', d: null }] })).toBe(
      canonicalJson({ b: [1, { d: null, c: 'x' }], a: true }),
    )
  })

  test('leaves out undefined members; keeps the order of lists, and types', () => {
    expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}')
    expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]))
    expect(canonicalJson({ a: '1' })).not.toBe(canonicalJson({ a: 1 }))
  })
})
