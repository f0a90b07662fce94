/** Checks that a schema cannot express: whether the parts of a configuration file are consistent. */
import { meantHint, nearest } from '../../kit/nearest.ts'
import type { Budget } from '../../spec/rate-limit.ts'
import { HOST_DESCRIPTION, isHost } from '../load/environment.ts'
import type { Path } from '../load/read-yaml.ts'
import { isBudgetList } from '../schema/account-schema.ts'
import { RANGED_FIELDS, type Range } from '../schema/limits-schema.ts'
import type { FileConfig, ModelConfig, ProviderConfig } from '../schema/schema.ts'
import { valkeyUrlProblem } from '../schema/valkey-schema.ts'
import { oidcProblems } from './admin-checks.ts'
import { checkAliases } from './alias-checks.ts'
import { budgetProblems } from './budget-checks.ts'
import { checkContents, checkRequestSinks } from './contents-checks.ts'
import { declaredProblems } from './declared-checks.ts'
import { guardProblems, WEBHOOK_SECRET } from './guard-checks.ts'
import { mcpProblems } from './mcp-checks.ts'
import { metadataHostProblems } from './metadata-hosts.ts'
import { checkPrices } from './price-checks.ts'
import { checkCalledModels, checkConditions, checkFallbacks, checkKeys, checkTargetKeys } from './routing-checks.ts'
import { checkSuccessors } from './successors.ts'

export type Violation = { path: Path; part: 'key' | 'value'; message: string }

/** Known presets, providers and models; names are not checked when this is absent. */
export type KnownProviders = {
  presets: readonly string[]
  /** The environment variables of each preset's key. */
  presetVariables?: Readonly<Record<string, readonly string[]>>
  /** Providers found by discovery, when it is on. */
  discovered: readonly string[]
  /** The models of the sandbox, by id. */
  sandbox: Readonly<Record<string, ModelConfig>>
}

export type SemanticCheckParts = {
  config: FileConfig
  vendors: KnownProviders | undefined
  /** The `discover` setting of the environment; undefined leaves it to the file. */
  discover: boolean | undefined
  /** Unix seconds. */
  now: number
}

type Report = (path: Path, message: string, part?: Violation['part']) => void

/** Members that failed the schema are undefined here and skipped. */
export function checkSemantics(parts: SemanticCheckParts): Violation[] {
  const out: Violation[] = []
  const report: Report = (path, message, part = 'value') => void out.push({ path, part, message })
  const { config } = parts
  checkServer(config, report)
  checkValkey(config, report)
  checkPatterns(config, report)
  checkBudgets(config, report)
  checkAlerts(config, report)
  checkTelemetry(parts, report)
  checkRequestSinks(config.request_log, report)
  checkContents(config.request_log, report)
  for (const [id, provider] of present(config.providers)) checkProvider({ id, provider, parts, report })
  for (const [id, model] of present(config.models)) checkModel({ id, model, parts, report })
  const builtIn = config.sandbox === false ? {} : parts.vendors?.sandbox
  const models = new Map(present({ ...builtIn, ...config.models }).filter(([, model]) => !('alias_of' in model)))
  const inFile = config.models ?? {}
  // A faulty entry still exists: its own problem is reported at its own position. An alias is not a model.
  const isInFile = (id: string) => Object.hasOwn(inFile, id) && !('alias_of' in (inFile[id] ?? {}))
  const mayExist = (id: string) => isInFile(id) || isFoundElsewhere(id, parts)
  for (const { path, part, message } of checkAliases({ all: new Map(present(inFile)), models, mayExist }))
    report(path, message, part)
  const ownProblems = [
    ...declaredProblems(config, patternProblem),
    ...oidcProblems(config),
    ...metadataHostProblems(config),
    ...mcpProblems(config),
    ...checkTargetKeys(config),
    ...checkConditions(config),
    ...checkFallbacks({ models, mayExist }),
    ...checkPrices(config),
    ...guardProblems(config, patternProblem),
    ...checkCalledModels({ guards: config.guards, models, mayExist }),
  ]
  for (const { path, part, message } of ownProblems) report(path, message, part)
  for (const { id, message } of checkSuccessors({ models, now: parts.now, mayExist }))
    report(['models', id, 'replaced_by'], message)
  return out
}

function present<T>(table: Record<string, T> | undefined): [string, T][] {
  return Object.entries(table ?? {}).filter(([, entry]) => entry !== undefined)
}

function checkServer({ server }: FileConfig, report: Report): void {
  if (!server) return
  if (server.host !== undefined && !isHost(server.host)) {
    report(['server', 'host'], `found ${JSON.stringify(server.host)}, must be ${HOST_DESCRIPTION}`)
  }
  if (server.base_url !== undefined) checkAddress(['server', 'base_url'], server.base_url, report)
  if (server.files_base_url !== undefined) checkFilesAddress(server.files_base_url, server.base_url, report)
  for (const [index, host] of (server.hosts ?? []).entries()) {
    if (host === undefined || URL.parse(`http://${host}/`)?.hostname === host.toLowerCase()) continue
    report(['server', 'hosts', index], 'must be a host name such as models.example.com, without a scheme, port or path')
  }
  for (const [index, origin] of (server.cors_origins ?? []).entries()) {
    if (origin === undefined || origin === '*' || URL.parse(origin)?.origin === origin) continue
    report(
      ['server', 'cors_origins', index],
      'must be "*" or an origin such as https://app.example.com, without a path',
    )
  }
}

function checkValkey(config: FileConfig, report: Report): void {
  const { url } = config.valkey ?? {}
  const problem = url === undefined ? undefined : valkeyUrlProblem(url)
  if (problem) report(['valkey', 'url'], problem)
  if ('valkey' in config) return
  const missing = 'found "valkey" (string), but there is no section `valkey` with the address of a server'
  if (config.cache?.storage === 'valkey') report(['cache', 'storage'], missing)
  if (config.limits?.store === 'valkey') report(['limits', 'store'], missing)
}

/** Only the host distinguishes file requests from others, so it must differ, and there is no path. */
function checkFilesAddress(files: string, base_url: string | undefined, report: Report): void {
  const path: Path = ['server', 'files_base_url']
  checkAddress(path, files, report)
  const url = URL.parse(files)
  if (url && url.pathname !== '/') report(path, 'has a path; must be an origin such as https://files.example.com')
  if (url && base_url !== undefined && URL.parse(base_url)?.host === url.host) {
    report(path, 'has the host of `base_url`; must be a different host, so that nothing in a file runs in its origin')
  }
}

/** Addresses may contain secrets by mistake, so messages do not repeat them. */
function checkAddress(path: Path, text: string, report: Report): void {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    report(path, 'must be an http or https address, such as https://api.example.com/v1')
  } else if (url.username || url.password) {
    report(path, 'contains a user name or password; use `key` or `headers` instead')
  } else if (url.search || url.hash || text.endsWith('?') || text.endsWith('#')) {
    report(path, 'contains a query or fragment (from "?" or "#" on); must end with its path')
  }
}

/** The value is not repeated: it may be most of a secret. */
function checkAlerts({ alerts }: FileConfig, report: Report): void {
  const secret = alerts?.webhook?.secret
  if (secret !== undefined && !WEBHOOK_SECRET.test(secret)) {
    report(['alerts', 'webhook', 'secret'], 'must be whsec_ and 24 to 64 bytes in base64')
  }
  const { user, password } = alerts?.email ?? {}
  if (user !== undefined && password === undefined) report(['alerts', 'email', 'user'], 'needs a password beside it')
  if (user === undefined && password !== undefined) report(['alerts', 'email', 'password'], 'needs a user beside it')
}

function checkTelemetry(parts: SemanticCheckParts, report: Report): void {
  const { otlp } = parts.config.telemetry ?? {}
  if (otlp?.endpoint !== undefined) checkAddress(['telemetry', 'otlp', 'endpoint'], otlp.endpoint, report)
  for (const [name, value] of present(otlp?.headers)) checkHeader(['telemetry', 'otlp', 'headers', name], value, report)
  for (const [index, id] of (otlp?.propagate_to ?? []).entries()) {
    const problem = id === '*' || id === undefined ? undefined : providerProblem(id, parts)
    if (problem) report(['telemetry', 'otlp', 'propagate_to', index], `found "${id}", which ${problem}`)
  }
}

function checkBudgets({ budgets, tokens }: FileConfig, report: Report): void {
  const lists: [Path, readonly Budget[] | undefined][] = [
    budgets === undefined || isBudgetList(budgets)
      ? [['budgets'], budgets]
      : [['budgets', 'installation'], budgets.installation],
    [['tokens', 'budgets'], tokens?.budgets],
    [['tokens', 'end_users', 'budgets'], tokens?.end_users?.budgets],
  ]
  for (const [path, list = []] of lists) {
    for (const { index, field, message } of budgetProblems(list)) {
      report(field ? [...path, index, field] : [...path, index], message)
    }
  }
}

function checkPatterns({ tokens }: FileConfig, report: Report): void {
  for (const [index, pattern] of (tokens?.models ?? []).entries()) {
    if (pattern === undefined) continue
    const problem = patternProblem(pattern)
    if (problem) report(['tokens', 'models', index], problem)
  }
}

/** The problem of a pattern of model ids, if any; `*` is the only special character. */
export function patternProblem(pattern: string): string | undefined {
  if (pattern === '') return 'found an empty pattern, must be a model id or a pattern such as "acme/*"'
  const odd = /[\s,?{}[\]]/.exec(pattern)?.[0]
  if (odd === undefined) return undefined
  const name = /\s/.test(odd) ? 'white space' : JSON.stringify(odd)
  return `found ${JSON.stringify(pattern)} with ${name}; a pattern is one model id in which "*" matches any text`
}

/** Kinds that need an address; the other kinds have a default one. */
const KINDS_WITH_BASE_URL: readonly string[] = ['chatcompat', 'chatcompat-video']

type ProviderParts = { id: string; provider: ProviderConfig; parts: SemanticCheckParts; report: Report }

function checkProvider({ id, provider, parts, report }: ProviderParts): void {
  const path = ['providers', id]
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id)) {
    report(path, `found ${JSON.stringify(id)}, must be letters, digits, ".", "_" and "-", and no "/"`, 'key')
  }
  if (id === 'sandbox' && parts.config.sandbox !== false && provider.kind !== 'sandbox') {
    report(path, 'is the name of the built-in sandbox; choose another name, or set `sandbox: false`', 'key')
  }
  if (provider.base_url !== undefined) checkAddress([...path, 'base_url'], provider.base_url, report)
  const needsAddress = KINDS_WITH_BASE_URL.includes(provider.kind ?? 'chatcompat')
  if (needsAddress && !('preset' in provider) && !('base_url' in provider)) {
    report(path, 'needs `base_url`, or `preset` for a known provider', 'key')
  }
  const presets = parts.vendors?.presets
  if (provider.preset !== undefined && presets && !presets.includes(provider.preset)) {
    const hint = meantHint(provider.preset, presets)
    const known = `${[...presets].sort().join(', ')}${hint} (for any other provider omit it and set base_url)`
    report([...path, 'preset'], `found ${JSON.stringify(provider.preset)} (string), must be one of ${known}`)
  }
  for (const problem of checkKeys(id, provider)) report(problem.path, problem.message, problem.part)
  for (const [name, value] of present(provider.headers)) checkHeader([...path, 'headers', name], value, report)
}

/** Headers of the transport, and those that frame a message. */
const RESERVED_HEADERS = ['connection', 'content-length', 'content-type', 'host', 'transfer-encoding', 'upgrade']

function checkHeader(path: Path, value: string, report: Report): void {
  const name = String(path.at(-1))
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    report(path, `found ${JSON.stringify(name)}, must be the name of an HTTP header`, 'key')
  } else if (RESERVED_HEADERS.includes(name.toLowerCase())) {
    report(path, 'is set by the gateway and cannot be configured', 'key')
  }
  if (!/^[\t\x20-\x7e]*$/.test(value)) {
    report(path, 'contains a line break or a character outside ASCII (not shown); it cannot be sent')
  }
}

type ModelParts = { id: string; model: ModelConfig; parts: SemanticCheckParts; report: Report }

function checkModel({ id, model, parts, report }: ModelParts): void {
  const path = ['models', id]
  if (!/^[^\s/]+(\/[^\s/]+)*$/.test(id)) {
    report(
      path,
      `found ${JSON.stringify(id)}, must be like "provider/model", without white space or empty parts`,
      'key',
    )
  } else if (!('targets' in model || 'alias_of' in model || id.includes('*'))) {
    checkOwnTarget({ id, model, parts, report })
  }
  for (const [index, target] of (model.targets ?? []).entries()) {
    const problem = target?.provider === undefined ? undefined : providerProblem(target.provider, parts)
    if (problem) report([...path, 'targets', index, 'provider'], `found "${target.provider}", which ${problem}`)
  }
  for (const field of RANGED_FIELDS) {
    const range = model.limits?.[field]
    if (range) checkRange([...path, 'limits', field], range, report)
  }
  if (model.when_retired === 'redirect' && !('replaced_by' in model)) {
    report([...path, 'when_retired'], 'found "redirect" (string), but the model has no `replaced_by` to redirect to')
  }
  const { deprecated_at, retired_at } = model
  if (deprecated_at !== undefined && retired_at !== undefined && deprecated_at > retired_at) {
    const found = `found ${deprecated_at} (number)`
    report([...path, 'deprecated_at'], `${found}, must not be after \`retired_at\`, which is ${retired_at}`)
  }
}

/** A model without targets is served by the provider in its id. */
function checkOwnTarget({ id, parts, report }: ModelParts): void {
  const slash = id.indexOf('/')
  const problem = providerProblem(id.slice(0, Math.max(0, slash)), parts)
  if (slash === -1) report(['models', id], 'needs `targets`, because its id names no provider', 'key')
  else if (problem)
    report(['models', id], `has no \`targets\`, so "${id.slice(0, slash)}" serves it, which ${problem}`, 'key')
}

function providerProblem(name: string, { config, vendors, discover }: SemanticCheckParts): string | undefined {
  const known = Object.keys(config.providers ?? {})
  if (config.sandbox !== false && !known.includes('sandbox')) known.push('sandbox')
  if (discover ?? config.discover) known.push(...(vendors?.discovered ?? []).filter((id) => !known.includes(id)))
  if (known.includes(name)) return undefined
  const suggestion = nearest(name, known)
  const hint = suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`
  return `is not a provider${hint}; ${known.length === 0 ? 'there are none' : `known: ${known.join(', ')}`}`
}

function checkRange(path: Path, range: Range, report: Report): void {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY, default: preset } = range
  if (minimum > maximum) {
    report([...path, 'minimum'], `found ${minimum} (number), must not be above \`maximum\`, which is ${maximum}`)
  } else if (preset !== undefined && preset < minimum) {
    report([...path, 'default'], `found ${preset} (number), must not be below \`minimum\`, which is ${minimum}`)
  } else if (preset !== undefined && preset > maximum) {
    report([...path, 'default'], `found ${preset} (number), must not be above \`maximum\`, which is ${maximum}`)
  }
}

/** Whether a model that is not in the file may come from the sandbox or from discovery. */
function isFoundElsewhere(id: string, { config, discover, vendors }: SemanticCheckParts): boolean {
  const provider = id.slice(0, Math.max(0, id.indexOf('/')))
  if (discover ?? config.discover) return true
  if (provider === 'sandbox' && config.sandbox !== false && !vendors) return true
  return config.providers?.[provider]?.discover === true
}
