/** Answers of the response cache in the database, shared by all gateways on it. */
import { sql } from 'kysely'
import { appendAudit } from '../admin/audit-append.ts'
import type { Engine } from '../engine.ts'
import { createStatement } from '../fixed-statements.ts'
import type { Write } from '../tables.ts'
import type { CachedAnswerStore } from './cache-store.ts'

/** The row of `revisions` that counts the purges of all; those of one model or project are in a row of its own. */
const NOUN = 'response_cache'
const OF_ONE = `${NOUN}:`

const selectPurges = createStatement(
  () => `select noun, revision from revisions where noun = ? or substr(noun, 1, ${OF_ONE.length}) = ?`,
)

/** A cache may lose what was written last. */
const UNSYNCED = { is_synced: false } as const

export function cachedAnswerStore({ db, write }: Engine): CachedAnswerStore {
  return {
    find: (cache_key, now_ms) =>
      db
        .selectFrom('cached_answers')
        .select(['created_ms', 'expires_ms', 'bytes', 'answer'])
        .where('cache_key', '=', cache_key)
        .where('expires_ms', '>', now_ms)
        .executeTakeFirst(),

    put: (cache_key, entry, { max_entries, max_bytes }) =>
      write(async (rows) => {
        await rows
          .insertInto('cached_answers')
          .values({ cache_key, ...entry })
          .onConflict((conflict) => conflict.column('cache_key').doUpdateSet(entry))
          .execute()
        const { entries, bytes } = await sizeOf(rows)
        if (entries > max_entries || bytes > max_bytes) await removeOldest(rows, { max_entries, max_bytes })
      }, UNSYNCED),

    deleteExpired: (now_ms, limit) =>
      write(async (rows) => {
        const expired = rows
          .selectFrom('cached_answers')
          .select('cache_key')
          .where('expires_ms', '<=', now_ms)
          .orderBy('expires_ms')
          .limit(limit)
        const [removed] = await rows.deleteFrom('cached_answers').where('cache_key', 'in', expired).execute()
        return Number(removed?.numDeletedRows ?? 0n)
      }),

    countPurge: (name, audit) =>
      write(async (rows) => {
        await rows
          .insertInto('revisions')
          .values({ noun: name === undefined ? NOUN : OF_ONE + name, revision: 1 })
          .onConflict((conflict) =>
            conflict.column('noun').doUpdateSet({ revision: sql<number>`revisions.revision + 1` }),
          )
          .execute()
        if (audit) await appendAudit(rows, audit)
      }),

    async purges() {
      const { rows } = await selectPurges<{ noun: string; revision: number }>(db, [NOUN, OF_ONE])
      return new Map(rows.map(({ noun, revision }) => [noun.slice(OF_ONE.length), revision]))
    },

    size: () => sizeOf(db),

    deleteWith: (part, limit) =>
      write(async (rows) => {
        const found = rows
          .selectFrom('cached_answers')
          .select('cache_key')
          // In every engine, and by case: LIKE of SQLite ignores it.
          .where(part === '' ? sql<boolean>`1 = 1` : sql<boolean>`replace(cache_key, ${part}, '') <> cache_key`)
          .limit(limit)
        const [removed] = await rows.deleteFrom('cached_answers').where('cache_key', 'in', found).execute()
        return Number(removed?.numDeletedRows ?? 0n)
      }),
  }
}

async function sizeOf(rows: Write | Engine['db']): Promise<{ entries: number; bytes: number }> {
  const size = await rows
    .selectFrom('cached_answers')
    .select(({ fn }) => [fn.countAll().as('entries'), fn.sum('bytes').as('bytes')])
    .executeTakeFirstOrThrow()
  return { entries: Number(size.entries), bytes: Number(size.bytes ?? 0) }
}

/** Keeps the newest answers that fit into the bounds together. */
async function removeOldest(rows: Write, bounds: { max_entries: number; max_bytes: number }): Promise<void> {
  await sql`
    delete from cached_answers where cache_key in (
      select cache_key from (
        select cache_key,
          row_number() over (order by created_ms desc, cache_key desc) as place,
          sum(bytes) over (order by created_ms desc, cache_key desc) as total
        from cached_answers
      ) as ranked
      where place > ${bounds.max_entries} or total > ${bounds.max_bytes}
    )`.execute(rows)
}
