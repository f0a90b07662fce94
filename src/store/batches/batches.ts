/** Batches in the database: adding, listing, claiming and changing them. */
import { sql } from 'kysely'
import { UNFINISHED_BATCHES } from '../../spec/batch.ts'
import { appendAudit } from '../admin/audit-append.ts'
import { createEarliestDue } from '../earliest-due.ts'
import type { Engine } from '../engine.ts'
import type { Database, Write } from '../tables.ts'
import { dueInTurns } from '../turns.ts'
import { batchLines } from './batch-lines.ts'
import type { Batch, BatchFilter, BatchStore } from './batch-store.ts'
import type { BatchesTable } from './batch-tables.ts'

const earliestDue = createEarliestDue('batches')

export function batchStore(engine: Engine): BatchStore {
  const { db, write } = engine
  const find = async (rows: Database | Write, batch_id: string, token_id?: string) => {
    const own = rows.selectFrom('batches').selectAll().where('batch_id', '=', batch_id)
    const seen = own.where('token_id', '=', token_id ?? '').where('deleted_at', 'is', null)
    const row = await (token_id === undefined ? own : seen).executeTakeFirst()
    return row && batchOf(row)
  }
  return {
    ...batchLines(engine),
    async add(batch) {
      const row = { ...batch, request: JSON.stringify(batch.request), progress: JSON.stringify(batch.progress) }
      await write((rows) => rows.insertInto('batches').values(row).execute())
    },
    find: (batch_id, token_id) => find(db, batch_id, token_id),
    list: (filter) => listBatches(db, filter),

    async unfinished(token_id) {
      const { batches } = await db
        .selectFrom('batches')
        .select(({ fn }) => fn.countAll<number | string>().as('batches'))
        .where('token_id', '=', token_id)
        .where('status', 'in', UNFINISHED_BATCHES)
        .executeTakeFirstOrThrow()
      return Number(batches)
    },

    async counts() {
      const counted = await db
        .selectFrom('batches')
        .select(({ fn }) => ['status', fn.countAll<number | string>().as('batches')])
        .where('due_ms', 'is not', null)
        .where('status', 'in', UNFINISHED_BATCHES)
        .groupBy('status')
        .execute()
      return counted.map(({ status, batches }) => ({ status, batches: Number(batches) }))
    },

    earliest: () => earliestDue(db),

    async claim(claim) {
      const due = db.selectFrom('batches').select('batch_id').where('due_ms', '<=', claim.now_ms).limit(1)
      if (claim.limit < 1 || !(await due.executeTakeFirst())) return [] // most polls find nothing
      return write((rows) => claimRows(engine, rows, claim))
    },

    async renew({ batch_id, fence }, due_ms) {
      const renewed = await write((rows) =>
        rows
          .updateTable('batches')
          .set({ due_ms })
          .where((row) => row.and({ batch_id, fence }))
          .executeTakeFirst(),
      )
      return renewed.numUpdatedRows > 0n
    },

    save: ({ batch_id, fence }, { progress, release, ended, ...change }) =>
      write(async (rows) => {
        const saved = await rows
          .updateTable('batches')
          .set({
            ...change,
            ...(progress && { progress: JSON.stringify(progress) }),
            ...(release && { leased_by: '' }),
          })
          .where((row) => row.and({ batch_id, fence }))
          // It was cancelled meanwhile: only its end replaces that.
          .$if(change.status === 'in_progress' || change.status === 'finalizing', (query) =>
            query.where('cancelling_at', 'is', null),
          )
          .executeTakeFirst()
        if (saved.numUpdatedRows === 0n) return false
        if (ended) {
          const { callback, now_ms, ...owner } = ended
          const due = { attempts: 0, due_ms: now_ms, ended_ms: now_ms, delivered_at: null, last_status: null }
          await rows
            .insertInto('callbacks')
            .values({ ...callback, ...owner, ...due, task_id: batch_id })
            .execute()
        }
        return true
      }),

    async postpone(batches) {
      await write(async (rows) => {
        for (const { batch_id, fence, due_ms } of batches)
          await rows
            .updateTable('batches')
            .set({ due_ms, leased_by: '' })
            .where((row) => row.and({ batch_id, fence }))
            .execute()
      })
    },

    cancel: (batch_id, { now, now_ms, token_id, audit }) =>
      write(async (rows) => {
        const own = rows
          .updateTable('batches')
          .set({
            status: 'cancelling',
            cancelling_at: now,
            // A process that has claimed it sees this with the next line, and lets the calls that run end.
            due_ms: sql`case when leased_by = '' then ${now_ms} else due_ms end`,
          })
          .where('batch_id', '=', batch_id)
          .where('status', 'in', ['validating', 'in_progress'])
        const changed = token_id === undefined ? own : own.where('token_id', '=', token_id)
        const { numUpdatedRows } = await changed.executeTakeFirst()
        if (audit && numUpdatedRows > 0n) await appendAudit(rows, audit)
        return find(rows, batch_id, token_id)
      }),

    async hide(batch_id, token_id, { now, now_ms }) {
      await write((rows) =>
        rows
          .updateTable('batches')
          .set({ deleted_at: now, due_ms: sql`case when leased_by = '' then ${now_ms} else due_ms end` })
          .where((row) => row.and({ batch_id, token_id }))
          .where('status', 'not in', UNFINISHED_BATCHES)
          .execute(),
      )
    },

    async remove(batch_id) {
      await write(async (rows) => {
        await rows.deleteFrom('batch_parts').where('batch_id', '=', batch_id).execute()
        await rows.deleteFrom('callbacks').where('task_id', '=', batch_id).execute()
        await rows.deleteFrom('batches').where('batch_id', '=', batch_id).execute()
      })
    },
  }
}

/** Marks the batches that have not ended: their vendors may have orders that the backup lacks. */
export async function markRestored(write: Write, restored: NonNullable<Batch['progress']['restored']>): Promise<void> {
  const open = write.selectFrom('batches').select(['batch_id', 'progress']).where('status', 'in', UNFINISHED_BATCHES)
  for (const { batch_id, progress: text } of await open.execute()) {
    const progress: Batch['progress'] = JSON.parse(text)
    const backup_ms = Math.min(restored.backup_ms, progress.restored?.backup_ms ?? Number.POSITIVE_INFINITY)
    const orders = progress.orders?.map((order) => ({ ...order, is_sought: undefined }))
    const change = { restored: { ...restored, backup_ms }, orders, is_recovered: undefined }
    await write
      .updateTable('batches')
      .set({ progress: JSON.stringify({ ...progress, ...change }) })
      .where('batch_id', '=', batch_id)
      .execute()
  }
}

const batchOf = ({ request, progress, ...row }: BatchesTable): Batch => ({
  ...row,
  request: JSON.parse(request),
  progress: JSON.parse(progress),
})

async function listBatches(db: Database, filter: BatchFilter): Promise<Batch[]> {
  const { token_id, project_id, api, statuses, after, limit, order = 'desc' } = filter
  const beyond = sql.raw(order === 'desc' ? '<' : '>')
  const rows = await db
    .selectFrom('batches')
    .selectAll()
    .where('deleted_at', 'is', null)
    .$if(token_id !== undefined, (query) => query.where('token_id', '=', token_id ?? ''))
    .$if(project_id !== undefined, (query) => query.where('project_id', '=', project_id ?? ''))
    .$if(api !== undefined, (query) => query.where('api', '=', api ?? 'openai'))
    .$if(statuses !== undefined, (query) => query.where('status', 'in', statuses ?? []))
    .$if(after !== undefined, (query) =>
      query.where(sql<boolean>`(created_at, batch_id) ${beyond} (${after?.created_at}, ${after?.batch_id})`),
    )
    .orderBy('created_at', order)
    .orderBy('batch_id', order)
    .limit(limit)
    .execute()
  return rows.map(batchOf)
}

type Claim = Parameters<BatchStore['claim']>[0]

async function claimRows(engine: Engine, rows: Write, { by, now_ms, until_ms, limit }: Claim): Promise<Batch[]> {
  const claimed = await dueInTurns(engine, rows, { table: 'batches', id: 'batch_id', now_ms, limit })
  if (claimed.length === 0) return []
  const ids = claimed.map(({ batch_id }) => batch_id)
  await rows
    .updateTable('batches')
    .set((row) => ({ due_ms: until_ms, leased_by: by, fence: row('fence', '+', 1) }))
    .where('batch_id', 'in', ids)
    .execute()
  return claimed.map((row) => batchOf({ ...row, due_ms: until_ms, leased_by: by, fence: row.fence + 1 }))
}
