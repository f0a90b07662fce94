/** Reads virtual keys, teams and customers of Bifrost. A virtual key is known by its SHA-256, so clients keep it. */
import { byName } from '../../kit/by-name.ts'
import { sha256 } from '../../kit/secret.ts'
import { BUDGET_WINDOWS, type Budget, type RateLimits } from '../../spec/rate-limit.ts'
import type { BifrostModels } from './bifrost-providers.ts'
import type { Bifrost, BifrostOwner, BifrostShare } from './bifrost-source.ts'
import { type Draft, firstOf, type ImportedAccount, type Members, membersOf, SILENT } from './imported.ts'
import { budgetOf, rateOf, timeOf, uniqueName, usedOf } from './limits.ts'
import type { Row } from './sql-dump.ts'

const MOST_PATTERNS = 1_000

export function readBifrostAccounts(draft: Draft, source: Bifrost, models: BifrostModels): void {
  const { virtualKeys, teams, customers } = source
  const owners = new Set(virtualKeys.map(({ row }) => row.customer_id).filter(Boolean))
  for (const team of teams) readProject(draft, team, 'team')
  for (const customer of customers) {
    if (owners.has(customer.row.id)) readProject(draft, customer, 'customer')
    else
      draft.dropped(
        customer.path,
        'no virtual key is its own; there is no level above projects, so its limits are not applied',
      )
  }
  for (const key of virtualKeys) readVirtualKey(draft, key, models)
}

function readProject(draft: Draft, { row, path, budgets, limit }: BifrostOwner, kind: 'team' | 'customer'): void {
  const members = membersOf(draft, row, path)
  for (const known of ['id', ...EMBEDDED]) members.take(known)
  const name = uniqueName(draft, members.text('name') ?? String(row.id))
  const to = `project ${name}`
  draft.mapped(path, to, kind === 'team' ? undefined : 'a customer with virtual keys of its own is a project')
  const read = limitsOf(draft, { budgets, limit, path, to })
  draft.projects.push({ external_id: `${kind}:${row.id}`, name, disabled: false, ...read })
  members.rest(ROW)
}

/** Where budgets and limits are written within their owner. */
const EMBEDDED = ['budgets', 'budget', 'budget_id', 'rate_limit', 'rate_limit_id']

type LimitParts = { budgets: readonly Row[]; limit: Row | undefined; path: string; to: string }
type Limits = { settings: ImportedAccount['settings']; used: number | undefined }

function limitsOf(draft: Draft, { budgets, limit, path, to }: LimitParts): Limits {
  const read: Budget[] = []
  let shortest: { rank: number; used: number | undefined } | undefined
  for (const [index, row] of budgets.entries()) {
    const members = membersOf(draft, row, `${path}.budgets[${index}]`)
    const budget = budgetOf(draft, members, { max: 'max_limit', duration: 'reset_duration', to: `${to}.budgets` })
    const rank = budget ? BUDGET_WINDOWS.indexOf(budget.window) : BUDGET_WINDOWS.length
    const place = { name: 'current_usage', duration: budget && members.text('reset_duration'), to }
    // Budgets of several windows count the same calls: what the longer ones have besides would be too much for the shortest.
    if (shortest && rank >= shortest.rank) {
      if ((members.number('current_usage') ?? 0) > 0)
        draft.dropped(members.at('current_usage'), 'what was spent is that of the shortest window')
    } else shortest = { rank, used: usedOf(draft, members, place) }
    if (budget && !read.some(({ window }) => window === budget.window)) read.push(budget)
    else if (budget) draft.dropped(members.path, `there is a budget for each ${budget.window} already`)
    members.rest(BUDGET)
  }
  const rate_limits: RateLimits = {}
  const members = membersOf(draft, limit ?? {}, `${path}.rate_limit`)
  for (const unit of ['token', 'request'] as const) {
    const most = members.number(`${unit}_max_limit`)
    const duration = members.text(`${unit}_reset_duration`)
    if (most === undefined || most <= 0) continue
    const rate = duration === undefined ? undefined : rateOf(`${unit}s`, most, duration)
    const at = members.at(`${unit}_max_limit`)
    if (!rate) draft.dropped(at, `${unit}_reset_duration is no duration`)
    else {
      rate_limits[rate.key] = rate.value
      const why = rate.isExact ? undefined : `a window is a second, a minute, an hour or a day; ${duration} has ${most}`
      draft.mapped(at, `${to}.rate_limits.${rate.key}: ${rate.value}`, why)
    }
  }
  members.rest(LIMIT)
  return { settings: { rate_limits, budgets: read }, used: shortest?.used }
}

type VirtualKey = Bifrost['virtualKeys'][number]

function readVirtualKey(draft: Draft, virtualKey: VirtualKey, models: BifrostModels): undefined {
  const { row, path, shares } = virtualKey
  const members = membersOf(draft, row, path)
  for (const known of ['id', 'value_hash', 'value', 'encryption_status', 'provider_configs', ...EMBEDDED])
    members.take(known)
  const hash = hashOf(row)
  if (hash === undefined) {
    const variable = /^env\.(\w+)$/.exec(String(row.value ?? ''))?.[1]
    const named = `its value is the variable ${variable}; the database has its hash`
    return draft.dropped(path, variable ? named : 'it has neither a value nor a hash')
  }
  const external_id = `virtual-key:${row.id ?? hash}`
  draft.listed?.set(external_id, true)
  const hasExpiry = members.has('expires_at')
  const expires_at = timeOf(members.text('expires_at'))
  if (hasExpiry && expires_at === undefined) return draft.dropped(path, 'its expiry is no time')
  if (expires_at !== undefined && expires_at * 1000 <= Date.now()) {
    draft.listed?.set(external_id, false)
    return draft.dropped(path, 'it has expired')
  }
  const project = projectOf(draft, members)
  // Without the limits of its team it could do more than before.
  if (project === 'none') return draft.dropped(path, 'its team or customer is not in the source')
  const name = (members.text('name') ?? String(row.id)).slice(0, 100)
  const to = `token ${name}`
  draft.mapped(path, `${to}, with its key`)
  const { settings, used } = limitsOf(draft, { ...virtualKey, to })
  const patterns = patternsOf(draft, { members, shares, models, to })
  const isActive = !members.has('is_active') || members.flag('is_active')
  draft.tokens.push({
    external_id,
    hash,
    name,
    ...(project !== undefined && { project }),
    settings: { ...settings, ...(patterns.length > 0 && { models: patterns }), expires_at: expires_at ?? null },
    disabled: !isActive || patterns.length === 0,
    used,
  })
  members.rest(ROW)
}

function hashOf({ value, value_hash, encryption_status }: Row): string | undefined {
  if (typeof value_hash === 'string' && /^[0-9a-f]{64}$/.test(value_hash)) return value_hash
  const isPlain =
    typeof value === 'string' && value !== '' && !value.startsWith('env.') && encryption_status !== 'encrypted'
  return isPlain ? sha256(value) : undefined
}

function projectOf(draft: Draft, members: Members): string | 'none' | undefined {
  for (const kind of ['team', 'customer'] as const) {
    const id = members.text(`${kind}_id`)
    if (id === undefined) continue
    const external_id = `${kind}:${id}`
    if (draft.projects.some((one) => one.external_id === external_id)) return external_id
    return 'none'
  }
  return undefined
}

/** The models of a provider without those that are blocked; undefined: all of them. */
function allowedOf({ provider, models: allowed, blocked }: BifrostShare, { byProvider }: BifrostModels) {
  if (blocked.length === 0) return allowed
  const names = allowed ?? [...(byProvider.get(provider) ?? [])].map((id) => id.slice(provider.length + 1))
  const out = new Set(blocked.map((name) => name.toLowerCase()))
  return names.filter((name) => !out.has(name.toLowerCase()))
}

type PatternParts = { members: Members; shares: readonly BifrostShare[]; models: BifrostModels; to: string }

/** What it may call. Empty: nothing, so that it is revoked. */
function patternsOf(draft: Draft, { members, shares, models, to }: PatternParts): string[] {
  const patterns: string[] = []
  const whole = new Set<string>()
  for (const share of shares) {
    const at = `${members.at('provider_configs')}[${share.provider}]`
    const allowed = allowedOf(share, models)
    if (!share.hasKeys || allowed?.length === 0) {
      draft.dropped(at, 'it allows no key or no model')
      continue
    }
    if (allowed && share.models === undefined)
      draft.mapped(
        `${at}.blacklisted_models`,
        `${to}.models`,
        'a token names what it may use: all others of the source',
      )
    if (share.isLimitedToKeys) draft.dropped(`${at}.key_ids`, 'a token may use every key of a provider')
    if (share.hasLimits) draft.dropped(`${at}.budgets`, 'a token has one budget for all providers')
    if (allowed === undefined) {
      whole.add(share.provider)
      patterns.push(`${share.provider}/*`)
    } else patterns.push(...allowed.map((model) => `${share.provider}/${model}`))
  }
  // A bare name may be called at each of its providers, so all of them must be allowed.
  for (const [name, providers] of models.bare) {
    const isAllowed = (provider: string) => whole.has(provider) || patterns.includes(`${provider}/${name}`)
    if ([...providers].every(isAllowed)) patterns.push(name)
  }
  const at = members.at('provider_configs')
  const weights = 'the shares of providers are those of models, for all tokens'
  if (patterns.length > 0) draft.mapped(at, `${to}.models`, weights)
  else draft.mapped(at, `${to}, revoked`, 'it may use no provider')
  return firstOf(draft, patterns, MOST_PATTERNS, at)
}

const BUDGET = byName(
  [SILENT, 'id last_reset created_at updated_at config_hash team_id virtual_key_id customer_id provider_config_id'],
  [SILENT, 'model_config_id calendar_aligned override_amount override_cycles_remaining override_cycles_total'],
  [SILENT, 'override_anchor_reset'],
  ['what was added to the budget for a time is not carried', 'override_mode'],
)
const LIMIT = byName(
  [SILENT, 'id created_at updated_at config_hash model_config_id metric calendar_aligned'],
  [SILENT, 'token_max_limit token_current_usage token_last_reset token_reset_duration'],
  [SILENT, 'request_max_limit request_current_usage request_last_reset request_reset_duration'],
)
const ROW = byName(
  [SILENT, 'created_at updated_at config_hash description calendar_aligned virtual_keys teams'],
  ['write what is needed as labels', 'profile config claims'],
  ['there is no level above projects; its limits are not applied', 'customer_id'],
  ['name the token in mcp.servers.<name>.tokens', 'mcp_configs'],
)
