import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { findJsonFault } from './json-fault.ts'

const said = (text: string) => {
  const { line, column, expected, found } = findJsonFault(text)
  return `${line}:${column} ${expected}, not ${found}`
}

test.each([
  ['nope', '1:1 a value, not `n`'],
  ['{"a":}', '1:6 a value, not `}`'],
  ['{a:1}', '1:2 a member name in double quotes, not `a`'],
  ["{'a':1}", "1:2 a member name in double quotes, not `'`"],
  ['{"a" 1}', '1:6 `:`, not `1`'],
  ['{"a":1,}', '1:8 a member name in double quotes, not `}`'],
  ['[1,]', '1:4 a value, not `]`'],
  ['[1 2]', '1:4 `,` or `]`, not `2`'],
  ['{"a":[{"b":1}', '1:14 `,` or `]`, not the end'],
  ['{"a":1}x', '1:8 nothing more, not `x`'],
  ['{\n  "a": 1\n  "b": 2\n}', '3:3 `,` or `}`, not `"`'],
  ['["a\nb"]', '1:4 the closing double quote of a string, not the control character U+000A'],
  ['["a', '1:4 the closing double quote of a string, not the end'],
  ['["\\x"]', '1:3 an escape such as `\\n` or `\\u0041`, not `\\`'],
  ['[01]', '1:3 `,` or `]`, not `1`'],
  ['[-]', '1:2 a value, not `-`'],
  ['[1.]', '1:3 `,` or `]`, not `.`'],
  ['[NaN]', '1:2 a value, not `N`'],
  ['', '1:1 a value, not the end'],
  ['[\u00a01]', '1:2 a value, not `\u00a0`'],
])('describes the error in %j: %s', (text, expected) => {
  expect(said(text)).toBe(expected)
})

test('finds the error in a text a million levels deep or a million characters long', () => {
  expect(said('['.repeat(1_000_000))).toBe('1:1000001 a value, not the end')
  expect(said(`["${'\\n'.repeat(1_000_000)}`)).toBe('1:2000003 the closing double quote of a string, not the end')
})

test('finds an error exactly where the parser reports one, and none in a valid text', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), fc.constantFrom('', ',', '"', '}', ']', '\\', 'x', '0'), (json, where, sign) => {
      const at = where % (json.length + 1)
      const text = json.slice(0, at) + sign + json.slice(at + 1)
      const isGood = isJson(text)
      const { expected, found } = findJsonFault(text)
      expect([text, expected === 'nothing more' && found === 'the end']).toEqual([text, isGood])
    }),
    { numRuns: 3000 },
  )
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
