/** The rows of files. */
import { sql } from 'kysely'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { Engine } from '../engine.ts'
import type { Database } from '../tables.ts'
import type { FileFilter, FileOwner, FileRow, FileRowStore } from './file-row.ts'

export function fileRowStore({ db, write }: Engine): FileRowStore {
  return {
    begin: (file) =>
      write(async (rows) => {
        const stored = await rows.selectFrom('files').selectAll().where('file_id', '=', file.file_id).executeTakeFirst()
        if (stored?.is_ready === 1) return rowOf(stored)
        if (stored) {
          // Under another id, what an interrupted write may have left is still removed.
          const file_id = `${stored.file_id}~${randomAlphanumerics(8)}`
          await rows.updateTable('files').set({ file_id }).where('file_id', '=', stored.file_id).execute()
        }
        await rows
          .insertInto('files')
          .values({ ...file, is_ready: 0 })
          .execute()
        return undefined
      }),

    finish: ({ file_id, output_key, ...file }) =>
      write(async (rows) => {
        const [updated] = await rows
          .updateTable('files')
          .set({ ...file, is_ready: 1 })
          .where((row) => row.and({ file_id, output_key, is_ready: 0 }))
          .execute()
        return (updated?.numUpdatedRows ?? 0n) > 0n
      }),

    async find(file_id, now, token_id) {
      let query = visible(db, now).where('file_id', '=', file_id)
      if (token_id !== undefined) query = query.where('token_id', '=', token_id)
      const row = await query.executeTakeFirst()
      return row && rowOf(row)
    },

    list: (owner, now, filter) => listFiles(db, { owner, now, filter }),

    hide: (file_id, now, token_id) =>
      write(async (rows) => {
        let query = rows
          .updateTable('files')
          .set({ is_ready: 0, expires_at: now })
          .where((row) => row.and({ file_id, is_ready: 1 }))
          .where(isCurrent(now))
        if (token_id !== undefined) query = query.where('token_id', '=', token_id)
        const [hidden] = await query.execute()
        return (hidden?.numUpdatedRows ?? 0n) > 0n
      }),

    async due(now, limit) {
      const rows = await db
        .selectFrom('files')
        .selectAll()
        .where('expires_at', '<=', now)
        .orderBy('expires_at')
        .limit(limit)
        .execute()
      return rows.map(rowOf)
    },

    async remove(files) {
      if (files.length === 0) return
      await write(async (rows) => {
        for (const { file_id, output_key } of files)
          await rows.deleteFrom('files').where('file_id', '=', file_id).where('output_key', '=', output_key).execute()
      })
    },

    async amount(owner) {
      const sums = await ofOwner(db, owner)
        .select([sql<number | string>`count(*)`.as('rows'), sql<number | string | null>`sum(bytes)`.as('bytes')])
        .where('is_ready', '=', 1)
        .executeTakeFirstOrThrow()
      return { rows: Number(sums.rows), bytes: Number(sums.bytes ?? 0) }
    },
  }
}

const isCurrent = (now: number) => sql<boolean>`(expires_at is null or expires_at > ${now})`

const visible = (db: Database, now: number) =>
  db.selectFrom('files').selectAll().where('is_ready', '=', 1).where(isCurrent(now))

function ofOwner(db: Database, { token_id, project_id }: FileOwner) {
  let query = db.selectFrom('files')
  if (token_id !== undefined) query = query.where('token_id', '=', token_id)
  if (project_id !== undefined) query = query.where('project_id', '=', project_id)
  return query
}

const LISTED = [
  'file_id',
  'token_id',
  'project_id',
  'purpose',
  'filename',
  'content_type',
  'bytes',
  'created_at',
  'expires_at',
  'output_key',
] as const
const HAS_PROBLEMS = sql<string | null>`case when problems is null then null else '' end`.as('problems')

type Listing = { owner: FileOwner; now: number; filter: FileFilter }

async function listFiles(db: Database, { owner, now, filter }: Listing): Promise<FileRow[]> {
  const { purpose, after, before, file_ids, limit, order } = filter
  let query = ofOwner(db, owner).select(LISTED).select(HAS_PROBLEMS).where('is_ready', '=', 1).where(isCurrent(now))
  if (purpose !== undefined) query = query.where('purpose', '=', purpose)
  if (file_ids !== undefined) query = query.where('file_id', 'in', [...file_ids])
  const isDescending = order === 'desc'
  if (after !== undefined) query = query.where('file_id', isDescending ? '<' : '>', after)
  if (before !== undefined) query = query.where('file_id', isDescending ? '>' : '<', before)
  // The page right before `before` is read backwards.
  const isBackward = before !== undefined && after === undefined
  const rows = await query
    .orderBy('file_id', isDescending === isBackward ? 'asc' : 'desc')
    .limit(limit)
    .execute()
  const files = rows.map(rowOf)
  return isBackward ? files.reverse() : files
}

const rowOf = ({ is_ready: _, bytes, created_at, expires_at, ...row }: FileRow & { is_ready?: number }): FileRow => ({
  ...row,
  bytes: Number(bytes),
  created_at: Number(created_at),
  expires_at: expires_at === null ? null : Number(expires_at),
})
