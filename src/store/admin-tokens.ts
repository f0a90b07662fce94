/** Admin tokens in the database. */
import type { Selectable } from 'kysely'
import type { AdminTokenStore, StoredAdminToken } from './admin-store.ts'
import type { Engine } from './engine.ts'
import { pageOf, placeNumber } from './page.ts'
import type { Tables } from './tables.ts'

type Row = Selectable<Tables['admin_tokens']>

export function adminTokenStore({ db, write }: Engine): AdminTokenStore {
  async function find(column: 'admin_token_id' | 'hash', value: string): Promise<StoredAdminToken | undefined> {
    const row = await db.selectFrom('admin_tokens').selectAll().where(column, '=', value).executeTakeFirst()
    return row && fromRow(row)
  }

  return {
    async add(token) {
      const row: Row = { ...token, disabled: token.disabled ? 1 : 0 }
      await write((rows) => rows.insertInto('admin_tokens').values(row).execute())
    },

    find: (admin_token_id) => find('admin_token_id', admin_token_id),
    findByHash: (hash) => find('hash', hash),

    async page({ limit, after }) {
      const rows = await db
        .selectFrom('admin_tokens')
        .selectAll()
        .$if(after !== undefined, (query) =>
          query.where(({ eb, refTuple, tuple }) =>
            eb(refTuple('created_at', 'admin_token_id'), '>', tuple(placeNumber(after?.[0]), after?.[1] ?? '')),
          ),
        )
        .orderBy('created_at')
        .orderBy('admin_token_id')
        .limit(limit + 1)
        .execute()
      return pageOf(rows, { limit, fromRow, keyOf: (row) => [row.created_at, row.admin_token_id] })
    },

    async revoke(admin_token_id) {
      await write((rows) =>
        rows.updateTable('admin_tokens').set({ disabled: 1 }).where('admin_token_id', '=', admin_token_id).execute(),
      )
      return find('admin_token_id', admin_token_id)
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

const fromRow = (row: Row): StoredAdminToken => ({ ...row, disabled: row.disabled === 1 })
