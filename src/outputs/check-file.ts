/** Decides the content type of a received file, and refuses a file that is incomplete or not what its labels promise. */
import { structureFault } from '../kit/file-structure.ts'
import { bareType, isDetectable, isStatedType, typeOfFile, UNKNOWN_TYPE } from '../kit/file-type.ts'
import { SNIFF_BYTES, sniff } from '../kit/sniff.ts'
import { GatewayError } from '../spec/error.ts'
import type { PartialFile } from './partial-files.ts'

/** Of the provider, of its file server, and what its family generates: the first one that names a type counts. */
type Labels = (string | null | undefined)[]

/** Types of servers that do not know the type of a file. */
const UNSPECIFIC = /^(text\/plain|(application|binary)\/(octet-stream|x-download|force-download)|)$/

/**
 * The type detected from the bytes; a label counts only where detection fails. Throws GatewayError with the `fail_code`
 * `output_invalid`: the file may arrive whole at the next attempt.
 */
export async function checkFile(partial: PartialFile, labels: Labels): Promise<string> {
  const first = await partial.read(0, SNIFF_BYTES)
  const fault =
    labelFault(first, labels) ??
    (await structureFault({ size: partial.bytes, read: (at, length) => partial.read(at, length) }))
  if (fault !== undefined) throw invalid(fault)
  for (const label of labels) {
    const type = typeOfFile(first, label ?? undefined)
    if (type !== UNKNOWN_TYPE) return type
  }
  return UNKNOWN_TYPE
}

/** Bytes that show no type must not be labelled as one that they would show: they are an error text, for example. */
function labelFault(first: Uint8Array, labels: Labels): string | undefined {
  if (sniff(first) !== undefined) return undefined
  const type = labels.map((label) => bareType(label ?? '')).find((label) => !UNSPECIFIC.test(label))
  if (type === undefined) return undefined
  if (isDetectable(type) || (isStatedType(type) && isDocument(first))) return `it is not a file of the type ${type}`
  const is_archive = /^(application\/zip|model\/vnd\.usdz\+zip)$/.test(type)
  return is_archive && !startsWith(first, 'PK') ? `it is not a file of the type ${type}` : undefined
}

/** JSON, HTML and XML begin with one of these; no text format of a 3D model does. */
const isDocument = (first: Uint8Array) => /^[\s\xef\xbb\xbf]*[{<[]/.test(latin1(first))
const startsWith = (first: Uint8Array, text: string) => latin1(first).startsWith(text)
const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

const invalid = (fault: string) =>
  new GatewayError('bad_upstream_response', `The provider's file is broken: ${fault}.`, { fail_code: 'output_invalid' })

export const isInvalidFile = (error: unknown): boolean =>
  error instanceof GatewayError && error.detail.fail_code === 'output_invalid'
