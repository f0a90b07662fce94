/** The columns that tokens and projects have in common, and the revision that counts the changes of both. */
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { Budget, RateLimits } from '../spec/rate-limit.ts'
import type { EndUserLimits, Project } from '../spec/token.ts'
import type { AccountColumns, Write } from './tables.ts'

type Account = Omit<Project, 'project_id' | 'log_contents'>

const toJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

export const toAccountColumns = (account: Account): AccountColumns => ({
  name: account.name,
  labels: JSON.stringify(account.labels),
  models: JSON.stringify(account.models),
  families: toJson(account.families),
  rate_limits: JSON.stringify(account.rate_limits),
  budgets: JSON.stringify(account.budgets),
  end_users: JSON.stringify(account.end_users),
  allowed_addresses: toJson(account.allowed_addresses),
  expires_at: account.expires_at,
  disabled: account.disabled ? 1 : 0,
  declared: account.declared ? 1 : 0,
  created_at: account.created_at,
})

export const fromAccountColumns = (row: AccountColumns): Account => ({
  name: row.name,
  labels: JSON.parse(row.labels) as Record<string, string>,
  models: JSON.parse(row.models) as string[],
  families: row.families === null ? null : (JSON.parse(row.families) as EndpointFamily[]),
  rate_limits: JSON.parse(row.rate_limits) as RateLimits,
  budgets: JSON.parse(row.budgets) as Budget[],
  end_users: JSON.parse(row.end_users) as EndUserLimits,
  allowed_addresses: row.allowed_addresses === null ? null : (JSON.parse(row.allowed_addresses) as string[]),
  expires_at: row.expires_at,
  disabled: row.disabled === 1,
  ...(row.declared === 1 && { declared: true }),
  created_at: row.created_at,
})

const JSON_FIELDS = new Set([
  'labels',
  'models',
  'families',
  'rate_limits',
  'budgets',
  'end_users',
  'allowed_addresses',
])

/** Only the given fields: an absent field must not become null. */
export function changedColumns(change: Record<string, unknown>): Record<string, string | number | null> {
  const columns: Record<string, string | number | null> = {}
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) continue
    if (JSON_FIELDS.has(name)) columns[name] = toJson(value)
    else columns[name] = typeof value === 'boolean' ? Number(value) : (value as string | number | null)
  }
  return columns
}

/** Counts a change of a token or a project, in the same transaction: no reader sees one without the other. */
export const bumpRevision = (write: Write): Promise<number> => addToRevision(write, 1)

/** Changes nothing, but is written: the changes of other transactions wait for this one. */
export const lockRevision = (write: Write): Promise<number> => addToRevision(write, 0)

async function addToRevision(write: Write, by: 0 | 1): Promise<number> {
  const row = await write
    .updateTable('revisions')
    .set((revisions) => ({ revision: revisions('revision', '+', by) }))
    .where('noun', '=', 'tokens')
    .returning('revision')
    .executeTakeFirstOrThrow()
  return row.revision
}
