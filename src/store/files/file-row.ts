/** Files as they are stored: rows that name them, and where their bytes are. */
import type { StoredPurpose } from '../../spec/file.ts'
import type { StoredAmount } from '../tokens/amount-store.ts'

export type FileRow = {
  /** In the order of creation. */
  file_id: string
  token_id: string
  project_id: string | null
  /** Empty: it is being written, and not known yet. */
  purpose: StoredPurpose | ''
  filename: string
  content_type: string
  bytes: number
  created_at: number
  /** Of a file that is being written or was deleted: when what is left of it is removed. */
  expires_at: number | null
  output_key: string
  /** What its upload found wrong for a batch of it, as JSON; empty in lists; null: nothing. */
  problems: string | null
}

/** Whose files: those of one token, or for the operator those of a project, or all. */
export type FileOwner = { token_id?: string | undefined; project_id?: string | undefined }

export type FileFilter = {
  purpose?: StoredPurpose | undefined
  /** The ids between which the page lies, both exclusive. */
  after?: string | undefined
  before?: string | undefined
  file_ids?: readonly string[] | undefined
  limit: number
  order: 'asc' | 'desc'
}

export type FileRowStore = {
  /**
   * Stores the row of a file that is being written, which nobody sees until `finish`. One that was not finished gives way; where
   * there is a finished one of this id, it is returned and nothing changes.
   */
  begin(file: FileRow): Promise<FileRow | undefined>
  /** Shows the file. False: it was removed meanwhile, or another writer has begun it again or finished it. */
  finish(file: FileRow): Promise<boolean>
  /** With a `token_id`: only a file of that token. */
  find(file_id: string, now: number, token_id?: string): Promise<FileRow | undefined>
  list(owner: FileOwner, now: number, filter: FileFilter): Promise<FileRow[]>
  /** Hides a file of this token, and makes it due for removal; false if there is none. */
  hide(file_id: string, now: number, token_id?: string): Promise<boolean>
  /** Files that are due for removal. */
  due(now: number, limit: number): Promise<FileRow[]>
  /** Removes the rows of files whose bytes are removed: each with its key, since it may have begun again. */
  remove(files: readonly Pick<FileRow, 'file_id' | 'output_key'>[]): Promise<void>
  amount(owner: FileOwner): Promise<StoredAmount>
}
