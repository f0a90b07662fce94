/** The media type of an uploaded file: what its bytes show, and what the client says only where they show nothing. */
import { bareType, isDetectable, UNKNOWN_TYPE } from '../../kit/file-type.ts'
import { sniff } from '../../kit/sniff.ts'

const PDF = 'application/pdf'
/** A media type of reasonable length, without parameters (RFC 6838, section 4.2). */
const NAME = /^[a-z0-9][\w.+-]{0,60}\/[a-z0-9][\w.+-]{0,80}$/
/** For clients that name no type: by the end of the name. */
const ENDINGS: Record<string, string> = {
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  jsonl: 'application/jsonl',
  md: 'text/markdown',
  txt: 'text/plain',
  xml: 'application/xml',
}

export function uploadedType(first: Uint8Array, declared: string, filename: string): string {
  const shown = sniff(first) ?? (startsAsPdf(first) ? PDF : undefined)
  if (shown !== undefined) return shown
  const type = bareType(declared)
  const isText = !first.includes(0)
  // Bytes that do not show what they would show if they were it.
  if (
    NAME.test(type) &&
    type !== UNKNOWN_TYPE &&
    type !== PDF &&
    !isDetectable(type) &&
    (isText || !/^text\//.test(type))
  )
    return type
  const ending = /\.([A-Za-z0-9]+)$/.exec(filename)?.[1]?.toLowerCase() ?? ''
  return (isText ? ENDINGS[ending] : undefined) ?? UNKNOWN_TYPE
}

const startsAsPdf = (first: Uint8Array): boolean => Buffer.from(first.subarray(0, 5)).toString('latin1') === '%PDF-'
