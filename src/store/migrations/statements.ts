/** Makes a migration of statements of SQL, which are the same on both engines but where they say so. */
import { SqliteAdapter, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Each but the last ends with a semicolon at the end of a line; `--` begins a comment. */
export type Statements = string | ((isSqlite: boolean) => string)

export const migrationOf = (statements: Statements): Migration => ({
  async up(db): Promise<void> {
    const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter
    const text = typeof statements === 'string' ? statements : statements(isSqlite)
    for (const statement of text.replace(/--.*$/gm, '').split(/;$/m))
      if (statement.trim() !== '') await sql.raw(statement.replace(/\s+/g, ' ').trim()).execute(db)
  },
})

/** In SQLite it is the row's own number, which every index holds without naming it. */
export const rowId = (isSqlite: boolean): string => (isSqlite ? 'integer' : 'bigint')
export const inOrder = (isSqlite: boolean): string => (isSqlite ? 'at_ms' : 'at_ms, row_id')
