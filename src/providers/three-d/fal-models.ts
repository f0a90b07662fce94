/** The 3D models behind fal, by company: each has its own names for the same fields, one row each. */
import { matchesGlob } from '../../kit/glob.ts'
import type { JsonRecord } from '../../kit/json.ts'
import type { ThreeDOrder } from '../../spec/three-d-request.ts'
import { toMediaUrl } from '../orders/order-fields.ts'
import type { SemanticField } from './three-d-outputs.ts'

type FalModels = {
  /** A glob over the model's name at fal; the first matching row counts. */
  models: string
  /** The supported fields; any other that changes the result is rejected. */
  fields: readonly SemanticField[]
  /** The member for the output format; absent: the format cannot be chosen. */
  format?: string
  encode(order: ThreeDOrder): JsonRecord
}

const url = (value: string | undefined) => (value === undefined ? undefined : toMediaUrl(value))
const urls = (values: string[] | undefined) => values?.map((value) => toMediaUrl(value))

/** Front, left, back and right, in this order. */
const views = ([front, left, back, right]: string[] = [], names: readonly [string, string, string, string]) =>
  Object.fromEntries([front, left, back, right].map((one, index) => [names[index] ?? '', url(one)]))

const HUNYUAN_VIEWS = ['input_image_url', 'left_image_url', 'back_image_url', 'right_image_url'] as const
const TRIPO_VIEWS = ['front_image_url', 'left_image_url', 'back_image_url', 'right_image_url'] as const

/** `textures`: the value for a model with a texture, and for one without. PBR maps imply a texture: without one they are turned off. */
const tripo = (models: string, textures: { textured: unknown; bare: unknown }): FalModels => ({
  models,
  fields: ['prompt', 'negative_prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount'],
  encode: ({ prompt, negative_prompt, image, images, texture, pbr, target_polycount, seed }) => ({
    prompt,
    negative_prompt,
    image_url: url(image),
    ...views(images, TRIPO_VIEWS),
    face_limit: target_polycount,
    model_seed: seed,
    texture: texture === undefined ? undefined : texture ? textures.textured : textures.bare,
    pbr: texture === false ? false : pbr,
  }),
})

const ROWS: FalModels[] = [
  {
    models: '*trellis-2*',
    fields: ['image', 'target_polycount'],
    encode: ({ image, target_polycount, seed }) => ({
      image_url: url(image),
      decimation_target: target_polycount,
      seed,
    }),
  },
  {
    models: '*trellis*',
    fields: ['image', 'images'],
    encode: ({ image, images, seed }) => ({ image_url: url(image), image_urls: urls(images), seed }),
  },
  {
    models: '*hunyuan-3d/*/rapid/*',
    fields: ['prompt', 'image', 'texture', 'pbr'],
    encode: ({ prompt, image, texture, pbr }) => ({
      prompt,
      input_image_url: url(image),
      enable_pbr: pbr,
      enable_geometry: texture === false ? true : undefined,
    }),
  },
  ...['*hunyuan-3d/*', '*hunyuan3d-v3*'].map(
    (models): FalModels => ({
      models,
      fields: ['prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount'],
      encode: ({ prompt, image, images, texture, pbr, target_polycount }) => ({
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
    fields: ['image', 'texture'],
    encode: ({ image, texture, seed }) => ({ input_image_url: url(image), textured_mesh: texture, seed }),
  },
  {
    models: '*meshy/*text-to-3d*',
    fields: ['prompt', 'texture', 'pbr', 'target_polycount'],
    encode: ({ prompt, texture, pbr, target_polycount, seed }) => ({
      prompt,
      mode: texture === false ? 'preview' : undefined,
      enable_pbr: pbr,
      target_polycount,
      seed,
    }),
  },
  {
    models: '*meshy/*',
    fields: ['image', 'images', 'texture', 'pbr', 'target_polycount'],
    encode: ({ image, images, texture, pbr, target_polycount }) => ({
      image_url: url(image),
      image_urls: urls(images),
      should_texture: texture,
      enable_pbr: pbr,
      target_polycount,
    }),
  },
  // Here the texture is a string.
  tripo('*tripo3d/tripo/v2.5/*', { textured: 'standard', bare: 'no' }),
  tripo('*tripo3d/*', { textured: true, bare: false }),
  {
    models: '*rodin*',
    fields: ['prompt', 'image', 'images', 'pbr'],
    format: 'geometry_file_format',
    encode: ({ prompt, image, images, pbr, seed }) => ({
      prompt,
      input_image_urls: urls(images ?? (image === undefined ? undefined : [image])),
      material: pbr === undefined ? undefined : pbr ? 'PBR' : 'Shaded',
      seed,
    }),
  },
  {
    models: '*',
    fields: ['prompt', 'image', 'images'],
    encode: ({ prompt, image, images, seed }) => ({
      prompt,
      image_url: url(image),
      image_urls: urls(images),
      seed,
    }),
  },
]

/** The last row matches every model. */
export const falModelsFor = (model: string): FalModels =>
  ROWS.find(({ models }) => matchesGlob(models, model)) as FalModels
