/** Reads keys, teams, users and budgets of LiteLLM from its tables: https://github.com/BerriAI/litellm/blob/main/schema.prisma */
import { patternProblem } from '../../config/check/value-checks.ts'
import { byName } from '../../kit/by-name.ts'
import { sha256 } from '../../kit/secret.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import type { RateLimits } from '../../spec/rate-limit.ts'
import { type Draft, firstOf, type ImportedAccount, type Members, membersOf, type Reader, SILENT } from './imported.ts'
import { budgetOf, timeOf, uniqueName, usedOf } from './limits.ts'
import { readLiteLlmConfig, readModelList } from './litellm-config.ts'
import type { Row, Tables } from './sql-dump.ts'

const KEYS = 'LiteLLM_VerificationToken'
const TEAMS = 'LiteLLM_TeamTable'
const USERS = 'LiteLLM_UserTable'
const BUDGETS = 'LiteLLM_BudgetTable'
const MODELS = 'LiteLLM_ProxyModelTable'
/** Read only to say that they are not carried. */
const OTHERS: Record<string, string> = {
  LiteLLM_OrganizationTable: 'there is no level above projects; its budget and limits are not applied',
  LiteLLM_ProjectTable: 'a project here is a team; its own budget and limits are not applied',
  LiteLLM_TeamMembership: 'a member of a team has no budget of its own; its keys have',
  LiteLLM_EndUserTable: 'all end users of a token have the same limits: end_users',
  LiteLLM_TagTable: 'tags have no budgets',
  LiteLLM_CredentialsTable: 'its values are encrypted; set the keys of providers as variables',
}
const EXPECTED = [KEYS, TEAMS, USERS, BUDGETS, MODELS]
export const LITELLM: Reader = {
  tables: [...EXPECTED, ...Object.keys(OTHERS)],
  expected: EXPECTED,
  readTree: readLiteLlmConfig,
  readTables,
}

type Budgets = ReadonlyMap<string, Row>

function readTables(draft: Draft, tables: Tables): void {
  readModelRows(draft, tables.get(MODELS) ?? [])
  const budgets: Budgets = new Map((tables.get(BUDGETS) ?? []).map((row) => [String(row.budget_id), row]))
  for (const row of tables.get(TEAMS) ?? []) readTeam(draft, row, budgets)
  const keys = tables.get(KEYS) ?? []
  const alone = new Set(keys.filter(({ team_id }) => !team_id).map(({ user_id }) => String(user_id)))
  for (const row of tables.get(USERS) ?? []) readUser(draft, { row, budgets, hasKeys: alone.has(String(row.user_id)) })
  for (const row of keys) readKey(draft, { row, budgets, hasUsers: tables.has(USERS) })
  for (const [name, why] of Object.entries(OTHERS)) {
    for (const [index, row] of (tables.get(name) ?? []).entries()) {
      draft.dropped(placeOf(name, row.organization_id ?? row.project_id ?? row.user_id ?? row.tag_name ?? index), why)
    }
  }
}

const placeOf = (table: string, id: unknown): string => `${table}[${String(id).slice(0, 80)}]`

/** In the database every text of `litellm_params` is encrypted with the salt key of LiteLLM. */
const isEncrypted = (value: unknown): boolean => typeof value === 'string' && /^[A-Za-z0-9+/_=-]{60,}$/.test(value)

function readModelRows(draft: Draft, rows: readonly Row[]): void {
  const plain = rows.filter((row) => {
    const { model } = membersOf(draft, row, '').record('litellm_params') ?? {}
    if (!isEncrypted(model)) return true
    draft.dropped(
      placeOf(MODELS, row.model_name),
      'its values are encrypted; import its models from the running LiteLLM',
    )
    return false
  })
  if (plain.length > 0) readModelList(draft, plain, { path: MODELS, strategy: 'weighted' })
}

type AccountParts = { members: Members; budgets: Budgets; to: string }

const SPECIAL_MODELS = ['all-team-models', 'all-proxy-models']

/** Models, limits, budgets and spend, which keys, teams and users have in common. */
function settingsOf(
  draft: Draft,
  { members, budgets, to }: AccountParts,
): Pick<ImportedAccount, 'settings' | 'used' | 'resets_at'> {
  const row = budgets.get(String(members.take('budget_id') ?? ''))
  const shared = membersOf(draft, row ?? {}, row ? placeOf(BUDGETS, row.budget_id) : '')
  const rate_limits: RateLimits = {}
  const names = {
    rpm_limit: 'requests_per_minute',
    tpm_limit: 'tokens_per_minute',
    tpd_limit: 'tokens_per_day',
    max_parallel_requests: 'concurrent_requests',
  } as const
  for (const [name, limit] of Object.entries(names)) {
    const own = members.number(name)
    const value = own ?? shared.number(name)
    if (value === undefined || value < 0) continue
    rate_limits[limit] = Math.round(value)
    draft.mapped((own === undefined ? shared : members).at(name), `${to}.rate_limits.${limit}`)
  }
  const place = { max: 'max_budget', duration: 'budget_duration', soft: 'soft_budget', to: `${to}.budgets` }
  const isOwn = members.has('max_budget') || members.has('soft_budget')
  const source = isOwn || !row ? members : shared
  const budget = budgetOf(draft, source, place)
  const used = usedOf(draft, members, { name: 'spend', duration: budget && source.text('budget_duration'), to })
  const models = modelsOf(draft, members, to)
  return {
    settings: { ...(models && { models }), rate_limits, budgets: budget ? [budget] : [] },
    used,
    resets_at: timeOf(members.text('budget_reset_at')),
  }
}

const MOST_UNKNOWN = 20
const NO_MODEL =
  'no model of this import or of the file: it is that of a provider, or allows nothing; if it is an access group, name its ' +
  'config.yaml in the same command'

function modelsOf(draft: Draft, members: Members, to: string): string[] | undefined {
  const given = members.list('models')
  // What cannot be read allows nothing.
  if (given.length === 0) return members.isUnreadable('models') ? ['none'] : undefined
  if (given.some((name) => SPECIAL_MODELS.includes(name))) {
    draft.mapped(members.at('models'), `${to}.models: *`)
    return undefined
  }
  const ofGroup = (name: string) => [...(draft.models.has(name) ? [name] : []), ...(draft.groups.get(name) ?? [])]
  const named = [...new Set(given.flatMap((name) => (draft.groups.has(name) ? ofGroup(name) : [name])))]
  const possible = named.filter((name) => patternProblem(name) === undefined)
  const models = firstOf(draft, possible, 1_000, members.at('models'))
  const why = possible.length === given.length ? undefined : 'names that no model can have are left out'
  if (given.some((name) => draft.groups.has(name)))
    draft.mapped(members.at('models'), `${to}.models: ${models.length}`, 'an access group is its models')
  else draft.mapped(members.at('models'), `${to}.models`, why)
  // Groups are in no table: those of a file that was imported before are not known.
  const unknown = possible.filter(
    (name) => !/[*/]/.test(name) && !draft.models.has(name) && !draft.present_models.has(name),
  )
  for (const name of unknown.slice(0, MOST_UNKNOWN))
    draft.mapped(members.at('models'), `${to}.models: ${name}`, NO_MODEL)
  // A pattern that no model has, so that it is not every model.
  return models.length > 0 ? models : ['none']
}

function readTeam(draft: Draft, row: Row, budgets: Budgets): void {
  const id = String(row.team_id ?? '')
  const members = membersOf(draft, row, placeOf(TEAMS, id))
  members.take('team_id')
  const name = uniqueName(draft, members.text('team_alias') ?? id)
  const to = `project ${name}`
  draft.mapped(members.path, to)
  const labels = labelsOf(members, ['organization_id'])
  const read = settingsOf(draft, { members, budgets, to })
  draft.projects.push({ external_id: `team:${id}`, name, labels, disabled: members.flag('blocked'), ...read })
  members.rest(ROW)
}

function readUser(
  draft: Draft,
  { row, budgets, hasKeys }: { row: Row; budgets: Budgets; hasKeys: boolean },
): undefined {
  const id = String(row.user_id ?? '')
  const members = membersOf(draft, row, placeOf(USERS, id))
  if (!hasKeys)
    return draft.dropped(members.path, 'it has no key outside of a team; people log in to the console by roles')
  members.take('user_id')
  const name = uniqueName(draft, members.text('user_alias') ?? members.text('user_email') ?? id)
  const to = `project ${name}`
  draft.mapped(members.path, to, 'a user with keys outside of teams is a project')
  const labels = labelsOf(members, ['user_email'])
  const read = settingsOf(draft, { members, budgets, to })
  draft.projects.push({ external_id: `user:${id}`, name, labels, disabled: false, ...read })
  members.rest(ROW)
}

/** LiteLLM keeps the sessions of its console among the keys. */
const CONSOLE_TEAM = 'litellm-dashboard'

type KeyParts = { row: Row; budgets: Budgets; hasUsers: boolean }

function readKey(draft: Draft, { row, budgets, hasUsers }: KeyParts): undefined {
  const stored = String(row.token ?? '')
  const hash = /^[0-9a-f]{64}$/.test(stored) ? stored : stored.startsWith('sk-') ? sha256(stored) : undefined
  const alias = typeof row.key_alias === 'string' && row.key_alias !== '' ? row.key_alias : undefined
  // The start of the hash tells keys without a name apart.
  const members = membersOf(draft, row, placeOf(KEYS, alias ?? hash?.slice(0, 12) ?? '?'))
  if (hash === undefined) return draft.dropped(members.path, 'its token is no SHA-256 in hex')
  for (const name of ['token', 'key_alias', 'key_name']) members.take(name)
  const team = members.text('team_id')
  if (team === CONSOLE_TEAM) return draft.dropped(members.path, 'it is a session of the console of LiteLLM')
  const user = members.text('user_id')
  const hasExpiry = members.has('expires')
  const expires_at = timeOf(members.text('expires'))
  draft.listed?.set(hash, true)
  if (hasExpiry && expires_at === undefined) return draft.dropped(members.path, 'its expiry is no time')
  if (expires_at !== undefined && expires_at * 1000 <= Date.now()) {
    draft.listed?.set(hash, false)
    return draft.dropped(members.path, 'it has expired')
  }
  const owner = team === undefined ? (user === undefined ? undefined : `user:${user}`) : `team:${team}`
  const project = draft.projects.some(({ external_id }) => external_id === owner) ? owner : undefined
  // Without the limits of its team it could do more than before.
  if (team !== undefined && project === undefined)
    return draft.dropped(members.path, `its team is not in the source: dump ${TEAMS} too`)
  if (team === undefined && user !== undefined && !hasUsers)
    return draft.dropped(members.path, `its user is not in the source: dump ${USERS} too`)
  if (row.budget_id && !budgets.has(String(row.budget_id)))
    return draft.dropped(members.path, `its budget is not in the source: dump ${BUDGETS} too`)
  const name = (alias ?? `key ${hash.slice(0, 8)}`).slice(0, 100)
  const to = `token ${name}`
  draft.mapped(members.path, `${to}, with its key`)
  if (owner !== undefined && project === undefined) draft.dropped(members.at('user_id'), 'it is not in the source')
  const { settings, used, resets_at } = settingsOf(draft, { members, budgets, to })
  const routes = routesOf(draft, members, to)
  draft.tokens.push({
    external_id: hash,
    hash,
    name,
    ...(project !== undefined && { project }),
    labels: { ...labelsOf(members, ['organization_id']), ...(user !== undefined && { user: user.slice(0, 256) }) },
    settings: {
      ...settings,
      ...(routes.families?.length && { families: routes.families }),
      expires_at: expires_at ?? null,
    },
    disabled: members.flag('blocked') || routes.isNone,
    used,
    resets_at,
  })
  members.rest(ROW)
}

const FAMILY_OF_ROUTE: readonly [RegExp, EndpointFamily][] = [
  [/chat\/completions/, 'chatcompat'],
  [/responses/, 'chatcompat-response'],
  [/messages/, 'messages-compat'],
  [/generateContent|v1beta/, 'contentgen-compat'],
  [/embeddings/, 'embeddings'],
  [/rerank/, 'rerank'],
  [/images/, 'image-generation'],
  [/moderations/, 'moderations'],
  [/audio\/speech/, 'audio-speech'],
  [/audio\/trans/, 'audio-transcription'],
  [/realtime/, 'realtime'],
]

/** A key that may not call models must not be able to after the import. */
function routesOf(draft: Draft, members: Members, to: string): { families?: EndpointFamily[]; isNone: boolean } {
  const routes = members.list('allowed_routes')
  if (routes.length === 0 || routes.includes('llm_api_routes')) return { isNone: false }
  const families = FAMILY_OF_ROUTE.filter(([pattern]) => routes.some((route) => pattern.test(route))).map(
    ([, one]) => one,
  )
  const at = members.at('allowed_routes')
  if (families.length === 0) draft.mapped(at, `${to}, revoked`, 'it may call no model')
  else draft.mapped(at, `${to}.families: ${families.join(', ')}`, 'a token is limited to families')
  return { families, isNone: families.length === 0 }
}

/** Texts that tell where an account came from. */
function labelsOf(members: Members, names: readonly string[]): Record<string, string> {
  const found = names.map((name) => [name.replace(/_id$/, ''), members.text(name)] as const)
  return Object.fromEntries(
    found.filter((one): one is readonly [string, string] => one[1] !== undefined && one[1].length <= 256),
  )
}

/** Members of keys, teams and users without a place here. */
const ROW = byName(
  [SILENT, 'model_spend created_at updated_at created_by updated_by last_active soft_budget_cooldown budget_reset_at'],
  [SILENT, 'rotation_count key_rotation_at last_rotation_at last_refreshed_at id allow_team_guardrail_config'],
  ['what was spent before its budget began again is not carried', 'total_spend'],
  ['write what is needed as labels', 'metadata'],
  ['aliases are those of models, for all tokens', 'aliases model_id'],
  ['routing is that of models, for all tokens', 'config router_settings'],
  ['there are no such permissions', 'permissions'],
  ['limits of a model are those of models.<id>.rate_limits', 'model_max_budget budget_limits'],
  ['the cache is that of models', 'allowed_cache_controls'],
  ['name the token in mcp.servers.<name>.tokens; there are no vector stores here', 'object_permission_id'],
  ['write the models of the group as models of the token', 'access_group_ids'],
  ['write them as guards, with when.tokens', 'policies'],
  ['there are no agents here', 'agent_id'],
  ['a project here is a team', 'project_id'],
  ['there is no level above projects', 'organization_id'],
  ['rotate with gatehouse token rotate', 'auto_rotate rotation_interval'],
  ['people log in to the console by roles', 'admins members members_with_roles team_member_permissions'],
  ['people log in to the console by roles', 'default_team_member_models user_role sso_user_id password'],
  ['a key belongs to one team', 'teams team_id'],
)
