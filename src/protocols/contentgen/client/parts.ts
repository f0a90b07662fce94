/** The contentgen dialect, inwards: one part of what a user or a tool shows, in the house's words. */
import { GatewayError } from '../../../spec/error.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { Blob, FileData, Part } from './schema.ts'

export const textPart = (text: string): ContentPart => ({ type: 'text', text })

export function inlinePart({ mimeType, data, displayName }: Blob): ContentPart {
  const type = (mimeType.split(';')[0] ?? '').trim().toLowerCase()
  const bytes = standardBase64(data)
  if (type.startsWith('text/')) return textPart(Buffer.from(bytes, 'base64').toString())
  const uri = `data:${type};base64,${bytes}`
  if (type.startsWith('image/')) return { type: 'image_url', image_url: { url: uri } }
  if (type.startsWith('audio/')) return { type: 'input_audio', input_audio: { data: bytes, format: soundOf(type) } }
  const filename = displayName ?? (type === 'application/pdf' ? 'document.pdf' : undefined)
  return { type: 'file', file: { file_data: uri, ...(filename === undefined ? {} : { filename }) } }
}

/** Python's client writes the URL-safe alphabet, which other vendors do not take. */
export const standardBase64 = (data: string): string =>
  data.includes('-') || data.includes('_') ? data.replaceAll('-', '+').replaceAll('_', '/') : data

/** The vendor's names of sounds -> the house's, where the end of the name is not it. */
const SOUNDS: Record<string, string> = { mpeg: 'mp3', 'x-wav': 'wav', wave: 'wav', 'x-aiff': 'aiff', 'x-flac': 'flac' }

function soundOf(type: string): string {
  const name = type.slice('audio/'.length)
  return Object.hasOwn(SOUNDS, name) ? (SOUNDS[name] ?? name) : name
}

/** What stands at an address: an image by its type, or by the end of the address where no type is told. */
export function filePart({ fileUri, mimeType, displayName }: FileData): ContentPart {
  const [path = ''] = fileUri.split(/[?#]/) // what follows them is no part of the path
  const isImage = mimeType ? /^image\//i.test(mimeType) : /\.(png|jpe?g|webp|gif|heic|heif)$/i.test(path) // kinds of images by their endings
  if (isImage) return { type: 'image_url', image_url: { url: fileUri } }
  return { type: 'file', file: { file_url: fileUri, ...(displayName === undefined ? {} : { filename: displayName }) } }
}

/** What the vendor's own tool ran, and what came of it, as part of what the model said. */
export function toolText({ executableCode: code, codeExecutionResult: result }: Part): string | undefined {
  if (code) return fenced(code.code, (code.language ?? '').toLowerCase())
  return result ? fenced(result.output ?? '', '') : undefined
}

const fenced = (text: string, language: string) =>
  `\n\`\`\`${/^[a-z]{1,20}$/.test(language) ? language : ''}\n${text.replace(/\n$/, '')}\n\`\`\`\n` // a word, and no line end twice

/** Members of a part's `videoMetadata` by which only some of it is meant; how often it is looked at only tunes. */
const CUTS = ['startOffset', 'endOffset'] as const

export function refuseCut({ videoMetadata }: Part, at: string): void {
  const cut = CUTS.find((name) => videoMetadata?.[name] !== undefined)
  if (cut === undefined) return
  const param = `${at}.videoMetadata.${cut}`
  throw new GatewayError('unsupported_parameter', `"${param}" is known to its own vendor only; send the part alone.`, {
    param,
  })
}
