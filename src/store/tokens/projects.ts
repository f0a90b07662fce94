/** Projects in the database. */
import type { Selectable } from 'kysely'
import { appendAudit } from '../admin/audit-append.ts'
import type { Engine } from '../engine.ts'
import { readPage } from '../page.ts'
import type { Tables, Write } from '../tables.ts'
import { bumpRevision, changedColumns, fromAccountColumns, lockRevision, toAccountColumns } from './account-columns.ts'
import { filteredAccounts } from './account-filter.ts'
import type { ProjectStore, StoredProject } from './account-store.ts'

type Row = Selectable<Tables['projects']>

export function projectStore({ db, write: inTransaction }: Engine): ProjectStore {
  return {
    add: (project, audit) =>
      inTransaction(async (write) => {
        await lockRevision(write)
        if (await isNameTaken(write, project.name)) return false
        const { project_id, deleted_at, log_contents } = project
        const added_revision = await bumpRevision(write)
        const row = { project_id, deleted_at, log_contents, added_revision, ...toAccountColumns(project) }
        await write.insertInto('projects').values(row).execute()
        if (audit) await appendAudit(write, audit)
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

    page({ limit, after, ...filter }) {
      const rows = db
        .selectFrom('projects')
        .selectAll()
        .where('deleted_at', 'is', null)
        .where(filteredAccounts(filter, ['project_id']))
      const order = filter.newestFirst ? 'desc' : 'asc'
      return readPage(rows, { limit, after, by: ['added_revision'], order, fromRow })
    },

    update: (project_id, change, audit) =>
      inTransaction(async (write) => {
        await lockRevision(write)
        const row = await write
          .selectFrom('projects')
          .selectAll()
          .where('project_id', '=', project_id)
          .where('deleted_at', 'is', null)
          .executeTakeFirst()
        if (!row) return 'missing'
        const columns: Partial<Row> = changedColumns(typeof change === 'function' ? change(fromRow(row)) : change)
        if (Object.keys(columns).length === 0) return fromRow(row)
        const { name = row.name } = columns
        if (name !== row.name && (await isNameTaken(write, name))) return 'name_taken'
        await bumpRevision(write)
        await write.updateTable('projects').set(columns).where('project_id', '=', project_id).execute()
        const changed = fromRow({ ...row, ...columns })
        if (audit) await appendAudit(write, audit(fromRow(row), changed))
        return changed
      }),
  }
}

async function isNameTaken(write: Write, name: string): Promise<boolean> {
  const same = await write
    .selectFrom('projects')
    .select('project_id')
    .where('name', '=', name)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return same !== undefined
}

const fromRow = (row: Row): StoredProject => ({
  project_id: row.project_id,
  ...fromAccountColumns(row),
  log_contents: row.log_contents,
  deleted_at: row.deleted_at,
})
