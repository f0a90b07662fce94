/** The media type under which bytes of others are handed out: one that their first bytes show, never what others called them. */
import { sniff } from './sniff.ts'

export const UNKNOWN_TYPE = 'application/octet-stream'
/** Text and archives, which no first byte tells from others; a browser saves them. */
const NOT_SNIFFED = new Set([
  'application/vnd.autodesk.fbx',
  'application/zip',
  'model/mtl',
  'model/obj',
  'model/stl',
  'model/vnd.usdz+zip',
])
/** What a browser may show by itself: nothing that runs a script, so no SVG. */
const SHOWN = new Set([
  'audio/flac',
  'audio/mp4',
  'audio/mpeg',
  'audio/ogg',
  'audio/wav',
  'image/avif',
  'image/gif',
  'image/heic',
  'image/jpeg',
  'image/png',
  'image/webp',
  'model/gltf-binary',
  'video/mp4',
  'video/quicktime',
  'video/webm',
  'video/x-matroska',
])

/** Without parameters, in lower case. Of two types in one header none. */
export const bareType = (given: string): string => given.split(';')[0]?.trim().toLowerCase() ?? ''

/** Whether files of this type show it in their first bytes. */
export const isDetectable = (type: string): boolean => SHOWN.has(type)

/** Whether only a label can name this type. */
export const isStatedType = (type: string): boolean => NOT_SNIFFED.has(type)

/** By the first bytes; what others say counts only where bytes tell nothing and no browser shows it. */
export function typeOfFile(first: Uint8Array, given: string | undefined): string {
  const found = sniff(first)
  if (found !== undefined) return found
  const type = bareType(given ?? '')
  return NOT_SNIFFED.has(type) ? type : UNKNOWN_TYPE
}

/** How a stored file is handed out, whoever labelled it: as one of the types above, and saved unless it may be shown. */
export function servedAs(stored: string): { content_type: string; disposition: 'inline' | 'attachment' } {
  const type = bareType(stored)
  if (SHOWN.has(type)) return { content_type: type, disposition: 'inline' }
  return { content_type: NOT_SNIFFED.has(type) ? type : UNKNOWN_TYPE, disposition: 'attachment' }
}
