/** Whether transactions of an engine lock rows. */
import { PostgresAdapter } from 'kysely'
import type { Database } from './tables.ts'

/** PostgreSQL's lock the rows that they read for update; SQLite has one writer. */
export const hasRowLocks = (rows: Database): boolean => rows.getExecutor().adapter instanceof PostgresAdapter
