/** Conversations in the database: their items in order, and the lock of the response that continues one. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Database, Write } from '../tables.ts'
import { chunks } from '../tasks/task-sql.ts'
import type {
  Appending,
  ConversationItem,
  ConversationKey,
  ConversationStore,
  LockRequest,
} from './conversation-store.ts'
import { deleteExpired } from './expired.ts'
import { addResponse } from './responses.ts'

export function conversationStore(engine: Engine): ConversationStore {
  const { db, write } = engine
  return {
    add: ({ metadata, ...conversation }, items, end_user) =>
      write(async (rows) => {
        const row = { ...conversation, metadata: JSON.stringify(metadata), revision: 0 }
        await rows
          .insertInto('conversations')
          .values({ ...row, locked_by: null, locked_until_ms: 0 })
          .execute()
        await insertItems(rows, { conversation_id: conversation.conversation_id, items, end_user })
      }),

    async find(key) {
      const row = await ownedBy(db, key).selectAll().executeTakeFirst()
      if (!row) return undefined
      const { revision, locked_by: _, locked_until_ms: __, metadata, ...conversation } = row
      const { characters } = await db
        .selectFrom('conversation_items')
        .select(sql<number | string | null>`sum(length(item))`.as('characters'))
        .where('conversation_id', '=', key.conversation_id)
        .executeTakeFirstOrThrow()
      const text_length = Number(characters ?? 0)
      return { conversation: { ...conversation, metadata: JSON.parse(metadata) }, revision, text_length }
    },

    update: ({ conversation_id, token_id, now }, { metadata, expires_at }) =>
      write(async (rows) => {
        const [updated] = await rows
          .updateTable('conversations')
          .set({ metadata: JSON.stringify(metadata), expires_at })
          .where((row) => row.and({ conversation_id, token_id }))
          .where('expires_at', '>', now)
          .execute()
        return (updated?.numUpdatedRows ?? 0n) > 0n
      }),

    remove: (conversation_id, token_id) =>
      write(async (rows) => {
        const [removed] = await rows
          .deleteFrom('conversations')
          .where((row) => row.and({ conversation_id, token_id }))
          .execute()
        if (!removed?.numDeletedRows) return false
        await removeItems(rows, [conversation_id])
        return true
      }),

    lock: (key, request) =>
      write(async (rows) => {
        if (await lockRow(rows, key, request)) return 'held'
        return (await ownedBy(rows, key).select('conversation_id').executeTakeFirst()) ? 'locked' : 'missing'
      }),

    async renew(conversation_id, owner, locked_until_ms) {
      await write((rows) => lockOf(rows, conversation_id, owner).set({ locked_until_ms }).execute())
    },

    async unlock(conversation_id, owner) {
      await write((rows) => lockOf(rows, conversation_id, owner).set({ locked_by: null, locked_until_ms: 0 }).execute())
    },

    append: (appending, response) =>
      write(async (rows) => {
        if (response) await addResponse(rows, response, [])
        return await appendItems(rows, appending)
      }),

    removeItem: (conversation_id, item_id) =>
      write(async (rows) => {
        const [removed] = await rows
          .deleteFrom('conversation_items')
          .where((row) => row.and({ conversation_id, item_id }))
          .execute()
        if (!removed?.numDeletedRows) return false
        await rows
          .updateTable('conversations')
          .set((row) => ({ revision: row('revision', '+', 1) }))
          .where('conversation_id', '=', conversation_id)
          .execute()
        return true
      }),

    async items(conversation_id) {
      const rows = await itemsOf(db, conversation_id).select('item').orderBy('position').execute()
      return rows.map(itemOf)
    },

    async item(conversation_id, item_id) {
      const row = await itemsOf(db, conversation_id).select('item').where('item_id', '=', item_id).executeTakeFirst()
      return row && itemOf(row)
    },

    async page(conversation_id, { after, order, limit }) {
      let query = itemsOf(db, conversation_id).select('item').orderBy('position', order).limit(limit)
      if (after !== undefined) {
        const at = itemsOf(db, conversation_id).select('position').where('item_id', '=', after)
        const start = await at.executeTakeFirst()
        if (!start) return undefined
        query = query.where('position', order === 'asc' ? '>' : '<', start.position)
      }
      return (await query.execute()).map(itemOf)
    },

    deleteExpired: (now, limit) =>
      deleteExpired(engine, { table: 'conversations', id: 'conversation_id', now, limit }, removeItems),
  }
}

/**
 * Appends items unless another owner holds the lock, and releases the lock. Used in the transaction that stores the
 * response. False if nothing was appended.
 */
export async function appendItems(rows: Write, { conversation_id, owner, items, expires_at, end_user }: Appending) {
  const [updated] = await rows
    .updateTable('conversations')
    .set((row) => ({
      locked_by: null,
      locked_until_ms: 0,
      revision: row('revision', '+', 1),
      expires_at: sql<number>`case when expires_at > ${expires_at} then expires_at else ${expires_at} end`,
    }))
    .where('conversation_id', '=', conversation_id)
    .where((row) => row.or([row('locked_by', 'is', null), row('locked_by', '=', owner)]))
    .execute()
  if (!updated?.numUpdatedRows) return false
  await insertItems(rows, { conversation_id, items, end_user })
  return true
}

/** The items of these conversations. */
export async function removeItems(rows: Write, conversation_ids: string[]): Promise<void> {
  if (conversation_ids.length === 0) return
  await rows.deleteFrom('conversation_items').where('conversation_id', 'in', conversation_ids).execute()
}

type Added = Pick<Appending, 'conversation_id' | 'items' | 'end_user'>

async function insertItems(rows: Write, { conversation_id, items, end_user }: Added): Promise<void> {
  const last = await itemsOf(rows, conversation_id)
    .select('position')
    .orderBy('position', 'desc')
    .limit(1)
    .executeTakeFirst()
  const first = (last?.position ?? -1) + 1
  const values = items.map((item, index) => ({
    conversation_id,
    position: first + index,
    item_id: item.id,
    item: JSON.stringify(item),
    end_user: end_user ?? null,
  }))
  for (const some of chunks(values)) await rows.insertInto('conversation_items').values(some).execute()
}

const itemOf = ({ item }: { item: string }): ConversationItem => JSON.parse(item)

const itemsOf = (rows: Database | Write, conversation_id: string) =>
  rows.selectFrom('conversation_items').where('conversation_id', '=', conversation_id)

const ownedBy = (rows: Database | Write, { conversation_id, token_id, now }: ConversationKey) =>
  rows
    .selectFrom('conversations')
    .where((row) => row.and({ conversation_id, token_id }))
    .where('expires_at', '>', now)

const lockOf = (rows: Write, conversation_id: string, owner: string) =>
  rows.updateTable('conversations').where('conversation_id', '=', conversation_id).where('locked_by', '=', owner)

async function lockRow(rows: Write, key: ConversationKey, request: LockRequest): Promise<boolean> {
  const { owner, now_ms, until_ms, revision } = request
  let query = rows
    .updateTable('conversations')
    .set({ locked_by: owner, locked_until_ms: until_ms })
    .where((row) => row.and({ conversation_id: key.conversation_id, token_id: key.token_id }))
    .where('expires_at', '>', key.now)
    .where((row) =>
      row.or([
        row('locked_by', 'is', null),
        row.and([
          row('locked_until_ms', '<=', now_ms),
          row.not(
            row.exists(
              row
                .selectFrom('response_runs')
                .select('response_runs.response_id')
                .whereRef('response_runs.response_id', '=', 'conversations.locked_by'),
            ),
          ),
        ]),
      ]),
    )
  if (revision !== undefined) query = query.where('revision', '=', revision)
  const [locked] = await query.execute()
  return (locked?.numUpdatedRows ?? 0n) > 0n
}
