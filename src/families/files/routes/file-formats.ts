/** Files and lists of them in the form of the client: that of the OpenAI API, or of the Messages API. */
import { queryOf } from '../../../http/request-parts.ts'
import { GatewayError, invalidValue } from '../../../spec/error.ts'
import { idPage } from '../../../spec/fields.ts'
import { FILE_PURPOSES, type FileList, type FileObject, STORED_PURPOSES } from '../../../spec/file.ts'
import type { FileFilter, FileRow } from '../../../store/files/file-row.ts'
import { isFileId } from '../files.ts'
import type { UploadFields } from './upload-form.ts'

type Limits = { max_bytes: number; batch_max_bytes: number }
type Fields = { [name: string]: unknown }

type FileFormat = {
  /** Throws GatewayError naming the field. */
  read(fields: Fields, limits: Limits): UploadFields
  page(query: URLSearchParams): FileFilter
  one(file: FileRow): unknown
  /** `files`: one more than the limit where there are more. */
  list(files: FileRow[], filter: FileFilter): unknown
  deleted(file_id: string): unknown
}

export const isOfMessages = ({ headers }: Request): boolean => headers.has('anthropic-version')
export const formatOf = (request: Request): FileFormat => (isOfMessages(request) ? messagesFormat : openaiFormat)

const MOST_LISTED = 10_000

const openaiFormat: FileFormat = {
  read({ purpose, expires_after, ...rest }, limits) {
    refuseOthers(rest)
    const known = purposeIn(purpose)
    const max_bytes = known === 'batch' ? Math.min(limits.batch_max_bytes, limits.max_bytes) : limits.max_bytes
    if (expires_after === undefined) return { purpose: known, max_bytes }
    const { anchor, seconds } = (expires_after ?? {}) as Fields
    if (anchor !== 'created_at') throw invalid('expires_after[anchor]', 'must be "created_at"')
    return { purpose: known, max_bytes, keep_seconds: secondsIn('expires_after[seconds]', seconds, 30) }
  },
  page(query) {
    const given = query.get('purpose')
    const purpose = STORED_PURPOSES.find((one) => one === given)
    if (given !== null && purpose === undefined)
      throw invalid('purpose', `must be one of ${STORED_PURPOSES.join(', ')}`)
    const order = query.get('order') ?? 'desc'
    if (order !== 'asc' && order !== 'desc') throw invalid('order', 'must be "asc" or "desc"')
    return { purpose, order, after: idIn(query, 'after'), limit: limitIn(query, MOST_LISTED, MOST_LISTED) }
  },
  one: fileObject,
  list: (files, { limit }): FileList => idPage(files.slice(0, limit).map(fileObject), files.length > limit),
  deleted: (id) => ({ id, object: 'file', deleted: true }),
}

function fileObject({ file_id, bytes, created_at, expires_at, filename, purpose, problems }: FileRow): FileObject {
  return {
    id: file_id,
    object: 'file',
    bytes,
    created_at,
    ...(expires_at !== null && { expires_at }),
    filename,
    // A file that can be seen has a purpose.
    purpose: purpose || 'user_data',
    status: problems === null ? 'processed' : 'error',
    ...(problems && { status_details: detailsOf(problems) }),
  }
}

type Problems = { problems: { message: string; line: number | null }[] }

function detailsOf(json: string): string {
  const { problems } = JSON.parse(json) as Problems
  const named = problems.slice(0, 3).map(({ message, line }) => (line === null ? message : `Line ${line}: ${message}`))
  return `A batch of this file would fail. ${named.join(' ')}${problems.length > 3 ? ' There are more problems.' : ''}`
}

const REFUSED: Record<string, string> = {
  assistants: 'this gateway has no assistants',
  evals: 'this gateway has no evals',
  'fine-tune': 'this gateway has no fine-tuning',
  batch_output: 'only the gateway writes the output of a batch',
}

function purposeIn(given: unknown): (typeof FILE_PURPOSES)[number] {
  if (given === undefined)
    throw new GatewayError('missing_required_parameter', '"purpose" is required.', { param: 'purpose' })
  const known = FILE_PURPOSES.find((purpose) => purpose === given)
  if (known) return known
  const list = FILE_PURPOSES.join(', ')
  const why = typeof given === 'string' && Object.hasOwn(REFUSED, given) ? `${REFUSED[given]}; it` : 'it'
  const message = `"purpose" cannot be "${String(given).slice(0, 60)}": ${why} must be one of ${list}.`
  throw new GatewayError(why === 'it' ? 'invalid_value' : 'unsupported_value', message, { param: 'purpose' })
}

export const rfc3339 = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')

function fileMetadata({ file_id, bytes, created_at, expires_at, filename, content_type }: FileRow) {
  return {
    id: file_id,
    type: 'file',
    filename,
    mime_type: content_type,
    size_bytes: bytes,
    created_at: rfc3339(created_at),
    expires_at: expires_at === null ? null : rfc3339(expires_at),
    downloadable: true,
  }
}

const MESSAGES_LISTED = 20
const MOST_MESSAGES_LISTED = 1_000
const MOST_IDS = 100

const messagesFormat: FileFormat = {
  read({ expires_in_seconds: seconds, ...rest }, { max_bytes }) {
    refuseOthers(rest)
    const file = { purpose: 'user_data', max_bytes } as const
    if (seconds === undefined) return file
    return { ...file, keep_seconds: secondsIn('expires_in_seconds', seconds, 90) }
  },
  page(query) {
    const [after, before] = [idIn(query, 'after_id') ?? idIn(query, 'page'), idIn(query, 'before_id')]
    const file_ids = query.getAll('ids[]')
    const unknown = file_ids.find((id) => !isFileId(id))
    if (unknown !== undefined) throw invalid('ids[]', 'must be ids of files')
    if (file_ids.length > MOST_IDS) throw invalid('ids[]', `may have at most ${MOST_IDS} ids`)
    const limit = limitIn(query, MESSAGES_LISTED, MOST_MESSAGES_LISTED)
    return { order: 'desc', after, before, limit, ...(file_ids.length > 0 && { file_ids }) }
  },
  one: fileMetadata,
  list(files, { limit, after, before }) {
    const isBackward = before !== undefined && after === undefined
    const has_more = files.length > limit
    const page = isBackward ? files.slice(-limit) : files.slice(0, limit)
    const [first_id = null, last_id = null] = [page[0]?.file_id, page.at(-1)?.file_id]
    return { data: page.map(fileMetadata), has_more, first_id, last_id, next_page: has_more ? last_id : null }
  },
  deleted: (id) => ({ id, type: 'file_deleted' }),
}

function refuseOthers(rest: Fields): void {
  const [name] = Object.keys(rest)
  if (name !== undefined)
    throw new GatewayError('unsupported_parameter', `"${name.slice(0, 60)}" is not a field of this form.`, {
      param: name.slice(0, 60),
    })
}

function secondsIn(param: string, given: unknown, days: number): number {
  const most = days * 86_400
  if (typeof given === 'number' && Number.isInteger(given) && given >= 3_600 && given <= most) return given
  throw invalid(param, `must be an integer from 3600 to ${most}`)
}

function idIn(query: URLSearchParams, name: string): string | undefined {
  const id = query.get(name)
  if (id === null || id === '') return undefined
  if (!isFileId(id)) throw invalid(name, 'must be the id of a file')
  return id
}

export function limitIn(query: URLSearchParams, usual: number, most: number): number {
  const text = query.get('limit')
  if (text === null) return usual
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > most) throw invalid('limit', `must be an integer from 1 to ${most}`)
  return limit
}

export const invalid = (param: string, what: string) => invalidValue(param, `"${param}" ${what}.`)

export const queryPage = (request: Request): FileFilter => formatOf(request).page(queryOf(request))
