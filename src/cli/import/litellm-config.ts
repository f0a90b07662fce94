/** Reads the configuration of LiteLLM, `config.yaml`: https://docs.litellm.ai/docs/proxy/config_settings */
import { isDeepStrictEqual } from 'node:util'
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { byName } from '../../kit/by-name.ts'
import { isRecord } from '../../kit/json.ts'
import { type Draft, type Members, membersOf, SILENT } from './imported.ts'
import { budgetOf } from './limits.ts'
import { readFallbacks, readGroupAliases } from './litellm-fallbacks.ts'
import { ANOTHER, bothLimits, readDefaults, readPrices } from './litellm-model.ts'
import { litellmProvider } from './litellm-provider.ts'
import { type Deployment, modelId, modelTree } from './model-targets.ts'

const SECTIONS: Record<string, string> = {
  guardrails: 'write them as guards',
  mcp_servers: 'write them as mcp.servers',
  vector_store_registry: 'there are no vector stores here',
  files_settings: 'files go to the provider of their model, or stay in the gateway: files',
  finetune_settings: 'there is no fine-tuning here',
  assistant_settings: 'there is no assistants API here',
  environment_variables: 'set what is still needed in the environment of the gateway',
  credential_list: 'not carried; the keys of providers are variables',
  prompts: 'there are no stored prompts here',
  search_tools: 'there are no search tools here',
  callback_settings: 'logs and traces are set up otherwise: request_log.sinks and telemetry',
}
const CALLBACKS = 'logs and traces are set up otherwise: request_log.sinks and telemetry'
const GENERAL: Record<string, string> = {
  master_key: 'make an admin token: gatehouse admin create',
  database_url: 'the store is data_dir, or GATEHOUSE_DATABASE_URL',
  alerting: 'set alerts.webhook',
  alert_to_webhook_url: 'set alerts.webhook',
  store_model_in_db: 'models are in the file; the console edits it',
  key_management_system: 'secrets are variables, or ${file:path}',
}
const SETTINGS = byName(
  ['parameters that a provider does not take are listed at each provider; others are refused or passed', 'drop_params'],
  ['it is turned on for each model: models.<id>.cache', 'cache cache_params'],
  [CALLBACKS, 'callbacks success_callback failure_callback default_team_settings'],
  ['nothing is reported home', 'telemetry'],
  ['set GATEHOUSE_LOG', 'set_verbose'],
  ['logs are JSON where they are not read in a terminal', 'json_logs'],
)
const ROUTER = byName(
  ['set valkey.url', 'redis_host redis_port redis_password redis_url'],
  ['a target that fails is left out by its error rate', 'allowed_fails cooldown_time'],
  ['it is always so', 'enable_pre_call_checks'],
  ['an error says whether it is tried again', 'retry_policy'],
)

/** `Strategies` of LiteLLM to those here; what has none is spread by weights. */
const STRATEGIES: Record<string, string> = {
  'simple-shuffle': 'weighted',
  'least-busy': 'least_busy',
  'latency-based-routing': 'least_latency',
  'cost-based-routing': 'cheapest',
}

export function readLiteLlmConfig(draft: Draft, tree: Record<string, unknown>): void {
  const root = membersOf(draft, tree, '')
  const router = membersOf(draft, root.record('router_settings') ?? {}, 'router_settings')
  const settings = membersOf(draft, root.record('litellm_settings') ?? {}, 'litellm_settings')
  const strategy = strategyOf(draft, router)
  readModelList(draft, root.take('model_list'), { path: 'model_list', strategy })
  for (const members of [settings, router]) readFallbacks(draft, members)
  readGroupAliases(draft, router)
  readCallSettings(draft, settings, router)
  readGeneral(draft, membersOf(draft, root.record('general_settings') ?? {}, 'general_settings'))
  settings.rest(SETTINGS)
  router.rest(ROUTER)
  root.rest(SECTIONS)
}

function strategyOf(draft: Draft, router: Members): string {
  const name = router.text('routing_strategy')
  const known = STRATEGIES[name ?? 'simple-shuffle']
  const strategy = known ?? 'weighted'
  const why = known === undefined ? 'targets are chosen by weights' : undefined
  if (name !== undefined) draft.mapped(router.at('routing_strategy'), `models.*.routing.strategy: ${strategy}`, why)
  return strategy
}

type ListPlace = { path: string; strategy: string }

const MOST_DEPLOYMENTS = 20_000

/** `model_list`, or the rows of LiteLLM_ProxyModelTable. */
export function readModelList(draft: Draft, list: unknown, { path, strategy }: ListPlace): undefined {
  if (list === undefined) return
  if (!Array.isArray(list)) return draft.dropped(path, 'it must be a list')
  if (list.length > MOST_DEPLOYMENTS) throw new Error(`${path} has more than ${MOST_DEPLOYMENTS} entries`)
  const groups = new Map<string, { deployments: Deployment[]; tree: Tree; limits: (Limits | undefined)[] }>()
  for (const [index, entry] of list.entries()) {
    const at = `${path}[${index}]`
    if (!isRecord(entry)) {
      draft.dropped(at, 'it must be an object')
      continue
    }
    const read = readDeployment(draft, membersOf(draft, entry, at), (id) => groups.get(id)?.tree)
    if (!read) continue
    const group = groups.get(read.id) ?? { deployments: [], tree: {}, limits: [] }
    groups.set(read.id, group)
    group.deployments.push(read.deployment)
    group.limits.push(read.limits)
    group.tree = { ...read.tree, ...group.tree, ...bothLimits(read.tree, group.tree) }
  }
  for (const [id, { deployments, tree, limits }] of groups) {
    draft.models.set(id, { ...modelTree(draft, id, deployments, strategy), ...tree, ...limitsOfAll(draft, id, limits) })
  }
}

type Limits = { rpm?: number | undefined; tpm?: number | undefined; concurrent?: number | undefined; path: string }
type Read = { id: string; deployment: Deployment; tree: Tree; limits: Limits | undefined }

/** The sum, where every deployment has a limit: it is the model that is limited here. */
function limitsOfAll(draft: Draft, id: string, limits: readonly (Limits | undefined)[]): Tree {
  const names = { rpm: 'requests_per_minute', tpm: 'tokens_per_minute', concurrent: 'concurrent_requests' } as const
  const rate_limits: Tree = {}
  for (const [name, to] of Object.entries(names)) {
    const given = limits.filter((one): one is Limits => one?.[name as keyof typeof names] !== undefined)
    if (given.length === 0) continue
    const isAll = given.length === limits.length
    const why = given.length === 1 ? undefined : 'the sum of its deployments limits the model'
    if (isAll) rate_limits[to] = given.reduce((sum, one) => sum + Math.round(one[name as keyof typeof names] ?? 0), 0)
    for (const { path } of given) {
      const place = `${path}.${name === 'concurrent' ? 'max_parallel_requests' : name}`
      if (isAll) draft.mapped(place, `models.${id}.rate_limits.${to}`, why)
      else draft.dropped(place, `other deployments of ${id} have no such limit, so the model has none`)
    }
  }
  return Object.keys(rate_limits).length === 0 ? {} : { rate_limits }
}

/** `before`: what earlier deployments of the model have said of it. */
function readDeployment(draft: Draft, entry: Members, before: (id: string) => Tree | undefined): Read | undefined {
  const name = entry.text('model_name')
  const given = entry.record('litellm_params')
  if (name === undefined || given === undefined) {
    return void draft.dropped(entry.path, 'model_name or litellm_params is missing')
  }
  const params = membersOf(draft, given, entry.at('litellm_params'))
  const info = membersOf(draft, entry.record('model_info') ?? {}, entry.at('model_info'))
  const families = familiesOf(draft, info)
  if (families === 'none') return undefined
  const target = litellmProvider(draft, params)
  if (!target) return undefined
  if (name.includes('*') || target.model.includes('*'))
    return readWildcard(draft, { entry, name, provider: target.provider })
  const id = modelId(draft, name, entry.at('model_name'))
  if (id === undefined) return undefined
  draft.mapped(entry.path, `models.${id}.targets: ${target.provider}/${target.model}`)
  const tags = params.list('tags')
  const seconds = params.number('timeout')
  const first_byte_seconds = params.number('stream_timeout')
  const weight = params.number('weight')
  const first = before(id)
  const prices = readPrices(draft, { params, info, id, first: first?.prices as Tree | undefined })
  const deployment: Deployment = {
    ...target,
    ...(prices.target && { prices: prices.target }),
    ...(weight !== undefined && { weight }),
    priority: params.number('order') ?? 0,
    ...(tags.length > 0 && { when: { tags } }),
    ...((seconds ?? first_byte_seconds) !== undefined && {
      timeouts: {
        ...(first_byte_seconds !== undefined && { first_byte_seconds }),
        ...(seconds !== undefined && { total_seconds: seconds }),
      },
    }),
  }
  const limits_of_model = readDefaults(draft, { params, id, first: first?.limits as Tree | undefined })
  const tree: Tree = { ...families, ...(prices.model && { prices: prices.model }), ...limits_of_model }
  const context = info.number('max_input_tokens')
  if (context !== undefined && context >= 1) tree.context_tokens = Math.round(context)
  for (const [member, place] of [
    ['families', 'mode'],
    ['context_tokens', 'max_input_tokens'],
  ] as const)
    if (first?.[member] !== undefined && tree[member] !== undefined && !isDeepStrictEqual(first[member], tree[member]))
      draft.dropped(info.at(place), ANOTHER)
  const owner = entry.has('rpm') || entry.has('tpm') ? entry : params
  const limits = {
    rpm: owner.number('rpm'),
    tpm: owner.number('tpm'),
    concurrent: params.number('max_parallel_requests'),
    path: owner.path,
  }
  for (const group of info.list('access_groups')) {
    draft.groups.set(group, (draft.groups.get(group) ?? new Set()).add(id))
    draft.mapped(
      info.at('access_groups'),
      `models of tokens with the group ${group}`,
      'keys of a database name its models where one command imports both',
    )
  }
  params.rest(PARAMS)
  info.rest(INFO)
  entry.rest(ENTRY)
  return { id, deployment, tree, limits }
}

const PARAMS: Record<string, string> = {
  max_retries: 'each target is tried once; models.<id>.routing.tries is the number of all tries',
  mock_response: 'use the models of the sandbox',
  drop_params: 'parameters that a provider does not take are listed at each provider',
  region_name: 'a target is not chosen by the region of its callers',
  use_in_pass_through: 'there is no such path here',
  max_budget: 'budgets are those of callers, not of deployments',
  budget_duration: 'budgets are those of callers, not of deployments',
}
const INFO: Record<string, string> = {
  id: 'a target is named by its provider and model',
  base_model: 'prices are those of the model: gatehouse models import',
}
const ENTRY = byName(
  [SILENT, 'model_id created_at updated_at created_by updated_by'],
  ['take a target out of service: gatehouse target disable', 'blocked'],
)

const NO_FAMILY = ['batch', 'ocr', 'search', 'vector_store']
const FAMILIES: Record<string, string> = {
  audio_speech: 'audio-speech',
  audio_transcription: 'audio-transcription',
  embedding: 'embeddings',
  realtime: 'realtime',
  rerank: 'rerank',
  image_generation: 'image-generation',
  moderation: 'moderations',
  video_generation: 'video-generation',
}

function familiesOf(draft: Draft, info: Members): Tree | 'none' {
  const mode = info.text('mode')
  if (mode !== undefined && NO_FAMILY.includes(mode)) {
    draft.dropped(info.at('mode'), `the model is left out: there is no family for ${mode} here`)
    return 'none'
  }
  const family = FAMILIES[mode ?? '']
  return family === undefined ? {} : { families: [family] }
}

/** All models of a provider are those that it lists. */
function readWildcard(
  draft: Draft,
  { entry, name, provider }: { entry: Members; name: string; provider: string },
): undefined {
  const tree = draft.providers.get(provider)
  if (tree) tree.discover = true
  const why = name === `${provider}/*` ? undefined : `its models are called ${provider}/<model>`
  draft.mapped(entry.path, `providers.${provider}.discover`, why)
}

function readCallSettings(draft: Draft, settings: Members, router: Members): void {
  const timeout = settings.number('request_timeout') ?? router.number('timeout')
  if (timeout !== undefined && timeout > 0) {
    draft.settings.timeouts = { total_seconds: Math.min(86_400, timeout) }
    draft.mapped('litellm_settings.request_timeout', 'timeouts.total_seconds')
  }
  const retries = settings.number('num_retries') ?? router.number('num_retries')
  if (retries !== undefined) {
    draft.mapped(
      'litellm_settings.num_retries',
      'models.*.routing.tries',
      'a try goes to another target where there is one',
    )
    for (const tree of draft.models.values()) {
      if (tree.alias_of !== undefined) continue
      tree.routing = {
        ...(tree.routing as Tree | undefined),
        tries: Math.min(20, Math.max(1, Math.round(retries) + 1)),
      }
    }
  }
  const budget = budgetOf(draft, settings, { max: 'max_budget', duration: 'budget_duration', to: 'budgets' })
  if (budget) draft.settings.budgets = [budget]
}

function readGeneral(draft: Draft, general: Members): void {
  const most = general.number('global_max_parallel_requests')
  if (most !== undefined) {
    draft.settings.rate_limits = { concurrent_requests: Math.round(most) }
    draft.mapped(general.at('global_max_parallel_requests'), 'rate_limits.concurrent_requests')
  }
  general.rest(GENERAL)
}
