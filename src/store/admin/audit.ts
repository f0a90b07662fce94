/** The audit log in the database. */
import type { AuditRow } from '../../spec/audit.ts'
import type { Engine } from '../engine.ts'
import { readPage } from '../page.ts'
import type { AuditTable } from '../tables.ts'
import { AUDIT_NOUN, appendAudit, FIRST_HASH, hashOf } from './audit-append.ts'
import type { AuditStore } from './audit-store.ts'

const VERIFY_BATCH = 1_000

export function auditStore({ db, write }: Engine): AuditStore {
  return {
    append: (draft) => write((rows) => appendAudit(rows, draft)),

    page({ limit, after, ...filter }) {
      const { actor, action, object_id, project_id, from_ms, to_ms } = filter
      const rows = db
        .selectFrom('audit')
        .selectAll()
        .$if(actor !== undefined, (query) => query.where('actor', '=', actor ?? ''))
        .$if(action !== undefined, (query) => query.where('action', '=', action ?? ''))
        .$if(object_id !== undefined, (query) => query.where('object_id', '=', object_id ?? ''))
        .$if(project_id !== undefined, (query) => query.where('project_id', '=', project_id ?? ''))
        .$if(from_ms !== undefined, (query) => query.where('at_ms', '>=', from_ms ?? 0))
        .$if(to_ms !== undefined, (query) => query.where('at_ms', '<', to_ms ?? 0))
      return readPage(rows, { limit, after, by: ['sequence'], fromRow })
    },

    async verify() {
      // Read first: rows that are appended meanwhile are checked too, and are no surplus.
      const counted = await db
        .selectFrom('revisions')
        .select('revision')
        .where('noun', '=', AUDIT_NOUN)
        .executeTakeFirst()
      const state = { rows: 0, last_hash: FIRST_HASH }
      for (;;) {
        const rows = await db
          .selectFrom('audit')
          .selectAll()
          .where('sequence', '>', state.rows)
          .orderBy('sequence')
          .limit(VERIFY_BATCH)
          .execute()
        for (const row of rows) {
          const trouble = troubleOf(row, state)
          if (trouble) return { ...state, broken: trouble }
          state.rows = row.sequence
          state.last_hash = row.hash
        }
        if (rows.length < VERIFY_BATCH) break
      }
      const missing = counted === undefined || counted.revision > state.rows
      return missing
        ? {
            ...state,
            broken: { sequence: state.rows + 1, trouble: 'the row is missing; it was the last or one of them' },
          }
        : state
    },
  }
}

function troubleOf(row: AuditTable, { rows, last_hash }: { rows: number; last_hash: string }) {
  if (row.sequence !== rows + 1) return { sequence: rows + 1, trouble: 'the row is missing' }
  if (row.previous_hash !== last_hash) {
    return { sequence: row.sequence, trouble: 'it does not follow the row before: a row was replaced' }
  }
  const { hash, ...covered } = row
  if (hashOf(covered) === hash) return undefined
  return { sequence: row.sequence, trouble: 'its content is not that of its hash: it was changed' }
}

const fromRow = ({ before, after, ...row }: AuditTable): AuditRow => ({
  ...row,
  before: before === null ? null : JSON.parse(before),
  after: after === null ? null : JSON.parse(after),
})
