/** Migrates a database to the schema of this build, and rejects one on which this build cannot run. */
import { type Migration, Migrator } from 'kysely/migration'
import { buildLargeIndexes } from './large-indexes.ts'
import { firstTables } from './migrations/0001-first-tables.ts'
import { tasks } from './migrations/0002-tasks.ts'
import { responses } from './migrations/0003-responses.ts'
import { taskFamilies } from './migrations/0004-task-families.ts'
import { responseRuns } from './migrations/0005-response-runs.ts'
import { orderDestination } from './migrations/0006-order-destination.ts'
import { conversations } from './migrations/0007-conversations.ts'
import { sentOrders } from './migrations/0008-sent-orders.ts'
import { storedAmounts } from './migrations/0009-stored-amounts.ts'
import { cachedAnswers } from './migrations/0010-cached-answers.ts'
import { accounts } from './migrations/0011-accounts.ts'
import { ledger } from './migrations/0012-ledger.ts'
import { runEndUsers } from './migrations/0013-run-end-users.ts'
import { orderRouting } from './migrations/0014-order-routing.ts'

import { budgets } from './migrations/0015-budgets.ts'
import { rateLimitLeases } from './migrations/0016-rate-limit-leases.ts'
import { alertChannels } from './migrations/0017-alert-channels.ts'
import { routingOverrides } from './migrations/0018-routing-overrides.ts'
import { administration } from './migrations/0019-administration.ts'
import { taskTraces } from './migrations/0020-task-traces.ts'
import { audit } from './migrations/0021-audit.ts'
import { requestLog } from './migrations/0022-request-log.ts'
import { requestContents } from './migrations/0023-request-contents.ts'
import { declaredAccounts } from './migrations/0024-declared-accounts.ts'
import { declaredAdminTokens } from './migrations/0025-declared-admin-tokens.ts'
import { logContents } from './migrations/0026-log-contents.ts'
import { requestClasses } from './migrations/0027-request-classes.ts'
import { contentsEndUsers } from './migrations/0028-contents-end-users.ts'
import { sizeIndexes } from './migrations/0029-size-indexes.ts'
import { fewerRequestIndexes } from './migrations/0030-fewer-request-indexes.ts'
import { requestSums } from './migrations/0031-request-sums.ts'
import { sessionMemberships } from './migrations/0032-session-memberships.ts'
import { alertHistory } from './migrations/0033-alert-history.ts'
import { webhookAttempts } from './migrations/0034-webhook-attempts.ts'
import { liveEvents } from './migrations/0035-live-events.ts'
import { configVersions } from './migrations/0036-config-versions.ts'
import { taskSteps } from './migrations/0037-task-steps.ts'
import { liveFollowers } from './migrations/0038-live-followers.ts'
import { files } from './migrations/0039-files.ts'
import { batches } from './migrations/0040-batches.ts'
import { mcpTools } from './migrations/0041-mcp-tools.ts'
import { accountGuards } from './migrations/0042-account-guards.ts'
import { fileProblems } from './migrations/0043-file-problems.ts'
import { mcpConnections } from './migrations/0044-mcp-connections.ts'
import { readSchema, type SchemaState, schemaNumber, tooNewText, tooOldText } from './schema-state.ts'
import { StoreError } from './store.ts'
import type { Database, Write } from './tables.ts'

/** Imported, not read from a folder, so that a single-file build contains them. Never edit or rename a released one. */
export const MIGRATIONS: Record<string, Migration> = {
  '0001-first-tables': firstTables,
  '0002-tasks': tasks,
  '0003-responses': responses,
  '0004-task-families': taskFamilies,
  '0005-response-runs': responseRuns,
  '0006-order-destination': orderDestination,
  '0007-conversations': conversations,
  '0008-sent-orders': sentOrders,
  '0009-stored-amounts': storedAmounts,
  '0010-cached-answers': cachedAnswers,
  '0011-accounts': accounts,
  '0012-ledger': ledger,
  '0013-run-end-users': runEndUsers,
  '0014-order-routing': orderRouting,

  '0015-budgets': budgets,
  '0016-rate-limit-leases': rateLimitLeases,
  '0017-alert-channels': alertChannels,
  '0018-routing-overrides': routingOverrides,
  '0019-administration': administration,
  '0020-task-traces': taskTraces,
  '0021-audit': audit,
  '0022-request-log': requestLog,
  '0023-request-contents': requestContents,
  '0024-declared-accounts': declaredAccounts,
  '0025-declared-admin-tokens': declaredAdminTokens,
  '0026-log-contents': logContents,
  '0027-request-classes': requestClasses,
  '0028-contents-end-users': contentsEndUsers,
  '0029-size-indexes': sizeIndexes,
  '0030-fewer-request-indexes': fewerRequestIndexes,
  '0031-request-sums': requestSums,
  '0032-session-memberships': sessionMemberships,
  '0033-alert-history': alertHistory,
  '0034-webhook-attempts': webhookAttempts,
  '0035-live-events': liveEvents,
  '0036-config-versions': configVersions,
  '0037-task-steps': taskSteps,
  '0038-live-followers': liveFollowers,
  '0039-files': files,
  '0040-batches': batches,
  '0041-mcp-tools': mcpTools,
  '0042-account-guards': accountGuards,
  '0043-file-problems': fileProblems,
  '0044-mcp-connections': mcpConnections,
}

/**
 * The oldest schema whose builds can use a database of this build. Migrations are additive within a major version (new
 * tables, indexes and nullable columns): this number rises only with one that is not. A build checks it at its start.
 */
const OLDEST_SCHEMA = 37

/** Mode `manual`: a database of an older schema is refused, since the operator migrates it. */
export type MigrateOptions = { mode?: 'auto' | 'manual' }

/** Another process may build the index of a large table. */
const WAIT_MILLISECONDS = 30 * 60_000
const PAUSE_MILLISECONDS = 200

/**
 * Runs the missing migrations in one transaction that other processes wait for. `where` names the database in errors.
 * Throws StoreError; the database is then as it was before.
 */
export async function migrate(db: Database, where: string, { mode = 'auto' }: MigrateOptions = {}): Promise<void> {
  const before = await usableSchema(db, where)
  if (mode === 'manual' && before.pending.length > 0) throw new StoreError(tooOldText(where, before))
  if (mode === 'manual') return
  if (before.pending.length > 0 || (before.newer.length === 0 && before.oldest === null)) await runMigrations(db, where)
}

/** Builds the missing indexes of large tables, unless a newer build has migrated the database. Throws StoreError. */
export async function buildIndexes(db: Database, where: string): Promise<void> {
  if ((await usableSchema(db, where)).newer.length === 0) await buildLargeIndexes(db)
}

/** Throws StoreError where a newer build has changed the database so that this one cannot use it. */
async function usableSchema(db: Database, where: string): Promise<SchemaState> {
  const known = Object.keys(MIGRATIONS)
  const state = await readSchema(db, known)
  if (state.status === 'too new') throw new StoreError(tooNewText(where, state, known.toSorted().at(-1)))
  return state
}

async function runMigrations(db: Database, where: string): Promise<void> {
  const end = performance.now() + WAIT_MILLISECONDS
  for (;;) {
    try {
      return await migrateOnce(db)
    } catch (error) {
      const state = await usableSchema(db, where) // another process may have migrated it meanwhile
      if (state.pending.length === 0 && state.oldest !== null) return
      if (!isLocked(error) || performance.now() > end)
        throw new StoreError(`The database ${where} could not be migrated; it was not changed.`, error)
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MILLISECONDS))
  }
}

const migrateOnce = (db: Database): Promise<void> => db.transaction().execute((write) => migrateWithin(write))

/** Runs the missing migrations up to this one in the caller's transaction; default: all. */
export async function migrateWithin(write: Write, last?: string): Promise<void> {
  // First, since the migrator would hide the reason where no table can be created.
  await write.schema
    .createTable('schema_compatibility')
    .ifNotExists()
    .addColumn('schema', 'bigint', (column) => column.primaryKey())
    .addColumn('oldest', 'bigint', (column) => column.notNull())
    .execute()
  const migrator = new Migrator({ db: write, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await (last === undefined ? migrator.migrateToLatest() : migrator.migrateTo(last))
  if (error !== undefined) throw error
  if (last !== undefined) return
  await write
    .withTables<{ schema_compatibility: { schema: number; oldest: number } }>()
    .insertInto('schema_compatibility')
    .values({ schema: schemaNumber(Object.keys(MIGRATIONS)), oldest: OLDEST_SCHEMA })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** A lock was not free in time: a migration waits for it in short steps, since calls wait behind one that waits. */
function isLocked(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return code === '55P03' || code === '40P01' || code.startsWith('SQLITE_BUSY')
}
