/** Contract by which an engine copies a database as it is at one moment. */
import type { Database } from './tables.ts'

export type SnapshotOptions = {
  /** Refuses a database that another process has open, and keeps others out. */
  is_alone?: boolean
}

export type EngineSnapshot = {
  engine: 'sqlite' | 'postgres'
  name: string
  /** Reads within the snapshot. */
  db: Database
  /** The rows of a statement, read as they are taken. */
  rows(select: string): AsyncIterable<Record<string, unknown>>
}

/** So many rows are in memory at a time, since one may be large. */
export const SNAPSHOT_ROWS = 100

export const inUse = (name: string): string =>
  `The database ${name} is in use by another process: what it writes meanwhile would be lost. Stop the gateway first.`
