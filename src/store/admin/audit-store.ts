/** Contract of the stored audit log. */
import type { AuditDraft, AuditRow } from '../../spec/audit.ts'
import type { StorePage } from '../page.ts'

export type AuditFilter = {
  actor?: string
  action?: string
  object_id?: string
  project_id?: string
  /** Unix milliseconds; included. */
  from_ms?: number
  /** Unix milliseconds; not included. */
  to_ms?: number
}

/** The result of a check of the chain. `broken`: the first row that is wrong, and how. */
export type AuditCheck = { rows: number; last_hash: string; broken?: { sequence: number; trouble: string } }

export type AuditStore = {
  /** Appends a row. Changes of tokens, projects and administrators append theirs in the transaction of the change. */
  append(draft: AuditDraft): Promise<void>
  /** Newest first. */
  page(filter: AuditFilter & { limit: number; after?: string[] }): Promise<StorePage<AuditRow>>
  /** Reads all rows, in batches, and recomputes the chain. */
  verify(): Promise<AuditCheck>
}
