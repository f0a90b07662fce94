/** Encodes the fields of an order for a provider: sizes, media, the provider's own extras; rejects what it does not support. */
import { matchesGlob } from '../../kit/glob.ts'
import { asRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { unsupportedField } from './order-messages.ts'

type Pixels = { width: number; height: number }

/** `1280x720`, or `720p` (the shorter side; `2k` and `4k` are 1440 and 2160) with a ratio; undefined without a size. */
export function pixelsOf(size: string | undefined, aspect_ratio = '16:9'): Pixels | undefined {
  const exact = /^(\d+)x(\d+)$/i.exec(size ?? '') // the form in which `size` names both sides
  if (exact) return { width: Number(exact[1]), height: Number(exact[2]) }
  const shorter = shorterSide(size)
  const [wide = Number.NaN, high = Number.NaN] = aspect_ratio.split(':').map(Number)
  if (shorter === undefined || !(wide > 0) || !(high > 0)) return undefined
  const longer = 2 * Math.round((shorter * Math.max(wide, high)) / Math.min(wide, high) / 2) // encoders need even sides
  return wide >= high ? { width: longer, height: shorter } : { width: shorter, height: longer }
}

/** `720p` of `720p`, `1280x720` or `720x1280`; undefined without a size. */
export function tierOf(size: string | undefined): string | undefined {
  if (size !== undefined && /^\d+k$/i.test(size)) return size.toLowerCase() // `4k`, which providers know by that name
  const shorter = shorterSide(size)
  return shorter === undefined ? undefined : `${shorter}p`
}

/** The requested ratio: `aspect_ratio`, or that of the pixels. */
export function ratioOf({ aspect_ratio, size }: Pick<VideoOrder, 'aspect_ratio' | 'size'>): string | undefined {
  if (aspect_ratio !== undefined) return aspect_ratio
  const pixels = size?.includes('x') ? pixelsOf(size) : undefined
  if (!pixels) return undefined
  const shared = commonDivisor(pixels.width, pixels.height)
  return `${pixels.width / shared}:${pixels.height / shared}`
}

function shorterSide(size: string | undefined): number | undefined {
  const found = /^(?:(\d+)p|(\d+)k|(\d+)x(\d+))$/i.exec(size ?? '') // the three forms that the configuration allows
  if (!found) return undefined
  if (found[1]) return Number(found[1])
  if (found[2]) return found[2] === '2' ? 1440 : Number(found[2]) * 540
  return Math.min(Number(found[3]), Number(found[4]))
}

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b))

/** Fields that change the result: an order is rejected, not sent without them, when the provider does not support one. */
export const MEANINGFUL = ['image', 'last_image', 'images', 'video', 'negative_prompt', 'audio_enable', 'n'] as const
export type MeaningfulField = (typeof MEANINGFUL)[number]

/** Throws for a field that changes the result and is not among those that the provider's model supports. */
export function assertSupportedFields(
  order: VideoOrder,
  upstream: string,
  supported: readonly MeaningfulField[],
): void {
  for (const field of MEANINGFUL) {
    if (supported.includes(field) || !isRequested(order[field])) continue
    if (field !== 'n') throw unsupportedField(upstream, field)
    throw new GatewayError(
      'unsupported_parameter',
      `The upstream "${upstream}" generates one video at a time; n may only be 1.`,
      { param: field, accepted: 'no' },
    )
  }
}

/** The error for a value that the provider accepts in no form. Nothing was sent. */
export const unsupportedValue = (param: string, message: string) =>
  new GatewayError('unsupported_value', message, { param, accepted: 'no' })

export const onlyByUrl = (upstream: string, param: string, what: 'a video' | 'an image') =>
  unsupportedValue(param, `The upstream "${upstream}" accepts ${what} only as an https URL, not as data.`)

function isRequested(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  if (typeof value === 'number') return value > 1
  return value !== undefined && value !== false && value !== ''
}

/**
 * Adds the provider's own members from `metadata`, under its name. They do not override a mapped field, nor a member in
 * `decided`, which a field sets under another name: limits and prices are checked by the fields. The model is fixed, and
 * no callback may be registered.
 */
export function withExtras(
  body: JsonRecord,
  metadata: VideoOrder['metadata'],
  namespace: string,
  decided: readonly string[] = [],
): JsonRecord {
  const extras = metadata?.[namespace]
  const never = ['model', 'callback_url', ...decided]
  const allowed = Object.entries(asRecord(extras)).filter(([name]) => !never.includes(name))
  return { ...Object.fromEntries(allowed), ...withoutEmpty(body) }
}

export const withoutEmpty = (body: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))

/** The first characters of media in base64, by which the type is recognised. */
const BASE64_BEGINNINGS: [string, string][] = [
  ['/9j/', 'image/jpeg'],
  ['iVBORw0KGgo', 'image/png'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['Qk', 'image/bmp'],
]

/** Media as a URL or a data URI, for providers that accept either: bare base64 gets a data URI prefix. */
export function toMediaUrl(value: string, otherwise = 'image/png'): string {
  if (/^(https?|data|asset|runway):/i.test(value)) return value // the last two are uploads at the provider
  const found = BASE64_BEGINNINGS.find(([beginning]) => value.startsWith(beginning))
  return `data:${found?.[1] ?? otherwise};base64,${value}`
}

/** Media as a URL or bare base64, for providers that reject data URIs. */
export const toBareBase64 = (value: string): string => value.replace(/^data:[^,]*;base64,/i, '') // up to the first comma

/** Whether the model matches the provider's option, a list of globs over the provider's model names. */
export function matchesModel(option: unknown, otherwise: readonly string[], model: string): boolean {
  const globs = Array.isArray(option) ? option.filter((glob) => typeof glob === 'string') : otherwise
  return globs.some((glob) => matchesGlob(glob, model))
}
