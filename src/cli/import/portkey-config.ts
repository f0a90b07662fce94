/** Reads one gateway config of Portkey: its targets, however they are nested, are those of one model. */
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { byName } from '../../kit/by-name.ts'
import { isRecord } from '../../kit/json.ts'
import { type Draft, firstOf, type Members, membersOf, SILENT } from './imported.ts'
import { type Deployment, modelId, modelTree } from './model-targets.ts'
import { addressOf, optionsOf, presetKey, secretOf } from './provider-parts.ts'
import { vendorTree } from './vendors.ts'

type Config = {
  tree: Record<string, unknown>
  path: string
  /** The name of the model; undefined: that of its first target. */
  id: string | undefined
  /** The ids of providers by the slugs of Portkey. */
  known: ReadonlyMap<string, string>
}

const DEEPEST = 10
const MOST_TARGETS = 100

export function readPortkeyConfig(draft: Draft, { tree, path, id, known }: Config): undefined {
  const root = membersOf(draft, snakeCase(tree), path)
  const place = path === '' ? 'config' : path
  const leaves = leavesOf(draft, { members: root, order: [], weight: undefined, depth: 0 })
  const orders = [...new Set(leaves.map(({ order }) => orderText(order)))].sort()
  const deployments: Deployment[] = []
  for (const { members, order, weight } of firstOf(draft, leaves, MOST_TARGETS, `${place}: targets`)) {
    const target = targetOf(draft, members, known)
    if (!target) continue
    const milliseconds = members.number('request_timeout')
    deployments.push({
      ...target,
      priority: orders.indexOf(orderText(order)),
      ...(weight !== undefined && { weight }),
      ...(milliseconds !== undefined &&
        milliseconds > 0 && { timeouts: { total_seconds: Math.min(86_400, milliseconds / 1000) } }),
    })
    if (members !== root) members.rest(TARGET)
  }
  const [first] = deployments
  if (!first) {
    root.rest(TARGET)
    return draft.dropped(place, 'no target of it names a model: clients name <provider>/<model> here')
  }
  const model = modelId(draft, id ?? first.model, place)
  if (model === undefined) return
  draft.models.set(model, { ...modelTree(draft, model, deployments, 'weighted'), ...readCache(draft, root, model) })
  readRetry(draft, root, model)
  const why = 'clients name it as their model, instead of the header x-portkey-config'
  draft.mapped(place, `models.${model}, with ${deployments.length} targets`, why)
  root.rest(TARGET)
}

/** The first of a fallback is as early as a target beside it. */
const orderText = (order: readonly number[]): string =>
  Array.from({ length: DEEPEST + 1 }, (_, at) => String(order[at] ?? 0).padStart(4, '0')).join('.')

/** Configs are written in both ways: `override_params`, `overrideParams`. */
const snakeCase = (tree: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(tree).map(([name, value]) => [name.replaceAll(/[A-Z]/g, (sign) => `_${sign.toLowerCase()}`), value]),
  )

type Leaf = { members: Members; order: number[]; weight: number | undefined }

/** The targets within targets. `order`: what is tried earlier comes first; equal ones share the calls. */
function leavesOf(draft: Draft, { members, order, weight, depth }: Leaf & { depth: number }): Leaf[] {
  const targets = members.take('targets')
  const strategy = membersOf(draft, snakeCase(members.record('strategy') ?? {}), members.at('strategy'))
  if (!Array.isArray(targets)) return [{ members, order, weight }]
  if (depth >= DEEPEST) throw new Error(`${members.at('targets')} is nested too deeply`)
  const mode = strategy.text('mode') ?? 'single'
  const children = targets.filter(isRecord).map((target, index) => {
    const child = membersOf(draft, snakeCase(target), `${members.at('targets')}[${index}]`)
    return { child, name: child.text('name'), own: child.number('weight') }
  })
  const chosen = mode === 'conditional' ? strategy.text('default') : undefined
  const conditions = strategy.take('conditions')
  if (conditions !== undefined) {
    draft.dropped(strategy.at('conditions'), 'only its default is carried; a target takes requests by tags: when.tags')
  }
  strategy.rest({ on_status_codes: 'an error says whether the next target is tried' })
  const used = mode === 'single' ? children.slice(0, 1) : children
  return used
    .filter(({ name }) => chosen === undefined || name === chosen)
    .flatMap(({ child, own }, index) =>
      leavesOf(draft, {
        members: child,
        order: mode === 'fallback' ? [...order, index] : [...order, 0],
        weight: own === undefined ? weight : own * (weight ?? 1),
        depth: depth + 1,
      }),
    )
}

function targetOf(
  draft: Draft,
  members: Members,
  known: Config['known'],
): { provider: string; model: string } | undefined {
  const params = membersOf(draft, members.record('override_params') ?? {}, members.at('override_params'))
  const written = params.text('model')
  // `@slug/model` names the provider too.
  const [, slug, name] = /^@([^/]+)\/(.+)$/.exec(written ?? '') ?? []
  const vendor = members.text('provider')
  const virtual = members.text('virtual_key') ?? slug ?? (vendor?.startsWith('@') ? vendor.slice(1) : undefined)
  const provider = virtual === undefined ? inlineProvider(draft, members, vendor) : known.get(virtual)
  params.rest(PARAMS)
  if (provider === undefined) {
    if (virtual !== undefined)
      draft.dropped(
        members.path || 'config',
        `provider ${JSON.stringify(virtual)} is not in the source; add the list of virtual keys`,
      )
    return undefined
  }
  const model = name ?? written ?? members.text('deployment_id') ?? members.text('azure_deployment_name')
  if (model !== undefined) return { provider, model }
  const tree = draft.providers.get(provider)
  if (tree) tree.discover = true
  const why = `it takes the model of the request: name ${provider}/<model>, or add the target with its model`
  return void draft.dropped(members.path || 'config', why)
}

/** A target that names its vendor itself. */
function inlineProvider(draft: Draft, members: Members, vendor: string | undefined): string | undefined {
  const resource = members.text('resource_name')
  const azure = resource === undefined ? undefined : `https://${resource}.openai.azure.com`
  const base_url = addressOf(draft, members, ['custom_host']) ?? azure
  const tree = vendor === undefined ? undefined : vendorTree(vendor, base_url)
  // A config may have settings for all requests, and no target.
  if (vendor === undefined) return undefined
  if (!tree) {
    const why = `provider ${JSON.stringify(vendor)} is not known, and there is no address to call`
    return void draft.dropped(members.path || 'config', why)
  }
  const key =
    secretOf(draft, members, { member: 'api_key', name: `${vendor}_API_KEY` }) ?? presetKey(draft, tree, members.path)
  if (key !== undefined) tree.key = key
  const options = optionsOf(draft, members, { names: OPTIONS[String(tree.kind)], variableOf: (member) => member })
  if (options) tree.options = options
  const headers: Tree = {}
  for (const name of ['openai_organization', 'openai_project']) {
    const value = secretOf(draft, members, { member: name, name })
    if (value !== undefined) headers[name.replace('_', '-')] = value
  }
  if (Object.keys(headers).length > 0) tree.headers = headers
  return draft.provider(vendor, tree)
}

const OPTIONS: Record<string, Record<string, string>> = {
  azure: { api_version: 'apiVersion' },
  'amazon-bedrock': {
    aws_region: 'region',
    aws_access_key_id: 'accessKeyId',
    aws_secret_access_key: 'secretAccessKey',
    aws_session_token: 'sessionToken',
  },
  'google-vertex': { vertex_project_id: 'project', vertex_region: 'location' },
}

/** `max_age` is in seconds. */
function readCache(draft: Draft, root: Members, model: string): Tree {
  const given = root.take('cache')
  if (given === undefined || given === false) return {}
  const cache = membersOf(draft, snakeCase(isRecord(given) ? given : { mode: given }), root.at('cache'))
  const mode = cache.text('mode')
  const seconds = cache.number('max_age')
  const why = mode === 'semantic' ? 'a semantic cache needs a model: cache.semantic.embedding_model' : undefined
  draft.mapped(why ? cache.at('mode') : cache.path, `models.${model}.cache`, why)
  cache.rest({})
  return {
    cache: {
      requests: 'all',
      ...(seconds !== undefined && seconds > 0 && { ttl_seconds: Math.min(31_536_000, seconds) }),
    },
  }
}

function readRetry(draft: Draft, root: Members, model: string): undefined {
  const retry = membersOf(draft, snakeCase(root.record('retry') ?? {}), root.at('retry'))
  const attempts = retry.number('attempts')
  retry.rest({ on_status_codes: 'an error says whether it is tried again', use_retry_after_header: '' })
  const tree = draft.models.get(model)
  if (attempts === undefined || !tree) return
  const tries = Math.min(20, Math.max(1, Math.round(attempts) + 1))
  tree.routing = { ...(tree.routing as Tree | undefined), tries }
  draft.mapped(
    retry.at('attempts'),
    `models.${model}.routing.tries: ${tries}`,
    'a try goes to another target where there is one',
  )
}

const GUARDRAILS = 'write them as guards'
const TARGET = byName(
  [GUARDRAILS, 'plugins_enabled input_guardrails output_guardrails before_request_hooks after_request_hooks'],
  ['they are those of plugins', 'credentials'],
  ['make an admin token: gatehouse admin create', 'admin_token'],
  [SILENT, 'weight strict_open_ai_compliance'],
  ['retries are those of the model: routing.tries', 'retry'],
  ['the cache is that of the model', 'cache'],
  ['an error says whether the next target is tried', 'on_status_codes'],
  ['headers of clients are not forwarded; set providers.<id>.headers', 'forward_headers'],
  ['clients send x-gatehouse-tags', 'metadata'],
  ['write it to a file: providers.<id>.options.credentials', 'vertex_service_account_json'],
)
const PARAMS: Record<string, string> = Object.fromEntries(
  ['temperature', 'top_p', 'max_tokens', 'frequency_penalty', 'presence_penalty'].map((name) => [
    name,
    `set models.<id>.limits.${name}.default`,
  ]),
)
