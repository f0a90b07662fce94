/** The size and the aspect ratio of a video as its model expects them: `1280x720` becomes a tier and a ratio where the model has tiers. */
import { pixelsOf } from '../providers/orders/order-fields.ts'
import { invalidValue } from '../spec/error.ts'
import type { CatalogueModel } from './catalogue.ts'

type Shape = { size?: string; aspect_ratio?: string }

/** The ratios that pixels are matched with where the model lists none: the common ones, since 854x480 is only nearly 16:9. */
const COMMON_RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9', '9:21', '3:2', '2:3']

/** `size` and `aspect_ratio` within the model's sets, agreeing with each other, defaults filled in. Nothing is rounded. */
export function shapeOf(model: CatalogueModel, { size, aspect_ratio }: Shape): Shape {
  const ratios = model.video.aspect_ratio?.values
  if (aspect_ratio !== undefined && ratios && !ratios.includes(aspect_ratio)) {
    throw refusal('aspect_ratio', `${oneOf(ratios)} for the model "${model.id}", not ${shown(aspect_ratio)}`)
  }
  const shape = size === undefined ? ofDefaultSize(model, aspect_ratio) : ofSize(model, { size, aspect_ratio })
  if (shape.aspect_ratio !== undefined && aspect_ratio !== undefined && shape.aspect_ratio !== aspect_ratio) {
    throw invalidValue(
      'size',
      `"size" ${shown(size ?? shape.size ?? '')} is ${shape.aspect_ratio}, but "aspect_ratio" is ${aspect_ratio}. Send one of them, or two that agree.`,
    )
  }
  const ratio = shape.aspect_ratio ?? aspect_ratio ?? defaultRatio(model)
  return { ...shape, ...(ratio === undefined ? {} : { aspect_ratio: ratio }) }
}

/** Each interpretation of a size: as the model writes it, as pixels of a tier, as a tier of pixels. */
function ofSize(model: CatalogueModel, given: { size: string; aspect_ratio: string | undefined }): Shape {
  const { size, aspect_ratio } = given
  const sizes = model.video.size?.values
  if (!sizes) return withRatioOf(model, { size, aspect_ratio })
  if (sizes.includes(size)) return withRatioOf(model, { size, aspect_ratio })
  const split = tiersInPixels(model).filter(({ pixels }) => pixels === size)
  const [first] = [...split.filter((one) => one.aspect_ratio === aspect_ratio), ...split]
  if (first) return { size: first.size, aspect_ratio: first.aspect_ratio }
  const inPixels = isTier(size) ? textOf(size, aspect_ratio ?? defaultRatio(model)) : undefined
  if (inPixels !== undefined && sizes.includes(inPixels)) return withRatioOf(model, { size: inPixels, aspect_ratio })
  const named = model.video.aspect_ratio ? tiersInPixels(model).map(({ pixels }) => pixels) : []
  const also = named.length === 0 ? '' : `, or in pixels one of ${named.join(', ')}`
  throw refusal('size', `${oneOf(sizes)} for the model "${model.id}"${also}; not ${shown(size)}`)
}

/** The model's default, or the first size of the requested ratio where the default contradicts it. */
function ofDefaultSize(model: CatalogueModel, aspect_ratio: string | undefined): Shape {
  const { values = [], default: fallback } = model.video.size ?? {}
  const candidates = fallback === undefined ? values : [fallback, ...values]
  const [first] = candidates
  if (first === undefined) return {}
  if (aspect_ratio === undefined) return withRatioOf(model, { size: first, aspect_ratio })
  const fitting = candidates.find((size) => !isPixels(size) || agree(size, aspect_ratio))
  if (fitting !== undefined) return { size: fitting }
  throw invalidValue(
    'aspect_ratio',
    `The model "${model.id}" has no size with the "aspect_ratio" ${shown(aspect_ratio)}; its sizes are ${values.join(', ')}.`,
  )
}

/** A size in pixels determines the ratio: one of the model's, the requested one, or a common one. */
function withRatioOf(
  model: CatalogueModel,
  { size, aspect_ratio }: { size: string; aspect_ratio: string | undefined },
) {
  if (!isPixels(size)) return { size }
  const requested = aspect_ratio === undefined ? [] : [aspect_ratio]
  const found = [...requested, ...(model.video.aspect_ratio?.values ?? []), ...COMMON_RATIOS].find((one) =>
    agree(size, one),
  )
  const ratio = found ?? size.replace('x', ':')
  // A model that lists no ratios gets one only if it was requested: the size is enough.
  return model.video.aspect_ratio || aspect_ratio !== undefined ? { size, aspect_ratio: ratio } : { size }
}

function defaultRatio({ video }: CatalogueModel): string | undefined {
  const { values = [], default: fallback } = video.aspect_ratio ?? {}
  return fallback ?? (values.includes('16:9') ? '16:9' : values[0])
}

function tiersInPixels({ video }: CatalogueModel): { size: string; aspect_ratio: string; pixels: string }[] {
  const tiers = (video.size?.values ?? []).filter((size) => !isPixels(size))
  const ratios = video.aspect_ratio?.values ?? COMMON_RATIOS
  return tiers.flatMap((size) =>
    ratios.map((aspect_ratio) => ({ size, aspect_ratio, pixels: textOf(size, aspect_ratio) ?? '' })),
  )
}

function textOf(size: string, aspect_ratio: string | undefined): string | undefined {
  const pixels = pixelsOf(size, aspect_ratio)
  return pixels && `${pixels.width}x${pixels.height}`
}

const isTier = (size: string): boolean => /^\d+[pk]$/.test(size) // `720p`, `4k`
const isPixels = (size: string): boolean => /^\d+x\d+$/.test(size) // `1280x720`, as opposed to `720p`

/** Whether pixels have the ratio: exactly, or as near as even sides come to it. */
function agree(size: string, aspect_ratio: string): boolean {
  const [width = 0, height = 0] = size.split('x').map(Number)
  const [wide = 0, high = 0] = aspect_ratio.split(':').map(Number)
  if (width * high === height * wide && wide > 0) return true
  return textOf(`${Math.min(width, height)}p`, aspect_ratio) === size
}

const oneOf = (values: string[]): string => (values.length === 1 ? `"${values[0]}"` : `one of ${quoted(values)}`)
const quoted = (values: string[]): string => values.map((value) => `"${value}"`).join(', ')
const shown = (text: string): string => (text.length <= 40 ? JSON.stringify(text) : 'a long string')

const refusal = (param: string, must: string) => invalidValue(param, `"${param}" must be ${must}.`)
