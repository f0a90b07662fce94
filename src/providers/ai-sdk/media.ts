/** The pictures and videos of an order, in the form in which a vendor's package takes them. */
import type { Experimental_VideoModelV4File as PackageFile } from '@ai-sdk/provider'
import type { Clock } from '../../kit/clock.ts'
import { AddressRefused, createGuardedFetch } from '../../kit/guarded-fetch.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Media } from '../order-json.ts'
import { asAddress } from '../video-fields.ts'
import type { AiSdkVendor } from './vendor.ts'

/** Veo takes 20 MB at most; others less. */
const MAX_MEDIA_BYTES = 20 * 1024 * 1024

type Field = 'image' | 'last_image' | 'images' | 'video'

/** `value` is an address, a data URI or base64; the address of a cloud's own storage (`gs://`) stays one. */
export function fileOf(value: string, field: Field, media: AiSdkVendor['media']): PackageFile {
  const kind = field === 'video' ? 'video' : 'image'
  if (/^(https?|gs):/i.test(value)) return { type: 'url', url: value, mediaType: `${kind}/*` }
  const uri = asAddress(value, field === 'video' ? 'video/mp4' : 'image/png')
  const [head = '', data = ''] = splitOnce(uri)
  const mediaType = head.slice('data:'.length).split(';')[0] || `${kind}/*`
  return media === 'address' ? { type: 'url', url: uri, mediaType } : { type: 'file', data, mediaType }
}

function splitOnce(uri: string): [string, string] {
  const at = uri.indexOf(',')
  return [uri.slice(0, at), uri.slice(at + 1)]
}

type Fetching = { media: Media; field: Field; signal: AbortSignal }

/** What lies at the address, as a data URI. Nothing was ordered yet: whatever fails here has `taken: 'no'`. */
export async function fetched(url: string, { media, field, signal }: Fetching): Promise<string> {
  if (!/^https?:/i.test(url)) return url
  try {
    const { bytes, content_type } = await media.read(url, signal)
    return `data:${content_type};base64,${Buffer.from(bytes).toString('base64')}`
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw new GatewayError(error.code, error.message, { ...error.detail, param: field, taken: 'no' })
  }
}

/** Media by their address, through the guard, where nobody else reads them. */
export function createGuardedMedia(clock: Clock): Media {
  const fetch = createGuardedFetch({ clock })
  const unusable = (why: string) => new GatewayError('invalid_value', `The media could not be fetched: ${why}.`)
  return {
    async read(url, signal) {
      const answer = await fetch({ url, signal }).catch((error: unknown) => {
        if (signal.aborted) throw error
        throw unusable(error instanceof AddressRefused ? error.message : 'no connection')
      })
      if (answer.status !== 200) {
        await answer.body.cancel()
        throw unusable(`their server answered with ${answer.status}`)
      }
      const bytes = await readAtMost(answer.body, MAX_MEDIA_BYTES)
      if (!bytes) throw unusable(`they are larger than ${MAX_MEDIA_BYTES / 1024 / 1024} MB`)
      const content_type = answer.headers.get('content-type')?.split(';')[0]?.trim() ?? ''
      return { bytes, content_type: /^(image|video)\//.test(content_type) ? content_type : 'image/png' }
    },
  }
}

async function readAtMost(body: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of body) {
    size += piece.length
    if (size > limit) return undefined // leaving the loop cancels the stream
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
