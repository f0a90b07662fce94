/** Row of the contents of a request: encrypted text, which the store cannot read. */

export type ContentsRow = {
  /** Of its row of the request log. */
  row_id: number
  /** As in that row, as are the next two. */
  at_ms: number
  project_id: string | null
  end_user: string | null
  /** Of the key that it is encrypted with. */
  key_id: string
  /** In base64. */
  sealed: string
}

export type RequestContentsStore = {
  /** Adds rows in one transaction; rows that exist change nothing. */
  append(rows: readonly ContentsRow[]): Promise<void>
  find(row_id: number): Promise<ContentsRow | undefined>
  /** Deletes one batch of those that arrived before; false: nothing is left. */
  prune(before_ms: number): Promise<boolean>
}
