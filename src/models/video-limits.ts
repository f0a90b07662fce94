/** The limits of one video model (specification 2.5 and 8; the rest as other gateways have it), as catalogue data. */
import { foundText, rangeText } from '../kit/diagnose.ts'
import type { VideoOrder, VideoRequest } from '../spec/video-request.ts'
import type { CatalogueModel } from './catalogue.ts'
import { checkMedium } from './medium.ts'
import { checkPrompt, missing, refuse, unsupported } from './model-errors.ts'
import { shapeOf } from './video-size.ts'

const MOST_IMAGES = 16

/**
 * The request fitted to this model: aliases resolved, defaults filled in. Throws for a value that the model does not
 * accept, naming the field and what it may be; nothing is rounded.
 */
export function applyVideoLimits(model: CatalogueModel, request: VideoRequest): VideoOrder {
  const { seconds, callback_url: _, images = [], size: __, aspect_ratio: ___, ...rest } = request
  const order: VideoOrder = {
    ...rest,
    model: model.id,
    prompt: promptOf(model, request),
    n: numberOf(model, request),
    ...shapeOf(model, request),
  }
  if (images.length > 0) order.images = images
  const duration = durationOf(model, request)
  if (duration !== undefined) order.duration = duration
  const audio = audioOf(model, request)
  if (audio !== undefined) order.audio_enable = audio
  checkMedia(model, request)
  checkNegativePrompt(model, request)
  if (request.seed !== undefined && model.video.seed === false) throw unsupported(model, 'seed')
  return order
}

function promptOf(model: CatalogueModel, { prompt = '' }: VideoRequest): string {
  const { prompt_required = true } = model.video
  if (prompt_required && prompt.trim() === '') throw missing(model, 'prompt')
  checkPrompt(model.id, model.video, 'prompt', prompt)
  return prompt
}

function checkNegativePrompt(model: CatalogueModel, { negative_prompt }: VideoRequest): void {
  if (negative_prompt === undefined) return
  if (model.video.negative_prompt === false && negative_prompt !== '') throw unsupported(model, 'negative_prompt')
  checkPrompt(model.id, model.video, 'negative_prompt', negative_prompt)
}

function numberOf({ id, video }: CatalogueModel, { n = 1 }: VideoRequest): number {
  const { n: most = 1 } = video
  if (n <= most) return n
  const allowed = most === 1 ? '1' : rangeText(1, most)
  throw refuse('invalid_value', 'n', `"n" must be ${allowed} for the model "${id}", not ${n}.`)
}

/** `seconds` is an alias of `duration`. Default: the shortest, which costs the least. */
function durationOf({ id, video }: CatalogueModel, { duration, seconds }: VideoRequest): number | undefined {
  const alias = seconds === undefined ? undefined : secondsOf(seconds)
  if (duration !== undefined && alias !== undefined && duration !== alias) {
    throw refuse(
      'invalid_value',
      'seconds',
      `"seconds" is ${alias}, but "duration" is ${duration}. Send one of them, or the same in both.`,
    )
  }
  const { values, minimum, maximum, default: fallback } = video.duration ?? {}
  const requested = duration ?? alias
  if (requested === undefined) return fallback ?? (values ? Math.min(...values) : minimum)
  const isInRange = requested > 0 && requested >= (minimum ?? requested) && requested <= (maximum ?? requested)
  if (isInRange && (!values || values.includes(requested))) return requested
  const param = duration === undefined ? 'seconds' : 'duration'
  const range = minimum === undefined && maximum === undefined ? 'more than 0' : rangeText(minimum, maximum)
  const allowed = values ? (values.length === 1 ? `${values[0]}` : `one of ${values.join(', ')}`) : range
  throw refuse('invalid_value', param, `"${param}" must be ${allowed} for the model "${id}", not ${requested}.`)
}

/** A number, or one in a string, as multipart forms and the chat-compatible style have it. */
function secondsOf(seconds: number | string): number {
  if (typeof seconds === 'number') return seconds
  // Plain decimals only: `Number` alone would take "", " 8 ", "0x8" and "8e0" too.
  if (/^\d{1,9}(\.\d{1,9})?$/.test(seconds)) return Number(seconds)
  throw refuse(
    'invalid_value',
    'seconds',
    `"seconds" must be a number, or one in a string, such as "8", not ${foundText(seconds)}.`,
  )
}

function audioOf({ id, video }: CatalogueModel, { audio_enable }: VideoRequest): boolean | undefined {
  const limit = video.audio_enable
  if (!limit) return audio_enable
  const { values = [false, true] } = limit
  if (audio_enable === undefined) return limit.default ?? (values.includes(false) ? false : values[0])
  if (values.includes(audio_enable)) return audio_enable
  throw refuse(
    'invalid_value',
    'audio_enable',
    `"audio_enable" must be ${values.join(' or ')} for the model "${id}", not ${audio_enable}.`,
  )
}

function checkMedia(model: CatalogueModel, { image, last_image, images = [], video }: VideoRequest): void {
  const {
    image: imageRule,
    last_image: lastImageAllowed = true,
    images: most = MOST_IMAGES,
    video: videoRule,
  } = model.video
  for (const [param, value, rule = 'optional'] of [
    ['image', image, imageRule],
    ['video', video, videoRule],
  ] as const) {
    if (rule === 'no' && value !== undefined) throw unsupported(model, param)
    if (rule === 'required' && value === undefined) throw missing(model, param)
    if (value !== undefined) checkMedium(param, value)
  }
  if (last_image !== undefined) {
    if (!lastImageAllowed) throw unsupported(model, 'last_image')
    checkMedium('last_image', last_image)
  }
  if (images.length > 0 && most === 0) throw unsupported(model, 'images')
  if (images.length > most) {
    const message = `"images" may have at most ${most} items for the model "${model.id}", not ${images.length}.`
    throw refuse('invalid_value', 'images', message)
  }
  for (const [index, one] of images.entries()) checkMedium(`images[${index}]`, one)
}
