/** The limits of one image model, as catalogue data: operations, sizes, counts, qualities, input images. */
import type { ImageOperation, ImageOrder, ImageRequest } from '../spec/image-request.ts'
import type { CatalogueModel } from './catalogue.ts'
import { checkMedium } from './medium.ts'
import { checkPrompt, refuse, unsupported } from './model-errors.ts'

const MOST_IMAGES = 16
/** The maximum of OpenAI's API. */
const MOST_GENERATED = 10
/** Pixels of one side; no provider generates as much. */
const LONGEST_SIDE = 16_384

/**
 * The request fitted to this model, defaults filled in. Throws for a value that the model does not accept, naming the
 * field and what it may be; nothing is rounded.
 */
export function applyImageLimits(model: CatalogueModel, request: ImageRequest, operation: ImageOperation): ImageOrder {
  const { image, stream: _, async: __, callback_url: ___, response_format: ____, mask, ...rest } = request
  checkOperation(model, operation)
  const prompt = promptOf(model, request, operation)
  checkPrompt(model.id, model.images, 'negative_prompt', request.negative_prompt)
  if (request.negative_prompt && model.images.negative_prompt === false) throw unsupported(model, 'negative_prompt')
  if (request.seed !== undefined && model.images.seed === false) throw unsupported(model, 'seed')
  const images = imagesOf(model, image, operation)
  checkMask(model, mask, operation)
  const order: ImageOrder = { ...rest, model: model.id, operation, prompt, n: countOf(model, request) }
  for (const field of CHOICES) {
    const value = choiceOf(model, request, field)
    if (value !== undefined) Object.assign(order, { [field]: value })
  }
  if (images.length > 0) order.images = images
  if (mask !== undefined) order.mask = mask
  return order
}

const CHOICES = ['size', 'aspect_ratio', 'quality', 'style', 'output_format'] as const

function checkOperation({ id, images, targets }: CatalogueModel, operation: ImageOperation): void {
  const can = images.operations ?? targets.flatMap(({ provider }) => provider.images?.operations ?? [])
  if (can.includes(operation)) return
  const named = [...new Set(can)].join(', ')
  throw refuse('unsupported_endpoint', 'model', `The model "${id}" has no operation "${operation}"; it has: ${named}.`)
}

function promptOf(model: CatalogueModel, { prompt = '' }: ImageRequest, operation: ImageOperation): string {
  checkPrompt(model.id, model.images, 'prompt', prompt)
  if (prompt.trim() === '' && operation !== 'variation') {
    throw refuse('missing_required_parameter', 'prompt', '"prompt" is required.')
  }
  return prompt
}

function countOf({ id, images }: CatalogueModel, { n = 1 }: ImageRequest): number {
  const { n: most = MOST_GENERATED } = images
  if (n <= most) return n
  const allowed = most === 1 ? '1' : `an integer from 1 to ${most}`
  throw refuse('invalid_value', 'n', `"n" must be ${allowed} for the model "${id}", not ${n}.`)
}

function imagesOf(model: CatalogueModel, image: ImageRequest['image'], operation: ImageOperation): string[] {
  const given = image === undefined ? [] : Array.isArray(image) ? image : [image]
  if (operation === 'generate') {
    if (given.length === 0) return []
    throw refuse('unsupported_parameter', 'image', '"image" is for POST /v1/images/edits.')
  }
  if (given.length === 0) throw refuse('missing_required_parameter', 'image', '"image" is required.')
  const most = operation === 'variation' ? 1 : (model.images.images ?? MOST_IMAGES)
  if (given.length > most) {
    const message = `"image" may be at most ${most} for the model "${model.id}", not ${given.length}.`
    throw refuse('invalid_value', 'image', message)
  }
  for (const [index, one] of given.entries()) checkMedium(Array.isArray(image) ? `image[${index}]` : 'image', one)
  return given
}

function checkMask(model: CatalogueModel, mask: string | undefined, operation: ImageOperation): void {
  if (mask === undefined) return
  if (operation !== 'edit') throw refuse('unsupported_parameter', 'mask', '"mask" is for POST /v1/images/edits.')
  if (model.images.mask === false) throw unsupported(model, 'mask')
  checkMedium('mask', mask)
}

function choiceOf({ id, images }: CatalogueModel, request: ImageRequest, field: (typeof CHOICES)[number]) {
  const { values, default: fallback } = images[field] ?? {}
  const requested = request[field]
  if (requested === undefined) return fallback
  if (values && !values.includes(requested)) {
    const allowed =
      values.length === 1 ? `"${values[0]}"` : `one of ${values.map((one) => JSON.stringify(one)).join(', ')}`
    const shown = JSON.stringify(requested.slice(0, 60))
    throw refuse('invalid_value', field, `"${field}" must be ${allowed} for the model "${id}", not ${shown}.`)
  }
  if (field === 'size' && !isSize(requested)) {
    throw refuse('invalid_value', 'size', `"size" must be "auto", or width x height such as "1024x1024".`)
  }
  if (field === 'aspect_ratio' && !/^[1-9]\d{0,3}:[1-9]\d{0,3}$/.test(requested)) {
    throw refuse('invalid_value', 'aspect_ratio', '"aspect_ratio" must be width:height, such as "16:9".')
  }
  return requested
}

function isSize(text: string): boolean {
  if (text === 'auto') return true
  const [, width, height] = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(text) ?? []
  return width !== undefined && Number(width) <= LONGEST_SIDE && Number(height) <= LONGEST_SIDE
}
