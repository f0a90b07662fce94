/** The only reader of the configuration: merges file, environment and flags into one frozen value, or reports every problem. */
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { memberOf } from '../../kit/json.ts'
import { checkFile, type ProposalLimits } from '../check/check.ts'
import { contentsKeyProblem } from '../check/contents-checks.ts'
import { ConfigError, type ConfigProblem, ENVIRONMENT, unplaced } from '../check/problem.ts'
import { sandboxProblems } from '../check/sandbox-paths.ts'
import { type ConfigOrigin, type SecretFile, secretFileProblem } from '../check/secret-places.ts'
import type { KnownProviders } from '../check/value-checks.ts'
import { expansionProblem } from '../check/variable-places.ts'
import {
  type Config,
  DEFAULT_ADMIN,
  DEFAULT_BATCHES,
  DEFAULT_CACHE,
  DEFAULT_CALLS,
  DEFAULT_FILES,
  DEFAULT_LEDGER,
  DEFAULT_LIMITS,
  DEFAULT_MCP,
  DEFAULT_METRICS,
  DEFAULT_OUTPUTS,
  DEFAULT_REQUEST_LOG,
  DEFAULT_RESPONSES,
  DEFAULT_SERVER,
  DEFAULT_STORE,
  DEFAULT_TASKS,
  DEFAULT_TIMEOUTS,
  DEFAULT_VALKEY,
  storeUrl,
} from '../config.ts'
import type { FileConfig } from '../schema/schema.ts'
import { type Environment, type EnvironmentSettings, type Flags, inspectEnvironment } from './environment.ts'
import { withKeyFiles } from './key-files.ts'
import { readSecretFile } from './read-secret-file.ts'
import type { ExpansionCheck, YamlText } from './read-yaml.ts'

/** The default file. */
export const DEFAULT_FILE = 'gatehouse.yaml'

export type LoadParts = {
  environment: Environment
  /** The base of relative paths. */
  cwd: string
  flags?: Flags
  /** Undefined when there is no such file. */
  readFile?: (path: string) => string | undefined
  /** Reads a secret file; throws an Error that says why it cannot be used. */
  readSecret?: (path: string) => string
  /** Where the text of the file comes from; decides which secret files it may name. Default: the disk. */
  origin?: ConfigOrigin
  vendors?: KnownProviders
  /** Unix seconds; which models are retired depends on it. */
  now?: number
  /** Of a text that does not come from the host itself. */
  limits?: ProposalLimits | undefined
}

/** A configuration, and what is known of where it comes from. */
export type Loaded = {
  config: Config
  settings: EnvironmentSettings
  /** The parsed file; undefined without one. */
  yaml: YamlText | undefined
  /** The secret files that it names, as they are written there. */
  secret_files: readonly SecretFile[]
}

/** Throws ConfigError with every problem of file, environment and flags. */
export const loadConfig = (parts: LoadParts): Config => loadWithSources(parts).config

export function loadWithSources(parts: LoadParts): Loaded {
  const {
    environment,
    cwd,
    flags,
    vendors,
    limits,
    readFile = readUtf8File,
    now = Math.floor(Date.now() / 1000),
  } = parts
  const { settings, problems } = inspectEnvironment({ environment, flags, cwd })
  const name = settings.config ?? DEFAULT_FILE
  const path = resolve(cwd, name)
  const text = attempt({ name, problems, read: () => readFile(path) })
  if (text === undefined) {
    if (settings.config !== undefined && problems.length === 0) problems.push(unreadable(name, 'there is no such file'))
    if (problems.length > 0) throw new ConfigError(problems)
    const config = settled({ settings, path: undefined, file: {}, cwd })
    return { config, settings, yaml: undefined, secret_files: [] }
  }
  // Loaded only when there is a file, so that a start without one does not load the parser.
  const { readYaml } = require('./read-yaml.ts') as typeof import('./read-yaml.ts')
  const { secretAt, secret_files } = secretReader(dirname(path), parts)
  const filled = readYaml(text, environment, { secretAt, expansionProblem: expansionCheck(limits) })
  const yaml = withKeyFiles(filled, secretAt)
  const { config: file, problems: inFile } = checkFile({
    file: name,
    yaml,
    vendors,
    discover: settings.discover,
    now,
    limits,
  })
  if (problems.length + inFile.length > 0) throw new ConfigError([...problems, ...inFile])
  const message = contentsKeyProblem(file, settings.contents_key)
  if (message !== undefined) throw new ConfigError([unplaced(ENVIRONMENT, message, 'GATEHOUSE_CONTENTS_KEY')])
  const secrets = secret_files.map((named) => resolve(dirname(path), named.file))
  const config = settled({ settings, path, file, cwd, secrets })
  const opened = sandboxProblems(config, environment, yaml)
  if (opened.length > 0) throw new ConfigError(opened)
  return { config, settings, yaml, secret_files }
}

/** Paths are relative to the directory of the configuration file. */
function secretReader(directory: string, { readSecret = readSecretFile, origin = { from: 'disk' } }: LoadParts) {
  const secret_files: SecretFile[] = []
  function secretAt(named: SecretFile): string {
    const problem = secretFileProblem(named, origin)
    if (problem !== undefined) throw new Error(problem)
    secret_files.push(named)
    return readSecret(resolve(directory, named.file))
  }
  return { secretAt, secret_files }
}

const expansionCheck =
  (limits: ProposalLimits | undefined): ExpansionCheck =>
  (path, references, source) =>
    expansionProblem(path, references) ?? limits?.expansionProblem(path, references, source)

export type FileStore = {
  data_dir?: string
  migrate?: 'manual'
  /** Of finished files: a directory, or the name of a bucket. */
  outputs?: { directory: string } | { bucket: string }
}

/** The store that a configuration file names: undefined members without one. The rest of the file is not validated. */
export function fileStore(path: string, environment: Environment): FileStore {
  const text = readTextFile(path)
  if (text === undefined) return {}
  const { readYaml } = require('./read-yaml.ts') as typeof import('./read-yaml.ts')
  const { value } = readYaml(text, environment)
  const data_dir = memberOf(value, 'data_dir')
  return {
    ...(typeof data_dir === 'string' && data_dir !== '' && { data_dir: resolve(dirname(path), data_dir) }),
    ...outputsOf(memberOf(value, 'outputs'), dirname(path)),
    ...(memberOf(memberOf(value, 'store'), 'migrate') === 'manual' && { migrate: 'manual' as const }),
  }
}

function outputsOf(outputs: unknown, base: string): Pick<FileStore, 'outputs'> {
  const bucket = memberOf(memberOf(outputs, 's3'), 'bucket')
  if (typeof bucket === 'string') return { outputs: { bucket } }
  const directory = memberOf(outputs, 'directory')
  return typeof directory === 'string' ? { outputs: { directory: resolve(base, directory) } } : {}
}

type Settled = {
  settings: EnvironmentSettings
  path: string | undefined
  file: FileConfig
  cwd: string
  secrets?: readonly string[]
}

function settled({ settings, path, file, cwd, secrets = [] }: Settled): Config {
  const { host, port, log_level, bootstrap_token, admin_token, contents_key, contents_key_old } = settings
  const in_file = path === undefined || file.data_dir === undefined ? undefined : resolve(dirname(path), file.data_dir)
  const data_dir = settings.data_dir ?? in_file ?? resolve(cwd, 'data')
  return deepFreeze({
    file: path,
    ...(secrets.length > 0 && { secret_files: secrets }),
    data_dir,
    store_url: settings.database_url ?? storeUrl(data_dir),
    store: { ...DEFAULT_STORE, ...file.store },
    log_level,
    bootstrap_token,
    admin_token,
    contents_key,
    contents_key_old,
    server: {
      ...DEFAULT_SERVER,
      ...file.server,
      ...(host === undefined ? {} : { host }),
      ...(port === undefined ? {} : { port }),
    },
    sandbox: file.sandbox ?? true,
    discover: isDiscovering(settings, path === undefined, file),
    when_retired: file.when_retired ?? 'refuse',
    tokens: { models: ['*'], ...file.tokens },
    projects: file.projects ?? {},
    api_tokens: file.api_tokens ?? {},
    admin_tokens: file.admin_tokens ?? {},
    timeouts: { ...DEFAULT_TIMEOUTS, ...file.timeouts },
    calls: { ...DEFAULT_CALLS, ...file.calls },
    tasks: { ...DEFAULT_TASKS, ...file.tasks },
    outputs: { ...DEFAULT_OUTPUTS, ...file.outputs },
    responses: { ...DEFAULT_RESPONSES, ...file.responses },
    files: { ...DEFAULT_FILES, ...file.files },
    batches: { ...DEFAULT_BATCHES, ...file.batches },
    rate_limits: file.rate_limits ?? {},
    limits: { ...DEFAULT_LIMITS, ...file.limits },
    cache: { ...DEFAULT_CACHE, ...file.cache },
    valkey: file.valkey && { ...DEFAULT_VALKEY, ...file.valkey },
    ledger: { ...DEFAULT_LEDGER, ...file.ledger },
    budgets: file.budgets ?? [],
    request_log: {
      ...DEFAULT_REQUEST_LOG,
      ...file.request_log,
      summaries: { ...DEFAULT_REQUEST_LOG.summaries, ...file.request_log?.summaries },
    },
    alerts: file.alerts ?? {},
    telemetry: file.telemetry ?? {},
    metrics: { ...DEFAULT_METRICS, ...file.metrics },
    mcp: { ...DEFAULT_MCP, ...file.mcp },
    admin: { ...DEFAULT_ADMIN, ...file.admin },
    guards: file.guards ?? {},
    providers: file.providers ?? {},
    models: file.models ?? {},
  })
}

/** Discovery is on by default only without a file, which lists the providers; the environment overrides both. */
const isDiscovering = (settings: EnvironmentSettings, isFileless: boolean, file: FileConfig): boolean =>
  settings.discover ?? file.discover ?? isFileless

function attempt({ name, problems, read }: { name: string; problems: ConfigProblem[]; read(): string | undefined }) {
  try {
    return read()
  } catch (error) {
    const code = (error as { code?: string }).code ?? 'unknown cause'
    const why = { EACCES: 'permission denied', EISDIR: 'it is a directory', EILSEQ: 'it is not UTF-8' }[code] ?? code
    problems.push(unreadable(name, why))
    return undefined
  }
}

const unreadable = (file: string, why: string): ConfigProblem => unplaced(file, `cannot be read: ${why}`)

/** Of a file of which little matters, or that another one replaces: what is not UTF-8 becomes U+FFFD. */
export const readTextFile = (path: string): string | undefined => readBytes(path)?.toString()

/** Of a file that takes effect, or is changed in part. Throws where it is not UTF-8. */
export function readUtf8File(path: string): string | undefined {
  const bytes = readBytes(path)
  if (bytes && !isUtf8(bytes)) throw Object.assign(new Error(`${path} is not UTF-8.`), { code: 'EILSEQ' })
  return bytes?.toString()
}

function readBytes(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}
