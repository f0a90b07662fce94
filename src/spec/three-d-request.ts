/**
 * A request for a 3D model. No standard exists, so its format is that of videos, with the field names of 3D vendors.
 */
import Type from 'typebox'
import { flag, integer, list, oneOf, text, titled } from './fields.ts'

const media = (what: string) =>
  Type.String({ minLength: 1, description: `${what} An http(s) URL, a data URI or base64.` })

export const THREE_D_FORMATS = ['glb', 'obj', 'fbx', 'usdz', 'stl'] as const
export type ThreeDFormat = (typeof THREE_D_FORMATS)[number]

/** The media types of the formats. FBX has no registered one. */
export const THREE_D_TYPES: Record<ThreeDFormat, string> = {
  glb: 'model/gltf-binary',
  obj: 'model/obj',
  fbx: 'application/vnd.autodesk.fbx',
  usdz: 'model/vnd.usdz+zip',
  stl: 'model/stl',
}

export const ThreeDRequest = titled('ThreeDRequest', {
  model: Type.String({ minLength: 1, description: 'A model whose `supported_endpoint_types` has `3d-generation`.' }),
  prompt: text('What to make. One of `prompt`, `image` and `images` is required.'),
  image: Type.Optional(media('A picture of it.')),
  images: list(
    media('A view of it.'),
    { minItems: 1 },
    'Views: front, left, back, right, where the provider distinguishes them.',
  ),
  format: oneOf(THREE_D_FORMATS, 'As the model allows. Default `glb`.'),
  texture: flag("Whether it has a texture. Default: the model's, else the provider's."),
  pbr: flag("Whether the texture has maps for physically based rendering. Default: the model's, else the provider's."),
  target_polycount: integer(
    { minimum: 1 },
    "Approximate number of polygons. Default: the model's, else the provider's.",
  ),
  negative_prompt: text('What to avoid.'),
  seed: integer({ minimum: 0, maximum: 4_294_967_295 }, "Default: the provider's own."),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Options of the provider, under the name of its kind.',
    }),
  ),
  callback_url: text('Receives a webhook, a signed POST, when the task ends.'),
})
export type ThreeDRequest = Type.Static<typeof ThreeDRequest>

/** The fields that hold media. They are stored separately because they may be large. */
export const THREE_D_MEDIA_FIELDS = ['image', 'images'] as const

/** A request for a model, with defaults. */
export type ThreeDOrder = Omit<ThreeDRequest, 'callback_url'> & { format: ThreeDFormat }
