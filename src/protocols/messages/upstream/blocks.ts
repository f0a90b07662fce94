/** Encodes one part of a message as a block: text, images and documents. */
import type { ContentPart } from '../../../spec/message.ts'
import { refusedPart } from '../../shared/request-error.ts'

export type Block = { type: string } & Record<string, unknown>

export function blockOf(part: ContentPart, at: string): Block {
  if (part.type === 'text') return { type: 'text', text: part.text }
  if (part.type === 'refusal') return { type: 'text', text: part.refusal }
  if (part.type === 'image_url') return imageOf(part.image_url.url, `${at}.image_url.url`)
  if (part.type === 'file') return documentOf(part.file, `${at}.file`)
  throw refusedPart(`${at}.type`, 'must be "text", "image_url" or "file": the vendor accepts no audio')
}

/** The image types that the vendor accepts, under all their names. */
const IMAGE_TYPES: Record<string, string> = {
  'image/jpeg': 'image/jpeg',
  'image/jpg': 'image/jpeg',
  'image/png': 'image/png',
  'image/gif': 'image/gif',
  'image/webp': 'image/webp',
}

function imageOf(url: string, param: string): Block {
  if (/^https?:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url } }
  const data = readDataUri(url)
  const media_type = data && IMAGE_TYPES[data.media_type]
  if (data && media_type) return { type: 'image', source: { type: 'base64', media_type, data: data.base64 } }
  throw refusedPart(param, 'must be an http address, or a data URI of a JPEG, PNG, GIF or WebP image in base64')
}

type File = Extract<ContentPart, { type: 'file' }>['file']

function documentOf({ file_data, file_id, file_url, filename }: File, at: string): Block {
  const titled = filename === undefined ? {} : { title: filename }
  if (file_url !== undefined) return { type: 'document', source: { type: 'url', url: file_url }, ...titled }
  if (file_id !== undefined) return { type: 'document', source: { type: 'file', file_id }, ...titled }
  if (file_data === undefined) throw refusedPart(at, 'must have "file_data", "file_url" or "file_id"')
  // Without a type, the data is assumed to be a PDF, as nearly all such files are.
  const data = readDataUri(file_data) ?? { media_type: 'application/pdf', base64: file_data }
  if (IMAGE_TYPES[data.media_type]) return imageOf(file_data, `${at}.file_data`)
  if (data.media_type.startsWith('text/') || data.media_type === 'application/json') {
    const text = Buffer.from(data.base64, 'base64').toString()
    return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text }, ...titled }
  }
  if (data.media_type !== 'application/pdf') throw refusedPart(`${at}.file_data`, 'must be a PDF, a text or an image')
  return { type: 'document', source: { type: 'base64', media_type: data.media_type, data: data.base64 }, ...titled }
}

/** `data:<type>;<parameters>;base64,<data>`; undefined for anything else. */
function readDataUri(url: string): { media_type: string; base64: string } | undefined {
  const comma = url.startsWith('data:') ? url.indexOf(',') : -1
  // A type with its parameters is short. A longer prefix is not a data URI.
  if (comma === -1 || comma > 200) return undefined
  const [media_type = '', ...parameters] = url.slice('data:'.length, comma).split(';')
  if (parameters.at(-1)?.trim().toLowerCase() !== 'base64') return undefined
  return { media_type: media_type.toLowerCase() || 'application/octet-stream', base64: url.slice(comma + 1) }
}
