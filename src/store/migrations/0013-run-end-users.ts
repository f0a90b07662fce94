/** For whom a background response is generated: the end user that its request named. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const runEndUsers: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('response_runs').addColumn('end_user', 'text').execute()
  },
}
