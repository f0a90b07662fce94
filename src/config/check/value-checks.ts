/** Checks single values beyond their schema: what is wrong with one, by its place. */
import { nearest } from '../../kit/nearest.ts'
import type { Budget } from '../../spec/rate-limit.ts'
import { HOST_DESCRIPTION, isHost } from '../load/environment.ts'
import { LANGUAGES } from '../schema/guard-schema.ts'
import type { FileConfig, ModelConfig } from '../schema/schema.ts'
import { placesMarked } from '../schema/schema-at.ts'
import { valkeyUrlProblem } from '../schema/store-schema.ts'
import { issuerProblem, oidcAddressProblem } from './admin-checks.ts'
import { budgetProblems } from './budget-checks.ts'
import { webhookSecretProblem } from './guard-checks.ts'
import { serverAddressProblem } from './mcp-checks.ts'
import { metadataHostProblem } from './metadata-hosts.ts'
import { placesOf } from './path-pattern.ts'
import type { Report } from './problem.ts'

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

type Row = [places: readonly string[], problem: (text: string, parts: SemanticCheckParts) => string | undefined]

/** Several problems of one value are reported in this order. */
const ROWS: readonly Row[] = [
  [
    ['server.host'],
    (host) => (isHost(host) ? undefined : `found ${JSON.stringify(host)}, must be ${HOST_DESCRIPTION}`),
  ],
  [['server.base_url', 'server.files_base_url', 'telemetry.otlp.endpoint', 'providers.*.base_url'], addressProblem],
  [['server.hosts.*'], hostNameProblem],
  [['server.cors_origins.*'], originProblem],
  [['valkey.url'], valkeyUrlProblem],
  [['tokens.models.*', 'projects.*.models.*', 'api_tokens.*.models.*', 'guards.*.when.models.*'], patternProblem],
  [['alerts.webhook.secret'], webhookSecretProblem],
  [['telemetry.otlp.propagate_to.*'], (id, parts) => (id === '*' ? undefined : unknownProvider(id, parts))],
  [['models.*.targets.*.provider'], unknownProvider],
  [['admin.oidc.issuer'], issuerProblem],
  [['admin.oidc.redirect_uri'], oidcAddressProblem],
  [placesMarked('sent_to'), (text, { config }) => metadataHostProblem(text, config)],
  [['mcp.oauth.issuer', 'mcp.servers.*.oauth_user.issuer'], issuerProblem],
  [['mcp.servers.*.url', 'mcp.servers.*.sse', 'mcp.servers.*.oauth.token_url'], serverAddressProblem],
  [['mcp.servers.*.openapi.document', 'mcp.servers.*.openapi.base_url'], serverAddressProblem],
  [['guards.*.languages.*'], languageProblem],
  [['models.*.guards.*', 'projects.*.guards.*', 'api_tokens.*.guards.*'], unknownGuard],
]

const BUDGETS = ['tokens', 'projects.*', 'api_tokens.*'].flatMap((owner) => [
  `${owner}.budgets`,
  `${owner}.end_users.budgets`,
])

export function checkValues(parts: SemanticCheckParts, report: Report): void {
  for (const [patterns, problemOf] of ROWS)
    for (const { path, value } of patterns.flatMap((pattern) => placesOf(parts.config, pattern))) {
      const problem = typeof value === 'string' ? problemOf(value, parts) : undefined
      if (problem !== undefined) report(path, problem)
    }
  for (const pattern of ['budgets', 'budgets.installation', ...BUDGETS])
    for (const { path, value } of placesOf<Budget[]>(parts.config, pattern)) {
      if (!Array.isArray(value)) continue
      for (const { index, field, message } of budgetProblems(value))
        report(field ? [...path, index, field] : [...path, index], message)
    }
}

/** Addresses may contain secrets by mistake, so messages do not repeat them. */
function addressProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    return 'must be an http or https address, such as https://api.example.com/v1'
  if (url.username || url.password) return 'contains a user name or password; use `key` or `headers` instead'
  if (url.search || url.hash || text.endsWith('?') || text.endsWith('#'))
    return 'contains a query or fragment (from "?" or "#" on); must end with its path'
  return undefined
}

const HOST_NAME_RULE = 'must be a host name such as models.example.com, without a scheme, port or path'

function hostNameProblem(host: string): string | undefined {
  return URL.parse(`http://${host}/`)?.hostname === host.toLowerCase() ? undefined : HOST_NAME_RULE
}

const ORIGIN_RULE = 'must be "*" or an origin such as https://app.example.com, without a path'

function originProblem(origin: string): string | undefined {
  return origin === '*' || URL.parse(origin)?.origin === origin ? undefined : ORIGIN_RULE
}

/** The problem of a pattern of model ids, if any; `*` is the only special character. */
export function patternProblem(pattern: string): string | undefined {
  if (pattern === '') return 'found an empty pattern, must be a model id or a pattern such as "acme/*"'
  const odd = /[\s,?{}[\]]/.exec(pattern)?.[0]
  if (odd === undefined) return undefined
  const name = /\s/.test(odd) ? 'white space' : JSON.stringify(odd)
  return `found ${JSON.stringify(pattern)} with ${name}; a pattern is one model id in which "*" matches any text`
}

function unknownProvider(name: string, parts: SemanticCheckParts): string | undefined {
  const problem = providerProblem(name, parts)
  return problem && `found "${name}", which ${problem}`
}

/** As the rest of a sentence. */
export function providerProblem(name: string, { config, vendors, discover }: SemanticCheckParts): string | undefined {
  const known = Object.keys(config.providers ?? {})
  if (config.sandbox !== false && !known.includes('sandbox')) known.push('sandbox')
  if (discover ?? config.discover) known.push(...(vendors?.discovered ?? []).filter((id) => !known.includes(id)))
  return known.includes(name) ? undefined : `is not a provider${knownHint(name, known)}`
}

function unknownGuard(name: string, { config }: SemanticCheckParts): string | undefined {
  const known = Object.keys(config.guards ?? {})
  if (known.includes(name)) return undefined
  return `found ${JSON.stringify(name)}, which is not a guard${knownHint(name, known)}`
}

function knownHint(name: string, known: readonly string[]): string {
  const suggestion = nearest(name, known)
  const hint = suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`
  return `${hint}; ${known.length === 0 ? 'there are none' : `known: ${known.join(', ')}`}`
}

function languageProblem(language: string): string | undefined {
  const known: readonly string[] = LANGUAGES
  if (known.includes(language)) return undefined
  return `found ${JSON.stringify(language)}, which is no known language; known: ${known.join(', ')}`
}
