/** Images with the `openai` package; the same code for both majors. */
import type OpenAI from 'openai'
import { toFile } from 'openai'
import type { FamilyRow, Gateway } from '../family.ts'
import type { Drawing, Drawn, Edit, ImagesClient } from '../types.ts'
import { OPENAI_MAJORS, openaiFamilyFault, openaiOf } from './openai.ts'

const bytesOf = (base64 = '') => new Uint8Array(Buffer.from(base64, 'base64'))

function replyOf({ data = [], usage }: OpenAI.ImagesResponse): Drawn {
  return { images: data.map(({ b64_json }) => bytesOf(b64_json)), tokens: usage?.total_tokens }
}

type Event = OpenAI.ImageGenStreamEvent | OpenAI.ImageEditStreamEvent

async function read(running: AsyncIterable<Event>): Promise<Drawn & { partials: Uint8Array[] }> {
  const reply = { images: [] as Uint8Array[], partials: [] as Uint8Array[], tokens: undefined as number | undefined }
  for await (const event of running) {
    const bytes = bytesOf(event.b64_json)
    if (event.type === 'image_generation.partial_image' || event.type === 'image_edit.partial_image') {
      if (event.partial_image_index !== reply.partials.length) throw new Error('A partial image is out of its order.')
      reply.partials.push(bytes)
    } else {
      reply.images.push(bytes)
      reply.tokens = event.usage.total_tokens
    }
  }
  return reply
}

const png = (bytes: Uint8Array<ArrayBuffer>, name: string) => toFile(bytes, name, { type: 'image/png' })

/** Its types know only the vendor's own sizes. The field accepts any text. */
type Size = '256x256'
const generation = ({ size, ...params }: Drawing) => ({ ...params, ...(size ? { size: size as Size } : {}) })

async function edition({ image, mask, size, ...params }: Edit) {
  return {
    ...params,
    image: await png(image, 'image.png'),
    ...(mask ? { mask: await png(mask, 'mask.png') } : {}),
    ...(size ? { size: size as Size } : {}),
  }
}

function clientOf(Sdk: typeof OpenAI, gateway: Gateway): ImagesClient {
  const { images } = openaiOf(Sdk, gateway)
  return {
    draw: async (params) => replyOf(await images.generate(generation(params))),
    edit: async (params) => replyOf(await images.edit(await edition(params))),
    vary: async ({ image, size, ...params }) =>
      replyOf(await images.createVariation({ ...params, image: await png(image, 'image.png'), size: size as Size })),
    async links(params) {
      const { data = [] } = await images.generate({ ...generation(params), response_format: 'url' })
      return data.map(({ url = '' }) => url)
    },
    stream: async ({ partials, ...params }) =>
      read(await images.generate({ ...generation(params), stream: true, partial_images: partials })),
    streamEdit: async ({ partials, ...params }) =>
      read(await images.edit({ ...(await edition(params)), stream: true, partial_images: partials })),
    fault: (error, status) => openaiFamilyFault(Sdk, error, status),
  }
}

export const openaiImages = OPENAI_MAJORS.map(
  ([name, packageName, Sdk]): FamilyRow<ImagesClient> => ({
    name: `${name}, images`,
    packages: [packageName],
    base: '/v1',
    dialect: 'image-generation',
    connect: (gateway) => clientOf(Sdk, gateway),
  }),
)
