/** Migrates a database to the schema of this version, and rejects one that a newer version has written. */
import { type Migration, Migrator } from 'kysely/migration'
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
import { StoreError } from './store.ts'
import type { Database } from './tables.ts'

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
}

/**
 * Runs the missing migrations in one transaction that other processes wait for. `where` names the database in errors.
 * Throws StoreError.
 */
export async function migrate(db: Database, where: string): Promise<void> {
  if (await isMigrated(db, where)) return
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await migrator.migrateToLatest()
  if (error === undefined) return
  await isMigrated(db, where) // another process may have upgraded it between the two lines above
  throw new StoreError(`The database ${where} could not be migrated; it was not changed.`, error)
}

/** Whether every migration of this version was run: then nothing of the migrator is needed. Throws StoreError when there are others. */
async function isMigrated(db: Database, where: string): Promise<boolean> {
  const read = db.withTables<{ kysely_migration: { name: string } }>().selectFrom('kysely_migration').select('name')
  // The names of the tables are read only where this fails: they take longer than all else of a start with a migrated database.
  const done = await read.execute().catch(async (cause) => {
    const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
    if (!tables.some((table) => table.name === 'kysely_migration')) return undefined
    // It is another fault, or another process has just created the table.
    return read.execute().catch(() => {
      throw cause
    })
  })
  if (!done) return false
  const unknown = done.map(({ name }) => name).find((name) => !Object.hasOwn(MIGRATIONS, name))
  if (unknown === undefined) return done.length === Object.keys(MIGRATIONS).length
  throw new StoreError(
    `The database ${where} was written by a newer version of Gatehouse: it contains the migration "${unknown}", and this ` +
      `version knows migrations only up to "${Object.keys(MIGRATIONS).sort().at(-1)}". Run that version or a later one, or choose another data directory.`,
  )
}
