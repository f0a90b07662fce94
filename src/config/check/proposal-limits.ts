/** Limits which paths, variables and destinations a configuration that comes by the admin API may choose. */
import { isRecord } from '../../kit/json.ts'
import type { Environment } from '../load/environment.ts'
import { isFileReference } from '../load/interpolate.ts'
import type { Loaded } from '../load/load.ts'
import type { Path } from '../load/read-yaml.ts'
import { KINDS, type KindRow, type ProviderKind } from '../schema/provider-kinds.ts'
import type { FileConfig, ProviderConfig } from '../schema/schema.ts'
import { isMarked } from '../schema/schema-at.ts'
import type { ProposalLimits } from './check.ts'
import { checkProposedPrograms } from './mcp-checks.ts'
import { isListed, placesOf, valueAt } from './path-pattern.ts'
import type { Report } from './problem.ts'
import { checkProposedPaths } from './proposed-paths.ts'
import type { KnownProviders } from './value-checks.ts'

type LimitParts = {
  /** The file on disk. What it has at a place, a proposed text may have there too. */
  before: Loaded
  /** The file itself, absolute. */
  config_file: string
  /** Of the running gateway. */
  data_dir: string
  environment: Environment
  vendors: KnownProviders | undefined
}

/** What a text takes from the environment or a file without being on the list: only where the file on disk sends it. */
type Kept = { path: Path; name: string }

/** What decides where the secrets of a section are sent: they go only where the file on disk sends them. */
export const DESTINATIONS: { section: string; members: string[] }[] = [
  { section: 'providers.*', members: ['kind', 'preset', 'base_url', 'apis', 'options'] },
  { section: 'guards.*', members: ['kind', 'url', 'format'] },
  { section: 'request_log.sinks.*.http', members: ['url'] },
  { section: 'request_log.sinks.*.clickhouse', members: ['url'] },
  { section: 'telemetry.otlp', members: ['endpoint'] },
  { section: 'alerts.email', members: ['host', 'port'] },
  { section: 'admin.oidc', members: ['issuer'] },
  { section: 'mcp.servers.*.oauth', members: ['token_url'] },
  { section: 'mcp.servers.*.oauth_user', members: ['issuer'] },
  { section: 'mcp.servers.*', members: ['url', 'sse', 'command', 'args', 'openapi'] },
]

const KEYS = ['providers.*.key', 'providers.*.keys.*.key']

/** Where the operator allows variables. */
const LISTS = 'admin.config_variables of that file or GATEHOUSE_CONFIG_VARIABLES'

const OTLP_HEADERS = /^OTEL_EXPORTER_OTLP_(TRACES_|LOGS_|METRICS_)?HEADERS$/

export function proposalLimits(parts: LimitParts): ProposalLimits {
  const { before, environment, vendors } = parts
  const allowed = new Set([...before.config.admin.config_variables, ...before.settings.config_variables])
  const kept: Kept[] = []

  function expansionProblem(path: Path, references: string[], source: string): string | undefined {
    const own = ownVariables(path)
    const refused = references.filter((name) => !allowed.has(name))
    if (refused.length > 0 && refused.every((name) => own.includes(name))) {
      kept.push(...refused.map((name) => ({ path, name })))
      return undefined
    }
    if (before.yaml?.sourceAt(path) !== source && before.yaml?.sourceAt(formerKey(path)) !== source) {
      if (!isMarked('secret', path))
        return 'may not contain a variable that is new here: by the admin API only secrets may'
      const variable = refused.find((name) => !isFileReference(name)) // `secretFileProblem` decides which files
      if (variable !== undefined) return notAllowed(variable)
      // An address such as that of a webhook would send the file wherever the text says.
      if (refused.length > 0 && path[0] !== 'providers') return FILE_ELSEWHERE
    }
    kept.push(...refused.map((name) => ({ path, name })))
    return undefined
  }

  /** Those from which a provider of the file without a key takes its key already, and sends it to its vendor. */
  function ownVariables(path: Path): readonly string[] {
    const [, id] = path
    if (typeof id !== 'string' || !isListed(KEYS, path)) return []
    const { providers }: Partial<FileConfig> = isRecord(before.yaml?.value) ? before.yaml.value : {}
    const provider = isRecord(providers) && Object.hasOwn(providers, id) ? providers[id] : undefined
    if (!isRecord(provider) || provider.base_url !== undefined || provider.options !== undefined) return []
    if ([provider.key, provider.key_file, provider.keys].some((one) => one !== undefined)) return []
    const { kind, preset = '' } = provider as ProviderConfig
    if (kind !== undefined) {
      const { environment: names = [] }: Partial<KindRow> = KINDS[kind as ProviderKind] ?? {}
      return names
    }
    const variables = vendors?.presetVariables ?? {}
    return Object.hasOwn(variables, preset) ? (variables[preset] ?? []) : []
  }

  /** Variables that a provider without a key, or the exporter of traces, reads by itself, and files that hold a key. */
  function implicit(file: FileConfig): Kept[] {
    const isRefused = (name: string) => (environment[name] ?? '') !== '' && !allowed.has(name)
    const providers = Object.entries(file.providers ?? {}).flatMap(([id, provider]) =>
      [...variablesOf(provider, vendors).filter(isRefused), ...keyFilesOf(provider)].map((name) => ({
        path: ['providers', id, 'key'],
        name,
      })),
    )
    const headers = Object.keys(environment).filter((name) => OTLP_HEADERS.test(name) && isRefused(name))
    if (file.telemetry?.otlp?.endpoint === undefined) return providers
    return [...providers, ...headers.map((name) => ({ path: ['telemetry', 'otlp', 'headers'], name }))]
  }

  function checkDestinations(file: FileConfig, report: Report): void {
    const messages = new Map<string, string>()
    const all = [...kept, ...implicit(file)].flatMap(({ path, name }) =>
      DESTINATIONS.filter(({ section }) => isListed([`${section}.**`], path)).map((found) => ({ path, name, found })),
    )
    for (const { path, name, found } of all) {
      const place = path.slice(0, found.section.split('.').length)
      const [old, now] = [before.yaml?.value, file].map((value) => membersAt(value, place, found.members))
      if (old === now) continue
      const remedy = isFileReference(name) ? 'change the file itself' : `that needs the variable in ${LISTS}`
      const message = `would send \${${name}} elsewhere than the file on disk does (${found.members.join(', ')} differ); ${remedy}`
      messages.set(JSON.stringify(place), message)
    }
    for (const [place, message] of messages) report(JSON.parse(place), message, 'key')
  }

  return {
    expansionProblem,
    check(file, report) {
      checkProposedPaths({ file, ...parts }, report)
      checkDestinations(file, report)
      checkProposedPrograms(file, before.yaml?.value, report)
      // A list that a text could extend would allow everything with the next text.
      for (const { path, value } of placesOf<string>(file, 'admin.config_variables.*'))
        if (!allowed.has(value)) report(path, 'cannot be added by the admin API; write it into the file itself')
    },
  }
}

/** The place of the one key of a provider that now has several: its destination is compared like that of a key that stays. */
const formerKey = (path: Path): Path =>
  isListed(['providers.*.keys.*.key'], path) ? ['providers', path[1] ?? '', 'key'] : path

const notAllowed = (name: string): string =>
  `may not take \${${name}} by the admin API: the file on disk does not have it here, and it is not in ${LISTS}`

const FILE_ELSEWHERE =
  'may not take a file in a text that is new here: by the admin API only settings of providers may; change the file itself'

/** A vendor's own variable may go to that vendor; with an address or options, such as a region, it may go elsewhere. */
function variablesOf(provider: ProviderConfig | undefined, vendors: KnownProviders | undefined): readonly string[] {
  if (provider === undefined || provider.key !== undefined || provider.keys !== undefined) return []
  const { kind = 'chatcompat', preset, base_url, options = {} } = provider
  if (base_url === undefined && Object.keys(options).length === 0) return []
  const { environment = [] }: Partial<KindRow> = KINDS[kind as ProviderKind] ?? {}
  return [...environment, ...(preset === undefined ? [] : (vendors?.presetVariables?.[preset] ?? []))]
}

const keyFilesOf = (provider: ProviderConfig | undefined): string[] =>
  [provider, ...(provider?.keys ?? [])].flatMap((one) => (one?.key_file === undefined ? [] : [`file:${one.key_file}`]))

const membersAt = (value: unknown, path: Path, names: string[]): string =>
  JSON.stringify(names.map((name) => valueAt(value, [...path, name])))
