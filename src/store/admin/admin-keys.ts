/** Idempotency keys of the admin API in the database. */
import { GatewayError } from '../../spec/error.ts'
import type { Engine } from '../engine.ts'
import type { AdminKeyStore } from './admin-store.ts'

export function adminKeyStore({ write }: Engine): AdminKeyStore {
  return {
    reserve: ({ scope, key, body_hash, now, expires_at, limit }) =>
      write(async (rows) => {
        await rows.deleteFrom('admin_keys').where('expires_at', '<=', now).execute()
        // Another process may reserve the same key at the same time: one of them inserts the row.
        const added = await rows
          .insertInto('admin_keys')
          .values({ scope, key, body_hash, status: null, answer: null, expires_at })
          .onConflict((conflict) => conflict.columns(['scope', 'key']).doNothing())
          .returning('key')
          .executeTakeFirst()
        if (!added) {
          return rows
            .selectFrom('admin_keys')
            .select(['body_hash', 'status', 'answer'])
            .where((row) => row.and({ scope, key }))
            .executeTakeFirstOrThrow()
        }
        const { count } = await rows
          .selectFrom('admin_keys')
          .select((row) => row.fn.countAll<number>().as('count'))
          .where('scope', '=', scope)
          .executeTakeFirstOrThrow()
        if (Number(count) <= limit) return undefined
        throw new GatewayError(
          'storage_quota_exceeded',
          `At most ${limit} idempotency keys of an administrator are remembered; wait, or send the request without one.`,
        )
      }),

    async answer({ scope, key, ...answer }) {
      await write((rows) =>
        rows
          .updateTable('admin_keys')
          .set(answer)
          .where((row) => row.and({ scope, key }))
          .execute(),
      )
    },

    async release({ scope, key }) {
      await write((rows) =>
        rows
          .deleteFrom('admin_keys')
          .where((row) => row.and({ scope, key }))
          .where('status', 'is', null)
          .execute(),
      )
    },
  }
}
