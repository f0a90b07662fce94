/** Reads the providers of Bifrost with their keys: models are called `<provider>/<model>`, as Bifrost calls them. */
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { byName } from '../../kit/by-name.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import type { BifrostProvider } from './bifrost-source.ts'
import { type Draft, firstOf, type Members, membersOf, SILENT } from './imported.ts'
import { type Deployment, modelId, modelTree } from './model-targets.ts'
import { addressOf, headersOf, optionsOf, presetKey, secretOf } from './provider-parts.ts'
import type { Row } from './sql-dump.ts'
import { vendorTree } from './vendors.ts'

/** What Bifrost adds to the address of a provider; of others it may have another form than here. */
const PATHS: Record<string, string> = {
  ...Object.fromEntries(
    ['openai', 'groq', 'mistral', 'cerebras', 'xai', 'deepseek', 'openrouter', 'vllm', 'sgl', 'parasail', 'nebius'].map(
      (name) => [name, '/v1'],
    ),
  ),
  anthropic: '',
  gemini: '',
  ollama: '',
}

const OPTIONS: Record<string, Record<string, string>> = {
  azure: { azure_api_version: 'apiVersion' },
  bedrock: {
    bedrock_region: 'region',
    bedrock_access_key: 'accessKeyId',
    bedrock_secret_key: 'secretAccessKey',
    bedrock_session_token: 'sessionToken',
  },
  vertex: { vertex_project_id: 'project', vertex_region: 'location' },
}

/** The ids of the models of each provider, and by their bare names. */
export type BifrostModels = { byProvider: Map<string, Set<string>>; bare: Map<string, Set<string>> }

type Key = { tree: Tree; key: string | undefined; members: Members; weight: number | undefined; path: string }

export function readBifrostProviders(draft: Draft, providers: readonly BifrostProvider[]): BifrostModels {
  const byName = new Map<string, Deployment[]>()
  const models: BifrostModels = { byProvider: new Map(), bare: new Map() }
  for (const provider of providers) {
    const own = readProvider(draft, provider)
    models.byProvider.set(provider.name, new Set(own.keys()))
    for (const [id, { bare, deployments }] of own) {
      draft.models.set(id, modelTree(draft, id, deployments, 'weighted'))
      byName.set(bare, [...(byName.get(bare) ?? []), ...deployments])
      models.bare.set(bare, (models.bare.get(bare) ?? new Set()).add(provider.name))
    }
  }
  // A request may leave out the provider.
  for (const [name, deployments] of byName) {
    if (!draft.models.has(name)) draft.models.set(name, modelTree(draft, name, deployments, 'weighted'))
  }
  return models
}

type Models = Map<string, { bare: string; deployments: Deployment[] }>

function readProvider(draft: Draft, { name, path, row, keys }: BifrostProvider): Models {
  const models: Models = new Map()
  const members = membersOf(draft, row, path)
  for (const known of ['name', 'id', 'keys']) members.take(known)
  const custom = membersOf(draft, members.record('custom_provider_config') ?? {}, members.at('custom_provider_config'))
  const vendor = custom.text('base_provider_type') ?? name
  const network = membersOf(draft, members.record('network_config') ?? {}, members.at('network_config'))
  const base_url = baseUrlOf(draft, network, vendor)
  const readKeys = keys.length === 0 ? [{ row: { models: ['*'] }, path }] : keys
  const groups = new Map<string, Key[]>()
  for (const one of readKeys) {
    const key = readKey(draft, { ...one, vendor, name, base_url })
    if (!key) continue
    const text = JSON.stringify(key.tree)
    groups.set(text, [...(groups.get(text) ?? []), key])
  }
  // None of its keys can be used, as their lines say.
  if (groups.size === 0) return models
  const shared = sharedOf(draft, { members, network, name })
  for (const group of groups.values()) readGroup(draft, { group, name, shared, models })
  network.rest(NETWORK)
  custom.rest(CUSTOM)
  members.rest(PROVIDER)
  return models
}

type Group = { group: readonly Key[]; name: string; shared: Tree; models: Models }

/** Keys that are used at one address with the same options are those of one provider. */
function readGroup(draft: Draft, { group, name, shared, models }: Group): void {
  const [first] = group
  if (!first) return
  const tree: Tree = { ...first.tree, ...shared }
  const named = group.map((one) => ({ ...one, ...modelsOf(draft, one.members) }))
  if (named.length === 1) Object.assign(tree, first.key === undefined ? {} : { key: first.key })
  else {
    tree.keys = firstOf(draft, named, 100, `keys of ${name}`).flatMap(({ key, weight, targets, isAll }) => {
      if (key === undefined) return []
      const own = [...targets.values()]
      return [{ key, ...(weight !== undefined && { weight }), ...(!isAll && own.length > 0 && { models: own }) }]
    })
  }
  if (named.some(({ isAll }) => isAll)) tree.discover = true
  const id = draft.provider(name, tree)
  for (const { path, members, targets, isAll } of named) {
    draft.mapped(path, isAll ? `providers.${id}, with the models that it lists` : `providers.${id}`)
    for (const [alias, model] of targets) {
      const at = modelId(draft, `${name}/${alias}`, members.at('models'))
      if (at === undefined) continue
      const entry = models.get(at) ?? { bare: alias, deployments: [] }
      models.set(at, entry)
      if (!entry.deployments.some((one) => one.provider === id && one.model === model)) {
        entry.deployments.push({ provider: id, model })
      }
    }
    members.rest(KEY)
  }
}

/** The models of a key: by their names for clients, with those at the provider. */
function modelsOf(draft: Draft, members: Members): { targets: Map<string, string>; isAll: boolean } {
  const listed = members.list('models')
  const targets = new Map<string, string>()
  for (const name of listed) if (name !== '*') targets.set(name, name)
  for (const place of ['aliases', 'azure_deployments', 'bedrock_deployments', 'vertex_deployments']) {
    for (const [alias, given] of Object.entries(members.record(place) ?? {})) {
      const model = isRecord(given) ? given.model_id : given
      if (typeof model !== 'string' || model === '') draft.dropped(`${members.at(place)}.${alias}`, 'it names no model')
      else if (['*', alias, model].some((one) => listed.includes(one)) || listed.length === 0) targets.set(alias, model)
    }
  }
  return { targets, isAll: listed.includes('*') }
}

type KeyParts = { row: Row; path: string; vendor: string; name: string; base_url: string | undefined }

function readKey(draft: Draft, { row, path, vendor, name, base_url }: KeyParts): Key | undefined {
  const isEncrypted = row.encryption_status === 'encrypted'
  const label = String(row.name ?? name)
  const variable = (member: string) =>
    `${label}_${member === 'value' ? 'API_KEY' : member}`.toUpperCase().replaceAll(/\W+/g, '_')
  const plain = Object.fromEntries(
    Object.entries(row).map(([member, value]) => {
      if (!isSecret(member)) return [member, value]
      const text = secretText(value)
      return [member, isEncrypted && text !== undefined ? `env.${variable(member)}` : text]
    }),
  )
  const members = membersOf(draft, plain, path)
  for (const known of ['id', 'key_id', 'name', 'provider', 'provider_id']) members.take(known)
  if (members.has('enabled') && !members.flag('enabled')) return void draft.dropped(path, 'it is disabled')
  if (isEncrypted) draft.mapped(path, 'variables', 'its values are encrypted; set the variables that are listed')
  members.take('encryption_status')
  const own = addressOf(draft, members, ['azure_endpoint', 'vllm_url', 'ollama_url', 'sgl_url'])
  const address =
    own === undefined || vendor === 'azure' ? own : own.replace(/\/+$/, '').replace(/(\/v1)?$/, PATHS[vendor] ?? '')
  const tree = vendorTree(vendor, address ?? base_url)
  if (!tree)
    return void draft.dropped(path, `provider ${JSON.stringify(vendor)} is not known, and there is no address to call`)
  const options = optionsOf(draft, members, { names: OPTIONS[vendor], variableOf: (_, to) => `${label}_${to}` })
  if (options) tree.options = options
  if (members.has('vertex_auth_credentials')) {
    members.take('vertex_auth_credentials')
    const to = 'providers.<id>.options.credentials'
    draft.mapped(
      members.at('vertex_auth_credentials'),
      to,
      'it is the text of a file; write the file and name it there',
    )
  }
  const key = secretOf(draft, members, { member: 'value', name: `${label}_API_KEY` }) ?? presetKey(draft, tree, path)
  const weight = members.number('weight')
  return { tree, key, members, path, weight: weight !== undefined && weight >= 0 ? weight : undefined }
}

const isSecret = (member: string): boolean =>
  member === 'value' || /^(azure|vertex|bedrock|bedrock_mantle|vllm|ollama|sgl)_(?!deployments|scopes)/.test(member)

/** `env.NAME`, or the value: texts are written as they are, or as an object that says where the value is. */
function secretText(value: unknown): unknown {
  const given = typeof value === 'string' && value.startsWith('{') ? parseJson(value) : value
  if (!isRecord(given)) return value
  const reference = given.env_var ?? given.ref
  const text = typeof reference === 'string' && reference !== '' ? reference : given.value
  if (typeof text !== 'string' || text === '') return undefined
  return text === reference && !text.startsWith('env.') ? `env.${text}` : text
}

function baseUrlOf(draft: Draft, network: Members, vendor: string): string | undefined {
  const own = addressOf(draft, network, ['base_url'])?.replace(/\/+$/, '')
  if (own === undefined || vendor === 'azure') return own
  const path = PATHS[vendor]
  if (path !== undefined) return own.endsWith(path) ? own : `${own}${path}`
  return void draft.dropped(network.at('base_url'), 'its form may be another one here; set base_url of the provider')
}

type Shared = { members: Members; network: Members; name: string }

function sharedOf(draft: Draft, { members, network, name }: Shared): Tree {
  const shared: Tree = {}
  const seconds = network.number('default_request_timeout_in_seconds')
  if (seconds !== undefined && seconds > 0) {
    shared.timeouts = { total_seconds: Math.min(86_400, seconds) }
    draft.mapped(network.at('default_request_timeout_in_seconds'), `providers.${name}.timeouts.total_seconds`)
  }
  const headers = headersOf(draft, network, { members: ['extra_headers'], vendor: name })
  if (headers) shared.headers = headers
  const place = members.has('concurrency_buffer') ? 'concurrency_buffer' : 'concurrency_and_buffer_size'
  const buffer = membersOf(draft, members.record(place) ?? {}, members.at(place))
  const [most, length] = [buffer.number('concurrency'), buffer.number('buffer_size')]
  if (most !== undefined && most >= 1) {
    const queue = length === undefined ? {} : { queue: { length: Math.min(100_000, Math.max(0, Math.round(length))) } }
    shared.calls = { max: Math.min(100_000, Math.round(most)), ...queue }
    draft.mapped(buffer.path, `providers.${name}.calls`)
  }
  return shared
}

const RAW = 'set record_contents; responses are those of the API'
const ROWS = 'created_at updated_at config_hash status description'
const PROVIDER = byName(
  [SILENT, `${ROWS} encryption_status metadata tags`],
  ['set HTTPS_PROXY in the environment of the gateway', 'proxy_config'],
  ['options of a provider: providers.<id>.options', 'openai_config'],
  ['clients mark what is cached', 'prompt_cache'],
  [RAW, 'send_back_raw_request send_back_raw_response store_raw_request_response'],
  ['budgets are those of callers', 'budget_id'],
  ['set providers.<id>.rate_limits', 'rate_limit_id'],
)
const NETWORK = byName(
  ['each target is tried once; models.<id>.routing.tries is the number of all tries', 'max_retries'],
  [SILENT, 'retry_backoff_initial retry_backoff_max retry_backoff_initial_ms retry_backoff_max_ms'],
  ['set timeouts.idle_seconds', 'stream_idle_timeout_in_seconds'],
)
const CUSTOM: Record<string, string> = {
  is_key_less: SILENT,
  allowed_requests: 'models name their families: models.<id>.families',
  request_path_overrides: 'the paths are those of the API',
}
const KEY = byName(
  [SILENT, `${ROWS} use_for_batch_api vllm_model_name vertex_project_number`],
  ['a token names the models that it may use', 'blacklisted_models'],
)
