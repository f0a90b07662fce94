/** The media type under which bytes of others are handed out: one that their first bytes show, never what others called them. */
import { sniff } from './sniff.ts'

export const UNKNOWN_TYPE = 'application/octet-stream'
/** Text and archives, which no first byte tells from others; a browser saves them. With the endings of their files. */
const NOT_SNIFFED = new Map([
  ['application/vnd.autodesk.fbx', 'fbx'],
  ['application/zip', 'zip'],
  ['model/mtl', 'mtl'],
  ['model/obj', 'obj'],
  ['model/stl', 'stl'],
  ['model/vnd.usdz+zip', 'usdz'],
])
/** What a browser may show by itself: nothing that runs a script, so no SVG. */
const SHOWN = new Map([
  ['audio/flac', 'flac'],
  ['audio/mp4', 'm4a'],
  ['audio/mpeg', 'mp3'],
  ['audio/ogg', 'ogg'],
  ['audio/wav', 'wav'],
  ['image/avif', 'avif'],
  ['image/gif', 'gif'],
  ['image/heic', 'heic'],
  ['image/jpeg', 'jpg'],
  ['image/png', 'png'],
  ['image/webp', 'webp'],
  ['model/gltf-binary', 'glb'],
  ['video/mp4', 'mp4'],
  ['video/quicktime', 'mov'],
  ['video/webm', 'webm'],
  ['video/x-matroska', 'mkv'],
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

/** The ending by which players, and people, know a file of a type, without its dot; undefined for an unknown type. */
export function endingOf(content_type: string): string | undefined {
  const type = bareType(content_type)
  return SHOWN.get(type) ?? NOT_SNIFFED.get(type)
}
