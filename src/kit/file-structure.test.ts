import { describe, expect, it } from 'bun:test'
import { createCanvas } from '@napi-rs/canvas'
import { readableBytes, structureFault } from './file-structure.ts'

const latin1 = (text: string) => Buffer.from(text, 'latin1')
const number = (value: number, little = false) => {
  const bytes = Buffer.alloc(4)
  if (little) bytes.writeUInt32LE(value)
  else bytes.writeUInt32BE(value)
  return bytes
}
const box = (type: string, bytes: number) => Buffer.concat([number(bytes + 8), latin1(type), Buffer.alloc(bytes, 7)])
const wideBox = (type: string, bytes: number) =>
  Buffer.concat([number(1), latin1(type), number(0), number(bytes + 16), Buffer.alloc(bytes, 7)])
const endlessBox = (type: string, bytes: number) => Buffer.concat([number(0), latin1(type), Buffer.alloc(bytes, 7)])
const FTYP = Buffer.concat([number(20), latin1('ftypisom\0\0\0\0isom')])
const QUICKTIME = Buffer.concat([number(20), latin1('ftypqt  \0\0\0\0qt  ')])

const SCENE = '{"asset":{"version":"2.0"}} '
const glb = Buffer.concat([
  latin1('glTF'),
  number(2, true),
  number(20 + SCENE.length, true),
  number(SCENE.length, true),
  latin1(`JSON${SCENE}`),
])
const riff = (type: string) => Buffer.concat([latin1('RIFF'), number(104, true), latin1(type), Buffer.alloc(100)])
const EBML = latin1('\x1aE\xdf\xa3\x87\x42\x82\x84webm')
const webm = Buffer.concat([EBML, latin1('\x18S\x80g\x40\x64'), Buffer.alloc(100)])
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
const zip = latin1(`PK\x03\x04${'a'.repeat(60)}PK\x05\x06${'\0'.repeat(18)}`)
const canvas = createCanvas(40, 30)
canvas.getContext('2d').fillRect(3, 3, 20, 20)

const COMPLETE: [name: string, bytes: Uint8Array][] = [
  ['an MP4 with its index first', Buffer.concat([FTYP, box('moov', 50), box('mdat', 100)])],
  ['an MP4 with its index last', Buffer.concat([FTYP, box('mdat', 100), box('moov', 50)])],
  ['an MP4 with a 64-bit size', Buffer.concat([FTYP, wideBox('mdat', 100), box('moov', 50)])],
  ['an MP4 in fragments', Buffer.concat([FTYP, box('moov', 50), box('moof', 20), box('mdat', 100)])],
  ['a QuickTime file', Buffer.concat([QUICKTIME, box('wide', 0), box('mdat', 100), box('moov', 50)])],
  ['a HEIC image', Buffer.concat([number(20), latin1('ftypheic\0\0\0\0mif1'), box('meta', 40), box('mdat', 100)])],
  ['a WebM file', webm],
  ['a GLB model', glb],
  ['a PNG image', canvas.toBuffer('image/png')],
  ['a JPEG image', canvas.toBuffer('image/jpeg')],
  ['a WebP image', canvas.toBuffer('image/webp')],
  ['a GIF image', gif],
  ['a WAV file', riff('WAVE')],
  ['a ZIP archive', zip],
]

const faultOf = (bytes: Uint8Array) => structureFault(readableBytes(bytes))

describe('structureFault', () => {
  it.each(COMPLETE)('accepts %s and rejects its first half', async (_, bytes) => {
    expect(await faultOf(bytes)).toBeUndefined()
    expect(await faultOf(bytes.subarray(0, bytes.length >> 1))).toBeString()
    expect(await faultOf(bytes.subarray(0, bytes.length - 20))).toBeString()
  })

  it.each(COMPLETE)('throws at no length of %s', async (_, bytes) => {
    for (let length = 0; length <= bytes.length; length++) await faultOf(bytes.subarray(0, length))
  })

  it.each<[string, Uint8Array]>([
    ['bytes after the end of a movie', Buffer.concat([FTYP, box('moov', 50), box('mdat', 100), Buffer.alloc(30)])],
    ['media that extend to the end', Buffer.concat([FTYP, box('moov', 50), endlessBox('mdat', 30)])],
    ['a segment of unknown length', Buffer.concat([EBML, latin1('\x18S\x80g\x01\xff\xff\xff\xff\xff\xff\xff'), gif])],
    ['sound that was streamed', Buffer.concat([latin1('RIFF'), number(0xffffffff), latin1('WAVEfmt ')])],
    ['bytes after the end of a JPEG image', Buffer.concat([canvas.toBuffer('image/jpeg'), Buffer.alloc(500)])],
    ['a type without a check', latin1('OggS\0\x02')],
    ['an unknown type', latin1('v 1 0 0\nv 0 1 0\n')],
    ['nothing', Buffer.alloc(0)],
  ])('accepts %s', async (_, bytes) => {
    expect(await faultOf(bytes)).toBeUndefined()
  })

  it.each<[string, Uint8Array, string]>([
    ['a movie without its index', Buffer.concat([FTYP, box('mdat', 100)]), 'it has no "moov" box'],
    ['a movie without media', Buffer.concat([FTYP, box('moov', 100)]), 'it has no "mdat" box'],
    ['a movie of one box', FTYP, 'it has no "moov" box'],
    ['a box that is too small', Buffer.concat([FTYP, number(3), latin1('moov')]), 'it has a box of an impossible size'],
    [
      'a JPEG image that ends after its preview',
      Buffer.concat([latin1('\xff\xd8\xff\xe1\x00\x06\xff\xd9ab'), latin1('\xff\xda\0\x02abc')]),
      'it has no end mark',
    ],
  ])('rejects %s', async (_, bytes, fault) => {
    expect(await faultOf(bytes)).toBe(fault)
  })

  it('reads little of a large file', async () => {
    const head = Buffer.concat([FTYP, box('moov', 50), number(1), latin1('mdat'), number(1), number(0)])
    const size = 20 + 58 + 2 ** 32
    let read = 0
    const file = {
      size,
      async read(at: number, length: number) {
        const bytes = head.subarray(at, at + Math.min(length, size - at))
        read += bytes.length
        return bytes
      },
    }
    expect(await structureFault(file)).toBeUndefined()
    expect(await structureFault({ ...file, size: size - 1 })).toBe('it ends in the middle of its "mdat" box')
    expect(read).toBeLessThan(500)
  })
})
