/** The fields of a video order on their way into a vendor's words: sizes, media, the vendor's own extras, refusals. */
import { matchesGlob } from '../../kit/glob.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { VideoOrder } from '../../spec/video-request.ts'

type Pixels = { width: number; height: number }

/** `1280x720`, or `720p` (the shorter side; `2k` and `4k` are 1440 and 2160) with a ratio; undefined without a size. */
export function pixelsOf(size: string | undefined, aspect_ratio = '16:9'): Pixels | undefined {
  const exact = /^(\d+)x(\d+)$/i.exec(size ?? '') // the form in which `size` names both sides
  if (exact) return { width: Number(exact[1]), height: Number(exact[2]) }
  const shorter = shorterSide(size)
  const [wide = Number.NaN, high = Number.NaN] = aspect_ratio.split(':').map(Number)
  if (shorter === undefined || !(wide > 0) || !(high > 0)) return undefined
  const longer = 2 * Math.round((shorter * Math.max(wide, high)) / Math.min(wide, high) / 2) // encoders want even sides
  return wide >= high ? { width: longer, height: shorter } : { width: shorter, height: longer }
}

/** `720p` of `720p`, `1280x720` or `720x1280`; undefined without a size. */
export function tierOf(size: string | undefined): string | undefined {
  if (size !== undefined && /^\d+k$/i.test(size)) return size.toLowerCase() // `4k`, which vendors know by that name
  const shorter = shorterSide(size)
  return shorter === undefined ? undefined : `${shorter}p`
}

/** The ratio that was asked for: named, or that of the pixels. */
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

/** Fields that change what is made: a vendor that cannot honour one must not be asked without it. */
const SEMANTIC_FIELDS = ['image', 'last_image', 'images', 'video', 'negative_prompt', 'audio_enable', 'n'] as const
type SemanticField = (typeof SEMANTIC_FIELDS)[number]

/** Throws for each field that changes the meaning and is not among those that the vendor's model takes. */
export function assertSupportedFields(order: VideoOrder, upstream: string, takes: readonly SemanticField[]): void {
  for (const field of SEMANTIC_FIELDS) {
    if (takes.includes(field) || !isRequested(order[field])) continue
    throw new GatewayError(
      'unsupported_parameter',
      field === 'n'
        ? `The upstream "${upstream}" makes one video at a time; n may only be 1.`
        : `The upstream "${upstream}" cannot honour "${field}" with this model. Leave it out, or choose another model.`,
      { param: field, accepted: 'no' },
    )
  }
}

/** Refuses a value that the vendor cannot take in any form. */
export const unsupportedValue = (param: string, message: string) =>
  new GatewayError('unsupported_value', message, { param, accepted: 'no' })

function isRequested(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  if (typeof value === 'number') return value > 1
  return value !== undefined && value !== false && value !== ''
}

/**
 * The vendor's own members from `metadata`, under its name. What a mapped field has set is not changed by them, nor may
 * they say what is `decided` by fields in other words: limits and prices are judged by the fields. Which model it is was
 * decided before, and the vendor calls nobody back.
 */
export function withExtras(
  body: JsonRecord,
  metadata: VideoOrder['metadata'],
  namespace: string,
  decided: readonly string[] = [],
): JsonRecord {
  const extras = metadata?.[namespace]
  const never = ['model', 'callback_url', ...decided]
  const kept = Object.entries(isRecord(extras) ? extras : {}).filter(([name]) => !never.includes(name))
  return { ...Object.fromEntries(kept), ...withoutEmpty(body) }
}

export const withoutEmpty = (body: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))

/** The first bytes of media in base64, by which its kind is known. */
const BASE64_BEGINNINGS: [string, string][] = [
  ['/9j/', 'image/jpeg'],
  ['iVBORw0KGgo', 'image/png'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['Qk', 'image/bmp'],
]

/** Media as an address or a data URI, for vendors that take either: bare base64 gets its head. */
export function toMediaUrl(value: string, otherwise = 'image/png'): string {
  if (/^(https?|data|asset|runway):/i.test(value)) return value // the last two are vendors' own uploads
  const found = BASE64_BEGINNINGS.find(([beginning]) => value.startsWith(beginning))
  return `data:${found?.[1] ?? otherwise};base64,${value}`
}

/** Media as an address or bare base64, for vendors that refuse the head of a data URI. */
export const toBareBase64 = (value: string): string => value.replace(/^data:[^,]*;base64,/i, '') // up to the first comma

/** Whether the provider's option, a list of globs over the vendor's model names, names the model. */
export function matchesModel(option: unknown, otherwise: readonly string[], model: string): boolean {
  const globs = Array.isArray(option) ? option.filter((glob) => typeof glob === 'string') : otherwise
  return globs.some((glob) => matchesGlob(glob, model))
}
