/** The lines of batches and their results in the database. */
import { type RawBuilder, sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Write } from '../tables.ts'
import { chunks } from '../tasks/task-sql.ts'
import type { Batch, BatchLine, BatchLineStore, LineOutcome, LineResult } from './batch-store.ts'
import type { BatchLinesTable } from './batch-tables.ts'

/** A line waits, is called, or has a result. */
const WAITS = 0
const CALLED = 1
const ENDED = 2
/** A batch of its vendor has it, or will have it. */
const ORDERED = 3
/** Exactly the conditions of the indexes: SQLite uses them only then. */
const OPEN = sql<boolean>`state < 2`
/** The same without that index: SQLite would compare each open line of the batch with each that is given. */
const UNENDED = sql`state in (0, 1)`
const LOOSE = sql<boolean>`result is not null`

/** Results of one read; few are as small. */
const MOST_PER_READ = 2_000
const LINES_PER_UPDATE = 100

type Claimed = Pick<Batch, 'batch_id' | 'fence'>
type Ending = { line: number; result?: LineResult }

export function batchLines(engine: Engine): BatchLineStore {
  const { db, write, many_writers } = engine

  const open = (batch_id: string, state: number) =>
    db.selectFrom('batch_lines').selectAll().where('batch_id', '=', batch_id).where(OPEN).where('state', '=', state)

  /** Runs the work where this claim still has the batch. */
  const owned = (batch: Claimed, work: (rows: Write) => Promise<unknown>) =>
    write(async (rows) => {
      if (!(await claimedRow(engine, rows, batch))) return false
      await work(rows)
      return true
    })

  /** As one value: thousands of parameters leave megabytes to the garbage collector. */
  const isOneOf = (lines: readonly number[]) =>
    sql<boolean>`line in (select cast(value as integer) from ${sql.raw(many_writers ? 'json_array_elements_text' : 'json_each')}(cast(${JSON.stringify(lines)} as ${sql.raw(many_writers ? 'json' : 'text')})))`

  /** Lines in this state get their results; those without one wait again. One statement has many: thousands of them are a burden. */
  const endLines = (batch: Claimed, results: readonly Ending[], isInState: RawBuilder<unknown>) =>
    owned(batch, async (rows) => {
      const closed: LineResult[] = []
      for (const some of chunks(results, LINES_PER_UPDATE)) {
        const given = some.map(
          ({ line, result }) =>
            sql`(cast(${line} as integer), cast(${result?.kind ?? null} as text), cast(${result?.text ?? null} as text))`,
        )
        const ended = await sql<{ line: number }>`
          with given (number, new_kind, new_result) as (values ${sql.join(given)})
          update batch_lines set kind = new_kind, result = new_result,
            state = case when new_kind is null then ${sql.lit(WAITS)} else ${sql.lit(ENDED)} end
          from given where batch_id = ${batch.batch_id} and line = number and ${isInState}
          returning line`.execute(rows)
        const numbers = new Set(ended.rows.map(({ line }) => line))
        for (const { line, result } of some) if (result && numbers.has(line)) closed.push(result)
      }
      await count(rows, batch.batch_id, closed)
    })

  return {
    addLines: (batch, lines) =>
      owned(batch, async (rows) => {
        const [first] = lines
        if (!first) return
        await rows
          .deleteFrom('batch_lines')
          .where('batch_id', '=', batch.batch_id)
          .where('line', '>=', first.line)
          .execute()
        const NEW = { state: WAITS, attempts: 0, called_again: 0, kind: null, result: null }
        for (const some of chunks(lines))
          await rows
            .insertInto('batch_lines')
            .values(
              some.map(({ offset, ...line }) => ({ ...line, ...NEW, batch_id: batch.batch_id, offset_bytes: offset })),
            )
            .execute()
      }),

    async pending(batch_id, after, limit) {
      const rows = await open(batch_id, WAITS).where('line', '>', after).orderBy('line').limit(limit).execute()
      return rows.map(lineOf)
    },

    start: (batch, { line, attempts }) =>
      write(async (rows) => {
        const found = await claimedRow(engine, rows, batch)
        if (!found) return 'lost'
        if (found.status !== 'in_progress') return 'stopped'
        const started = await rows
          .updateTable('batch_lines')
          .set({ state: CALLED, attempts: attempts + 1 })
          .where((row) => row.and({ batch_id: batch.batch_id, line, state: WAITS, attempts }))
          .executeTakeFirst()
        return started.numUpdatedRows > 0n ? 'started' : 'gone'
      }),

    end: (batch_id, { line, attempts }, result) =>
      write(async (rows) => {
        const ended = await rows
          .updateTable('batch_lines')
          .set({ state: ENDED, kind: result.kind, result: result.text })
          .where((row) => row.and({ batch_id, line, state: CALLED, attempts }))
          .executeTakeFirst()
        if (ended.numUpdatedRows === 0n) return false
        await count(rows, batch_id, [result])
        return true
      }),

    async unstart(batch_id, { line, attempts }) {
      await write((rows) =>
        rows
          .updateTable('batch_lines')
          .set({ state: WAITS })
          .where((row) => row.and({ batch_id, line, state: CALLED, attempts }))
          .execute(),
      )
    },

    async started(batch_id) {
      return (await open(batch_id, CALLED).orderBy('line').execute()).map(lineOf)
    },

    callAgain: (batch) =>
      owned(batch, (rows) =>
        rows
          .updateTable('batch_lines')
          .set({ state: WAITS, called_again: 1 })
          .where('batch_id', '=', batch.batch_id)
          .where(OPEN)
          .where('state', '=', CALLED)
          .execute(),
      ),

    close: (batch, results) => endLines(batch, results, UNENDED),

    async loose(batch_id) {
      const { lines, bytes } = await db
        .selectFrom('batch_lines')
        .select([
          sql<number | string>`count(*)`.as('lines'),
          sql<number | string | null>`sum(length(result))`.as('bytes'),
        ])
        .where('batch_id', '=', batch_id)
        .where(LOOSE)
        .executeTakeFirstOrThrow()
      return { lines: Number(lines), bytes: Number(bytes ?? 0) }
    },

    async results(batch_id, kind, max_bytes) {
      const loose = db
        .selectFrom('batch_lines')
        .where((row) => row.and({ batch_id, kind }))
        .where(LOOSE)
        .orderBy('line')
        .limit(MOST_PER_READ)
      const sizes = await loose.select(['line', sql<number>`length(result)`.as('size')]).execute()
      let [fitting, total] = [0, 0]
      for (const { size } of sizes) {
        total += size
        if (fitting > 0 && total > max_bytes) break
        fitting++
      }
      const rows = await loose.limit(fitting).select(['line', 'result']).execute()
      return rows.map(({ line, result }) => ({ line, text: result ?? '' }))
    },

    parts: (batch_id, kind) =>
      db
        .selectFrom('batch_parts')
        .select(['kind', 'part', 'lines', 'bytes'])
        .where('batch_id', '=', batch_id)
        .$if(kind !== undefined, (query) => query.where('kind', '=', kind ?? 'output'))
        .orderBy('kind')
        .orderBy('part')
        .execute(),

    moved: (batch, part, lines) =>
      owned(batch, async (rows) => {
        await rows
          .insertInto('batch_parts')
          .values({ ...part, batch_id: batch.batch_id })
          .execute()
        await rows
          .updateTable('batch_lines')
          .set({ result: null })
          .where('batch_id', '=', batch.batch_id)
          .where(isOneOf(lines))
          .execute()
      }),

    order: (batch, lines) =>
      owned(batch, (rows) =>
        rows
          .updateTable('batch_lines')
          .set({ state: ORDERED })
          .where('batch_id', '=', batch.batch_id)
          .where(isOneOf(lines))
          .where('state', '=', WAITS)
          .execute(),
      ),

    async ordered(batch_id, lines) {
      const rows = await db
        .selectFrom('batch_lines')
        .selectAll()
        .where('batch_id', '=', batch_id)
        .where(isOneOf(lines))
        .where('state', '=', ORDERED)
        .execute()
      return rows.map(lineOf)
    },

    closeOrdered: (batch, results) => endLines(batch, results, sql`state = ${ORDERED}`),

    async deleteLines(batch_id, limit) {
      return write(async (rows) => {
        const some = rows
          .selectFrom('batch_lines')
          .select('line')
          .where('batch_id', '=', batch_id)
          .orderBy('line')
          .limit(limit)
        const deleted = await rows
          .deleteFrom('batch_lines')
          .where('batch_id', '=', batch_id)
          .where('line', 'in', some)
          .executeTakeFirst()
        return Number(deleted.numDeletedRows)
      })
    },

    async deleteParts(batch_id) {
      await write((rows) => rows.deleteFrom('batch_parts').where('batch_id', '=', batch_id).execute())
    },
  }
}

/** The row of the batch where this claim still has it; it does until the end of the transaction. */
function claimedRow({ many_writers }: Engine, rows: Write, { batch_id, fence }: Claimed) {
  const found = rows.selectFrom('batches').select('status').where('batch_id', '=', batch_id).where('fence', '=', fence)
  return (many_writers ? found.forShare() : found).executeTakeFirst()
}

/** Adds results to the counts of their batch. */
async function count(rows: Write, batch_id: string, results: readonly LineResult[]): Promise<void> {
  if (results.length === 0) return
  const of = (outcome: LineOutcome) => results.filter((result) => result.outcome === outcome).length
  const sum = (name: keyof NonNullable<LineResult['tokens']>) =>
    results.reduce((total, { tokens }) => total + (tokens?.[name] ?? 0), 0)
  await rows
    .updateTable('batches')
    .set((row) => ({
      succeeded: row('succeeded', '+', of('succeeded')),
      errored: row('errored', '+', of('errored')),
      canceled: row('canceled', '+', of('canceled')),
      expired: row('expired', '+', of('expired')),
      input_tokens: row('input_tokens', '+', sum('input_tokens')),
      cached_tokens: row('cached_tokens', '+', sum('cached_tokens')),
      output_tokens: row('output_tokens', '+', sum('output_tokens')),
      reasoning_tokens: row('reasoning_tokens', '+', sum('reasoning_tokens')),
    }))
    .where('batch_id', '=', batch_id)
    .execute()
}

const lineOf = ({ line, offset_bytes, bytes, custom_id, attempts, called_again }: BatchLinesTable): BatchLine => ({
  line,
  offset: offset_bytes,
  bytes,
  custom_id,
  attempts,
  called_again: called_again === 1,
})
