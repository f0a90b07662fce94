/** Encodes one part of a message: text, images, files and, if supported, audio. */
import { GatewayError } from '../../../spec/error.ts'
import type { ContentPart } from '../../../spec/message.ts'
import { refusedPart } from '../../shared/request-error.ts'

export type Part = { type: string } & Record<string, unknown>

export const refused = (param: string, rule: string) =>
  new GatewayError('unsupported_parameter', `"${param}" ${rule}.`, { param, accepted: 'no' })

/** `at` is the part's place in the request. */
export function partOf(part: ContentPart, at: string, audio: boolean): Part {
  if (part.type === 'text') return { type: 'input_text', text: part.text }
  if (part.type === 'refusal') return { type: 'input_text', text: part.refusal }
  if (part.type === 'image_url') {
    const { url, detail = 'auto' } = part.image_url
    return { type: 'input_image', image_url: url, detail }
  }
  if (part.type === 'file') return fileOf(part.file, `${at}.file`)
  if (audio) return { type: 'input_audio', input_audio: part.input_audio }
  throw refusedPart(`${at}.type`, 'must be "text", "image_url" or "file": the vendor accepts no audio here')
}

type File = Extract<ContentPart, { type: 'file' }>['file']

function fileOf({ file_data, file_id, file_url, filename }: File, at: string): Part {
  if (file_url !== undefined) return { type: 'input_file', file_url, ...(filename === undefined ? {} : { filename }) }
  if (file_id !== undefined) return { type: 'input_file', file_id }
  if (file_data === undefined) throw refusedPart(at, 'must have "file_data", "file_url" or "file_id"')
  // Without a type, the data is assumed to be a PDF, as nearly all such files are.
  const data = file_data.startsWith('data:') ? file_data : `data:application/pdf;base64,${file_data}`
  // The vendor requires a name with the data, and identifies the file type by its extension.
  return { type: 'input_file', filename: filename ?? `file.${endingOf(data)}`, file_data: data }
}

const ENDINGS: Record<string, string> = {
  'text/plain': 'txt',
  'text/markdown': 'md',
  'text/html': 'html',
  'text/csv': 'csv',
  'application/json': 'json',
}

function endingOf(data: string): string {
  // A type is short. A longer text is none.
  const type = data.slice('data:'.length, 100).split(/[;,]/, 1)[0]?.toLowerCase() ?? ''
  return ENDINGS[type] ?? 'pdf'
}
