import { describe, expect, test } from 'bun:test'
import { describeImage, headerOf } from './image-header.ts'

const uri = (type: string, bytes: number[]) => `data:${type};base64,${Buffer.from(bytes).toString('base64')}`
const ascii = (text: string) => [...text].map((character) => character.charCodeAt(0))
const zeros = (count: number) => Array<number>(count).fill(0)

const png = [0x89, ...ascii('PNG\r\n\x1a\n'), 0, 0, 0, 13, ...ascii('IHDR'), 0, 0, 2, 128, 0, 0, 1, 224]
const short = (value: number) => [value & 255, value >> 8]
/** With a palette of two colours, and a comment before its only frame. */
const gifOf = (screen: [number, number], frame: [number, number, number, number]) => [
  ...[...ascii('GIF89a'), ...screen.flatMap(short), 0x80, 0, 0, ...zeros(6)],
  ...[0x21, 0xfe, 2, 0x2c, 0x2c, 1, 0x2c, 0],
  ...[0x2c, ...frame.flatMap(short), 0],
]
const gif = gifOf([320, 200], [0, 0, 320, 200])
const riff = (kind: string, rest: number[]) => [
  ...ascii('RIFF'),
  ...zeros(4),
  ...ascii('WEBP'),
  ...ascii(kind),
  ...rest,
]
const jpeg = (preview: number) => [
  ...[0xff, 0xd8, 0xff, 0xe1, (preview + 2) >> 8, (preview + 2) & 255, ...zeros(preview)],
  ...[0xff, 0xc4, 0, 4, 0, 0],
  ...[0xff, 0xc2, 0, 17, 8, 3, 32, 4, 176, 3],
]

describe('an image', () => {
  test.each([
    ['PNG', '640 x 480', png],
    ['GIF', '320 x 200', gif],
    ['JPEG', '1200 x 800', jpeg(10)],
    ['JPEG', '1200 x 800', jpeg(60_000)],
    ['WebP', '300 x 150', riff('VP8 ', [...zeros(10), 44, 1, 150, 0])],
    ['WebP', '17 x 9', riff('VP8L', [0, 0, 0, 0, 0x2f, 16, 0, 2, 0, ...zeros(8)])],
    ['WebP', '1001 x 501', riff('VP8X', [...zeros(8), 232, 3, 0, 244, 1, 0])],
  ])('in %s has the size %s by its header', (type, size, bytes) => {
    expect(describeImage(uri('image/x', bytes))).toBe(`a ${type} image of ${size} pixels`)
  })

  test('that is cut at any byte is described without a size, without an error', () => {
    for (const bytes of [png, gif, jpeg(3), riff('VP8X', zeros(14)), riff('VP8L', zeros(14))]) {
      for (let length = 0; length <= bytes.length; length++) {
        expect(describeImage(uri('image/png', bytes.slice(0, length)))).toMatch(/^an? /)
      }
    }
    expect(describeImage(uri('image/png', png.slice(0, -1)))).toContain('cannot read')
  })

  test('whose frame exceeds its screen has the size of both', () => {
    expect(headerOf(new Uint8Array(gifOf([1, 1], [100, 200, 9000, 30_000])))).toMatchObject({
      width: 9100,
      height: 30_200,
    })
    expect(headerOf(new Uint8Array(gifOf([9000, 9], [0, 0, 1, 10])))).toMatchObject({ width: 9000, height: 10 })
  })

  test('has the size at the marker that decoders read, not at a similar one', () => {
    const fake = [0xff, 0xc0, 0, 17, 8, 0, 1, 0, 1, 3]
    const real = [0xff, 0xc0, 0, 17, 8, 3, 32, 4, 176, 3]
    const large = { width: 1200, height: 800 }
    expect(headerOf(new Uint8Array([0xff, 0xd8, 0xff, 0xff, ...real, ...fake]))).toMatchObject(large)
    for (const mark of [0x00, 0x01, 0xd0, 0xd9, 0xda]) {
      expect(headerOf(new Uint8Array([0xff, 0xd8, 0xff, mark, 0, 12, ...fake, ...real]))).toBeUndefined()
    }
  })

  test('at a URL is not fetched', () => {
    expect(describeImage('https://example.com/cat.png')).toContain('does not fetch')
  })

  test.each([
    'data:image/svg+xml,<svg/>',
    'data:image/svg+xml;charset=utf-8;base64,PHN2Zy8+',
    'data:;base64,!!!!',
    'data:',
  ])('%j is described as far as possible', (url) => {
    expect(describeImage(url)).toMatch(/^an image /)
  })
})
