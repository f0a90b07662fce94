/** Projects and API tokens of the configuration file: makes those of the store equal to them. */
import { placeName } from '../config/check/problem.ts'
import type { Config } from '../config/config.ts'
import type { DeclaredProject, DeclaredToken } from '../config/schema/declared-schema.ts'
import type { Log } from '../kit/log.ts'
import { sha256 } from '../kit/secret.ts'
import { ACCOUNT_SETTING_NAMES, UNSET_SETTINGS } from '../spec/account-settings.ts'
import { BY_GATEWAY } from '../spec/audit.ts'
import { GatewayError } from '../spec/error.ts'
import type { Projects } from './projects.ts'
import { type AccountSettings, readSettings } from './settings.ts'
import type { Tokens } from './tokens.ts'

type Declarations = Pick<Config, 'projects' | 'api_tokens'>

type DeclaredParts = {
  projects: Pick<Projects, 'list' | 'declare' | 'undeclare'>
  tokens: Pick<Tokens, 'list' | 'declare' | 'undeclare'>
  log: Log
}

/** What is not written is not limited: a setting that leaves the file is undone. */
const settingsOf = (given: DeclaredProject | DeclaredToken): Omit<AccountSettings, 'name'> =>
  Object.fromEntries(ACCOUNT_SETTING_NAMES.map((name) => [name, given[name] ?? UNSET_SETTINGS[name]])) as Omit<
    AccountSettings,
    'name'
  >

/** Throws invalid_value, naming the place in the file; nothing is changed. */
export function checkDeclared(declarations: Declarations): void {
  const [problem] = declaredProblems(declarations)
  if (problem !== undefined) throw new GatewayError('invalid_value', problem)
}

/** What is wrong with each project and token, beyond the schema of the configuration. */
export function declaredProblems({ projects, api_tokens }: Declarations): string[] {
  const problems: string[] = []
  for (const [section, declared] of Object.entries({ projects, api_tokens })) {
    for (const [name, given] of Object.entries(declared)) {
      const place = placeName([section, name])
      try {
        // An end that has passed is no mistake here: the file stays as it is.
        const read = readSettings({ ...settingsOf(given), name, expires_at: null }, 0)
        // The account would have another name than the file, and be taken for one that has left it.
        if (read.name !== name) problems.push(`${place}: the name must not begin or end with white space.`)
      } catch (thrown) {
        if (!(thrown instanceof GatewayError)) throw thrown
        problems.push(`${place}.${thrown.message}`)
      }
    }
  }
  return problems
}

/**
 * Creates what is missing, changes what differs, revokes declared tokens that are not in the file any more. Others of the same name
 * are adopted, with their ids and their usage. Writes nothing where nothing differs, so that gateways with the same file may do it at once.
 */
export async function applyDeclared(declared: Declarations, { projects, tokens, log }: DeclaredParts): Promise<void> {
  checkDeclared(declared)
  const ids = new Map<string, string>()
  for (const [name, { disabled = false, log_contents = null, ...given }] of Object.entries(declared.projects)) {
    const { project_id, isAdopted } = await projects.declare(
      { name, disabled, log_contents, ...settingsOf(given) },
      BY_GATEWAY,
    )
    ids.set(name, project_id)
    if (isAdopted) log.info('a project is declared in the file from now on', { project: name, project_id })
  }
  for (const project of await projects.list()) {
    if (project.declared && !Object.hasOwn(declared.projects, project.name)) {
      await projects.undeclare(project.project_id, BY_GATEWAY)
    }
  }
  const kept = new Set<string>()
  for (const [name, { secret, project, ...given }] of Object.entries(declared.api_tokens)) {
    const project_id = project === undefined ? null : (ids.get(project) ?? null)
    const order = { name, project_id, ...settingsOf({ ...given, secret }) }
    const { token_id, isAdopted } = await tokens.declare(order, { secret, hash: sha256(secret) }, BY_GATEWAY)
    kept.add(token_id)
    if (isAdopted) log.info('a token is declared in the file from now on', { token: name, token_id })
  }
  for (const token of await tokens.list()) {
    if (token.declared && !token.disabled && !kept.has(token.token_id)) {
      await tokens.undeclare(token.token_id, BY_GATEWAY)
      log.warn('a token was revoked: it is not in the file any more', { token: token.name, token_id: token.token_id })
    }
  }
}

/** At the start: the first token, where neither the store nor the file has one, or where the environment gives it. */
export async function startAccounts(
  config: Config,
  { tokens, declare }: { tokens: Pick<Tokens, 'issueFirst'>; declare(config: Config): Promise<void> },
): ReturnType<Tokens['issueFirst']> {
  const { bootstrap_token } = config
  const given = bootstrap_token === undefined ? undefined : await tokens.issueFirst({ secret: bootstrap_token })
  await declare(config)
  return bootstrap_token === undefined ? tokens.issueFirst() : given
}
