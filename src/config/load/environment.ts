/** Reads the `GATEHOUSE_*` variables and the equivalent flags; a flag wins over its variable. */
import { resolve } from 'node:path'
import { LOG_LEVELS, type LogLevel } from '../../kit/log.ts'
import { SEALING_KEY_FORMAT, sealingKey } from '../../kit/sealed-text.ts'
import { COMMAND_LINE, ConfigError, type ConfigProblem, ENVIRONMENT, unplaced } from '../check/problem.ts'

export type Environment = Record<string, string | undefined>

/** Values of command line flags, unparsed. */
export type Flags = { config?: string; host?: string; port?: string; data_dir?: string }

export type EnvironmentSettings = {
  /** The path as given; undefined when absent. */
  config: string | undefined
  host: string | undefined
  port: number | undefined
  /** Absolute; undefined when absent. */
  data_dir: string | undefined
  /** `postgres://...`; may contain a password. */
  database_url: string | undefined
  bootstrap_token: string | undefined
  admin_token: string | undefined
  contents_key: string | undefined
  contents_key_old: string | undefined
  /** Names of variables that a file given by the admin API may take. */
  config_variables: readonly string[]
  log_level: LogLevel
  discover: boolean | undefined
}

/** Every variable that the gateway itself reads, for the manual's reference; each kind lists the variables of its key. */
export const ENVIRONMENT_VARIABLES = {
  GATEHOUSE_CONFIG: { default: './gatehouse.yaml', meaning: 'Path of the configuration file.' },
  GATEHOUSE_ENV_FILE: {
    default: 'none',
    meaning: 'A file with lines NAME=value, which win over the process.',
  },
  GATEHOUSE_URL: {
    default: 'the store',
    meaning: 'The gateway on which commands work, with `GATEHOUSE_ADMIN_TOKEN`.',
  },
  GATEHOUSE_HOST: { default: '127.0.0.1', meaning: 'As `server.host`.' },
  GATEHOUSE_PORT: { default: '8787', meaning: 'As `server.port`.' },
  GATEHOUSE_DATA_DIR: {
    default: 'data_dir of the file, then ./data',
    meaning: 'As `data_dir`.',
  },
  GATEHOUSE_DATABASE_URL: {
    default: 'the SQLite file in the data directory',
    meaning: 'A PostgreSQL database as the store, such as `postgres://user:password@host:5432/name`.',
  },
  GATEHOUSE_BOOTSTRAP_TOKEN: {
    default: 'a random one, printed once',
    meaning: 'Secret of the first token: 20 to 512 visible characters.',
  },
  GATEHOUSE_ADMIN_TOKEN: {
    default: 'none',
    meaning: 'An admin token of an owner: 20 to 512 visible characters.',
  },
  GATEHOUSE_CONTENTS_KEY: {
    default: 'none',
    meaning: 'Encrypts recorded contents, and tokens of people at MCP servers: 32 random bytes in base64.',
  },
  GATEHOUSE_CONTENTS_KEY_OLD: {
    default: 'none',
    meaning: 'The contents key before the last rotation.',
  },
  GATEHOUSE_CONFIG_VARIABLES: {
    default: 'none',
    meaning: 'As `admin.config_variables`, with commas between.',
  },
  GATEHOUSE_LOG: { default: 'info', meaning: 'Log level: `debug`, `info`, `warn`, `error` or `silent`.' },
  GATEHOUSE_DISCOVER: {
    default: 'on without a configuration file, else off',
    meaning: '`on` or `off`: as `discover`.',
  },
} as const satisfies Record<string, { default: string; meaning: string }>
type Variable = Exclude<keyof typeof ENVIRONMENT_VARIABLES, 'GATEHOUSE_ENV_FILE' | 'GATEHOUSE_URL'>

type EnvironmentParts = { environment: Environment; flags?: Flags | undefined; cwd: string }

/** These tokens protect the whole gateway: guessable values are rejected, and so are values that no header can carry. */
const GIVEN_TOKEN = /^[\x21-\x7e]{20,512}$/

/** Throws ConfigError with every problem. An empty variable counts as not set. */
export function readEnvironment(parts: EnvironmentParts): EnvironmentSettings {
  const { settings, problems } = inspectEnvironment(parts)
  if (problems.length > 0) throw new ConfigError(problems)
  return settings
}

export function inspectEnvironment({ environment, flags = {}, cwd }: EnvironmentParts): {
  settings: EnvironmentSettings
  problems: ConfigProblem[]
} {
  const problems: ConfigProblem[] = []
  const report = (given: Given, message: string) => {
    problems.push(unplaced(given.from, message, given.name))
    return undefined
  }
  const given = (variable: Variable, flag?: keyof Flags): Given | undefined => {
    const typed = flag === undefined ? undefined : flags[flag]
    if (flag !== undefined && typed !== undefined) {
      return { from: COMMAND_LINE, name: `--${flag.replaceAll('_', '-')}`, text: typed }
    }
    const text = environment[variable]
    return text === undefined || text === '' ? undefined : { from: ENVIRONMENT, name: variable, text }
  }
  const pick = <T>(found: Given | undefined, read: (found: Given) => T | undefined): T | undefined =>
    found === undefined ? undefined : read(found)

  const port = pick(given('GATEHOUSE_PORT', 'port'), (found) =>
    /^\d{1,5}$/.test(found.text) && Number(found.text) <= 65_535
      ? Number(found.text)
      : report(found, `found ${JSON.stringify(found.text)}, must be an integer from 0 to 65535`),
  )
  const host = pick(given('GATEHOUSE_HOST', 'host'), (found) =>
    isHost(found.text) ? found.text : report(found, `found ${JSON.stringify(found.text)}, must be ${HOST_DESCRIPTION}`),
  )
  const log_level = pick(given('GATEHOUSE_LOG'), (found) => {
    const level = LOG_LEVELS.find((name) => name === found.text.toLowerCase())
    return level ?? report(found, `found ${JSON.stringify(found.text)}, must be one of ${LOG_LEVELS.join(', ')}`)
  })
  const discover = pick(given('GATEHOUSE_DISCOVER'), (found) => {
    const word = found.text.toLowerCase()
    if (word === 'on' || word === 'off') return word === 'on'
    return report(found, `found ${JSON.stringify(found.text)}, must be on or off`)
  })
  const secret = (found: Given) => {
    // The value is a secret, so the message contains only its length.
    if (GIVEN_TOKEN.test(found.text)) return found.text
    const requirement = '20 to 512 visible ASCII characters without spaces'
    return report(found, `found ${found.text.length} characters, must be ${requirement}`)
  }
  const bootstrap_token = pick(given('GATEHOUSE_BOOTSTRAP_TOKEN'), secret)
  const owner = given('GATEHOUSE_ADMIN_TOKEN')
  const admin_token = pick(owner, secret)
  if (owner && admin_token !== undefined && admin_token === bootstrap_token) {
    report(owner, 'is the value of GATEHOUSE_BOOTSTRAP_TOKEN too; an API token is no admin token')
  }
  const sealing = (found: Given) =>
    sealingKey(found.text)
      ? found.text
      : report(found, `found ${found.text.length} characters, must be ${SEALING_KEY_FORMAT}`)
  const contents_key = pick(given('GATEHOUSE_CONTENTS_KEY'), sealing)
  const contents_key_old = pick(given('GATEHOUSE_CONTENTS_KEY_OLD'), sealing)
  const config_variables = pick(given('GATEHOUSE_CONFIG_VARIABLES'), (found) => {
    const names = found.text.split(',').map((name) => name.trim())
    if (names.every((name) => /^(?!GATEHOUSE_)[A-Za-z_][A-Za-z0-9_]*$/.test(name))) return names
    return report(found, 'must be names of variables with commas between, none of them beginning with GATEHOUSE_')
  })
  const database = pick(given('GATEHOUSE_DATABASE_URL'), (found) =>
    // The value may contain a password, so the message does not repeat it.
    /^postgres(ql)?:\/\/./.test(found.text)
      ? found.text
      : report(found, 'must be an address such as postgres://user:password@host:5432/name'),
  )
  const directory = given('GATEHOUSE_DATA_DIR', 'data_dir')
  if (directory?.text === '') report(directory, 'is empty, must be the path of a directory')
  const config = given('GATEHOUSE_CONFIG', 'config')
  if (config?.text === '') report(config, 'is empty, must be the path of a file')
  return {
    settings: {
      config: config?.text,
      host,
      port,
      data_dir: directory && resolve(cwd, directory.text),
      database_url: database,
      bootstrap_token,
      admin_token,
      contents_key,
      contents_key_old,
      config_variables: config_variables ?? [],
      log_level: log_level ?? 'info',
      discover,
    },
    problems,
  }
}

type Given = { from: string; name: string; text: string }

export const HOST_DESCRIPTION = 'an address or a host name, such as 127.0.0.1 or ::'

/** An IPv4 or IPv6 address or a name; no scheme, port or path. */
export function isHost(text: string): boolean {
  const isName = /^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?$/.test(text)
  const isVersion6 = /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?$/.test(text)
  return isName || isVersion6
}
