/** Stored responses in the database: each with its own input and a link to the previous response. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { ResponsesTable, Write } from '../tables.ts'
import { chunks } from '../tasks/task-sql.ts'
import { deleteExpired } from './expired.ts'
import type { StoredResponse } from './response-row.ts'
import type { ResponseStore } from './response-store.ts'

/** Previous responses are extended by a day more than needed, so that not every turn rewrites all turns before it. */
const DAY_SECONDS = 86_400

export function responseStore(engine: Engine): ResponseStore {
  const { db, write } = engine
  const unexpired = (response_ids: string[], token_id: string, now: number) =>
    db
      .selectFrom('responses')
      .where('response_id', 'in', response_ids)
      .where('token_id', '=', token_id)
      .where('expires_at', '>', now)

  return {
    add: (response, previous_ids) => write((rows) => addResponse(rows, response, previous_ids)),

    async find(response_ids, token_id, now) {
      const found: StoredResponse[] = []
      for (const some of chunks(response_ids)) {
        const rows = await unexpired(some, token_id, now).selectAll().execute()
        found.push(...rows.map(storedOf))
      }
      return found
    },

    async textLength(response_ids, token_id, now) {
      let length = 0
      for (const some of chunks(response_ids)) {
        const { signs } = await unexpired(some, token_id, now)
          .select(sql<number | string | null>`sum(length(input) + length(response))`.as('signs'))
          .executeTakeFirstOrThrow()
        length += Number(signs ?? 0)
      }
      return length
    },

    async conversation(response_id, { token_id, now, max_length }) {
      const rows = await db
        .withRecursive('chain', (make) =>
          make
            .selectFrom('responses')
            .selectAll()
            .select([sql<number>`0`.as('steps'), sql<number>`length(input) + length(response)`.as('texts')])
            .where((row) => row.and({ response_id, token_id }))
            .where('expires_at', '>', now)
            .unionAll(
              make
                .selectFrom('responses')
                .innerJoin('chain', 'chain.previous_id', 'responses.response_id')
                .selectAll('responses')
                .select([
                  sql<number>`steps + 1`.as('steps'),
                  sql<number>`texts + length(responses.input) + length(responses.response)`.as('texts'),
                ])
                .where('responses.token_id', '=', token_id)
                .where('responses.expires_at', '>', now)
                .where('chain.texts', '<=', max_length),
            ),
        )
        .selectFrom('chain')
        .selectAll()
        .orderBy('steps', 'desc')
        .execute()
      return rows.map(({ steps: _, texts: __, ...row }) => storedOf(row))
    },

    remove: (response_id, token_id) =>
      write(async (rows) => {
        const [removed] = await rows
          .deleteFrom('responses')
          .where((row) => row.and({ response_id, token_id }))
          .execute()
        const is_removed = (removed?.numDeletedRows ?? 0n) > 0n
        if (is_removed) await removeRuns(rows, [response_id])
        return is_removed
      }),

    deleteExpired: (now, limit) =>
      deleteExpired(engine, { table: 'responses', id: 'response_id', now, limit }, removeRuns),
  }
}

/** The previous responses (`previous_ids`) expire no earlier than this one. */
export async function addResponse(rows: Write, added: StoredResponse, previous_ids: string[]): Promise<void> {
  const { input, response, end_user = null, ...row } = added
  await rows
    .insertInto('responses')
    .values({ ...row, end_user, input: JSON.stringify(input), response: JSON.stringify(response) })
    .execute()
  for (const some of chunks(previous_ids)) {
    await rows
      .updateTable('responses')
      .set({ expires_at: row.expires_at + DAY_SECONDS })
      .where('response_id', 'in', some)
      .where('expires_at', '<', row.expires_at)
      .execute()
  }
}

/** The runs and the events of these responses. */
export async function removeRuns(rows: Write, response_ids: string[]): Promise<void> {
  if (response_ids.length === 0) return
  await rows.deleteFrom('response_runs').where('response_id', 'in', response_ids).execute()
  await rows.deleteFrom('response_events').where('response_id', 'in', response_ids).execute()
}

export const storedOf = ({ input, response, end_user, ...row }: ResponsesTable): StoredResponse => ({
  ...row,
  ...(end_user !== null && { end_user }),
  input: JSON.parse(input),
  response: JSON.parse(response),
})
