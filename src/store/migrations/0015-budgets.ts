/** Budgets: what was charged, and what processes and tasks hold; alerts to the operator. */
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const budgets: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('budget_accounts')
      .addColumn('account_key', 'text', (column) => column.notNull())
      .addColumn('start_ms', 'bigint', (column) => column.notNull())
      .addColumn('end_ms', 'bigint', (column) => column.notNull())
      .addColumn('scope_key', 'text', (column) => column.notNull())
      .addColumn('settled', 'bigint', (column) => column.notNull())
      .addColumn('credit', 'bigint', (column) => column.notNull())
      .addColumn('held', 'bigint', (column) => column.notNull())
      .addColumn('notified', 'double precision', (column) => column.notNull())
      .addPrimaryKeyConstraint('budget_accounts_key', ['account_key', 'start_ms'])
      .execute()
    await db.schema
      .createIndex('budget_accounts_by_scope')
      .on('budget_accounts')
      .columns(['scope_key', 'end_ms'])
      .execute()
    await db.schema
      .createTable('budget_leases')
      .addColumn('process_id', 'text', (column) => column.notNull())
      .addColumn('account_key', 'text', (column) => column.notNull())
      .addColumn('start_ms', 'bigint', (column) => column.notNull())
      .addColumn('amount', 'bigint', (column) => column.notNull())
      .addColumn('expires_ms', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('budget_leases_key', ['process_id', 'account_key', 'start_ms'])
      .execute()
    await db.schema.createIndex('budget_leases_by_end').on('budget_leases').columns(['expires_ms']).execute()
    await db.schema
      .createTable('budget_holds')
      .addColumn('call_id', 'text', (column) => column.notNull())
      .addColumn('account_key', 'text', (column) => column.notNull())
      .addColumn('start_ms', 'bigint', (column) => column.notNull())
      .addColumn('amount', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('budget_holds_key', ['call_id', 'account_key', 'start_ms'])
      .execute()
    await sql`create index ledger_credits on ledger_entries (at_ms) where kind = 'credit'`.execute(db)
    await db.schema
      .createTable('alerts')
      .addColumn('alert_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('body', 'text', (column) => column.notNull())
      .addColumn('attempts', 'integer', (column) => column.notNull())
      .addColumn('due_ms', 'bigint', (column) => column.notNull())
      .execute()
    await db
      .insertInto('revisions' as never)
      .values({ noun: 'budgets', revision: 0 } as never)
      .execute()
  },
}
