/** The matrix of images: its clients and its calls. */
import { expect } from 'bun:test'
import { createCanvas, loadImage } from '@napi-rs/canvas'
import { sniff } from '../../../src/kit/sniff.ts'
import { aiImages } from './clients/ai-images.ts'
import { openaiImages } from './clients/openai-images.ts'
import type { Family, FamilyCell, FamilyColumn, FamilyTarget } from './family.ts'
import { IMAGE_KINDS, type Ordered, orderedIn, TOTAL } from './image-kinds.ts'
import { expectFault, refusalColumns, vendorColumns } from './refusals.ts'
import type { Drawn, ImagesClient } from './types.ts'

type Cell = FamilyCell<ImagesClient>

const SIZE = '256x256'
const RED = [255, 0, 0, 255]

/** The image to edit, and a mask that opens its right half. */
async function pictures() {
  const image = createCanvas(64, 64)
  image.getContext('2d').fillStyle = 'red'
  image.getContext('2d').fillRect(0, 0, 64, 64)
  const mask = createCanvas(64, 64)
  mask.getContext('2d').fillRect(0, 0, 32, 64)
  const [one, other] = await Promise.all([image.encode('png'), mask.encode('png')])
  return { image: new Uint8Array(one), mask: new Uint8Array(other) }
}

const sizeOf = async (bytes: Uint8Array) => {
  const { width, height } = await loadImage(Buffer.from(bytes))
  return `${width}x${height}`
}

/** The colour at a point, given as fractions of the width and height. */
async function colourAt(bytes: Uint8Array, x: number, y: number): Promise<number[]> {
  const image = await loadImage(Buffer.from(bytes))
  const canvas = createCanvas(image.width, image.height)
  const context = canvas.getContext('2d')
  context.drawImage(image, 0, 0)
  return [...context.getImageData(Math.floor(x * image.width), Math.floor(y * image.height), 1, 1).data]
}

/** The size as this provider receives it. */
const sizeAt = ({ unsupported }: FamilyTarget) => (unsupported.includes('sizes') ? '1:1' : SIZE)

/**
 * For a provider, the image that it generated for exactly this request; for the sandbox, a real image of the
 * requested size.
 */
async function expectImages(images: Uint8Array[] | undefined, { target }: Cell, ordered: Partial<Ordered>) {
  expect(images?.length).toBeGreaterThan(0)
  for (const bytes of images ?? []) {
    expect(sniff(bytes)).toBe('image/png')
    if (target.isVendor) expect(orderedIn(bytes)).toMatchObject({ size: sizeAt(target), ...ordered })
    else expect(await sizeOf(bytes)).toBe(SIZE)
  }
}

const kiteParams = ({ target }: Cell) => ({ model: target.model, prompt: 'A kite', size: SIZE }) as const

type Streamed = Drawn & { partials: Uint8Array[] }

async function expectStream(reply: Streamed | undefined, cell: Cell, ordered: Partial<Ordered>) {
  await expectImages(reply?.images, cell, ordered)
  const { target } = cell
  // A provider without partial images returns only the final one.
  expect(reply?.partials).toHaveLength(target.unsupported.includes('partials') ? 0 : 2)
  if (reply?.partials.length) await expectImages(reply.partials, cell, ordered)
  if (!target.unsupported.includes('usage')) expect(reply?.tokens).toBeGreaterThan(0)
}

const PLAIN: Omit<FamilyColumn<ImagesClient>, 'group'>[] = [
  {
    name: 'one image',
    check: async (cell) =>
      expectImages((await cell.client.draw(kiteParams(cell))).images, cell, {
        operation: 'generate',
        prompt: 'A kite',
      }),
  },
  {
    name: 'several images',
    async check(cell) {
      const { images } = await cell.client.draw({ ...kiteParams(cell), n: 2 })
      expect(images).toHaveLength(2)
      await expectImages(images, cell, { operation: 'generate' })
    },
  },
  {
    name: 'URL',
    has: ({ links }) => links !== undefined,
    async check(cell) {
      const links = (await cell.client.links?.(kiteParams(cell))) ?? []
      expect(links).toHaveLength(1)
      const images = await Promise.all(links.map(async (url) => (await fetch(url)).bytes()))
      await expectImages(images, cell, { operation: 'generate' })
    },
  },
  {
    name: 'usage',
    async check(cell) {
      const { tokens } = await cell.client.draw(kiteParams(cell))
      const { name, unsupported } = cell.target
      if (unsupported.includes('usage')) expect(tokens).toBeUndefined()
      else if (name === 'chatcompat' || name === 'google') expect(tokens).toBe(TOTAL[name])
      else expect(tokens).toBeGreaterThan(0)
    },
  },
]

const CHANGES: Omit<FamilyColumn<ImagesClient>, 'group'>[] = [
  {
    name: 'edit',
    async check(cell) {
      const { image } = await pictures()
      const { images } = await cell.client.edit({ ...kiteParams(cell), image })
      await expectImages(images, cell, { operation: 'edit', prompt: 'A kite', images: [image.length] })
    },
  },
  {
    name: 'edit with a mask',
    has: ({ has_no_masks }) => !has_no_masks,
    async check(cell) {
      const { image, mask } = await pictures()
      const call = cell.client.edit({ ...kiteParams(cell), image, mask })
      if (cell.target.unsupported.includes('mask')) {
        return expectFault(cell.client, call, { status: 400, pattern: /mask/, param: 'mask' })
      }
      const { images } = await call
      await expectImages(images, cell, { operation: 'edit', images: [image.length], mask: mask.length })
      if (cell.target.isVendor) return
      const [bytes = new Uint8Array()] = images
      expect(await colourAt(bytes, 0.02, 0.5)).toEqual(RED)
      expect(await colourAt(bytes, 0.98, 0.5)).not.toEqual(RED)
    },
  },
  {
    name: 'variation',
    has: ({ vary }) => vary !== undefined,
    async check(cell) {
      const { image } = await pictures()
      const call = cell.client.vary?.({ model: cell.target.model, image, size: SIZE }) ?? Promise.reject(new Error())
      if (cell.target.unsupported.includes('variation')) {
        return expectFault(cell.client, call, { status: 400, pattern: /variation/, param: 'model' })
      }
      await expectImages((await call).images, cell, { operation: 'variation', images: [image.length] })
    },
  },
]

const STREAMS: Omit<FamilyColumn<ImagesClient>, 'group'>[] = [
  {
    name: 'stream with partial images',
    has: ({ stream }) => stream !== undefined,
    check: async (cell) =>
      expectStream(await cell.client.stream?.({ ...kiteParams(cell), partials: 2 }), cell, { operation: 'generate' }),
  },
  {
    name: 'edit stream with partial images',
    has: ({ streamEdit }) => streamEdit !== undefined,
    async check(cell) {
      const { image } = await pictures()
      const reply = await cell.client.streamEdit?.({ ...kiteParams(cell), image, partials: 2 })
      await expectStream(reply, cell, { operation: 'edit', images: [image.length] })
    },
  },
]

const GROUP = 'Images'
const REFUSED = 'Image errors'
const send = (client: ImagesClient, model: string, directive = '') =>
  client.draw({ model, prompt: `A kite\n${directive}`, size: SIZE })

export const IMAGES: Family<ImagesClient> = {
  family: 'image-generation',
  sandbox: 'sandbox/image',
  kinds: IMAGE_KINDS,
  rows: [...openaiImages, ...aiImages],
  columns: [
    ...[...PLAIN, ...CHANGES, ...STREAMS].map((column) => ({ ...column, group: GROUP })),
    ...refusalColumns<ImagesClient>({
      group: REFUSED,
      send,
      wrong: {
        send: ({ client, target }) => client.draw({ model: target.model, prompt: 'A kite', size: '0x0' }),
        pattern: /size/,
        param: 'size',
      },
    }),
    ...vendorColumns({ group: REFUSED, send }),
  ],
}
