/** Determines the media type of a file from its name, its URL or its format. */

const TYPE_OF_ENDING: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  heif: 'image/heif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  htm: 'text/html',
  css: 'text/css',
  xml: 'text/xml',
  rtf: 'text/rtf',
  json: 'application/json',
  wav: 'audio/wav',
  mp3: 'audio/mp3',
  aiff: 'audio/aiff',
  aac: 'audio/aac',
  m4a: 'audio/mp4',
  ogg: 'audio/ogg',
  opus: 'audio/ogg',
  flac: 'audio/flac',
  mp4: 'video/mp4',
  mpg: 'video/mpeg',
  mpeg: 'video/mpeg',
  mov: 'video/quicktime',
  webm: 'video/webm',
  avi: 'video/x-msvideo',
  wmv: 'video/x-ms-wmv',
  flv: 'video/x-flv',
  '3gp': 'video/3gpp',
}
/** Text types that the vendor accepts only as plain text. */
const PLAIN = new Set([
  'application/json',
  'application/xml',
  'application/yaml',
  'application/x-yaml',
  'application/javascript',
  'application/x-javascript',
  'application/typescript',
])

/** By the extension of a name or of a URL's path; undefined if it has no known one. */
export function typeOfName(name: string | undefined): string | undefined {
  // The query and the fragment are not part of the path.
  const ending = /\.([a-z0-9]{1,5})$/i.exec(name?.split(/[?#]/)[0] ?? '')?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(TYPE_OF_ENDING, ending) ? TYPE_OF_ENDING[ending] : undefined
}

/** The vendor's name of a media type. */
export const vendorType = (type: string): string =>
  PLAIN.has(type) ? 'text/plain' : type === 'image/jpg' ? 'image/jpeg' : type

/** The media type of an audio format of chat completions: `wav`, `mp3` and the like. */
export const typeOfSound = (format: string): string => typeOfName(`.${format}`) ?? `audio/${format.toLowerCase()}`
