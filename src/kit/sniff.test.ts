import { describe, expect, test } from 'bun:test'
import { SNIFF_BYTES, sniff } from './sniff.ts'

const bytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0))
const box = (brand: string, ...compatible: string[]) =>
  `\0\0\0${String.fromCharCode(16 + compatible.length * 4)}ftyp${brand}\0\0\0\0${compatible.join('')}`

const KINDS: [head: string, contentType: string | undefined][] = [
  ['\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'image/png'],
  ['\xff\xd8\xff\xe0\0\x10JFIF', 'image/jpeg'],
  ['GIF89a\x01\0\x01\0', 'image/gif'],
  ['GIF87a\x01\0\x01\0', 'image/gif'],
  ['RIFF\x24\0\0\0WEBPVP8 ', 'image/webp'],
  ['RIFF\x24\0\0\0WAVEfmt ', 'audio/wav'],
  ['glTF\x02\0\0\0', 'model/gltf-binary'],
  [box('isom', 'isom', 'avc1'), 'video/mp4'],
  [box('mp42', 'mp42', 'isom'), 'video/mp4'],
  [box('qt  ', 'qt  '), 'video/quicktime'],
  [box('avif', 'mif1'), 'image/avif'],
  [box('avis', 'msf1'), 'image/avif'],
  [box('mif1', 'mif1', 'avif'), 'image/avif'],
  [box('heic', 'mif1'), 'image/heic'],
  [box('mif1', 'mif1', 'heic'), 'image/heic'],
  [box('M4A ', 'isom'), 'audio/mp4'],
  ['\0\0\0\x08wide\0\0\x10\0mdat', 'video/quicktime'],
  ['\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webmB\x87\x81\x04', 'video/webm'],
  ['\x1aE\xdf\xa3\xa3B\x86\x81\x01B\x82\x88matroskaB\x87\x81\x04', 'video/x-matroska'],
  ['\x1aE\xdf\xa3\x9fB\x86\x81\x01', undefined],
  ['OggS\0\x02', 'audio/ogg'],
  ['fLaC\0\0', 'audio/flac'],
  ['ID3\x04\0', 'audio/mpeg'],
  ['\xff\xfb\x90\x64', 'audio/mpeg'],
  ['\xff\xf1\x50\x80', undefined],
  ['<!doctype html>', undefined],
  ['{"error":1}', undefined],
  ['', undefined],
]

describe('the type of a file', () => {
  for (const [head, contentType] of KINDS) {
    test(`that starts with ${JSON.stringify(head.slice(0, 20))} is ${contentType ?? 'unknown'}`, () => {
      expect(sniff(bytes(head))).toBe(contentType)
      expect(sniff(bytes(head.padEnd(5000, '\0')).subarray(0, SNIFF_BYTES))).toBe(contentType)
    })
  }

  test('is detected in a view of a larger buffer', () => {
    const whole = bytes(`xxxxx${box('mif1', 'mif1', 'avif')}`)
    expect(sniff(whole.subarray(5))).toBe('image/avif')
  })

  test('is unknown with too few bytes', () => {
    const head = bytes(box('mif1', 'mif1', 'avif'))
    for (let length = 0; length < 12; length++) expect(sniff(head.subarray(0, length))).toBeUndefined()
  })
})
