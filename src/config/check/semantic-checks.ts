/** Checks that a schema cannot express: whether the parts of a configuration file are consistent. */
import { meantHint } from '../../kit/nearest.ts'
import type { Path } from '../load/read-yaml.ts'
import { RANGED_FIELDS, type Range } from '../schema/limits-schema.ts'
import type { FileConfig, ModelConfig, ProviderConfig } from '../schema/schema.ts'
import { checkOidc } from './admin-checks.ts'
import { checkAliases } from './alias-checks.ts'
import { checkContents, checkRequestSinks } from './contents-checks.ts'
import { checkDeclared } from './declared-checks.ts'
import { checkGuards } from './guard-checks.ts'
import { checkMcp } from './mcp-checks.ts'
import { checkPrices } from './price-checks.ts'
import type { Report } from './problem.ts'
import { checkConditions, checkKeys, checkNamedModels, checkTargetKeys } from './routing-checks.ts'
import { checkSuccessors } from './successors.ts'
import { checkValues, providerProblem, type SemanticCheckParts } from './value-checks.ts'

/** Members that failed the schema are undefined here and skipped. */
export function checkSemantics(parts: SemanticCheckParts, report: Report): void {
  const { config } = parts
  checkValues(parts, report)
  const checks = [checkServer, checkSharedStores, checkMail, checkRequestSinks, checkContents]
  for (const check of checks) check(config, report)
  for (const [name, value] of present(config.telemetry?.otlp?.headers))
    checkHeader(['telemetry', 'otlp', 'headers', name], value, report)
  for (const [id, provider] of present(config.providers)) checkProvider({ id, provider, parts, report })
  for (const [id, model] of present(config.models)) checkModel({ id, model, parts, report })
  const builtIn = config.sandbox === false ? {} : parts.vendors?.sandbox
  const models = new Map(present({ ...builtIn, ...config.models }).filter(([, model]) => !('alias_of' in model)))
  const inFile = config.models ?? {}
  // A faulty entry still exists: its own problem is reported at its own position. An alias is not a model.
  const isInFile = (id: string) => Object.hasOwn(inFile, id) && !('alias_of' in (inFile[id] ?? {}))
  const mayExist = (id: string) => isInFile(id) || isFoundElsewhere(id, parts)
  checkAliases({ all: new Map(present(inFile)), models, mayExist }, report)
  const others = [checkDeclared, checkOidc, checkMcp, checkTargetKeys, checkConditions, checkPrices, checkGuards]
  for (const check of others) check(config, report)
  checkNamedModels(config, { models, mayExist }, report)
  for (const { id, message } of checkSuccessors({ models, now: parts.now, mayExist }))
    report(['models', id, 'replaced_by'], message)
}

function present<T>(table: Record<string, T> | undefined): [string, T][] {
  return Object.entries(table ?? {}).filter(([, entry]) => entry !== undefined)
}

/** Only the host distinguishes file requests from others, so it must differ, and there is no path. */
function checkServer({ server }: FileConfig, report: Report): void {
  const { files_base_url: files, base_url } = server ?? {}
  const path = ['server', 'files_base_url']
  const url = files === undefined ? null : URL.parse(files)
  if (url && url.pathname !== '/') report(path, 'has a path; must be an origin such as https://files.example.com')
  if (url && base_url !== undefined && URL.parse(base_url)?.host === url.host) {
    report(path, 'has the host of `base_url`; must be a different host, so that nothing in a file runs in its origin')
  }
}

function checkSharedStores(config: FileConfig, report: Report): void {
  if ('valkey' in config) return
  const missing = 'found "valkey" (string), but there is no section `valkey` with the address of a server'
  if (config.cache?.storage === 'valkey') report(['cache', 'storage'], missing)
  if (config.limits?.store === 'valkey') report(['limits', 'store'], missing)
}

function checkMail({ alerts }: FileConfig, report: Report): void {
  const { user, password } = alerts?.email ?? {}
  if (user !== undefined && password === undefined) report(['alerts', 'email', 'user'], 'needs a password beside it')
  if (user === undefined && password !== undefined) report(['alerts', 'email', 'password'], 'needs a user beside it')
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
  checkKeys(path, provider, report)
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
