/**
 * A process with migrations of a later build, as tests of upgrades need it. Its plan is the first argument, as JSON: it opens
 * the store at the address, and prints the schema that it finds.
 */
import { sql } from 'kysely'
import { LARGE_INDEXES } from '../../src/store/large-indexes.ts'
import { MIGRATIONS } from '../../src/store/migrate.ts'
import { openStore } from '../../src/store/open-store.ts'

export type MigrationPlan = {
  url: string
  /** What the later migration does after it has changed a table: it ends, fails, or kills the process. */
  end: 'well' | 'with an error' | 'with a kill'
  /** Builds an index of a large table as well. */
  index?: { name: string; on: string }
}

/** The number of the migration that is added. */
export const LATER_MIGRATION = `${String(Object.keys(MIGRATIONS).length + 1).padStart(4, '0')}-later`

export function addLaterMigration({ end, index }: Pick<MigrationPlan, 'end' | 'index'>): void {
  MIGRATIONS[LATER_MIGRATION] = {
    async up(db) {
      await db.schema.createTable('later').addColumn('name', 'text').execute()
      await db.schema.alterTable('ledger_entries').addColumn('later', 'text').execute()
      await db.schema.alterTable('tasks').addColumn('later', 'text').execute()
      if (end === 'with a kill') process.kill(process.pid, 'SIGKILL')
      if (end === 'with an error') await sql`insert into no_such_table values (1)`.execute(db)
    },
  }
  if (index) LARGE_INDEXES.push(index)
}

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2] ?? '') as MigrationPlan
  addLaterMigration(plan)
  try {
    const store = await openStore({ url: plan.url })
    process.stdout.write(`${JSON.stringify(await store.schema())}\n`)
    await store.close()
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
