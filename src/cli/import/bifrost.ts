/**
 * Reads Bifrost: its `config.json` (https://www.getbifrost.ai/schema), or the tables of its configuration store
 * (https://github.com/maximhq/bifrost, `framework/configstore/tables`). Both are brought into the form of the tables.
 */
import { byName } from '../../kit/by-name.ts'
import { isRecord, parseJson, recordsIn } from '../../kit/json.ts'
import { readBifrostAccounts } from './bifrost-accounts.ts'
import { readBifrostProviders } from './bifrost-providers.ts'
import type { Bifrost, BifrostOwner, BifrostShare } from './bifrost-source.ts'
import { type Draft, membersOf, type Reader, SILENT } from './imported.ts'
import type { Row, Tables } from './sql-dump.ts'

const PROVIDERS = 'config_providers'
const KEYS = 'config_keys'
const VIRTUAL_KEYS = 'governance_virtual_keys'
const SHARES = 'governance_virtual_key_provider_configs'
const SHARE_KEYS = 'governance_virtual_key_provider_config_keys'
const BUDGETS = 'governance_budgets'
const LIMITS = 'governance_rate_limits'
const TEAMS = 'governance_teams'
const CUSTOMERS = 'governance_customers'
/** Read only to say that they are not carried. */
const OTHERS: Record<string, string> = {
  routing_rules: 'set models.<id>.fallbacks and models.<id>.targets.when',
  governance_model_configs: 'limits of a model are those of models.<id>.rate_limits',
  governance_pricing_overrides: 'set models.<id>.prices',
  config_mcp_clients: 'write it as mcp.servers.<name>',
  governance_virtual_key_mcp_configs: 'name the token in mcp.servers.<name>.tokens',
}
const EXPECTED = [PROVIDERS, KEYS, VIRTUAL_KEYS, SHARES, SHARE_KEYS, BUDGETS, LIMITS, TEAMS, CUSTOMERS]
export const BIFROST: Reader = {
  tables: [...EXPECTED, ...Object.keys(OTHERS)],
  expected: EXPECTED,
  readTree,
  readTables,
}

function readTables(draft: Draft, tables: Tables): void {
  const rows = (name: string) => tables.get(name) ?? []
  const limits = new Map(rows(LIMITS).map((row) => [String(row.id), row]))
  const limitedShares = new Set(rows(SHARE_KEYS).map((row) => String(row.table_virtual_key_provider_config_id)))
  const hasShareKeys = tables.has(SHARE_KEYS)
  const owner = (row: Row, table: string, member: string): BifrostOwner => ({
    row,
    path: `${table}[${nameOf(row)}]`,
    budgets: rows(BUDGETS).filter((one) => one[member] === row.id || (row.budget_id && one.id === row.budget_id)),
    limit: limits.get(String(row.rate_limit_id ?? '')),
  })
  const shareOf = (row: Row): BifrostShare => {
    const isLimitedToKeys = limitedShares.has(String(row.id))
    return {
      provider: String(row.provider),
      ...modelsOf(row, false),
      hasKeys: isLimitedToKeys || !hasShareKeys || !('allow_all_keys' in row) || isTrue(row.allow_all_keys),
      isLimitedToKeys,
      hasLimits: Boolean(row.rate_limit_id) || rows(BUDGETS).some((one) => one.provider_config_id === row.id),
    }
  }
  const source: Bifrost = {
    providers: rows(PROVIDERS).map((row) => ({
      name: String(row.name),
      path: `${PROVIDERS}[${nameOf(row)}]`,
      row: withoutSuffix(row),
      keys: rows(KEYS)
        .filter((key) => key.provider_id === row.id)
        .map((key) => ({ row: withoutSuffix(key), path: `${KEYS}[${nameOf(key)}]` })),
    })),
    virtualKeys: rows(VIRTUAL_KEYS).map((row) => ({
      ...owner(row, VIRTUAL_KEYS, 'virtual_key_id'),
      shares: rows(SHARES)
        .filter((share) => share.virtual_key_id === row.id)
        .map(shareOf),
    })),
    teams: rows(TEAMS).map((row) => owner(row, TEAMS, 'team_id')),
    customers: rows(CUSTOMERS).map((row) => owner(row, CUSTOMERS, 'customer_id')),
  }
  read(draft, source)
  for (const [name, why] of Object.entries(OTHERS)) {
    for (const row of rows(name)) draft.dropped(`${name}[${nameOf(row)}]`, why)
  }
}

const SECTIONS = byName(
  [SILENT, '$schema version source_of_truth env_label'],
  ['keys of providers are variables, or ${file:path}', 'encryption_key'],
  ['the store is data_dir, or GATEHOUSE_DATABASE_URL', 'config_store'],
  ['the request log is in the store; see request_log', 'logs_store'],
  ['the cache is turned on for each model: models.<id>.cache', 'vector_store'],
  ['set server, request_log and record_contents', 'client'],
  ['set server', 'server'],
  ['prices are imported with gatehouse models import', 'framework'],
  ['there are no plugins here', 'plugins'],
  ['write its servers as mcp.servers', 'mcp'],
  ['make an admin token: gatehouse admin create', 'auth_config'],
)
const GOVERNANCE: Record<string, string> = {
  ...OTHERS,
  model_configs: 'limits of a model are those of models.<id>.rate_limits',
  pricing_overrides: 'set models.<id>.prices',
  auth_config: 'make an admin token: gatehouse admin create',
  providers: 'budgets are those of callers, limits providers.<id>.rate_limits',
  users: 'people log in to the console by roles',
}

function readTree(draft: Draft, tree: Record<string, unknown>): void {
  const root = membersOf(draft, tree, '')
  const governance = membersOf(draft, root.record('governance') ?? {}, 'governance')
  // Before version 2 an empty list allowed everything.
  const isOpen = root.number('version') === 1
  const list = (name: string) => recordsIn(governance.take(name))
  const [budgets, limits] = [list('budgets'), list('rate_limits')]
  const owner = (row: Row, name: string, member: string): BifrostOwner => ({
    row,
    path: `governance.${name}[${nameOf(row)}]`,
    budgets: [
      ...recordsIn(row.budgets),
      ...(isRecord(row.budget) ? [row.budget] : []),
      ...budgets.filter((one) => one[member] === row.id || (row.budget_id !== undefined && one.id === row.budget_id)),
    ],
    limit: isRecord(row.rate_limit)
      ? row.rate_limit
      : limits.find(({ id }) => id === row.rate_limit_id && id !== undefined),
  })
  const shareOf = (row: Row): BifrostShare => {
    const keys = listOf(row.key_ids)
    return {
      provider: String(row.provider),
      ...modelsOf(row, isOpen),
      hasKeys: keys === undefined || keys.length > 0 || isOpen,
      isLimitedToKeys: keys !== undefined && keys.length > 0,
      hasLimits: ['budgets', 'budget', 'rate_limit', 'rate_limit_id'].some((name) => row[name] !== undefined),
    }
  }
  read(draft, {
    providers: Object.entries(root.record('providers') ?? {}).map(([name, given]) => {
      const row = isRecord(given) ? given : {}
      return {
        name,
        path: `providers.${name}`,
        row,
        keys: recordsIn(row.keys).map((key, at) => ({
          row: flatKey(key, isOpen),
          path: `providers.${name}.keys[${typeof key.name === 'string' ? nameOf(key) : at}]`,
        })),
      }
    }),
    virtualKeys: list('virtual_keys').map((row) => {
      const shares = recordsIn(row.provider_configs).map(shareOf)
      const all = Object.keys(root.record('providers') ?? {}).map((provider) =>
        shareOf({ provider, allowed_models: ['*'] }),
      )
      return { ...owner(row, 'virtual_keys', 'virtual_key_id'), shares: shares.length === 0 && isOpen ? all : shares }
    }),
    teams: list('teams').map((row) => owner(row, 'teams', 'team_id')),
    customers: list('customers').map((row) => owner(row, 'customers', 'customer_id')),
  })
  governance.rest(GOVERNANCE)
  root.rest(SECTIONS)
}

function read(draft: Draft, source: Bifrost): void {
  const models = readBifrostProviders(draft, source.providers)
  readBifrostAccounts(draft, source, models)
}

const nameOf = (row: Row): string => String(row.name ?? row.id ?? '?').slice(0, 80)

const isTrue = (value: unknown): boolean =>
  value === true || value === 1 || value === 't' || value === '1' || value === 'true'

/** The names of a list that allows; undefined: all of them. */
function listOf(given: unknown): string[] | undefined {
  const value = typeof given === 'string' ? parseJson(given) : given
  const names = Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
  return names.includes('*') ? undefined : names
}

/** A list that blocks wins over one that allows. `isOpen`: an empty list allows everything. */
function modelsOf(row: Row, isOpen: boolean): Pick<BifrostShare, 'models' | 'blocked'> {
  const [allowed, blocked] = [listOf(row.allowed_models), listOf(row.blacklisted_models)]
  if (blocked === undefined) return { models: [], blocked: [] }
  return { models: allowed?.length === 0 && isOpen ? undefined : allowed, blocked }
}

/** The columns with JSON as the members of the file: `models_json` is `models`. */
const withoutSuffix = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name.replace(/_json$/, ''), value]))

/** The members of `azure_key_config` and others as the columns of the table: `azure_endpoint`. */
function flatKey(key: Row, isOpen: boolean): Row {
  const flat: Row = {}
  for (const [name, value] of Object.entries(key)) {
    const prefix = /^(.+)_key_config$/.exec(name)?.[1]
    if (prefix === undefined || !isRecord(value)) flat[name] = value
    else for (const [member, inner] of Object.entries(value)) flat[`${prefix}_${member}`] = inner
  }
  if (isOpen && Array.isArray(flat.models) && flat.models.length === 0) flat.models = ['*']
  // The examples of Bifrost leave it out where every model may be called.
  return 'models' in flat ? flat : { ...flat, models: ['*'] }
}
