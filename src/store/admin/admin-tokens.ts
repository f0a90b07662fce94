/** Admin tokens in the database. */
import { isDeepStrictEqual } from 'node:util'
import type { Selectable } from 'kysely'
import type { Engine } from '../engine.ts'
import { readPage } from '../page.ts'
import type { Database, Tables, Write } from '../tables.ts'
import type { AdminTokenStore, StoredAdminToken } from './admin-store.ts'
import { appendAudit } from './audit-append.ts'

type Row = Selectable<Tables['admin_tokens']>

export function adminTokenStore({ db, write }: Engine): AdminTokenStore {
  async function find(
    column: 'admin_token_id' | 'hash',
    value: string,
    rows: Database | Write = db,
  ): Promise<StoredAdminToken | undefined> {
    const row = await rows.selectFrom('admin_tokens').selectAll().where(column, '=', value).executeTakeFirst()
    return row && fromRow(row)
  }

  return {
    async add(token, audit) {
      const row = toRow(token)
      await write(async (rows) => {
        await rows.insertInto('admin_tokens').values(row).execute()
        await appendAudit(rows, audit)
      })
    },

    find: (admin_token_id) => find('admin_token_id', admin_token_id),
    findByHash: (hash) => find('hash', hash),

    page(page) {
      const all = db.selectFrom('admin_tokens').selectAll()
      return readPage(all, { ...page, by: ['created_at', 'admin_token_id'], order: 'asc', fromRow })
    },

    revoke: (admin_token_id, audit) =>
      write(async (rows) => {
        const row = await rows
          .updateTable('admin_tokens')
          .set({ disabled: 1 })
          .where((row) => row.and({ admin_token_id, disabled: 0 }))
          .returningAll()
          .executeTakeFirst()
        // One that was revoked already is as it should be. Within the transaction, which holds the one connection of SQLite.
        if (!row) return find('admin_token_id', admin_token_id, rows)
        const revoked = fromRow(row)
        await appendAudit(rows, audit({ ...revoked, disabled: false }, revoked))
        return revoked
      }),

    declare: (token, audit) =>
      write(async (rows) => {
        const columns = toRow(token)
        // Two processes with the same file may add it at once.
        const added = await rows
          .insertInto('admin_tokens')
          .values(columns)
          .onConflict((conflict) => conflict.column('hash').doNothing())
          .returningAll()
          .executeTakeFirst()
        if (added) {
          await appendAudit(rows, audit(undefined, token))
          return token
        }
        const row = await rows
          .selectFrom('admin_tokens')
          .selectAll()
          .where('hash', '=', token.hash)
          .executeTakeFirstOrThrow()
        const { name, role, project_id, expires_at, disabled, declared } = columns
        const after: Row = { ...row, name, role, project_id, expires_at, disabled, declared }
        if (isDeepStrictEqual({ ...after }, { ...row })) return fromRow(row)
        await rows.updateTable('admin_tokens').set(after).where('admin_token_id', '=', row.admin_token_id).execute()
        await appendAudit(rows, audit(fromRow(row), fromRow(after)))
        return fromRow(after)
      }),

    async declared() {
      const rows = await db
        .selectFrom('admin_tokens')
        .selectAll()
        .where((row) => row.and({ declared: 1, disabled: 0 }))
        .execute()
      return rows.map(fromRow)
    },

    async touch(admin_token_id, last_used_at) {
      await write((rows) =>
        rows
          .updateTable('admin_tokens')
          .set({ last_used_at })
          .where('admin_token_id', '=', admin_token_id)
          .where((row) => row.or([row('last_used_at', 'is', null), row('last_used_at', '<', last_used_at)]))
          .execute(),
      )
    },
  }
}

const toRow = (token: StoredAdminToken): Row => ({
  ...token,
  disabled: token.disabled ? 1 : 0,
  declared: token.declared ? 1 : 0,
})

const fromRow = (row: Row): StoredAdminToken => ({
  ...row,
  disabled: row.disabled === 1,
  declared: row.declared === 1,
})
