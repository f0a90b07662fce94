import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { headerValue } from './header-value.ts'

test('keeps visible ASCII and percent-encodes everything else', () => {
  expect(headerValue('openai/gpt-5 "x" 100%')).toBe('openai/gpt-5 "x" 100%')
  expect(headerValue('modèle/très-bon')).toBe('mod%C3%A8le/tr%C3%A8s-bon')
  expect(headerValue('模型 😀')).toBe('%E6%A8%A1%E5%9E%8B %F0%9F%98%80')
  expect(headerValue('a\r\nset-cookie: b\u0000\u007f')).toBe('a%0D%0Aset-cookie: b%00%7F')
  expect(headerValue('a\ud800b')).toBe('a%EF%BF%BDb')
})

test('no text makes a header throw or split', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string()), (text) => {
      const headers = new Headers({ 'x-model-served': headerValue(text) })
      expect([...headers].length).toBe(1)
      expect(headers.get('x-model-served')).toBe(headerValue(text).trim())
    }),
    { numRuns: 3000 },
  )
})
