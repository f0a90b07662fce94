/** Encodes one part of a message: text, and images, audio and files as data or by URL. */
import type { JsonRecord } from '../../../kit/json.ts'
import { invalidValue } from '../../../spec/error.ts'
import type { ContentPart } from '../../../spec/message.ts'
import { refusedPart } from '../../shared/request-error.ts'
import type { MediaReader } from '../../shared/upstream.ts'
import { typeOfName, typeOfSound, vendorType } from './media-types.ts'

export type Part = JsonRecord

export type PartReader = {
  /** Fetches images that are given by URL. Without it the provider receives the URL. */
  media: MediaReader | undefined
  /** The base URL of files that were uploaded to the provider. */
  base_url: string
  signal: AbortSignal
}

/** `at`: the part's place in the request, for errors. Returns nothing for an empty text, which the vendor refuses. */
export async function partsOf(part: ContentPart, at: string, reader: PartReader): Promise<Part[]> {
  if (part.type === 'text') return textParts(part.text)
  if (part.type === 'refusal') return textParts(part.refusal)
  if (part.type === 'image_url') return [await imageOf(part.image_url.url, `${at}.image_url.url`, reader)]
  if (part.type === 'file') return [fileOf(part.file, `${at}.file`, reader)]
  const { data, format } = part.input_audio
  const read = readDataUri(data)
  return [inlineOf(read?.type || typeOfSound(format), read?.data ?? data)]
}

export const textParts = (text: string): Part[] => (text === '' ? [] : [{ text }])

/** White space is common in base64, but the vendor refuses it. */
function inlineOf(mimeType: string, data: string): Part {
  return { inlineData: { mimeType: vendorType(mimeType), data: /\s/.test(data) ? data.replaceAll(/\s+/g, '') : data } }
}

/** URLs that only the vendor can resolve: its own files, its cloud's buckets, its videos. */
const VENDOR_ADDRESS =
  /^(gs:|https:\/\/([\w-]+\.)?(youtube\.com|youtu\.be|generativelanguage\.googleapis\.com|storage\.cloud\.google\.com)\/)/i

export const isVendorAddress = (url: string): boolean => VENDOR_ADDRESS.test(url)

export async function imageOf(url: string, param: string, { media, signal }: PartReader): Promise<Part> {
  const data = readDataUri(url)
  if (data) return inlineOf(data.type || 'image/png', data.data)
  if (isVendorAddress(url)) return linkOf(url, undefined)
  if (!/^https?:\/\//i.test(url)) throw wrongImage(param)
  if (!media) return linkOf(url, undefined)
  const { bytes, content_type } = await media.read(url, signal, param)
  return inlineOf(content_type, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'))
}

const wrongImage = (param: string) => invalidValue(param, `"${param}" must be an http address or a data URI.`)

type File = Extract<ContentPart, { type: 'file' }>['file']

function fileOf({ file_data, file_id, file_url, filename }: File, at: string, { base_url }: PartReader): Part {
  if (file_data !== undefined) {
    const read = readDataUri(file_data)
    // Without a type, the data is assumed to be a PDF, as nearly all such files are.
    const type = read?.type || typeOfName(filename) || 'application/pdf'
    return inlineOf(type, read?.data ?? file_data)
  }
  if (file_url !== undefined) {
    const read = readDataUri(file_url)
    if (read) return inlineOf(read.type || typeOfName(filename) || 'application/pdf', read.data)
    return linkOf(file_url, filename)
  }
  if (file_id === undefined) throw refusedPart(at, 'must have "file_data", "file_url" or "file_id"')
  if (/^(https?|gs):/i.test(file_id)) return linkOf(file_id, filename)
  if (file_id.startsWith('files/')) return linkOf(`${base_url}/${file_id}`, filename)
  throw refusedPart(`${at}.file_id`, 'must be a file at the vendor: its URL, or a name such as "files/abc"')
}

function linkOf(fileUri: string, filename: string | undefined): Part {
  const mimeType = typeOfName(filename) ?? typeOfName(fileUri)
  return { fileData: { ...(mimeType === undefined ? {} : { mimeType: vendorType(mimeType) }), fileUri } }
}

/** Reads a data URI and returns its data as base64; undefined for anything else. */
function readDataUri(url: string): { type: string; data: string } | undefined {
  const comma = /^data:/i.test(url) ? url.indexOf(',') : -1
  // A type with its parameters is short. A longer prefix is not a data URI.
  if (comma === -1 || comma > 200) return undefined
  const [type = '', ...parameters] = url.slice('data:'.length, comma).split(';')
  const data = url.slice(comma + 1)
  const isBase64 = parameters.at(-1)?.trim().toLowerCase() === 'base64'
  return { type: type.trim().toLowerCase(), data: isBase64 ? data : Buffer.from(decoded(data)).toString('base64') }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A literal %.
    return text
  }
}
