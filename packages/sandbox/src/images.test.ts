import { afterAll, describe, expect, test } from 'bun:test'
import { crc32, deflateSync } from 'node:zlib'
import { createCanvas, loadImage } from '@napi-rs/canvas'
import { systemClock } from '../../../src/kit/clock.ts'
import { simulatedErrors } from '../../../src/providers/sandbox.ts'
import type { ImageOrder } from '../../../src/spec/image-request.ts'
import { createSandboxImages } from './images.ts'

const images = createSandboxImages({
  clock: systemClock,
  errors: simulatedErrors({ id: 'sandbox', clock: systemClock }),
  media: { read: async (value) => ({ bytes: Buffer.from(value, 'base64'), content_type: 'image/png' }) },
})
const { signal } = new AbortController()
afterAll(() => images.close())
const edit = (given: Partial<ImageOrder>) => {
  const request: ImageOrder = { model: 'image', operation: 'edit', prompt: 'A kite', n: 1, size: '256x256', ...given }
  return images.generate({ model: 'image', request, request_id: 'one' }, signal)
}

const MAX_SIDE = 6_000

/** A black image with one bit a pixel: a few kilobytes, whatever its size. */
function blackPng(width: number, height: number): string {
  const chunk = (name: string, data: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(name), data])
    const [before, after] = [Buffer.alloc(4), Buffer.alloc(4)]
    before.writeUInt32BE(data.length)
    after.writeUInt32BE(crc32(body))
    return [before, body, after]
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header[8] = 1
  // Very large images have only a header: no code may read further.
  const rows = deflateSync(Buffer.alloc(Math.min(6_000_000, (1 + Math.ceil(width / 8)) * height)))
  const parts = [...chunk('IHDR', header), ...chunk('IDAT', rows), ...chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...parts]).toString('base64')
}

/** A GIF with a screen of one pixel and a larger frame. */
const wideGif = (side: number) => {
  const bytes = Buffer.from('47494638396101000100800000000000ffffff2c00000000000000000002024401003b', 'hex')
  bytes.writeUInt16LE(side, 24)
  bytes.writeUInt16LE(side, 26)
  return bytes.toString('base64')
}

const canvas = () => createCanvas(64, 64)

/** A small WebP whose header shows 16 x 16 pixels, before a frame of another size. */
function lyingWebp(side: number): Uint8Array {
  const real = createCanvas(side, side).encodeSync('webp', 100)
  const at = Math.max(real.indexOf('VP8L'), real.lastIndexOf('VP8 '))
  const head = Buffer.alloc(30)
  head.write('RIFF', 0, 'latin1')
  head.write('WEBPVP8X', 8, 'latin1')
  head.writeUInt32LE(10, 16)
  head.writeUIntLE(15, 24, 3)
  head.writeUIntLE(15, 27, 3)
  const frame = real.subarray(at, at + 8 + real.readUInt32LE(at + 4))
  head.writeUInt32LE(22 + frame.length, 4)
  return Buffer.concat([head, frame])
}

async function square(colour: string): Promise<string> {
  const canvas = createCanvas(64, 64)
  const context = canvas.getContext('2d')
  context.fillStyle = colour
  context.fillRect(0, 0, 64, 64)
  return canvas.encodeSync('png').toString('base64')
}

describe('an edit in the sandbox', () => {
  test('accepts as many pixels as the limit allows', async () => {
    const edited = await edit({ images: [blackPng(MAX_SIDE, MAX_SIDE)] })
    expect(edited.images).toHaveLength(1)
  })

  for (const [what, given, param] of [
    ['one row more', { images: [blackPng(MAX_SIDE, MAX_SIDE + 1)] }, 'image'],
    ['so many that no machine could hold them', { images: [blackPng(60_000, 60_000)] }, 'image'],
    ['a frame that is larger than its screen', { images: [wideGif(60_000)] }, 'image'],
    ['too many together', { images: [blackPng(MAX_SIDE, MAX_SIDE), blackPng(1, 1)] }, 'image[1]'],
    ['too many with the mask', { images: [blackPng(MAX_SIDE, MAX_SIDE)], mask: blackPng(1, 1) }, 'mask'],
  ] as const) {
    test(`rejects ${what} before anything is decoded`, async () => {
      await expect(edit({ ...given, images: [...given.images] })).rejects.toMatchObject({
        message: expect.stringContaining('is too large'),
        detail: { param, accepted: 'no' },
      })
    })
  }

  test('rejects a WebP with a frame that is larger than its canvas before anything is decoded', async () => {
    const webp = Buffer.from(await lyingWebp(6_001)).toString('base64')
    await expect(edit({ images: [webp] })).rejects.toMatchObject({ message: expect.stringContaining('is too large') })
  })

  test('rejects a file whose size cannot be read', async () => {
    const gif = Buffer.from('GIF89a').toString('base64')
    await expect(edit({ images: [await square('#ff0000'), gif] })).rejects.toMatchObject({
      message: expect.stringContaining('could not read "image[1]"'),
      detail: { param: 'image[1]', accepted: 'no' },
    })
  })

  test.each([
    ['a PNG that ends early', () => canvas().encodeSync('png').subarray(0, 60)],
    ['a JPEG that ends early', () => canvas().encodeSync('jpeg').subarray(0, -40)],
    ['a WebP that ends early', () => canvas().encodeSync('webp').subarray(0, 40)],
    ['a WebP with a frame of another size than its canvas', () => lyingWebp(1_000)],
  ])('rejects %s, which crashes the decoder, and continues with the next request', async (_, file) => {
    const broken = Buffer.from(file()).toString('base64')
    await expect(edit({ images: [broken] })).rejects.toMatchObject({
      code: 'upstream_invalid_request',
      detail: { param: 'image' },
    })
    expect((await edit({ images: [await square('#ff0000')] })).images).toHaveLength(1)
  })

  test('shows several images side by side', async () => {
    const edited = await edit({ images: [await square('#ff0000'), await square('#00ff00'), await square('#0000ff')] })
    const [image] = edited.images
    const drawn = await loadImage(Buffer.from(image && 'base64' in image ? image.base64 : '', 'base64'))
    const canvas = createCanvas(256, 256)
    canvas.getContext('2d').drawImage(drawn, 0, 0)
    const colours = [10, 128, 245].map((x) => [...canvas.getContext('2d').getImageData(x, 40, 1, 1).data])
    expect(colours).toEqual([
      [255, 0, 0, 255],
      [0, 255, 0, 255],
      [0, 0, 255, 255],
    ])
  })
})
