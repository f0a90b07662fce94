import { expect, test } from 'bun:test'
import { base64OfFloats, floatsOfBase64 } from './float32.ts'

test('encodes little-endian 32-bit floats', () => {
  // 1.0 is 0x3f800000, -2.0 is 0xc0000000, 0.5 is 0x3f000000
  expect(base64OfFloats([1, -2, 0.5])).toBe(Buffer.from('0000803f000000c00000003f', 'hex').toString('base64'))
})

test('decodes what it encoded', () => {
  for (const vector of [[0.25], [1, -1], [0, 3.5, -7.25]])
    expect(floatsOfBase64(base64OfFloats(vector))).toEqual(vector)
})

test.each(['', 'AAA', 'AAAAAAA=', 'AAAA!AAA', 'not base64'])('rejects %j', (text) => {
  expect(floatsOfBase64(text)).toBeUndefined()
})
