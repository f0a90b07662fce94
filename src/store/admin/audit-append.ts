/** Appends to the audit log, within the transaction of the change: each row's hash covers the hash of the row before. */
import { sha256 } from '../../kit/secret.ts'
import type { AuditDraft } from '../../spec/audit.ts'
import { addToRevision } from '../revisions.ts'
import type { AuditTable, Write } from '../tables.ts'
import { stateTexts } from './audit-redact.ts'

/** The row of `revisions` that counts the rows: writers of all processes wait for each other there. */
export const AUDIT_NOUN = 'audit'
/** What the hash of the first row covers in place of the one before. */
export const FIRST_HASH = '0'.repeat(64)

/** To be called last in a transaction, since all others wait for its end. */
export async function appendAudit(write: Write, draft: AuditDraft): Promise<void> {
  const sequence = await addToRevision(write, AUDIT_NOUN, 1)
  const last = await write
    .selectFrom('audit')
    .select('hash')
    .where('sequence', '=', sequence - 1)
    .executeTakeFirst()
  const row = {
    sequence,
    at_ms: Math.floor(draft.at_ms),
    actor: storable(draft.actor),
    action: storable(draft.action),
    object_type: storable(draft.object_type),
    object_id: storable(draft.object_id),
    project_id: draft.project_id ?? null,
    address: draft.address === undefined ? null : storable(draft.address),
    request_id: draft.request_id === undefined ? null : storable(draft.request_id),
    ...stateTexts(draft.before, draft.after),
    // A missing row breaks the chain, and does not stop the gateway: `audit verify` names it.
    previous_hash: last?.hash ?? FIRST_HASH,
  }
  await write
    .insertInto('audit')
    .values({ ...row, hash: hashOf(row) })
    .execute()
}

/** PostgreSQL stores no NUL, and a lone surrogate would be stored as another character than was hashed. */
const storable = (text: string): string => text.slice(0, 500).replaceAll('\0', '').toWellFormed()

/** Of the stored texts, so that the same row always has the same hash. */
export const hashOf = (row: Omit<AuditTable, 'hash'>): string =>
  sha256(
    JSON.stringify([
      row.sequence,
      row.previous_hash,
      row.at_ms,
      row.actor,
      row.action,
      row.object_type,
      row.object_id,
      row.project_id,
      row.address,
      row.request_id,
      row.before,
      row.after,
    ]),
  )
