/** Opens the store at an address and migrates it. */
import { GatewayError } from '../spec/error.ts'
import { adminKeyStore } from './admin/admin-keys.ts'
import { adminSessionStore } from './admin/admin-sessions.ts'
import { adminTokenStore } from './admin/admin-tokens.ts'
import { alertHistoryStore } from './admin/alert-history.ts'
import { alertStore } from './admin/alerts.ts'
import { auditStore } from './admin/audit.ts'
import { configVersionStore } from './admin/config-versions.ts'
import { mcpConnectionStore } from './admin/mcp-connections.ts'
import { mcpToolStore } from './admin/mcp-tools.ts'
import { overrideStore } from './admin/overrides.ts'
import { batchStore } from './batches/batches.ts'
import type { Engine } from './engine.ts'
import { openSqlite } from './engines/sqlite.ts'
import { fileRowStore } from './files/file-rows.ts'
import { budgetStore } from './ledger/budgets.ts'
import { ledgerStore } from './ledger/ledger.ts'
import { usageStore } from './ledger/token-usage.ts'
import { MIGRATIONS, type MigrateOptions } from './migrate.ts'
import { cachedAnswerStore } from './requests/cached-answers.ts'
import { openCachedVectors } from './requests/cached-vectors.ts'
import { liveStore } from './requests/live-events.ts'
import { requestContentsStore } from './requests/request-contents.ts'
import { requestLogStore } from './requests/request-log.ts'
import { requestSumStore } from './requests/request-sums.ts'
import { conversationStore } from './responses/conversations.ts'
import { responseRunStore } from './responses/response-runs.ts'
import { responseStore } from './responses/responses.ts'
import { readSchema } from './schema-state.ts'
import { RESTORE, type Store, StoreError } from './store.ts'
import { dueTimes } from './tasks/due-times.ts'
import { taskStore } from './tasks/tasks.ts'
import { webhookStore } from './tasks/webhooks.ts'
import { lockRevision } from './tokens/account-columns.ts'
import { endUserStore } from './tokens/end-users.ts'
import { projectStore } from './tokens/projects.ts'
import { rateLimitStore } from './tokens/rate-limit-leases.ts'
import { storedAmounts } from './tokens/stored-amounts.ts'
import { tokenStore } from './tokens/tokens.ts'
import { modelStore, secretStore } from './write-once.ts'

const ADDRESSES = '"sqlite:<path>", "sqlite::memory:" or "postgres://<user>:<password>@<host>:<port>/<database>"'

/** Told of each operation once it has ended: the name of the store, that of the operation, and milliseconds. */
type OnCall = (store: string, operation: string, call: { ms: number; isOk: boolean }) => void

type OpenParts = { url: string; onCall?: OnCall | undefined } & MigrateOptions

/** `url` is one of ADDRESSES. Throws StoreError with a message for the operator. */
export async function openStore({ url, onCall, mode = 'auto' }: OpenParts): Promise<Store> {
  const [scheme = ''] = url.split(':', 1)
  const rest = url.slice(scheme.length + 1)
  if (scheme === 'sqlite' && rest !== '')
    return storeOf(await openSqlite(rest, undefined, { mode: rest === ':memory:' ? 'auto' : mode }), onCall)
  if ((scheme === 'postgres' || scheme === 'postgresql') && rest.startsWith('//')) {
    // Imported only here: a start on SQLite should not load the driver of another engine.
    const { openPostgres } = await import('./engines/postgres.ts')
    const engine = await openPostgres(url, { mode })
    return { ...storeOf(engine, onCall), openCachedVectors: () => openCachedVectors(engine.db) }
  }
  // Only the scheme is repeated: an address may hold a password.
  const found = url.includes(':') ? `"${scheme}:${scheme === 'sqlite' ? '' : '...'}"` : 'something else'
  throw new StoreError(`The store's address must be ${ADDRESSES}; it is ${found}.`)
}

function storeOf(engine: Engine, onCall: OnCall | undefined): Store {
  const { db } = engine
  const tokens = tokenStore(engine)
  let closed: Promise<void> | undefined
  const report = errorReporter(engine, onCall)
  return {
    engine: engine.name,
    tokens: report('tokens', tokens),
    projects: report('projects', projectStore(engine)),
    audit: report('audit', auditStore(engine)),
    admin: {
      tokens: report('adminTokens', adminTokenStore(engine)),
      keys: report('adminKeys', adminKeyStore(engine)),
      sessions: report('adminSessions', adminSessionStore(engine)),
    },
    ledger: report('ledger', ledgerStore(engine)),
    usage: report('usage', usageStore(db)),
    models: report('models', modelStore(engine)),
    tasks: report('tasks', taskStore(engine)),
    webhooks: report('webhooks', webhookStore(engine)),
    secrets: report('secrets', secretStore(engine)),
    responses: report('responses', responseStore(engine)),
    responseRuns: report('responseRuns', responseRunStore(engine)),
    conversations: report('conversations', conversationStore(engine)),
    batches: report('batches', batchStore(engine)),
    amounts: report('amounts', storedAmounts(engine)),
    alerts: report('alerts', alertStore(engine)),
    live: report('live', liveStore(engine)),
    configVersions: report('configVersions', configVersionStore(engine)),
    alertHistory: report('alertHistory', alertHistoryStore(engine)),
    budgets: report('budgets', budgetStore(engine)),
    cachedAnswers: report('cachedAnswers', cachedAnswerStore(engine)),
    rateLimits: report('rateLimits', rateLimitStore(engine)),
    mcpTools: report('mcpTools', mcpToolStore(engine)),
    mcpConnections: report('mcpConnections', mcpConnectionStore(engine)),
    overrides: report('overrides', overrideStore(engine)),
    requestContents: report('requestContents', requestContentsStore(engine)),
    requestLog: report('requestLog', requestLogStore(engine)),
    requestSums: report('requestSums', requestSumStore(engine)),
    endUsers: report('endUsers', endUserStore(engine)),
    dueTimes: report('dueTimes', dueTimes(engine)),
    files: report('files', fileRowStore(engine)),
    ...report('database', {
      ping: () => engine.write(async (write) => void (await lockRevision(write))),
      schema: () => readSchema(db, Object.keys(MIGRATIONS)),
    }),
    releaseMemory: () => engine.releaseMemory?.(),
    close() {
      closed ??= engine.close()
      return closed
    },
  }
}

/** The `retry-after` of a request that could not be stored: a lock or a restart takes seconds. */
const RETRY_SECONDS = 5

/** Makes the methods of a store reject with `storage_unavailable` where the database cannot be reached or written. */
function errorReporter({ isUnavailable, isDamaged }: Engine, onCall: OnCall | undefined) {
  const rethrow = (cause: unknown): never => {
    if (!isUnavailable(cause)) throw cause
    if (isDamaged?.(cause)) {
      const message = `The gateway cannot use its database: ${(cause as Error).message}. ${RESTORE}`
      throw new GatewayError('storage_unavailable', message, { cause })
    }
    throw new GatewayError('storage_unavailable', 'The gateway cannot reach or write its database now; try again.', {
      retry_after: RETRY_SECONDS,
      cause,
    })
  }
  return <Methods extends object>(noun: string, store: Methods): Methods => {
    const entries = Object.entries(store).map(([name, method]: [string, (...args: unknown[]) => unknown]) => [
      name,
      (...args: unknown[]) => {
        const since = onCall ? performance.now() : 0
        const result = method(...args)
        if (!(result instanceof Promise)) return result
        if (!onCall) return result.catch(rethrow)
        return result.then(
          (value) => {
            onCall(noun, name, { ms: performance.now() - since, isOk: true })
            return value
          },
          (cause) => {
            onCall(noun, name, { ms: performance.now() - since, isOk: !isUnavailable(cause) })
            return rethrow(cause)
          },
        )
      },
    ])
    return Object.fromEntries(entries) as Methods
  }
}
