import { describe, expect, test } from 'bun:test'
import { withoutLongStrings } from './json-lines.ts'

const long = (text: string) => `${'x'.repeat(2_000)}${text}${'y'.repeat(2_000)}`
const parsedAs = (json: string | Uint8Array): unknown => {
  try {
    return JSON.parse(withoutLongStrings(Buffer.from(json as string)) ?? '')
  } catch {
    return 'no JSON'
  }
}

describe('a line without its long strings', () => {
  test('has the same value otherwise', () => {
    const value = {
      a: long(''),
      b: ['short', long('"\\\\\n\u0001é😀'), { c: '\\', [long('key')]: 1.5 }],
      d: '',
      e: '"',
    }
    expect(parsedAs(JSON.stringify(value))).toEqual({ a: '', b: ['short', '', { c: '\\', '': 1.5 }], d: '', e: '"' })
    expect(parsedAs(`\uFEFF${JSON.stringify({ a: long('') })}`)).toEqual({ a: '' })
  })

  test('is JSON exactly where the line is', () => {
    const texts = [
      '\\\\',
      '\\"',
      '\\u00e9',
      '\\ud800',
      '\\/',
      '\\x',
      '\\u12g4',
      '\\u',
      '\t',
      '\u0000',
      '"',
      '\\\\"',
      'é',
      '\u007f',
    ]
    for (const text of texts)
      for (const json of [`{"a":"${text}"}`, `{"a":"${long(text)}"}`, `{"a":"${text.padStart(2_000, 'x')}"}`]) {
        let isJson = true
        try {
          JSON.parse(json)
        } catch {
          isJson = false
        }
        expect([text, parsedAs(json) !== 'no JSON']).toEqual([text, isJson])
      }
    const broken = Buffer.from(`{"a":"${long('?')}"}`)
    broken[broken.indexOf('?')] = 0xff
    expect(parsedAs(broken)).toBe('no JSON')
    expect(parsedAs(`{"a":"${long('')}`)).toBe('no JSON')
  })
})
