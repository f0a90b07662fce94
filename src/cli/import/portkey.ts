/**
 * Reads Portkey: a gateway config (https://portkey.ai/docs/api-reference/inference-api/config-object), `conf.json` of the
 * gateway that one runs oneself, or the lists of its admin API, which have neither keys of providers nor keys of clients.
 */
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { byName } from '../../kit/by-name.ts'
import { asRecord, isRecord, parseJson, recordsIn } from '../../kit/json.ts'
import { type Draft, type Members, membersOf, type Reader, SILENT } from './imported.ts'
import { rateOf } from './limits.ts'
import { modelId } from './model-targets.ts'
import { readPortkeyConfig } from './portkey-config.ts'
import { presetKey, secretOf } from './provider-parts.ts'
import type { Row, Tables } from './sql-dump.ts'
import { vendorTree } from './vendors.ts'

/** Names of lists, and of files of a directory: the paths of the admin API. */
const TABLES = ['virtual-keys', 'providers', 'integrations', 'configs', 'api-keys'] as const
const [VIRTUAL_KEYS, PROVIDERS, INTEGRATIONS, CONFIGS, API_KEYS] = TABLES
export const PORTKEY: Reader = {
  tables: TABLES,
  // One config: its targets name their vendors themselves.
  readTree: (draft, tree) => readPortkeyConfig(draft, { tree, path: '', id: undefined, known: new Map() }),
  readTables,
}

function readTables(draft: Draft, tables: Tables): void {
  const known = new Map<string, string>()
  for (const table of [INTEGRATIONS, PROVIDERS, VIRTUAL_KEYS]) {
    for (const row of tables.get(table) ?? []) readProvider(draft, { row, table, known })
  }
  for (const row of tables.get(CONFIGS) ?? []) readConfigRow(draft, row, known)
  for (const row of tables.get(API_KEYS) ?? []) readApiKey(draft, row)
}

type ProviderParts = { row: Row; table: string; known: Map<string, string> }

/** A virtual key, a provider or an integration: each names a vendor, whose key is not shown. */
function readProvider(draft: Draft, { row, table, known }: ProviderParts): undefined {
  const slug = String(row.slug ?? row.name ?? '?').slice(0, 80)
  const members = membersOf(draft, row, `${table}[${slug}]`)
  for (const name of ['id', 'slug', 'name', 'object', 'masked_api_key']) members.take(name)
  const status = members.text('status') ?? 'active'
  if (status !== 'active') return draft.dropped(members.path, `its status is ${status}`)
  // A provider is an integration within a workspace.
  const integration = members.text('integration_id') ?? members.text('integration_slug')
  const vendor = members.text('ai_provider_name') ?? members.text('ai_provider_id') ?? members.text('provider')
  if (vendor === undefined && integration !== undefined && known.has(integration)) {
    known.set(slug, known.get(integration) ?? integration)
    draft.mapped(members.path, `providers.${known.get(slug)}`)
    return
  }
  const settings = membersOf(draft, members.record('model_config') ?? {}, members.at('model_config'))
  const tree =
    vendor === undefined ? undefined : vendorTree(vendor, settings.text('custom_host') ?? azureAddress(settings))
  if (vendor === undefined || !tree) {
    return draft.dropped(
      members.path,
      `provider ${JSON.stringify(vendor ?? '')} is not known, and there is no address to call`,
    )
  }
  const rate_limits = rateLimitsOf(draft, members, `providers.${slug}.rate_limits`)
  if (rate_limits) tree.rate_limits = rate_limits
  const key = keyOf(draft, members, { slug, tree })
  if (key !== undefined) tree.key = key
  const models = members.take('models')
  const listed = recordsIn(models)
  if (listed.length === 0) tree.discover = true
  const id = draft.provider(slug, tree)
  known.set(slug, id)
  draft.mapped(members.path, listed.length === 0 ? `providers.${id}, with the models that it lists` : `providers.${id}`)
  for (const entry of listed) readModel(draft, { members, entry, id })
  settings.rest({})
  members.rest(PROVIDER)
}

function readModel(draft: Draft, { members, entry, id }: { members: Members; entry: Row; id: string }): undefined {
  const name = String(entry.slug ?? '')
  const at = `${members.at('models')}[${name}]`
  if (entry.status !== undefined && entry.status !== 'active') return draft.dropped(at, `its status is ${entry.status}`)
  const model = modelId(draft, `${id}/${name}`, at)
  if (model === undefined) return
  draft.models.set(model, { targets: [{ provider: id, model: name }] })
  draft.mapped(at, `models.${model}.targets`)
  if (entry.pricing_config) draft.dropped(`${at}.pricing_config`, `set models.${model}.prices`)
}

const azureAddress = (settings: Members): string | undefined => {
  const resource = settings.text('resourceName') ?? settings.text('azure_resource_name')
  return resource === undefined ? undefined : `https://${resource}.openai.azure.com`
}

function keyOf(draft: Draft, members: Members, { slug, tree }: { slug: string; tree: Tree }): string | undefined {
  const credentials = membersOf(draft, members.record('credentials') ?? {}, members.at('credentials'))
  const key = secretOf(draft, credentials, { member: 'apiKey', name: `${slug}_API_KEY` })
  credentials.rest({})
  if (key !== undefined) return key
  // A vendor on this machine has none.
  if (presetKey({ ...draft, secret: () => 'needed' }, tree, '') === undefined && tree.preset !== undefined)
    return undefined
  const variable = `${slug}_API_KEY`
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
    .replace(/^(\d)/, '_$1')
  return draft.secret('', { path: members.path, name: '', variable })
}

const WINDOWS: Record<string, string> = { rpm: '1m', rph: '1h', rpd: '1d', rps: '1s' }

/** `[{ type: requests, unit: rpm, value: 100 }]`. */
function rateLimitsOf(draft: Draft, members: Members, to: string): Tree | undefined {
  const given = members.take('rate_limits')
  const limits: Tree = {}
  for (const [index, entry] of recordsIn(given).entries()) {
    const path = `${members.at('rate_limits')}[${index}]`
    const unit = entry.type === 'requests' || entry.type === 'tokens' ? entry.type : undefined
    const most = Number(entry.value)
    const rate = unit && most >= 0 ? rateOf(unit, most, WINDOWS[String(entry.unit)] ?? '') : undefined
    if (!rate) draft.dropped(path, 'it must have type requests or tokens, unit rpm, rph or rpd, and a value')
    else {
      limits[rate.key] = rate.value
      draft.mapped(path, `${to}.${rate.key}`)
    }
  }
  return Object.keys(limits).length === 0 ? undefined : limits
}

function readConfigRow(draft: Draft, row: Row, known: Map<string, string>): undefined {
  const slug = String(row.slug ?? row.id ?? row.name ?? '?').slice(0, 80)
  const path = `${CONFIGS}[${slug}]`
  if (row.status !== undefined && row.status !== 'active') return draft.dropped(path, `its status is ${row.status}`)
  const given = typeof row.config === 'string' ? parseJson(row.config) : row.config
  if (!isRecord(given)) {
    return draft.dropped(path, 'the list of configs has no contents; add those of /configs/<slug> as the member config')
  }
  readPortkeyConfig(draft, { tree: given, path, id: slug, known })
}

/** Portkey shows neither a key nor its hash, so a token cannot have it: the command that makes one is in the line. */
function readApiKey(draft: Draft, row: Row): void {
  const name = String(row.name ?? row.id ?? '?').slice(0, 80)
  const path = `${API_KEYS}[${name}]`
  // In single quotes a shell reads nothing in it.
  const options = [`--name '${name.replaceAll(/\p{Cc}/gu, ' ').replaceAll("'", "'\\''")}'`]
  const quiet = { ...draft, mapped: () => undefined, dropped: () => undefined }
  for (const [key, most] of Object.entries(rateLimitsOf(quiet, membersOf(quiet, row, path), '') ?? {})) {
    options.push(`--limit ${key}=${most}`)
  }
  const usage = asRecord(row.usage_limits)
  const window = { monthly: 'month', weekly: 'week' }[String(usage.periodic_reset ?? '')] ?? 'total'
  const isMoney = usage.type === undefined || usage.type === 'cost'
  if (typeof usage.credit_limit === 'number' && isMoney) options.push(`--budget ${usage.credit_limit}/${window}`)
  draft.dropped(
    path,
    `Portkey shows neither this key nor its hash; make a token: gatehouse token create ${options.join(' ')}`,
  )
}

const PROVIDER = byName(
  [SILENT, 'note description created_at last_updated_at reset_usage owner_id type organisation_id workspace_id'],
  ['budgets are those of callers: gatehouse project create --budget', 'usage_limits'],
  ['a provider has no end; take its key out of the file then', 'expires_at'],
  ['tokens name the models that they may use', 'workspaces'],
)
