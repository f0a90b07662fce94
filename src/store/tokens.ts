/** Tokens in the database, and the revision that caches compare. */
import type { Selectable } from 'kysely'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { StoredToken, TokenStore } from './store.ts'
import type { Database, Tables, Write } from './tables.ts'

type Row = Selectable<Tables['tokens']>
type Change = Parameters<TokenStore['update']>[1]

export function tokenStore(db: Database): TokenStore {
  return {
    add: (token) => db.transaction().execute((write) => insert(write, token)),

    async addFirst(token) {
      if (await anyToken(db)) return false
      return db.transaction().execute(async (write) => {
        // The row of revisions is written first: on every engine two callers wait for each other there, and the second
        // sees the token that the first has added.
        const revision = await bump(write)
        if (await anyToken(write)) return false
        await write.insertInto('tokens').values(toRow(token, revision)).execute()
        return true
      })
    },

    async findByHash(hash) {
      const row = await db.selectFrom('tokens').selectAll().where('hash', '=', hash).executeTakeFirst()
      return row && fromRow(row)
    },

    async find(token_id) {
      const row = await db.selectFrom('tokens').selectAll().where('token_id', '=', token_id).executeTakeFirst()
      return row && fromRow(row)
    },

    async list() {
      const rows = await db.selectFrom('tokens').selectAll().orderBy('created_at').orderBy('added_revision').execute()
      return rows.map(fromRow)
    },

    async update(token_id, change) {
      const columns = toColumns(change)
      return db.transaction().execute(async (write) => {
        const found = await write
          .selectFrom('tokens')
          .select('token_id')
          .where('token_id', '=', token_id)
          .executeTakeFirst()
        if (!found) return false
        if (Object.keys(columns).length === 0) return true
        await bump(write)
        await write.updateTable('tokens').set(columns).where('token_id', '=', token_id).execute()
        return true
      })
    },

    async touch(used) {
      if (used.length === 0) return
      await db.transaction().execute(async (write) => {
        for (const { token_id, last_used_at } of used) {
          await write
            .updateTable('tokens')
            .set({ last_used_at })
            .where('token_id', '=', token_id)
            .where((row) => row.or([row('last_used_at', 'is', null), row('last_used_at', '<', last_used_at)]))
            .execute()
        }
      })
    },

    async revision() {
      const row = await db
        .selectFrom('revisions')
        .select('revision')
        .where('noun', '=', 'tokens')
        .executeTakeFirstOrThrow()
      return row.revision
    },
  }
}

async function insert(write: Write, token: StoredToken): Promise<void> {
  const revision = await bump(write)
  await write.insertInto('tokens').values(toRow(token, revision)).execute()
}

/** In the same transaction as the change, so that no reader sees one without the other. */
async function bump(write: Write): Promise<number> {
  const row = await write
    .updateTable('revisions')
    .set((revisions) => ({ revision: revisions('revision', '+', 1) }))
    .where('noun', '=', 'tokens')
    .returning('revision')
    .executeTakeFirstOrThrow()
  return row.revision
}

/** Changes nothing, but has to be written: shows whether the database can be written. */
export async function rewriteRevision(write: Write): Promise<void> {
  await write
    .updateTable('revisions')
    .set((row) => ({ revision: row('revision', '+', 0) }))
    .where('noun', '=', 'tokens')
    .execute()
}

async function anyToken(db: Database): Promise<boolean> {
  const row = await db.selectFrom('tokens').select('token_id').limit(1).executeTakeFirst()
  return row !== undefined
}

function toRow(token: StoredToken, added_revision: number): Row {
  return {
    token_id: token.token_id,
    name: token.name,
    prefix: token.prefix,
    hash: token.hash,
    models: JSON.stringify(token.models),
    families: token.families && JSON.stringify(token.families),
    expires_at: token.expires_at,
    disabled: token.disabled ? 1 : 0,
    created_at: token.created_at,
    last_used_at: token.last_used_at,
    added_revision,
  }
}

function fromRow(row: Row): StoredToken {
  return {
    token_id: row.token_id,
    name: row.name,
    prefix: row.prefix,
    hash: row.hash,
    models: JSON.parse(row.models) as string[],
    families: row.families === null ? null : (JSON.parse(row.families) as EndpointFamily[]),
    expires_at: row.expires_at,
    disabled: row.disabled === 1,
    created_at: row.created_at,
    last_used_at: row.last_used_at,
  }
}

/** Only the given fields: an absent field must not become null. */
function toColumns({ models, families, disabled, ...same }: Change): Partial<Row> {
  const columns: Partial<Row> = { ...same }
  if (models !== undefined) columns.models = JSON.stringify(models)
  if (families !== undefined) columns.families = families && JSON.stringify(families)
  if (disabled !== undefined) columns.disabled = disabled ? 1 : 0
  return columns
}
