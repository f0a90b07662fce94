/**
 * Reads channels, tokens and users of One API and of New API from their tables: https://github.com/songquanpeng/one-api and
 * https://github.com/QuantumNous/new-api, `model/channel.go`, `token.go` and `user.go`. Both keep keys in plain.
 */
import { sha256 } from '../../kit/secret.ts'
import type { Budget } from '../../spec/rate-limit.ts'
import { type Draft, firstOf, type Members, membersOf, type Reader } from './imported.ts'
import { type Deployment, modelId, modelTree } from './model-targets.ts'
import { CHANNEL, readOptions, TOKEN, USER } from './one-api-options.ts'
import { addressOf, presetKey, variableIn } from './provider-parts.ts'
import type { Row, Tables } from './sql-dump.ts'
import { vendorTree } from './vendors.ts'

const TABLES = ['channels', 'tokens', 'users', 'options']
export const ONE_API: Reader = { tables: TABLES, expected: TABLES, readTables }

/** Numbers of channel types that both have, by names of `vendors.ts`: `relay/channeltype/define.go`, `constant/channel.go`. */
const SHARED_TYPES: Record<number, string> = {
  1: 'openai',
  3: 'azure',
  8: 'custom_openai',
  14: 'anthropic',
  16: 'zhipu',
  17: 'dashscope',
  20: 'openrouter',
  24: 'gemini',
  25: 'moonshot',
}
const OWN_TYPES: Record<'one-api' | 'new-api', Record<number, string>> = {
  'one-api': {
    28: 'mistral',
    29: 'groq',
    30: 'ollama',
    35: 'cohere',
    36: 'deepseek',
    39: 'together',
    41: 'novita',
    45: 'xai',
    50: 'custom_openai',
  },
  'new-api': {
    4: 'ollama',
    26: 'zhipu',
    27: 'perplexity',
    34: 'cohere',
    38: 'jina',
    40: 'siliconflow',
    42: 'mistral',
    43: 'deepseek',
    48: 'xai',
  },
}
/** Types whose own address takes what these names add to it; of others it may have another form than here. */
const PATHS: Record<string, string> = { openai: '/v1', custom_openai: '/v1', siliconflow: '/v1', anthropic: '' }
const ADDRESSES: Record<string, string> = { siliconflow: 'https://api.siliconflow.cn' }
const ENABLED = 1
const DISABLED = 2
/** Of an expiry. */
const NEVER = -1
const MOST_KEYS = 100
const MOST_MODELS = 1_000

function readTables(draft: Draft, tables: Tables): void {
  const { perDollar, autoGroups } = readOptions(draft, tables.get('options'))
  const groups = readChannels(draft, tables.get('channels') ?? [])
  const tokens = (tables.get('tokens') ?? []).filter((row) => {
    if (!isDeleted(row)) return true
    draft.listed?.set(idOf(row), false)
    return draft.dropped(`tokens[${nameOf(row)}]`, 'it was deleted')
  })
  const users = new Map((tables.get('users') ?? []).map((row) => [String(row.id), row]))
  const owners = new Set(tokens.map(({ user_id }) => String(user_id)))
  for (const [id, row] of users) readUser(draft, { row, hasTokens: owners.has(id) && !isDeleted(row), perDollar })
  for (const row of tokens)
    readToken(draft, { row, user: users.get(String(row.user_id)), groups, perDollar, autoGroups })
}

/** MySQL writes null as \\N in a file. */
const isDeleted = ({ deleted_at }: Row): boolean => Boolean(deleted_at) && deleted_at !== '\\N'
const idOf = ({ id }: Row): string => `token:${id}`
const nameOf = ({ name, id }: Row): string => String(name ?? '').slice(0, 90) || `token ${id}`

/** The models that each group may use. */
type Groups = { all: Set<string>; of(group: string): Set<string> }

function readChannels(draft: Draft, rows: readonly Row[]): Groups {
  const byGroup = new Map<string, Set<string>>()
  const of = (group: string) => byGroup.get(group) ?? byGroup.set(group, new Set()).get(group) ?? new Set<string>()
  const deployments = new Map<string, Deployment[]>()
  for (const row of rows) {
    const members = membersOf(draft, row, `channels[${String(row.name ?? row.id).slice(0, 80)}]`)
    const groups = members.list('group')
    for (const { id, deployment } of readChannel(draft, members)) {
      deployments.set(id, [...(deployments.get(id) ?? []), deployment])
      for (const group of groups.length > 0 ? groups : ['default']) of(group).add(id)
    }
  }
  for (const [id, list] of deployments) draft.models.set(id, modelTree(draft, id, list, 'weighted'))
  return { all: new Set(deployments.keys()), of }
}

function readChannel(draft: Draft, members: Members): { id: string; deployment: Deployment }[] {
  if (members.number('status') === DISABLED) {
    draft.dropped(members.path, 'it is disabled')
    return []
  }
  const providers = providersOf(draft, members)
  const mapping = members.record('model_mapping') ?? {}
  const [priority, weight] = [members.number('priority') ?? 0, members.number('weight') ?? 0]
  const found: { id: string; deployment: Deployment }[] = []
  const names = providers.length === 0 ? [] : members.list('models')
  for (const name of firstOf(draft, names, MOST_MODELS, members.at('models'))) {
    const id = modelId(draft, name, members.at('models'))
    if (id === undefined) continue
    const target = mapping[name]
    const model = typeof target === 'string' && target !== '' ? target : name
    for (const provider of providers) {
      const deployment = { provider, model, priority: -priority, ...(weight > 0 && { weight }) }
      found.push({ id, deployment })
      draft.mapped(`${members.at('models')}: ${name}`, `models.${id}.targets: ${provider}/${model}`)
    }
  }
  members.take('models')
  members.rest(CHANNEL)
  return found
}

/** One for each key. */
function providersOf(draft: Draft, members: Members): string[] {
  const type = members.number('type') ?? 0
  const vendor = OWN_TYPES[draft.source as 'one-api' | 'new-api'][type] ?? SHARED_TYPES[type]
  if (vendor === undefined) {
    draft.dropped(members.at('type'), `the import does not know how to call channels of type ${type}`)
    return []
  }
  const tree = vendorTree(vendor, baseUrlOf(draft, members, vendor))
  if (!tree) {
    draft.dropped(members.at('base_url'), 'there is no address to call')
    return []
  }
  const path = members.at('key')
  const keys = (members.text('key') ?? '').split('\n').map((key) => key.trim())
  const given = firstOf(
    draft,
    keys.filter((key) => key !== ''),
    MOST_KEYS,
    path,
  )
  if (given.length === 0) {
    const key = presetKey(draft, tree, path)
    return [draft.provider(vendor, { ...tree, ...(key !== undefined && { key }) })]
  }
  return given.map((key) =>
    draft.provider(vendor, {
      ...tree,
      key: draft.secret(key, { path, name: `${vendor}_API_KEY`, variable: variableIn(key) }),
    }),
  )
}

function baseUrlOf(draft: Draft, members: Members, vendor: string): string | undefined {
  const own = addressOf(draft, members, ['base_url'])?.replace(/\/+$/, '')
  const path = PATHS[vendor]
  if (own === undefined) return ADDRESSES[vendor] && `${ADDRESSES[vendor]}${path ?? ''}`
  if (vendor === 'azure' || vendor === 'ollama') return own
  if (path !== undefined) return own.endsWith(path) ? own : `${own}${path}`
  draft.dropped(
    members.at('base_url'),
    'an address of its own is not carried for this type; set base_url of the provider',
  )
  return undefined
}

/** Others are refused: disabled, expired, exhausted. */
const isEnabled = (members: Members): boolean => !members.has('status') || members.number('status') === ENABLED

const dollars = (quota: number, perDollar: number): number => Number((quota / perDollar).toPrecision(12))

/** What is left and what was used, together: a budget without an end. */
type QuotaParts = { left: string; to: string; perDollar: number }

function quotaOf(draft: Draft, members: Members, { left, to, perDollar }: QuotaParts) {
  const used = usedOf(draft, members, { to, perDollar })
  const budget: Budget = {
    amount: Number((dollars(Math.max(0, members.number(left) ?? 0), perDollar) + (used ?? 0)).toPrecision(12)),
    window: 'total',
  }
  draft.mapped(members.at(left), `${to}.budgets: ${budget.amount} in total`, `${perDollar} of quota are a dollar`)
  return { budget, used }
}

type UsedParts = Omit<QuotaParts, 'left'>

function usedOf(draft: Draft, members: Members, { to, perDollar }: UsedParts): number | undefined {
  const quota = members.number('used_quota')
  const used = quota === undefined ? undefined : dollars(Math.max(0, quota), perDollar)
  if (used) draft.mapped(members.at('used_quota'), `${to}: ${used} spent in total`)
  return used
}

type UserParts = { row: Row; hasTokens: boolean; perDollar: number }

function readUser(draft: Draft, { row, hasTokens, perDollar }: UserParts): undefined {
  const name = String(row.username ?? row.id).slice(0, 90)
  const members = membersOf(draft, row, `users[${name}]`)
  if (!hasTokens) return draft.dropped(members.path, 'it has no token; people log in to the console by roles')
  for (const known of ['id', 'username', 'group']) members.take(known)
  const to = `project ${name}`
  draft.mapped(members.path, to, 'a user is a project')
  const { budget, used } = quotaOf(draft, members, { left: 'quota', to, perDollar })
  const disabled = !isEnabled(members)
  draft.projects.push({ external_id: `user:${row.id}`, name, settings: { budgets: [budget] }, disabled, used })
  members.rest(USER)
}

type TokenParts = { row: Row; user: Row | undefined; groups: Groups } & ReturnType<typeof readOptions>

function readToken(draft: Draft, { row, user, groups, perDollar, autoGroups }: TokenParts): undefined {
  const name = nameOf(row)
  const members = membersOf(draft, row, `tokens[${name}]`)
  const external_id = idOf(row)
  const stored = members.text('key')
  draft.listed?.set(external_id, !user || !isDeleted(user))
  if (stored === undefined) return draft.dropped(members.path, 'it has no key')
  // Without the quota and the status of its user it could do more than before.
  if (!user) return draft.dropped(members.path, 'its user is not in the source: dump the table users too')
  if (isDeleted(user)) return draft.dropped(members.path, 'its user was deleted')
  const expires = members.has('expired_time') ? members.number('expired_time') : NEVER
  if (expires === undefined) return draft.dropped(members.path, 'its expiry is no time')
  if (expires >= 0 && expires * 1000 <= Date.now()) {
    draft.listed?.set(external_id, false)
    return draft.dropped(members.path, 'it has expired')
  }
  const given = members.text('group')
  const own = String(user.group || 'default')
  const isAuto = given === 'auto' && draft.source === 'new-api'
  const tried = isAuto ? autoGroups(own) : [given === undefined || given === 'auto' ? own : given]
  const to = `token ${name}`
  const models = modelsOf(draft, members, { tried, groups, to })
  if (models?.length === 0) {
    draft.listed?.set(external_id, false)
    return draft.dropped(members.path, 'it may call no model')
  }
  if (isAuto) draft.mapped(members.at('group'), `${to}.models`, `the group auto is ${tried.join(', ')}`)
  // Clients send it with this prefix, which is not stored.
  draft.mapped(members.path, `${to}, with its key`)
  for (const known of ['id', 'user_id', 'name']) members.take(known)
  const isUnlimited = members.flag('unlimited_quota')
  const { budget, used } = isUnlimited
    ? { budget: undefined, used: usedOf(draft, members, { to, perDollar }) }
    : quotaOf(draft, members, { left: 'remain_quota', to, perDollar })
  members.take('remain_quota')
  const addresses = addressesOf(draft, members, to)
  const project = `user:${row.user_id}`
  draft.tokens.push({
    external_id,
    hash: sha256(stored.startsWith('sk-') ? stored : `sk-${stored}`),
    name,
    project,
    settings: {
      ...(models && { models }),
      ...(addresses && addresses.length > 0 && { allowed_addresses: addresses }),
      budgets: budget ? [budget] : [],
      expires_at: expires >= 0 ? expires : null,
    },
    // Addresses that cannot be read: it must not be able to do more than before.
    disabled: !isEnabled(members) || addresses === undefined,
    used,
  })
  members.rest(TOKEN)
}

type ModelParts = { tried: string[]; groups: Groups; to: string }

/** Those of its groups, and of its own list; undefined: all. Empty: none. */
function modelsOf(draft: Draft, members: Members, { tried, groups, to }: ModelParts): string[] | undefined {
  const isLimited = draft.source === 'one-api' || members.flag('model_limits_enabled')
  const place = draft.source === 'one-api' ? 'models' : 'model_limits'
  const listed = members.list(place)
  const ofGroup = new Set(tried.flatMap((group) => [...groups.of(group)]))
  const isWhole = ofGroup.size === groups.all.size
  if (!isWhole)
    draft.mapped(
      members.at('group'),
      `${to}.models`,
      `a group is a list of models; "${tried.join(', ')}" has ${ofGroup.size}`,
    )
  // New API calls no model for a token whose list is on and empty.
  if (draft.source === 'new-api' && isLimited && listed.length === 0) return []
  if (!isLimited || (listed.length === 0 && !members.isUnreadable(place)))
    return isWhole ? undefined : firstOf(draft, [...ofGroup], MOST_MODELS, members.at('group'))
  const models = listed.filter((name) => ofGroup.has(name))
  const why = models.length === listed.length ? undefined : 'models that no channel of its group has are left out'
  draft.mapped(members.at(place), `${to}.models`, why)
  return firstOf(draft, models, MOST_MODELS, members.at(place))
}

const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-f:]*:[\da-f:.]*)(?:\/\d{1,3})?$/i

/** CIDR ranges; undefined: they cannot be read. */
function addressesOf(draft: Draft, members: Members, to: string): string[] | undefined {
  const name = members.has('subnet') ? 'subnet' : 'allow_ips'
  const given = (members.text(name) ?? '').split(/[\s,]+/).filter((one) => one !== '')
  const ranges = given.map((one) => (one.includes('/') ? one : `${one}/${one.includes(':') ? 128 : 32}`))
  if (ranges.every((one) => ADDRESS.test(one))) {
    if (ranges.length > 0) draft.mapped(members.at(name), `${to}.allowed_addresses`)
    return ranges
  }
  return void draft.mapped(members.at(name), `${to}, revoked`, 'its addresses cannot be read')
}
