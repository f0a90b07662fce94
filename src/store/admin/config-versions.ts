/** The configurations that were in force, in the database. */
import type { Engine } from '../engine.ts'
import { readPage } from '../page.ts'
import type { Database } from '../tables.ts'
import { lockRevision } from '../tokens/account-columns.ts'
import type { ConfigVersion, ConfigVersionStore } from './config-version-store.ts'

const KEPT_VERSIONS = 200
const SHOWN = ['version_id', 'at_ms', 'actor', 'file', 'hash', 'changes'] as const

type Named = Pick<ConfigVersion, 'file' | 'hash'>

async function isLast(rows: Pick<Database, 'selectFrom'>, { file, hash }: Named): Promise<boolean> {
  const last = await rows
    .selectFrom('config_versions')
    .select('hash')
    .where('file', '=', file)
    .orderBy('at_ms', 'desc')
    .orderBy('version_id', 'desc')
    .limit(1)
    .executeTakeFirst()
  return last?.hash === hash
}

export function configVersionStore({ db, write }: Engine): ConfigVersionStore {
  return {
    isLast: (version) => isLast(db, version),

    add: (version) =>
      write(async (rows) => {
        // Several processes apply the same file at once.
        await lockRevision(rows)
        if (await isLast(rows, version)) return false
        await rows
          .insertInto('config_versions')
          .values({ ...version, changes: JSON.stringify(version.changes) })
          .execute()
        const old = await rows
          .selectFrom('config_versions')
          .select('version_id')
          .orderBy('at_ms', 'desc')
          .orderBy('version_id', 'desc')
          .offset(KEPT_VERSIONS)
          .limit(KEPT_VERSIONS)
          .execute()
        const ids = old.map(({ version_id }) => version_id)
        if (ids.length > 0) await rows.deleteFrom('config_versions').where('version_id', 'in', ids).execute()
        return true
      }),

    page(page) {
      const all = db.selectFrom('config_versions').select(SHOWN)
      return readPage(all, { ...page, by: ['at_ms', 'version_id'], fromRow: withChanges })
    },

    async find(version_id) {
      const row = await db
        .selectFrom('config_versions')
        .selectAll()
        .where('version_id', '=', version_id)
        .executeTakeFirst()
      return row && withChanges(row)
    },
  }
}

const withChanges = <Row extends { changes: string }>({ changes, ...row }: Row) => ({
  ...row,
  changes: JSON.parse(changes) as object[],
})
