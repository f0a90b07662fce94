/** Decodes one part of a content. */
import { endingOf } from '../../../kit/file-type.ts'
import type { ContentPart } from '../../../spec/message.ts'
import { refusedField } from '../../shared/request-error.ts'
import type { Blob, FileData, Part } from './schema.ts'

export const textPart = (text: string): ContentPart => ({ type: 'text', text })

export function inlinePart({ mimeType, data, displayName }: Blob): ContentPart {
  const type = (mimeType.split(';')[0] ?? '').trim().toLowerCase()
  const bytes = standardBase64(data)
  if (type.startsWith('text/')) return textPart(Buffer.from(bytes, 'base64').toString())
  const uri = `data:${type};base64,${bytes}`
  if (type.startsWith('image/')) return { type: 'image_url', image_url: { url: uri } }
  if (type.startsWith('audio/')) return { type: 'input_audio', input_audio: { data: bytes, format: soundOf(type) } }
  return { type: 'file', file: { file_data: uri, filename: displayName ?? nameOf(type) } }
}

/** Chat providers require a name, and some know the type of a file by its ending. */
function nameOf(type: string): string {
  if (type === 'application/pdf') return 'document.pdf'
  const ending = endingOf(type)
  return ending === undefined ? 'file' : `file.${ending}`
}

/** Python's client encodes with the URL-safe alphabet, which other vendors refuse. */
export const standardBase64 = (data: string): string =>
  data.includes('-') || data.includes('_') ? data.replaceAll('-', '+').replaceAll('_', '/') : data

/** The vendor's audio types -> the canonical formats, where the subtype differs. */
const SOUNDS: Record<string, string> = { mpeg: 'mp3', 'x-wav': 'wav', wave: 'wav', 'x-aiff': 'aiff', 'x-flac': 'flac' }

function soundOf(type: string): string {
  const name = type.slice('audio/'.length)
  return Object.hasOwn(SOUNDS, name) ? (SOUNDS[name] ?? name) : name
}

/** A file at a URL: an image if its type says so, or, without a type, the extension of the URL. */
export function filePart({ fileUri, mimeType, displayName }: FileData): ContentPart {
  const [path = ''] = fileUri.split(/[?#]/) // the query and the fragment are not part of the path
  const isImage = mimeType ? /^image\//i.test(mimeType) : /\.(png|jpe?g|webp|gif|heic|heif)$/i.test(path) // extensions of image files
  if (isImage) return { type: 'image_url', image_url: { url: fileUri } }
  return { type: 'file', file: { file_url: fileUri, ...(displayName === undefined ? {} : { filename: displayName }) } }
}

/** The code that the vendor's own tool ran and its output, as part of the model's text. */
export function toolText({ executableCode: code, codeExecutionResult: result }: Part): string | undefined {
  if (code) return fenced(code.code, (code.language ?? '').toLowerCase())
  return result ? fenced(result.output ?? '', '') : undefined
}

const fenced = (text: string, language: string) =>
  `\n\`\`\`${/^[a-z]{1,20}$/.test(language) ? language : ''}\n${text.replace(/\n$/, '')}\n\`\`\`\n` // a plain language name, and no second line break at the end

/** Members of `videoMetadata` that select a section of the video. The frame rate only tunes. */
const CUTS = ['startOffset', 'endOffset'] as const

export function refuseCut({ videoMetadata }: Part, at: string): void {
  const cut = CUTS.find((name) => videoMetadata?.[name] !== undefined)
  if (cut === undefined) return
  throw refusedField(`${at}.videoMetadata.${cut}`, 'is supported only by its own vendor; send the part without it')
}
