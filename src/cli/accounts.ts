/** Shared by the commands on tokens and projects: their actions, the store, and the configuration. */
import { createProjects } from '../accounts/projects.ts'
import { createTokens } from '../accounts/tokens.ts'
import type { Config } from '../config/config.ts'
import { readEnvironment } from '../config/load/environment.ts'
import { createLocalAdmin } from '../gateway/local-admin.ts'
import { systemClock } from '../kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { contentsKeys } from '../observe/requests/contents-log.ts'
import type { AuditOrigin } from '../spec/audit.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { commandLineActor } from './actor.ts'
import { type AdminApi, API_FLAGS, API_OPTIONS_HELP, connectedApi, createAdminApi } from './admin-api.ts'
import { type Arguments, type FlagTable, STORE_FLAGS, STORE_FLAGS_HELP, UsageError } from './arguments.ts'
import { actionsOf } from './command.ts'
import { configOf } from './config-of.ts'
import { terminalFormat } from './log-format.ts'
import { type Outcome, print } from './outcome.ts'
import { patternWarnings } from './pattern-warnings.ts'
import { type AccountProjects, type AccountTokens, remoteProjects, remoteTokens } from './remote-accounts.ts'
import { storeToRead, storeToWrite } from './store-location.ts'
import type { Terminal } from './terminal.ts'

export type Work = {
  given: Arguments
  terminal: Terminal
  /** Of a running gateway, or of this process on the store. */
  api: AdminApi
  tokens: AccountTokens
  projects: AccountProjects
  /** Undefined: the command works on a running gateway. */
  store: Store | undefined
  /** Read where it is needed, and only on the store. */
  config: Config | undefined
  by: AuditOrigin
}
export type StoreWork = Work & { store: Store }

export type Action = {
  flags?: FlagTable
  positionals?: string[]
  /** A new record: it may need a new store. */
  creates?: true
  /** It has defaults from the configuration. */
  has_defaults?: true
  /** Absent: it works on a running gateway and on the store. */
  only_on?: 'gateway' | 'store'
  /** The exit code of an action that prints by itself. */
  run(work: Work): Promise<Outcome | number>
}

/** An action that works on the store, whether or not a gateway is named. */
export const storeAction = (
  action: Omit<Action, 'run'> & { run(work: StoreWork): ReturnType<Action['run']> },
): Action => ({
  ...action,
  only_on: 'store',
  run: (work) => action.run(work as StoreWork),
})

export const STORE_OPTIONS_HELP = `\
${STORE_FLAGS_HELP}
  --json                  print one line of JSON`

/** Of a command that works on a running gateway and on the store. */
export const OPTIONS_HELP = `${API_OPTIONS_HELP}\n${STORE_OPTIONS_HELP}`

/** A command whose actions work on a gateway or on the store. */
export function commandOf(command: string, help: string, actions: Record<string, Action>) {
  const isRemote = Object.values(actions).some(({ only_on }) => only_on !== 'store')
  const shapes = Object.entries(actions).map(([name, { flags, positionals = [], ...action }]) => {
    const run = (given: Arguments, terminal: Terminal) => runWork(`${command} ${name}`, action, { given, terminal })
    return [name, { flags: { ...flags, ...(isRemote && API_FLAGS), ...STORE_FLAGS }, positionals, run }] as const
  })
  return actionsOf(command, help, Object.fromEntries(shapes))
}

/** Runs it on the gateway that is named, else on the store. */
export async function runWork(
  command: string,
  action: Omit<Action, 'flags' | 'positionals'>,
  { given, terminal }: Pick<Work, 'given' | 'terminal'>,
): Promise<number> {
  const api = action.only_on === 'store' ? undefined : connectedApi(given, terminal)
  if (api) {
    const remote = { tokens: remoteTokens(api), projects: remoteProjects(api), store: undefined, config: undefined }
    return print(await action.run({ given, terminal, api, ...remote, by: commandLineActor() }), { given, terminal })
  }
  if (action.only_on !== 'gateway') return runOnStore(action, { given, terminal })
  const message = 'needs a running gateway: --url <address>, and its admin token in GATEHOUSE_ADMIN_TOKEN'
  throw new UsageError(command, message)
}

/** The configuration is read only where it is needed: a token can be revoked while the file is invalid. */
async function runOnStore(
  action: Pick<Action, 'creates' | 'has_defaults' | 'run'>,
  { given, terminal }: Pick<Work, 'given' | 'terminal'>,
): Promise<number> {
  const { environment, cwd, interactive, err } = terminal
  const needsConfig = action.has_defaults === true || given.text('models') !== undefined
  const config = needsConfig ? configOf(given, terminal) : undefined
  const clock = systemClock
  const by = commandLineActor()
  const log = createLog({ clock, level: 'error', pretty: interactive && terminalFormat(terminal), write: err })
  const store = await openStore(action.creates ? storeToWrite(given, terminal) : storeToRead(given, terminal))
  const keys = () => contentsKeys(readEnvironment({ environment, cwd }))
  const admin = createLocalAdmin({ store, config, keys, by, clock, log })
  const api = createAdminApi(admin.send, 'the store')
  try {
    const defaults = config?.tokens ?? { models: ['*'] }
    const projects = createProjects({ store: store.projects, clock })
    const tokens = createTokens({ store: store.tokens, projects: store.projects, clock, log, defaults })
    return await print(await action.run({ given, terminal, config, store, api, tokens, projects, by }), {
      given,
      terminal,
    })
  } finally {
    await admin.close()
    await store.close()
    log.flush()
  }
}

/** Of patterns that match no model; also printed, unless the output is for a program. */
export async function warnOfPatterns(models: string[] | undefined, work: Work): Promise<string[]> {
  const { config, terminal, store, given } = work
  if (!config || !models || !store) return []
  const seen = await store.models.ids()
  const warnings = patternWarnings(models, { config, environment: terminal.environment, seen })
  if (!given.has('json') && !given.has('quiet')) for (const text of warnings) terminal.err(`warning: ${text}\n`)
  return warnings
}
