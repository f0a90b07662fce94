/** Removes the index of targets from the request log: a target is found by that of its provider, and each index costs every row. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const fewerRequestIndexes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.dropIndex('request_log_by_target').execute()
  },
}
