/** The makers of 3D models behind fal, each with its own names for the same fields: a row a maker. */
import { matchesGlob } from '../../kit/glob.ts'
import type { JsonRecord } from '../../kit/json.ts'
import type { ThreeDOrder } from '../../spec/three-d-request.ts'
import { toMediaUrl } from '../orders/order-fields.ts'
import type { SemanticField } from './three-d-outputs.ts'

type FalMaker = {
  /** Of the model's name at fal; the first row that fits counts. */
  models: string
  /** Which fields it can honour; any other that changes the meaning is refused. */
  takes: readonly SemanticField[]
  /** Whether it makes what format it is asked for; otherwise it makes what it makes. */
  format?: string
  write(order: ThreeDOrder): JsonRecord
}

const address = (value: string | undefined) => (value === undefined ? undefined : toMediaUrl(value))
const addresses = (values: string[] | undefined) => values?.map((value) => toMediaUrl(value))

/** From the front, the left, the back and the right, in this order. */
const views = ([front, left, back, right]: string[] = [], names: readonly [string, string, string, string]) =>
  Object.fromEntries([front, left, back, right].map((one, index) => [names[index] ?? '', address(one)]))

const HUNYUAN_VIEWS = ['input_image_url', 'left_image_url', 'back_image_url', 'right_image_url'] as const
const TRIPO_VIEWS = ['front_image_url', 'left_image_url', 'back_image_url', 'right_image_url'] as const

const MAKERS: FalMaker[] = [
  {
    models: '*trellis-2*',
    takes: ['image', 'target_polycount'],
    write: ({ image, target_polycount, seed }) => ({
      image_url: address(image),
      decimation_target: target_polycount,
      seed,
    }),
  },
  {
    models: '*trellis*',
    takes: ['image', 'images'],
    write: ({ image, images, seed }) => ({ image_url: address(image), image_urls: addresses(images), seed }),
  },
  {
    models: '*hunyuan-3d/*/rapid/*',
    takes: ['prompt', 'image', 'texture', 'pbr'],
    write: ({ prompt, image, texture, pbr }) => ({
      prompt,
      input_image_url: address(image),
      enable_pbr: pbr,
      enable_geometry: texture === false ? true : undefined,
    }),
  },
  ...['*hunyuan-3d/*', '*hunyuan3d-v3*'].map(
    (models): FalMaker => ({
      models,
      takes: ['prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount'],
      write: ({ prompt, image, images, texture, pbr, target_polycount }) => ({
        prompt,
        ...views(images ?? (image === undefined ? [] : [image]), HUNYUAN_VIEWS),
        enable_pbr: pbr,
        face_count: target_polycount,
        generate_type: texture === false ? 'Geometry' : undefined,
      }),
    }),
  ),
  {
    models: '*hunyuan3d*',
    takes: ['image', 'texture'],
    write: ({ image, texture, seed }) => ({ input_image_url: address(image), textured_mesh: texture, seed }),
  },
  {
    models: '*meshy/*text-to-3d*',
    takes: ['prompt', 'texture', 'pbr', 'target_polycount'],
    write: ({ prompt, texture, pbr, target_polycount, seed }) => ({
      prompt,
      mode: texture === false ? 'preview' : undefined,
      enable_pbr: pbr,
      target_polycount,
      seed,
    }),
  },
  {
    models: '*meshy/*',
    takes: ['image', 'images', 'texture', 'pbr', 'target_polycount'],
    write: ({ image, images, texture, pbr, target_polycount }) => ({
      image_url: address(image),
      image_urls: addresses(images),
      should_texture: texture,
      enable_pbr: pbr,
      target_polycount,
    }),
  },
  {
    // Of this one the texture is a word.
    models: '*tripo3d/tripo/v2.5/*',
    takes: ['prompt', 'negative_prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount'],
    write: ({ texture, ...order }) => ({
      ...tripoOf(order),
      texture: texture === undefined ? undefined : texture ? 'standard' : 'no',
      pbr: texture === false ? false : order.pbr,
    }),
  },
  {
    models: '*tripo3d/*',
    takes: ['prompt', 'negative_prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount'],
    write: ({ texture, ...order }) => ({
      ...tripoOf(order),
      texture,
      // Maps bring a texture along: who wants no texture wants none of them.
      pbr: texture === false ? false : order.pbr,
    }),
  },
  {
    models: '*rodin*',
    takes: ['prompt', 'image', 'images', 'pbr'],
    format: 'geometry_file_format',
    write: ({ prompt, image, images, pbr, seed }) => ({
      prompt,
      input_image_urls: addresses(images ?? (image === undefined ? undefined : [image])),
      material: pbr === undefined ? undefined : pbr ? 'PBR' : 'Shaded',
      seed,
    }),
  },
  {
    models: '*',
    takes: ['prompt', 'image', 'images'],
    write: ({ prompt, image, images, seed }) => ({
      prompt,
      image_url: address(image),
      image_urls: addresses(images),
      seed,
    }),
  },
]

const tripoOf = ({ prompt, negative_prompt, image, images, target_polycount, seed }: ThreeDOrder): JsonRecord => ({
  prompt,
  negative_prompt,
  image_url: address(image),
  ...views(images, TRIPO_VIEWS),
  face_limit: target_polycount,
  model_seed: seed,
})

/** The last row fits every model. */
export const makerOf = (model: string): FalMaker => MAKERS.find(({ models }) => matchesGlob(models, model)) as FalMaker
