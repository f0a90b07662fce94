/** Sessions of persons with several projects or with an admin token, and login links for a person. */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const sessionMemberships: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('admin_sessions').addColumn('memberships', 'text').execute()
    await db.schema.alterTable('admin_sessions').addColumn('token_hash', 'text').execute()
    await db.schema.alterTable('admin_links').addColumn('person', 'text').execute()
  },
}
