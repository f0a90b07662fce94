/** Projects in the database. */
import type { Selectable } from 'kysely'
import { bumpRevision, changedColumns, fromAccountColumns, toAccountColumns } from './account-columns.ts'
import type { ProjectStore, StoredProject } from './account-store.ts'
import type { Database, Tables } from './tables.ts'

type Row = Selectable<Tables['projects']>

export function projectStore(db: Database): ProjectStore {
  return {
    add: (project) =>
      db.transaction().execute(async (write) => {
        const added_revision = await bumpRevision(write)
        const { project_id, deleted_at } = project
        const same = await write
          .selectFrom('projects')
          .select('project_id')
          .where('name', '=', project.name)
          .where('deleted_at', 'is', null)
          .executeTakeFirst()
        if (same) return false
        const row = { project_id, deleted_at, added_revision, ...toAccountColumns(project) }
        await write.insertInto('projects').values(row).execute()
        return true
      }),

    async find(project_id) {
      const row = await db.selectFrom('projects').selectAll().where('project_id', '=', project_id).executeTakeFirst()
      return row && fromRow(row)
    },

    async findNamed(name) {
      const row = await db
        .selectFrom('projects')
        .selectAll()
        .where('name', '=', name)
        .where('deleted_at', 'is', null)
        .executeTakeFirst()
      return row && fromRow(row)
    },

    async list() {
      const rows = await db
        .selectFrom('projects')
        .selectAll()
        .where('deleted_at', 'is', null)
        .orderBy('created_at')
        .orderBy('added_revision')
        .execute()
      return rows.map(fromRow)
    },

    update: (project_id, change) =>
      db.transaction().execute(async (write) => {
        await bumpRevision(write)
        const found = await write
          .selectFrom('projects')
          .select('name')
          .where('project_id', '=', project_id)
          .where('deleted_at', 'is', null)
          .executeTakeFirst()
        if (!found) return 'missing'
        const { name = found.name } = change
        const other = await write
          .selectFrom('projects')
          .select('project_id')
          .where('name', '=', name)
          .where('project_id', '!=', project_id)
          .where('deleted_at', 'is', null)
          .executeTakeFirst()
        if (other) return 'name_taken'
        const columns: Partial<Row> = changedColumns(change)
        if (Object.keys(columns).length > 0) {
          await write.updateTable('projects').set(columns).where('project_id', '=', project_id).execute()
        }
        return 'updated'
      }),
  }
}

const fromRow = (row: Row): StoredProject => ({
  project_id: row.project_id,
  ...fromAccountColumns(row),
  deleted_at: row.deleted_at,
})
