/** Files of tokens: stored as a row and, where finished files are, its bytes. What the routes, batches and inputs of calls use. */
import type { StorageQuota } from '../../accounts/storage-quota.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { orderedAlphanumerics, randomAlphanumerics } from '../../kit/secret.ts'
import type { ByteRange, FileStore, StoredFile } from '../../outputs/outputs.ts'
import { GatewayError } from '../../spec/error.ts'
import type { StoredPurpose } from '../../spec/file.ts'
import type { FileFilter, FileRow, FileRowStore } from '../../store/files/file-row.ts'

/** Whose file it is: a caller is one. */
export type FileOwner = { token_id: string; project_id?: string | undefined }

export type NewFile = {
  owner: FileOwner
  purpose: StoredPurpose
  filename: string
  content_type: string
  /** In unix seconds; null: it is kept until it is deleted; absent: as the purpose is configured. */
  expires_at?: number | null
  /** Of `newId`, where writing it again must not create a second file; absent: a new one. */
  file_id?: string
}

/** Written, but not shown yet. */
type Written = { started: FileRow; bytes: number }

export type Files = {
  /**
   * Stores what the gateway itself writes, whatever the quota of the token. Nobody sees the file before it is whole. Where a file
   * of this id was written before, that one is returned, and nothing is read from the body.
   */
  write(file: NewFile, body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<FileRow>
  newId(): string
  /** Throws `file_not_found`, also for a file of another token. */
  find(file_id: string, owner: FileOwner, param?: string): Promise<FileRow>
  /** Its bytes from `range.first` on, or all. Throws `file_not_found` where something else has removed them. */
  open(file: FileRow): Promise<StoredFile>
  read(file: FileRow, range?: Partial<ByteRange>): Promise<ReadableStream<Uint8Array>>
  list(owner: FileOwner, filter: FileFilter): Promise<FileRow[]>
  /** Throws `file_not_found`. */
  remove(file_id: string, owner: FileOwner): Promise<void>
  /** Removes what is left of files that were deleted, have expired, or were never finished; false: nothing is left. */
  sweep(): Promise<boolean>
  upload: FileUpload
}

/** The steps of an upload, of which the last may fail: then the caller discards it. */
type FileUpload = {
  begin(owner: FileOwner, content_type: string, filename: string): Promise<FileRow>
  receive(started: FileRow, body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<number>
  finish(
    written: Written,
    file: Pick<NewFile, 'purpose' | 'expires_at'> & Partial<Pick<FileRow, 'problems'>>,
  ): Promise<FileRow>
  discard(started: FileRow): Promise<void>
}

export type FileSettings = { max_bytes: number; batch_max_bytes: number; keep_days: number; batch_keep_days: number }

type FilesParts = {
  store: FileRowStore
  outputs: Pick<FileStore, 'open' | 'write' | 'remove'>
  quota: StorageQuota
  projectQuota: StorageQuota
  settings(): FileSettings
  /** Told of each file that was stored. */
  onStored?: ((content_type: string, bytes: number) => void) | undefined
  clock: Clock
  log: Log
}

/** What distinguishes the gateway's ids from those of vendors, which are passed on. */
export const FILE_ID_PREFIX = 'file-gh'
const ID = /^file-gh[0-9a-z]{9}[A-Za-z0-9]{15}$/
export const isFileId = (text: string): boolean => ID.test(text)

const DAY_SECONDS = 86_400
/** After this time, what an interrupted write has left is removed: longer than any write takes (`WRITE_SECONDS`). */
const PENDING_SECONDS = 7_200
export const WRITE_SECONDS = 3_600
const SWEPT_AT_ONCE = 50

export function createFiles(parts: FilesParts): Files {
  const { store, outputs, quota, projectQuota, settings, clock, log } = parts
  const now = () => unixSeconds(clock)
  const newId = () => `${FILE_ID_PREFIX}${orderedAlphanumerics(clock.now(), 24)}`

  function rowOf({
    owner,
    purpose,
    filename,
    content_type,
    file_id = newId(),
  }: Omit<NewFile, 'purpose'> & { purpose: FileRow['purpose'] }): FileRow {
    return {
      file_id,
      token_id: owner.token_id,
      project_id: owner.project_id ?? null,
      purpose,
      filename,
      content_type,
      bytes: 0,
      created_at: now(),
      expires_at: now() + PENDING_SECONDS,
      output_key: `${file_id}/${randomAlphanumerics(12)}`,
      problems: null,
    }
  }

  function expiryOf({ created_at }: FileRow, purpose: StoredPurpose): number | null {
    const { keep_days, batch_keep_days } = settings()
    const days = purpose === 'batch' || purpose === 'batch_output' ? batch_keep_days : keep_days
    return days === 0 ? null : created_at + Math.ceil(days * DAY_SECONDS)
  }

  const upload: FileUpload = {
    async begin(owner, content_type, filename) {
      const started = rowOf({ owner, purpose: '', filename, content_type })
      await store.begin(started)
      return started
    },
    async receive({ output_key, content_type }, body, signal) {
      const stop = withDeadline(signal, clock)
      try {
        return (await outputs.write(output_key, { content_type, body }, stop.signal)).bytes
      } finally {
        stop.cancel()
      }
    },
    async finish({ started, bytes }, { purpose, expires_at = expiryOf(started, purpose), problems = null }) {
      const file = { ...started, bytes, purpose, expires_at, problems }
      if (!(await store.finish(file)))
        throw new Error(`The file ${file.file_id} was written by another process, or too slowly.`)
      const amount = { rows: 1, bytes }
      quota.stored(file.token_id, amount)
      if (file.project_id !== null) projectQuota.stored(file.project_id, amount)
      parts.onStored?.(file.content_type, bytes)
      return file
    },
    async discard(started) {
      try {
        await outputs.remove(started.output_key)
        await store.remove([started])
      } catch (thrown) {
        // The sweep removes it.
        log.error('file not discarded', { file_id: started.file_id }, thrown)
      }
    },
  }

  async function find(file_id: string, { token_id }: FileOwner, param?: string): Promise<FileRow> {
    const file = isFileId(file_id) ? await store.find(file_id, now(), token_id) : undefined
    if (!file) throw fileNotFound(file_id, param)
    return file
  }

  async function open(file: FileRow): Promise<StoredFile> {
    const stored = await outputs.open(file.output_key)
    if (!stored) throw missing(file)
    return stored
  }

  return {
    newId,
    find,
    open,
    async write(file, body, signal) {
      const started = rowOf(file)
      const finished = await store.begin(started)
      if (finished) {
        await body.cancel()
        return finished
      }
      try {
        const bytes = await upload.receive(started, body, signal)
        return await upload.finish({ started, bytes }, file)
      } catch (thrown) {
        await upload.discard(started)
        throw thrown
      }
    },
    async read(file, { first = 0, last = file.bytes - 1 } = {}) {
      const stored = await open(file)
      return first === 0 && last === file.bytes - 1 ? stored.body() : stored.body({ first, last })
    },
    list: ({ token_id }, filter) => store.list({ token_id }, now(), filter),
    async remove(file_id, owner) {
      const file = await find(file_id, owner)
      if (!(await store.hide(file_id, now(), owner.token_id))) throw fileNotFound(file_id)
      quota.freed(file.token_id)
      if (file.project_id !== null) projectQuota.freed(file.project_id)
      // At once, though the sweep would do it: who deletes a file wants its bytes gone.
      await upload.discard(file)
    },
    async sweep() {
      const due = await store.due(now(), SWEPT_AT_ONCE)
      const removed: FileRow[] = []
      for (const file of due) {
        try {
          await outputs.remove(file.output_key)
          removed.push(file)
        } catch (thrown) {
          log.error('file not removed', { file_id: file.file_id }, thrown)
        }
      }
      await store.remove(removed)
      return removed.length === SWEPT_AT_ONCE
    },
    upload,
  }
}

/** A signal that is aborted with another one, or after the time that any write may take. */
function withDeadline(signal: AbortSignal, clock: Clock) {
  const late = new AbortController()
  const error = new GatewayError('request_timeout', `The file could not be stored within ${WRITE_SECONDS} s.`)
  const cancel = clock.after(WRITE_SECONDS * 1_000, () => late.abort(error))
  return { signal: AbortSignal.any([signal, late.signal]), cancel }
}

const fileNotFound = (file_id: string, param?: string) =>
  new GatewayError(
    'file_not_found',
    `No such file: '${file_id.slice(0, 80)}'. It was deleted, has expired, or was uploaded with another token.`,
    param === undefined ? {} : { param },
  )

const missing = ({ file_id }: FileRow) =>
  new GatewayError(
    'file_not_found',
    `The file '${file_id}' is missing where the gateway stores files: something else has deleted or moved it. Ask the operator to restore it, or upload it again.`,
  )
