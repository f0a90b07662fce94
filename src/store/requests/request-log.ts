/** The request log in the database. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { createInsert } from '../fixed-statements.ts'
import { OF_TASK } from '../ledger/ledger-append.ts'
import { addToRevision } from '../revisions.ts'
import type { Write } from '../tables.ts'
import type { EndUser } from '../tokens/end-user-store.ts'
import { addToMinutes } from './minute-sums.ts'
import { countFacets } from './request-facets.ts'
import { keepPartitions } from './request-partitions.ts'
import type { RequestLogStore, RequestRow } from './request-row.ts'
import { findRows, searchRequests } from './request-search.ts'

const ROWS_PER_BATCH = 500
/** A row has 18 values. */
const ROWS_PER_STATEMENT = 50
const TAGS_PER_STATEMENT = 200
const COLUMNS = [
  'row_id',
  'at_ms',
  'request_id',
  'token_id',
  'project_id',
  'end_user',
  'session',
  'trace_id',
  'family',
  'model',
  'provider',
  'target',
  'status',
  'error',
  'total_ms',
  'cost',
  'tags',
  'detail',
] as const

/** Without a column: a partitioned table is unique by the id and the time of a row, which never change. */
const insertRows = createInsert({ table: 'request_log', columns: COLUMNS, after: 'on conflict do nothing' })

export function requestLogStore(engine: Engine): RequestLogStore {
  const { db, readInOrder, write } = engine
  return {
    async reserve(count) {
      return (await write((rows) => addToRevision(rows, 'request_log', count))) - count + 1
    },

    append: (added, { is_repeated = true } = {}) =>
      write(
        async (rows) => {
          const fresh = is_repeated ? await missing(rows, added) : added
          await insertRequests(rows, fresh)
          await addToMinutes(rows, fresh)
        },
        { is_synced: false },
      ),
    search: (query) => readInOrder((reads) => searchRequests(reads, query)),
    facets: (filter) => readInOrder((reads) => countFacets(reads, filter)),
    find: (row_ids) => findRows(db, row_ids),
    async prune(before_ms) {
      const end_ms = engine.now ? await keepPartitions(db, { now_ms: await engine.now(), before_ms }) : before_ms
      return write((rows) => pruneBatch(rows, end_ms))
    },

    addFeedback: (feedback) =>
      write(async (rows) => {
        const { row_id, ...given } = feedback
        await rows
          .insertInto('request_feedback')
          .values(feedback)
          .onConflict((conflict) => conflict.column('row_id').doUpdateSet(given))
          .execute()
      }),

    async feedback(row_ids) {
      if (row_ids.length === 0) return []
      return db
        .selectFrom('request_feedback')
        .selectAll()
        .where('row_id', 'in', [...row_ids])
        .execute()
    },

    async taskCharges(task_ids) {
      if (task_ids.length === 0) return new Map()
      const rows = await db
        .selectFrom('ledger_entries')
        .select(['call_id', 'amount', 'cost'])
        .where('call_id', 'in', [...task_ids])
        .where(OF_TASK)
        .execute()
      const charges = new Map<string, { amount: number | null; cost: number | null }>()
      for (const { call_id, amount, cost } of rows) {
        const sum = charges.get(call_id) ?? { amount: 0, cost: 0 }
        charges.set(call_id, { amount: added(sum.amount, amount), cost: added(sum.cost, cost) })
      }
      return charges
    },
  }
}

/** Adds rows that are new, without their sums. */
export async function insertRequests(rows: Write, added: readonly RequestRow[]): Promise<void> {
  for (let at = 0; at < added.length; at += ROWS_PER_STATEMENT) {
    await insertRows(rows, valuesOf(added.slice(at, at + ROWS_PER_STATEMENT)))
  }
  const tags: { tag: string; at_ms: number; row_id: number }[] = []
  for (const { tags: own, at_ms, row_id } of added) for (const tag of own) tags.push({ tag, at_ms, row_id })
  for (let at = 0; at < tags.length; at += TAGS_PER_STATEMENT) {
    await rows
      .insertInto('request_tags')
      .values(tags.slice(at, at + TAGS_PER_STATEMENT))
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  }
}

/** Those that the log does not have, so that sums count each row once. */
async function missing(rows: Write, added: readonly RequestRow[]): Promise<readonly RequestRow[]> {
  if (added.length === 0) return added
  const found = await rows
    .selectFrom('request_log')
    .select('row_id')
    .where(
      'row_id',
      'in',
      added.map(({ row_id }) => row_id),
    )
    .execute()
  if (found.length === 0) return added
  const known = new Set(found.map(({ row_id }) => row_id))
  return added.filter(({ row_id }) => !known.has(row_id))
}

const added = (a: number | null, b: number | null) => (a === null || b === null ? null : a + b)

type DeletedRow = { row_id: number; at_ms: number; tags: string | null }

async function pruneBatch(rows: Write, before_ms: number): Promise<boolean> {
  const deleted = await sql<DeletedRow>`
    delete from request_log where at_ms < ${before_ms} and row_id in
      (select row_id from request_log where at_ms < ${before_ms} order by at_ms limit ${ROWS_PER_BATCH})
    returning row_id, at_ms, tags`.execute(rows)
  await deleteRelated(rows, deleted.rows)
  return deleted.rows.length === ROWS_PER_BATCH
}

/**
 * Deletes one batch of the rows of an end user with all that belongs to them: contents, feedback, tags. Contents may be
 * kept longer than their rows, or arrive before them.
 */
export async function eraseRequests(rows: Write, { end_user, project_id }: EndUser) {
  const condition = project_id === undefined ? sql`` : sql`and project_id = ${project_id}`
  const some = (table: string) =>
    sql`(select row_id from ${sql.table(table)} where end_user = ${end_user} ${condition} limit ${ROWS_PER_BATCH})`
  const deleted = await sql<DeletedRow>`
    delete from request_log where row_id in ${some('request_log')} returning row_id, at_ms, tags`.execute(rows)
  await deleteRelated(rows, deleted.rows)
  const contents = await sql`
    delete from request_contents where row_id in ${some('request_contents')} returning row_id`.execute(rows)
  return { requests: deleted.rows.length, contents: contents.rows.length }
}

/** Feedback, and tags, which are named by the rows themselves. */
async function deleteRelated(rows: Write, deleted: readonly DeletedRow[]): Promise<void> {
  if (deleted.length === 0) return
  for (const { row_id, at_ms, tags } of deleted) {
    if (tags === null) continue
    await rows
      .deleteFrom('request_tags')
      .where('tag', 'in', JSON.parse(tags) as string[])
      .where((row) => row.and({ at_ms, row_id }))
      .execute()
  }
  const ids = deleted.map(({ row_id }) => row_id)
  await rows.deleteFrom('request_feedback').where('row_id', 'in', ids).execute()
}

/** In the order of the columns. */
function valuesOf(rows: readonly RequestRow[]): unknown[] {
  const values: unknown[] = []
  for (const row of rows) {
    values.push(
      row.row_id,
      row.at_ms,
      row.request_id,
      row.token_id,
      row.project_id,
      row.end_user,
      row.session,
      row.trace_id,
      row.family,
      row.model,
      row.provider,
      row.target,
      row.status,
      row.error,
      row.total_ms,
      row.cost,
      row.tags.length === 0 ? null : JSON.stringify(row.tags),
      JSON.stringify(row.detail),
    )
  }
  return values
}
