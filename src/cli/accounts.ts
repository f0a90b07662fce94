/** What the commands on tokens and on projects have in common: their actions, the store, and the configuration. */
import { createProjects, type Projects } from '../accounts/projects.ts'
import { createTokens, type Tokens } from '../accounts/tokens.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { systemClock } from '../kit/clock.ts'
import { createLog } from '../kit/log.ts'
import type { AuditOrigin } from '../spec/audit.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { commandLineActor } from './actor.ts'
import { type AdminApi, API_FLAGS, connectedApi } from './admin-api.ts'
import { type Arguments, type FlagTable, readArguments, UsageError, unknownCommand } from './arguments.ts'
import { terminalFormat } from './log-format.ts'
import { patternWarnings } from './pattern-warnings.ts'
import { type AccountProjects, type AccountTokens, remoteProjects, remoteTokens } from './remote-accounts.ts'
import { locateStore, OTHER_DIRECTORIES, storeToRead } from './store-location.ts'
import type { Terminal } from './terminal.ts'
import { knownVendors } from './vendors.ts'

export type Work = {
  given: Arguments
  store: Store
  tokens: Tokens
  projects: Projects
  config: Config | undefined
  terminal: Terminal
  /** Who runs the command. */
  by: AuditOrigin
}

/** What works on a running gateway too. */
export type AccountWork = Omit<Work, 'store' | 'tokens' | 'projects'> & {
  /** Undefined: the command works on a running gateway. */
  store: Store | undefined
  tokens: AccountTokens
  projects: AccountProjects
}
export type AccountAction = Omit<Action, 'run'> & { run(work: AccountWork): Promise<number> }

/** What a command has on a running gateway. */
export type RemoteWork = Pick<AccountWork, 'given' | 'terminal' | 'tokens' | 'projects'> & { api: AdminApi }

export type Action = {
  flags: FlagTable
  positionals: string[]
  /** A new record: it may need a new store. */
  creates?: true
  /** It has defaults from the configuration. */
  has_defaults?: true
  run(work: Work): Promise<number>
  /** The same on a running gateway; absent: it works on the store only. */
  remotely?(work: RemoteWork): Promise<number>
}

type Command<A = Action> = { command: string; help: string; actions: Record<string, A> }

/** Of a command whose actions are the same on a running gateway and on the store. */
export function runAccountAction(
  { actions, ...command }: Command<AccountAction>,
  args: string[],
  terminal: Terminal,
): Promise<number> {
  const inBoth = ({ run, ...action }: AccountAction): Action => ({
    ...action,
    run,
    remotely: ({ api: _, ...work }) => run({ ...work, config: undefined, store: undefined, by: commandLineActor() }),
  })
  const both = Object.fromEntries(Object.entries(actions).map(([name, action]) => [name, inBoth(action)]))
  return runAction({ ...command, actions: both }, args, terminal)
}

export const STORE_OPTIONS_HELP = `\
  --data-dir <directory>  the data directory (default: GATEHOUSE_DATA_DIR, then data_dir of the configuration file,
                          then ./data); not used with GATEHOUSE_DATABASE_URL
  --config <file>         the configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print the result as one line of JSON`

export async function runAction(
  { command, help, actions }: Command,
  args: string[],
  terminal: Terminal,
): Promise<number> {
  const [name, ...rest] = args
  if (name === '--help' || name === '-h') {
    terminal.out(help)
    return 0
  }
  const known = Object.keys(actions)
  if (name === undefined) throw new UsageError(command, `needs a command: ${known.join(', ')}`)
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (!action) throw new UsageError(command, unknownCommand(name, known))
  const { flags, positionals } = action
  const hasRemote = Object.values(actions).some(({ remotely }) => remotely !== undefined)
  const all = { ...flags, ...(hasRemote && API_FLAGS), config: 'text', 'data-dir': 'text' } as const
  const given = readArguments({ command: `${command} ${name}`, args: rest, flags: all, positionals })
  if (given.has('help')) {
    terminal.out(help)
    return 0
  }
  return runOnGateway(`${command} ${name}`, action, given, terminal) ?? withAccounts(action, given, terminal)
}

/** Undefined: the command works on the store. */
function runOnGateway(command: string, { remotely, flags }: Action, given: Arguments, terminal: Terminal) {
  if (!remotely && !('url' in flags) && given.text('url') !== undefined) {
    throw new UsageError(command, 'works on the store, not on a running gateway: leave out --url')
  }
  const api = remotely && connectedApi(given, terminal)
  return api && remotely({ api, given, terminal, tokens: remoteTokens(api), projects: remoteProjects(api) })
}

/** The configuration is read only where it is needed: a token can be revoked while the file is invalid. */
async function withAccounts(action: Action, given: Arguments, terminal: Terminal): Promise<number> {
  const { environment, cwd, interactive, err } = terminal
  const [config_, data_dir] = [given.text('config'), given.text('data-dir')]
  const flags = {
    ...(config_ === undefined ? {} : { config: config_ }),
    ...(data_dir === undefined ? {} : { data_dir }),
  }
  const needsConfig = action.has_defaults === true || given.text('models') !== undefined
  const config = needsConfig ? loadConfig({ environment, cwd, flags, vendors: knownVendors(environment) }) : undefined
  const clock = systemClock
  const log = createLog({ clock, level: 'error', pretty: interactive && terminalFormat(terminal), write: err })
  const store = await openStore({ url: action.creates ? storeToWrite(given, terminal) : storeToRead(given, terminal) })
  try {
    const defaults = config?.tokens ?? { models: ['*'] }
    const projects = createProjects({ store: store.projects, clock })
    const tokens = createTokens({ store: store.tokens, projects: store.projects, clock, log, defaults })
    return await action.run({ given, terminal, config, store, tokens, projects, by: commandLineActor() })
  } finally {
    await store.close()
    log.flush()
  }
}

/**
 * A new store is created only in a directory that is named: in `./data` it would be a second one that no gateway reads.
 */
function storeToWrite(given: Arguments, terminal: Terminal): string {
  const { url, exists, is_named, name } = locateStore(given, terminal)
  if (exists || is_named) return url
  throw new Error(`There is no store in ${name}. Start the gateway there first. ${OTHER_DIRECTORIES}`)
}

/** Of patterns that match no model; also printed, unless the output is for a program. */
export async function warnOfPatterns(models: string[] | undefined, work: AccountWork): Promise<string[]> {
  const { config, terminal, store, given } = work
  if (!config || !models || !store) return []
  const seen = await store.models.ids()
  const warnings = patternWarnings(models, { config, environment: terminal.environment, seen })
  if (!given.has('json') && !given.has('quiet')) for (const text of warnings) terminal.err(`warning: ${text}\n`)
  return warnings
}
