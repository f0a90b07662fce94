/** The limits of one 3D model, as catalogue data: formats, textures, polygons, images. */
import { rangeText } from '../kit/diagnose.ts'
import type { ThreeDFormat, ThreeDOrder, ThreeDRequest } from '../spec/three-d-request.ts'
import type { CatalogueModel } from './catalogue.ts'
import { checkMedium } from './medium.ts'
import { checkPrompt, missing, refuse, unsupported } from './model-errors.ts'

const MOST_IMAGES = 16

/**
 * The request fitted to this model, defaults filled in. Throws for a value that the model does not accept, naming the
 * field and what it may be; nothing is rounded.
 */
export function applyThreeDLimits(model: CatalogueModel, request: ThreeDRequest): ThreeDOrder {
  const { callback_url: _, images = [], prompt, ...rest } = request
  checkSource(model, request)
  checkImages(model, request)
  checkPrompt(model.id, model.three_d, 'prompt', prompt)
  checkPrompt(model.id, model.three_d, 'negative_prompt', request.negative_prompt)
  if (request.negative_prompt && model.three_d.negative_prompt === false) throw unsupported(model, 'negative_prompt')
  if (request.seed !== undefined && model.three_d.seed === false) throw unsupported(model, 'seed')
  const order: ThreeDOrder = { ...rest, model: model.id, format: formatOf(model, request) }
  if (prompt !== undefined && prompt.trim() !== '') order.prompt = prompt
  if (images.length > 0) order.images = images
  for (const field of ['texture', 'pbr'] as const) {
    const value = switchOf(model, request, field)
    if (value !== undefined) order[field] = value
  }
  checkTexture(request, order)
  checkStl(request, order)
  const polycount = polycountOf(model, request)
  if (polycount !== undefined) order.target_polycount = polycount
  return order
}

/** The input: a text, one image, or images of several sides. */
function checkSource(model: CatalogueModel, { prompt = '', image, images = [] }: ThreeDRequest): void {
  const { prompt: promptRule = 'optional', image: imageRule = 'optional', images: most = MOST_IMAGES } = model.three_d
  const has_prompt = prompt.trim() !== ''
  if (has_prompt && promptRule === 'no') throw unsupported(model, 'prompt')
  if (!has_prompt && promptRule === 'required') throw missing(model, 'prompt')
  if (image !== undefined && imageRule === 'no') throw unsupported(model, 'image')
  if (images.length > 0 && most === 0) throw unsupported(model, 'images')
  if (image !== undefined && images.length > 0) {
    throw refuse('invalid_value', 'images', 'Send "image", or "images" with all of them, not both.')
  }
  if (image === undefined && images.length === 0 && imageRule === 'required') throw missing(model, 'image')
  if (has_prompt || image !== undefined || images.length > 0) return
  const fields = [promptRule !== 'no' && '"prompt"', imageRule !== 'no' && '"image"', most > 0 && '"images"']
  const named = fields.filter((field) => field !== false)
  const param = promptRule === 'no' ? 'image' : 'prompt'
  const which = named.length === 1 ? `${named[0]} is required` : `One of ${named.join(', ')} is required`
  throw refuse('missing_required_parameter', param, `${which} by the model "${model.id}".`)
}

function checkImages({ id, three_d }: CatalogueModel, { image, images = [] }: ThreeDRequest): void {
  const { images: most = MOST_IMAGES } = three_d
  if (image !== undefined) checkMedium('image', image)
  if (images.length > most) {
    const message = `"images" may have at most ${most} items for the model "${id}", not ${images.length}.`
    throw refuse('invalid_value', 'images', message)
  }
  for (const [index, one] of images.entries()) checkMedium(`images[${index}]`, one)
}

function formatOf({ id, three_d }: CatalogueModel, { format }: ThreeDRequest): ThreeDFormat {
  const { values = ['glb'], default: fallback } = three_d.format ?? {}
  const [first = 'glb'] = values
  if (format === undefined) return fallback ?? (values.includes('glb') ? 'glb' : first)
  if (values.includes(format)) return format
  const allowed = values.length === 1 ? `"${first}"` : `one of ${values.map((one) => `"${one}"`).join(', ')}`
  throw refuse('invalid_value', 'format', `"format" must be ${allowed} for the model "${id}", not "${format}".`)
}

/** Absent without a default: the provider decides. */
function switchOf(model: CatalogueModel, request: ThreeDRequest, field: 'texture' | 'pbr'): boolean | undefined {
  const { values = [false, true], default: fallback } = model.three_d[field] ?? {}
  const requested = request[field]
  if (requested === undefined) return fallback ?? (values.length === 1 ? values[0] : undefined)
  if (values.includes(requested)) return requested
  const message = `"${field}" must be ${values.join(' or ')} for the model "${model.id}", not ${requested}.`
  throw refuse('invalid_value', field, message)
}

/** The maps of physically based rendering are maps of a texture. */
function checkTexture(request: ThreeDRequest, order: ThreeDOrder): void {
  if (order.texture !== false || order.pbr !== true) return
  if (request.pbr === true)
    throw refuse('invalid_value', 'pbr', '"pbr" needs a texture: leave "texture" out, or say true.')
  order.pbr = false // a default only, and there is no texture that it could be about
}

/** The format holds triangles only. */
function checkStl({ texture, pbr }: ThreeDRequest, order: ThreeDOrder): void {
  if (order.format !== 'stl') return
  for (const [field, value] of Object.entries({ texture, pbr })) {
    if (value)
      throw refuse('invalid_value', field, `"${field}" cannot be true with the format "stl", which holds none.`)
  }
  order.texture = false
  order.pbr = false
}

function polycountOf(
  { id, three_d }: CatalogueModel,
  { target_polycount: requested }: ThreeDRequest,
): number | undefined {
  const limit = three_d.target_polycount
  if (limit === false) {
    if (requested === undefined) return undefined
    throw refuse('unsupported_parameter', 'target_polycount', `The model "${id}" takes no "target_polycount".`)
  }
  const { minimum, maximum, default: fallback } = limit ?? {}
  if (requested === undefined) return fallback
  if (requested >= (minimum ?? requested) && requested <= (maximum ?? requested)) return requested
  const message = `"target_polycount" must be ${rangeText(minimum, maximum)} for the model "${id}", not ${requested}.`
  throw refuse('invalid_value', 'target_polycount', message)
}
