/** Images, audio and files of a message, in the form of AI SDK packages. */
import { refusedPart } from '../../../protocols/shared/request-error.ts'
import { invalidValue } from '../../../spec/error.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { Media } from '../../media.ts'

export type PromptFile = {
  type: 'file'
  mediaType: string
  filename?: string
  data: { type: 'data'; data: string } | { type: 'url'; url: URL }
}

type FileParts = {
  media: Pick<Media, 'read'>
  signal: AbortSignal
  /** Files given by URL are fetched. */
  asBytes: boolean
}
type Medium = Exclude<ContentPart, { type: 'text' | 'refusal' }>

/** data:image/png;base64,AAAA */
const DATA_URI = /^data:([^,;]*)[^,]*,/i

/** `at`: the path of the part in the request, for errors. */
export async function fileOf(part: Medium, at: string, parts: FileParts): Promise<PromptFile> {
  if (part.type === 'image_url') return fileAt(part.image_url.url, 'image/*', `${at}.image_url.url`, parts)
  if (part.type === 'input_audio') {
    const { data, format } = part.input_audio
    return dataFile(data, `audio/${format === 'mp3' ? 'mpeg' : format}`)
  }
  const { file_data, file_url, filename } = part.file
  const named = filename === undefined ? {} : { filename }
  const mediaType = typeOf(filename)
  if (file_data !== undefined)
    return { ...(inlineFile(file_data, mediaType) ?? dataFile(file_data, mediaType)), ...named }
  if (file_url !== undefined) return { ...(await fileAt(file_url, mediaType, `${at}.file.file_url`, parts)), ...named }
  const param = `${at}.file.file_id`
  throw refusedPart(param, 'is not supported by the provider; send the file itself as "file_data"')
}

async function fileAt(value: string, mediaType: string, param: string, parts: FileParts): Promise<PromptFile> {
  const inline = inlineFile(value, mediaType)
  if (inline) return inline
  const url = URL.parse(value)
  if (!url) throw invalidValue(param, `"${param}" must be a URL or a data URI.`)
  if (!parts.asBytes || !/^https?:$/.test(url.protocol)) return { type: 'file', mediaType, data: { type: 'url', url } }
  const { bytes, content_type } = await parts.media.read(value, parts.signal, param)
  return dataFile(Buffer.from(bytes).toString('base64'), content_type)
}

const dataFile = (data: string, mediaType: string): PromptFile => ({
  type: 'file',
  mediaType,
  data: { type: 'data', data },
})

/** Undefined: the value is no data URI. */
function inlineFile(value: string, mediaType: string): PromptFile | undefined {
  const found = DATA_URI.exec(value.slice(0, 300))
  return found ? dataFile(value.slice(found[0].length), found[1] || mediaType) : undefined
}

const TYPES: Record<string, string> = {
  csv: 'text/csv',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  html: 'text/html',
  md: 'text/markdown',
  txt: 'text/plain',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
}

/** By the extension of the name; most files are PDFs. */
const typeOf = (filename = ''): string => TYPES[filename.split('.').at(-1)?.toLowerCase() ?? ''] ?? 'application/pdf'
