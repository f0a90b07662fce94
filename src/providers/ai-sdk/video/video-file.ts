/** The images and videos of an order, in the form of a vendor's package. */
import type { Experimental_VideoModelV4File as PackageFile } from '@ai-sdk/provider'
import { GatewayError } from '../../../spec/error.ts'
import type { Media } from '../../media.ts'
import { toMediaUrl } from '../../orders/order-fields.ts'
import type { VideoFamily } from './video-family.ts'

type Field = 'image' | 'last_image' | 'images' | 'video'

/** `value` is a URL, a data URI or base64; the URL of a cloud's own storage (`gs://`) stays one. */
export function fileOf(value: string, field: Field, media: VideoFamily['media']): PackageFile {
  const kind = field === 'video' ? 'video' : 'image'
  if (/^(https?|gs):/i.test(value)) return { type: 'url', url: value, mediaType: `${kind}/*` }
  const uri = toMediaUrl(value, field === 'video' ? 'video/mp4' : 'image/png')
  if (!uri.includes(',')) return { type: 'url', url: uri, mediaType: `${kind}/*` } // an id that only the vendor knows
  const [head, data] = splitOnce(uri)
  const mediaType = head.slice('data:'.length).split(';')[0] || `${kind}/*`
  return media === 'url' ? { type: 'url', url: uri, mediaType } : { type: 'file', data, mediaType }
}

function splitOnce(uri: string): [string, string] {
  const at = uri.indexOf(',')
  return [uri.slice(0, at), uri.slice(at + 1)]
}

type FetchParts = { media: Media; field: Field; signal: AbortSignal }

/** The file at the URL, as a data URI. Nothing was ordered yet, so any failure here has `accepted: 'no'`. */
export async function fetchAsDataUri(url: string, { media, field, signal }: FetchParts): Promise<string> {
  if (!/^https?:/i.test(url)) return url
  try {
    const { bytes, content_type } = await media.read(url, signal, field)
    return `data:${content_type};base64,${Buffer.from(bytes).toString('base64')}`
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw new GatewayError(error.code, error.message, { ...error.detail, param: field, accepted: 'no' })
  }
}
