/** `gatehouse token`: creates, lists, revokes and rotates tokens, whether or not a gateway is running. */
import { chooseToken } from '../../accounts/choose.ts'
import { webhookMasterSecret, webhookSecret } from '../../families/tasks/webhook-delivery.ts'
import { systemClock, unixSeconds } from '../../kit/clock.ts'
import type { Token } from '../../spec/token.ts'
import {
  ACCOUNT_FLAGS,
  ACCOUNT_FLAGS_HELP,
  assertNamesChange,
  changedSettings,
  readAccountFlags,
} from '../account-flags.ts'
import { accountStatus, accountText, rightsSentence } from '../account-text.ts'
import { commandOf, OPTIONS_HELP, type Work, warnOfPatterns } from '../accounts.ts'
import { UsageError } from '../arguments.ts'
import { readDuration } from '../expiry.ts'
import { secretOutcome } from '../outcome.ts'
import { headedTable, timeText } from '../table.ts'
import { bold, type Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse token <create | update | list | show | revoke | rotate | webhook-secret> [options]

Works on the running gateway that --url or GATEHOUSE_URL names, else on the store, whose changes a running gateway
applies within a second.

Commands:
  create --name <name>   create a token; its secret is printed once, alone on standard output
  update <token>         change what is named; <token> is its id, its name, or the start of its id
      --name <name>          the name
      --project <project>    the project that owns it, by id or name; none: no project
${ACCOUNT_FLAGS_HELP}
  list                   show the tokens
      --project <project>    only those of a project
  show <token>           show what is set for a token
  revoke <token>         reject the token from now on
  rotate <token>         give the token a new secret, printed once
      --overlap <time>       the old one stays valid for this time, such as 24h or 30m; at most 90d
  webhook-secret <token> print the secret that signs the webhooks of the token's tasks

Options:
  --quiet                 print only the secret, or nothing
${OPTIONS_HELP}

Examples:
  gatehouse token create --name laptop
  gatehouse token create --name ci --models 'sandbox/*,acme/small' --families chatcompat --expires 90d
  gatehouse token create --name app --project mobile --limit requests_per_minute=60 --budget 5/day
  gatehouse token update app --limit requests_per_minute=none --allow-address 203.0.113.0/24
  GATEHOUSE_TOKEN=$(gatehouse token create --name script --quiet)
  gatehouse token revoke tok_0123456789abcdef
`

const WHICH = 'a token: its id or its name, as gatehouse token list shows them'
const QUIET = { quiet: 'switch' } as const
const OWN_FLAGS = { name: 'text', project: 'text', ...ACCOUNT_FLAGS, ...QUIET } as const

export const run = commandOf('token', HELP, {
  create: { flags: OWN_FLAGS, creates: true, has_defaults: true, run: create },
  update: { flags: OWN_FLAGS, positionals: [WHICH], run: update },
  list: { flags: { project: 'text' }, run: list },
  show: { positionals: [WHICH], run: show },
  revoke: { flags: QUIET, positionals: [WHICH], run: revoke },
  rotate: { flags: { overlap: 'text', ...QUIET }, positionals: [WHICH], run: rotate },
  'webhook-secret': { flags: QUIET, positionals: [WHICH], run: printWebhookSecret },
})

async function create(work: Work) {
  const { given, tokens } = work
  const name = given.text('name')?.trim()
  if (!name) throw new UsageError('token create', 'needs a name, as in --name laptop')
  const change = readAccountFlags(given, 'token create')
  const project_id = await projectOf(work)
  const warnings = [
    ...(await warnOfPatterns(change.models, work)),
    ...(await warnOfName(name, project_id ?? null, work)),
  ]
  const order = { name, ...changedSettings(change), ...(project_id !== undefined && { project_id }) }
  const made = await tokens.issue(order, work.by)
  return issued(made, work, { done: 'created', warnings })
}

/** Names may repeat, as those of two tokens of one program; a command then needs the id. Not looked up for a program. */
async function warnOfName(name: string, project_id: string | null, { given, tokens, terminal }: Work) {
  if (given.has('json') || given.has('quiet')) return []
  const filter = project_id === null ? {} : { project_id }
  const same = (await tokens.list(filter)).find(
    (token) => token.name === name && token.project_id === project_id && !token.disabled,
  )
  if (!same) return []
  const warning = `the token ${same.token_id} has this name too: commands need the id of one`
  terminal.err(`warning: ${warning}\n`)
  return [warning]
}

/** null: none; undefined: not named. */
async function projectOf({ given, projects }: Work): Promise<string | null | undefined> {
  const which = given.text('project')
  if (which === undefined) return undefined
  return which === 'none' ? null : (await projects.choose(which)).project_id
}

async function update(work: Work) {
  const { given, tokens } = work
  assertNamesChange(given, OWN_FLAGS, 'token update')
  const change = readAccountFlags(given, 'token update')
  const [project_id, name] = [await projectOf(work), given.text('name')]
  const warnings = await warnOfPatterns(change.models, work)
  const changed = (present: Token) => ({
    ...changedSettings(change, present),
    ...(name !== undefined && { name }),
    ...(project_id !== undefined && { project_id }),
  })
  const token = await tokens.update(given.positionals[0] ?? '', changed, work.by)
  const text = () => `Token ${token.token_id} (${token.name}) is updated.\n${textOf(token)}`
  return { data: { token, ...(warnings.length > 0 ? { warnings } : {}) }, text, quiet: '' }
}

async function show({ given, tokens, terminal }: Work) {
  const token = await tokens.choose(given.positionals[0] ?? '')
  const status = statusOf(token, unixSeconds(systemClock))
  const text = () => `${bold(terminal, `${token.name} (${token.token_id})`)}\n${textOf(token)}`
  return { data: { token: { ...token, status } }, text }
}

const textOf = (token: Token): string =>
  accountText(token, [
    ['status', statusOf(token, unixSeconds(systemClock))],
    ['secret', `${token.prefix}...`],
    ['project', token.project_id ?? ''],
    ['last used', token.last_used_at === null ? '' : `${timeText(token.last_used_at)} UTC`],
  ])

async function rotate(work: Work) {
  const { given, tokens, by } = work
  const [which = ''] = given.positionals
  const text = given.text('overlap')
  const overlap_seconds = text === undefined ? 0 : readDuration(text)
  if (overlap_seconds === undefined) {
    throw new UsageError(
      'token rotate',
      `--overlap: found ${JSON.stringify(text)}, must be a time such as 24h, 30m or 7d`,
    )
  }
  const rotated = await tokens.rotate(which, { overlap_seconds, by })
  const end = rotated.token.previous_expires_at
  const old = end === null ? 'rejected' : `valid until ${timeText(end)} UTC`
  return issued(rotated, work, { done: `rotated; the old secret is ${old}` })
}

async function revoke({ given, tokens, by }: Work) {
  const [which = ''] = given.positionals
  const token = await tokens.revoke(which, by)
  return { data: { token }, text: () => `Token ${token.token_id} (${token.name}) is revoked.\n`, quiet: '' }
}

/** The same for every process on this store, and not derivable from the token's secret. */
async function printWebhookSecret({ given, store, terminal }: Work) {
  if (!store)
    throw new Error(
      'The secret of webhooks is read from the store: run this where the store is, without --url and GATEHOUSE_URL.',
    )
  const { token_id, name } = chooseToken(await store.tokens.list(), given.positionals[0] ?? '')
  const secret = webhookSecret(await webhookMasterSecret(store.secrets), token_id)
  const note = `Callbacks of tasks of ${token_id} (${name}) are signed with this secret:\n`
  return secretOutcome({ token_id, secret }, secret, { note, terminal })
}

async function list({ given, tokens, projects, terminal }: Work) {
  const which = given.text('project')
  const filter = which === undefined ? {} : { project_id: (await projects.choose(which)).project_id }
  const all = await tokens.list(filter)
  const now = unixSeconds(systemClock)
  const rows = all.map((token) => ({ ...token, status: statusOf(token, now) }))
  const text = async () => {
    if (rows.length === 0) return 'There are no tokens. Make one with: gatehouse token create --name <name>\n'
    const names = new Map((await projects.list()).map(({ project_id, name }) => [project_id, name]))
    return asTable(rows, { terminal, names })
  }
  return { data: { tokens: rows }, text }
}

type Shown = { terminal: Terminal; names: Map<string, string> }

/** Without a column of projects where there are none. */
function asTable(rows: (Token & { status: string })[], { terminal, names }: Shown): string {
  const hasProjects = rows.some(({ project_id }) => project_id !== null)
  const project = hasProjects ? ['PROJECT'] : []
  const head = ['ID', 'NAME', 'SECRET', 'STATUS', ...project, 'MODELS', 'FAMILIES', 'CREATED', 'LAST USED', 'EXPIRES']
  const body = rows.map((token) => [
    token.token_id,
    token.name,
    `${token.prefix}...`,
    token.status,
    ...(hasProjects ? [token.project_id === null ? '-' : (names.get(token.project_id) ?? token.project_id)] : []),
    token.models.join(',') || 'none',
    token.families?.join(',') ?? 'all',
    timeText(token.created_at),
    timeText(token.last_used_at),
    timeText(token.expires_at),
  ])
  return headedTable(head, body, terminal)
}

const statusOf = (token: Token, now: number): string => accountStatus(token, { now, off: 'revoked' })

type Issued = { token: Token; secret: string }

function issued(
  { token, secret }: Issued,
  { terminal }: Work,
  { done, warnings = [] }: { done: string; warnings?: readonly string[] },
) {
  const end = token.expires_at === null ? 'never expires' : `expires ${timeText(token.expires_at)} UTC`
  const rights = `It may use ${rightsSentence(token)}; it ${end}.`
  const note = `Token ${token.token_id} (${token.name}) is ${done}. ${rights}\nIts secret, shown this once:\n`
  return secretOutcome({ token, secret, ...(warnings.length > 0 ? { warnings } : {}) }, secret, { note, terminal })
}
