/** Fills an empty PostgreSQL database in one transaction, while gateways that start wait. */
import { StoreError } from '../store.ts'
import type { Write } from '../tables.ts'
import { withMigrationLock } from './postgres.ts'

/** `names`: the tables that must not be there. Throws StoreError. */
export const fillPostgres = <T>(
  url: string,
  { names, fill }: { names: string[]; fill: (write: Write) => Promise<T> },
): Promise<T> =>
  withMigrationLock(url, async (db, where) => {
    const tables = (await db.introspection.getTables({ withInternalKyselyTables: true })).map(({ name }) => name)
    const found = tables.find((name) => names.includes(name) || name === 'kysely_migration')
    if (found !== undefined)
      throw new StoreError(
        `The database ${where} has the table "${found}" already, and was not changed: name an empty database (createdb).`,
      )
    return db.transaction().execute(fill)
  })
