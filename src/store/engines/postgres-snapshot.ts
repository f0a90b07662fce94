/** Reads PostgreSQL in one transaction that sees the database as it was when it began. */
import { sql } from 'kysely'
import { type EngineSnapshot, inUse, SNAPSHOT_ROWS, type SnapshotOptions } from '../engine-snapshot.ts'
import { StoreError } from '../store.ts'
import type { Database } from '../tables.ts'
import { readPostgres, withMigrationLock } from './postgres.ts'

/** Gateways name themselves when they connect. */
const OTHERS = sql<{ pid: number }>`
  select pid from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and application_name = 'gatehouse'`

/** Alone, gateways that start wait for its end. */
export const readPostgresSnapshot = <T>(
  url: string,
  { is_alone = false }: SnapshotOptions,
  work: (snapshot: EngineSnapshot) => Promise<T>,
): Promise<T> =>
  (is_alone ? withMigrationLock : readPostgres)(url, async (db, name) => {
    if (is_alone && (await OTHERS.execute(db)).rows.length > 0) throw new StoreError(inUse(name))
    return db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode(is_alone ? 'read write' : 'read only')
      .execute((reads) => work({ engine: 'postgres', name, db: reads, rows: (select) => rowsOf(reads, select) }))
  })

async function* rowsOf(db: Database, select: string): AsyncGenerator<Record<string, unknown>> {
  await sql`declare rows_of_snapshot no scroll cursor for ${sql.raw(select)}`.execute(db)
  for (;;) {
    const { rows } = await sql<Record<string, unknown>>`fetch ${sql.lit(SNAPSHOT_ROWS)} from rows_of_snapshot`.execute(
      db,
    )
    yield* rows
    if (rows.length < SNAPSHOT_ROWS) break
  }
  await sql`close rows_of_snapshot`.execute(db)
}
