/** `gatehouse token`: creates, lists, revokes and rotates tokens, whether or not a gateway is running. */

import { chooseToken } from '../accounts/choose.ts'
import { createTokens, type Tokens } from '../accounts/tokens.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { nearest } from '../config/nearest.ts'
import { patternProblem } from '../config/semantic-checks.ts'
import { systemClock, unixSeconds } from '../kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { ENDPOINT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'
import type { Token } from '../spec/token.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { webhookMasterSecret, webhookSecret } from '../tasks/webhook-delivery.ts'
import { type Arguments, type FlagTable, readArguments, UsageError, unknownCommand } from './arguments.ts'
import { readExpiry } from './expiry.ts'
import { terminalFormat } from './log-format.ts'
import { patternWarnings } from './pattern-warnings.ts'
import { locateStore, OTHER_DIRECTORIES, storeToRead } from './store-location.ts'
import { table, timeText } from './table.ts'
import { bold, json, type Terminal } from './terminal.ts'
import { knownVendors } from './vendors.ts'

const HELP = `Usage: gatehouse token <create | list | revoke | rotate | webhook-secret> [options]

Works on the store, whether or not a gateway is running; a running one applies changes within a second.

Commands:
  create --name <name>   create a token; its secret is printed once, alone on standard output
      --models <patterns>    model ids it may use, separated by commas; * matches any text (default: those of the
                             configuration, otherwise all); one that matches no model is warned of
      --families <names>     families it may use, separated by commas (default: all)
      --expires <when>       30d, 12h, 2026-12-31 (to the end of that day, UTC), or never
  list                   show the tokens; secrets are not stored and cannot be shown
  revoke <token>         reject the token from now on; <token> is its id, its name, or the start of its id
  rotate <token>         give the token a new secret, printed once; the old one is rejected from now on
  webhook-secret <token> print the secret that signs the webhooks of the token's tasks

Options:
  --quiet                 print only the secret
  --data-dir <directory>  the data directory (default: GATEHOUSE_DATA_DIR, then data_dir of the configuration file,
                          then ./data); not used with GATEHOUSE_DATABASE_URL
  --config <file>         the configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print the result as one line of JSON

Examples:
  gatehouse token create --name laptop
  gatehouse token create --name ci --models 'sandbox/*,acme/small' --families chatcompat --expires 90d
  GATEHOUSE_TOKEN=$(gatehouse token create --name script --quiet)
  gatehouse token revoke tok_0123456789abcdef
`

type Action = { flags: FlagTable; positionals: string[]; run(work: Work): Promise<number> }
type Work = { given: Arguments; store: Store; tokens: Tokens; config: Config | undefined; terminal: Terminal }

const WHICH = 'a token: its id or its name, as gatehouse token list shows them'

const ACTIONS: Record<string, Action> = {
  create: {
    flags: { name: 'text', models: 'text', families: 'text', expires: 'text', quiet: 'switch' },
    positionals: [],
    run: create,
  },
  list: { flags: {}, positionals: [], run: list },
  revoke: { flags: { quiet: 'switch' }, positionals: [WHICH], run: revoke },
  rotate: { flags: { quiet: 'switch' }, positionals: [WHICH], run: rotate },
  'webhook-secret': { flags: { quiet: 'switch' }, positionals: [WHICH], run: printWebhookSecret },
}

export async function run([name, ...args]: string[], terminal: Terminal): Promise<number> {
  if (name === '--help' || name === '-h') {
    terminal.out(HELP)
    return 0
  }
  const known = Object.keys(ACTIONS)
  if (name === undefined) throw new UsageError('token', `needs a command: ${known.join(', ')}`)
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (!action) throw new UsageError('token', unknownCommand(name, known))
  const { flags, positionals } = action
  const given = readArguments({
    command: `token ${name}`,
    args,
    flags: { ...flags, config: 'text', 'data-dir': 'text' },
    positionals,
  })
  if (given.has('help')) {
    terminal.out(HELP)
    return 0
  }
  return withTokens({ given, terminal, needsDefaults: name === 'create' }, (work) => action.run(work))
}

type Opening = { given: Arguments; terminal: Terminal; needsDefaults: boolean }

/** Only a new token needs the defaults of the configuration: a token can be revoked while the file is invalid. */
async function withTokens({ given, terminal, needsDefaults }: Opening, work: (work: Work) => Promise<number>) {
  const { environment, cwd, interactive, err } = terminal
  const [config_, data_dir] = [given.text('config'), given.text('data-dir')]
  const flags = {
    ...(config_ === undefined ? {} : { config: config_ }),
    ...(data_dir === undefined ? {} : { data_dir }),
  }
  const config = needsDefaults ? loadConfig({ environment, cwd, flags, vendors: knownVendors(environment) }) : undefined
  const clock = systemClock
  const log = createLog({ clock, level: 'error', pretty: interactive && terminalFormat(terminal), write: err })
  const store = await openStore({
    url: needsDefaults ? storeToWrite(given, terminal) : storeToRead(given, terminal),
  })
  try {
    const defaults = config?.tokens ?? { models: ['*'] }
    const tokens = createTokens({ store: store.tokens, projects: store.projects, clock, log, defaults })
    return await work({ given, terminal, config, store, tokens })
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

async function create({ given, tokens, terminal, config, store }: Work): Promise<number> {
  const name = given.text('name')?.trim()
  if (!name) throw new UsageError('token create', 'needs a name, as in --name laptop')
  const models = listOf(given.text('models'))
  for (const pattern of models ?? []) {
    const trouble = patternProblem(pattern)
    if (trouble) throw new UsageError('token create', `--models: ${trouble}`)
  }
  const warnings = config
    ? patternWarnings(models ?? [], { config, environment: terminal.environment, seen: await store.models.ids() })
    : []
  if (!given.has('json') && !given.has('quiet')) for (const text of warnings) terminal.err(`warning: ${text}\n`)
  const families = listOf(given.text('families'))?.map(readFamily)
  const expires_at = expiryOf(given.text('expires'))
  const made = await tokens.issue({
    name,
    ...(models === undefined ? {} : { models }),
    ...(families === undefined ? {} : { families }),
    ...(expires_at === undefined ? {} : { expires_at }),
  })
  return show({ ...made, given, terminal, done: 'created', warnings })
}

async function rotate({ given, tokens, terminal }: Work): Promise<number> {
  const [which = ''] = given.positionals
  return show({ ...(await tokens.rotate(which)), given, terminal, done: 'rotated; the old secret is rejected' })
}

async function revoke({ given, tokens, terminal }: Work): Promise<number> {
  const [which = ''] = given.positionals
  const token = await tokens.revoke(which)
  if (given.has('json')) terminal.out(json({ token }))
  else if (!given.has('quiet')) terminal.out(`Token ${token.token_id} (${token.name}) is revoked.\n`)
  return 0
}

/** The same for every process on this store, and not derivable from the token's secret. */
async function printWebhookSecret({ given, store, terminal }: Work): Promise<number> {
  const { token_id, name } = chooseToken(await store.tokens.list(), given.positionals[0] ?? '')
  const secret = webhookSecret(await webhookMasterSecret(store.secrets), token_id)
  if (given.has('json')) {
    terminal.out(json({ token_id, secret }))
    return 0
  }
  if (!given.has('quiet')) terminal.err(`Callbacks of tasks of ${token_id} (${name}) are signed with this secret:\n`)
  terminal.out(`${secret}\n`)
  return 0
}

async function list({ given, tokens, terminal }: Work): Promise<number> {
  const all = await tokens.list()
  const now = unixSeconds(systemClock)
  const rows = all.map((token) => ({ ...token, status: statusOf(token, now) }))
  if (given.has('json')) terminal.out(json({ tokens: rows }))
  else if (rows.length === 0) terminal.out('There are no tokens. Make one with: gatehouse token create --name <name>\n')
  else terminal.out(asTable(rows, terminal))
  return 0
}

function asTable(rows: (Token & { status: string })[], terminal: Terminal): string {
  const head = ['ID', 'NAME', 'SECRET', 'STATUS', 'MODELS', 'FAMILIES', 'CREATED', 'LAST USED', 'EXPIRES']
  const body = rows.map((token) => [
    token.token_id,
    token.name,
    `${token.prefix}...`,
    token.status,
    token.models.join(',') || 'none',
    token.families?.join(',') ?? 'all',
    timeText(token.created_at),
    timeText(token.last_used_at),
    timeText(token.expires_at),
  ])
  const [first = '', ...rest] = table([head, ...body]).split('\n')
  return [bold(terminal, first), ...rest].join('\n')
}

const statusOf = ({ disabled, expires_at }: Token, now: number): string =>
  disabled ? 'revoked' : expires_at !== null && expires_at <= now ? 'expired' : 'active'

type ShownToken = {
  token: Token
  secret: string
  given: Arguments
  terminal: Terminal
  done: string
  warnings?: readonly string[]
}

/** Only the secret goes to standard output, so that a script can read it; the explanation goes to standard error. */
function show({ token, secret, given, terminal, done, warnings = [] }: ShownToken): number {
  if (given.has('json')) {
    terminal.out(json({ token, secret, ...(warnings.length > 0 ? { warnings } : {}) }))
    return 0
  }
  const families = token.families === null ? '' : `, by ${token.families.join(', ')}`
  const end = token.expires_at === null ? 'never expires' : `expires ${timeText(token.expires_at)} UTC`
  if (!given.has('quiet')) {
    terminal.err(
      `Token ${token.token_id} (${token.name}) is ${done}. It may use ${token.models.join(', ')}${families}; `,
    )
    terminal.err(`it ${end}.\nIts secret, shown this once:\n`)
  }
  terminal.out(`${secret}\n`)
  return 0
}

const listOf = (text: string | undefined): string[] | undefined => text?.split(',').map((part) => part.trim())

function readFamily(name: string): EndpointFamily {
  const family = ENDPOINT_FAMILIES.find((known) => known === name)
  if (family) return family
  const suggestion = nearest(name, ENDPOINT_FAMILIES)
  const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`
  const allowed = ENDPOINT_FAMILIES.join(', ')
  throw new UsageError('token create', `--families: found ${JSON.stringify(name)}, must be one of ${allowed}${hint}`)
}

function expiryOf(text: string | undefined): number | null | undefined {
  const expires_at = text === undefined ? undefined : readExpiry(text, unixSeconds(systemClock))
  if (typeof expires_at === 'string') throw new UsageError('token create', `--expires: ${expires_at}`)
  return expires_at
}
