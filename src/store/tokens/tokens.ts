/** Tokens in the database, and the revision that caches compare. */
import type { Selectable } from 'kysely'
import { appendAudit } from '../admin/audit-append.ts'
import type { Engine } from '../engine.ts'
import { readPage } from '../page.ts'
import { requireRevision } from '../revisions.ts'
import type { Database, Tables, Write } from '../tables.ts'
import { bumpRevision, changedColumns, fromAccountColumns, lockRevision, toAccountColumns } from './account-columns.ts'
import { filteredAccounts } from './account-filter.ts'
import type { StoredToken, TokenStore } from './account-store.ts'
import { playgroundActor } from './playground-key.ts'

type Row = Selectable<Tables['tokens']>

export function tokenStore({ db, write: inTransaction }: Engine): TokenStore {
  return {
    add: (token, audit) =>
      inTransaction(async (write) => {
        await insert(write, token, await bumpRevision(write))
        if (audit) await appendAudit(write, audit)
      }),

    async addFirst(token, audit) {
      if (await anyToken(db)) return false
      return inTransaction(async (write) => {
        // The row of revisions is written first: on every engine two callers wait for each other there, and the second
        // sees the token that the first has added.
        const revision = await bumpRevision(write)
        if (await anyToken(write)) return false
        await insert(write, token, revision)
        if (audit) await appendAudit(write, audit)
        return true
      })
    },

    async findByHash(hash) {
      const row = await db
        .selectFrom('tokens')
        .selectAll()
        .where((token) => token.or([token('hash', '=', hash), token('previous_hash', '=', hash)]))
        .executeTakeFirst()
      return row && fromRow(row)
    },

    async find(token_id) {
      const row = await db.selectFrom('tokens').selectAll().where('token_id', '=', token_id).executeTakeFirst()
      return row && fromRow(row)
    },

    async list({ project_id } = {}) {
      const rows = await db
        .selectFrom('tokens')
        .selectAll()
        .$if(project_id !== undefined, (query) => query.where('project_id', '=', project_id ?? ''))
        .orderBy('created_at')
        .orderBy('added_revision')
        .execute()
      return rows.map(fromRow)
    },

    page({ project_id, limit, after, ...filter }) {
      const rows = db
        .selectFrom('tokens')
        .selectAll()
        .$if(project_id !== undefined, (query) => query.where('project_id', '=', project_id ?? ''))
        .where(filteredAccounts(filter, ['token_id', 'prefix']))
      const order = filter.newestFirst ? 'desc' : 'asc'
      return readPage(rows, { limit, after, by: ['added_revision'], order, fromRow })
    },

    update: (token_id, change, audit) =>
      inTransaction(async (write) => {
        await lockRevision(write)
        const row = await write.selectFrom('tokens').selectAll().where('token_id', '=', token_id).executeTakeFirst()
        if (!row) return undefined
        const fields = typeof change === 'function' ? change(fromRow(row)) : change
        const columns: Partial<Row> = changedColumns(fields)
        if (Object.keys(columns).length === 0) return fromRow(row)
        await bumpRevision(write)
        await write.updateTable('tokens').set(columns).where('token_id', '=', token_id).execute()
        const changed = fromRow({ ...row, ...columns })
        if (audit) await appendAudit(write, audit(fromRow(row), changed))
        return changed
      }),

    async touch(used) {
      if (used.length === 0) return
      const touchAll = async (write: Write) => {
        for (const { token_id, last_used_at } of used) {
          await write
            .updateTable('tokens')
            .set({ last_used_at })
            .where('token_id', '=', token_id)
            .where((row) => row.or([row('last_used_at', 'is', null), row('last_used_at', '<', last_used_at)]))
            .execute()
        }
      }
      await inTransaction(touchAll, { is_synced: false })
    },

    revision: () => requireRevision(db, 'tokens'),
  }
}

const insert = (write: Write, token: StoredToken, revision: number) =>
  write.insertInto('tokens').values(toRow(token, revision)).execute()

async function anyToken(db: Database): Promise<boolean> {
  const row = await db.selectFrom('tokens').select('token_id').limit(1).executeTakeFirst()
  return row !== undefined
}

const toRow = (token: StoredToken, added_revision: number): Row => ({
  token_id: token.token_id,
  project_id: token.project_id,
  prefix: token.prefix,
  hash: token.hash,
  previous_hash: token.previous_hash,
  previous_expires_at: token.previous_expires_at,
  ...toAccountColumns(token),
  last_used_at: token.last_used_at,
  added_revision,
})

function fromRow(row: Row): StoredToken {
  const playground = playgroundActor(row.hash)
  return playground === undefined ? tokenOf(row) : { ...tokenOf(row), playground }
}

const tokenOf = (row: Row): StoredToken => ({
  token_id: row.token_id,
  project_id: row.project_id,
  prefix: row.prefix,
  hash: row.hash,
  previous_hash: row.previous_hash,
  previous_expires_at: row.previous_expires_at,
  ...fromAccountColumns(row),
  last_used_at: row.last_used_at,
})
