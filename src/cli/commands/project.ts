/** `gatehouse project`: creates, changes, lists and deletes projects, whether or not a gateway is running. */
import { systemClock, unixSeconds } from '../../kit/clock.ts'
import { LOG_CONTENTS, type LogContents, type Project } from '../../spec/token.ts'
import { ACCOUNT_FLAGS, ACCOUNT_FLAGS_HELP, changedSettings, readAccountFlags } from '../account-flags.ts'
import { accountStatus, accountText } from '../account-text.ts'
import { type Action, runAction, STORE_OPTIONS_HELP, type Work, warnOfPatterns } from '../accounts.ts'
import { API_OPTIONS_HELP } from '../admin-api.ts'
import { UsageError } from '../arguments.ts'
import { headedTable, table, timeText } from '../table.ts'
import { bold, json, type Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse project <create | update | list | show | disable | enable | delete> [options]

What a project may not do, none of its tokens may; its limits and budgets count for all of them together. Works on the
running gateway that --url or GATEHOUSE_URL names, else on the store, whose changes a running gateway applies within a
second.

Commands:
  create <name>          create a project
  update <project>       change what is named; <project> is its id or its name
      --name <name>          another name (update only)
${ACCOUNT_FLAGS_HELP}
      --log-contents <how>   record prompts and responses: on, off, header (each request says), or default (as the
                             configuration says)
  list                   show the projects
  show <project>         show what is set for a project, and its tokens
  disable <project>      refuse its tokens
  enable <project>       accept them again
  delete <project>       refuse its tokens for ever; what it has used keeps its name

Options:
  --quiet                 print only the id
${API_OPTIONS_HELP}
${STORE_OPTIONS_HELP}

Examples:
  gatehouse project create mobile --limit requests_per_minute=600 --budget 50/month
  gatehouse project update mobile --models 'acme/*' --limit tokens_per_day=2000000 --end-user-limit requests_per_day=50
  gatehouse token create --name app --project mobile
`

const WHICH = 'a project: its id or its name, as gatehouse project list shows them'
const QUIET = { quiet: 'switch' } as const

const OWN_FLAGS = { ...ACCOUNT_FLAGS, 'log-contents': 'text', ...QUIET } as const

const ACTIONS: Record<string, Action> = {
  create: { flags: OWN_FLAGS, positionals: ['a name, as in mobile'], creates: true, run: create },
  update: { flags: { name: 'text', ...OWN_FLAGS }, positionals: [WHICH], run: update },
  list: { flags: {}, positionals: [], run: list },
  show: { flags: {}, positionals: [WHICH], run: show },
  disable: { flags: QUIET, positionals: [WHICH], run: (work) => setDisabled(work, true) },
  enable: { flags: QUIET, positionals: [WHICH], run: (work) => setDisabled(work, false) },
  delete: { flags: QUIET, positionals: [WHICH], run: remove },
}

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  runAction({ command: 'project', help: HELP, actions: ACTIONS }, args, terminal)

const referenceOf = ({ given }: Work): string => given.positionals[0] ?? ''

async function create(work: Work): Promise<number> {
  const change = readAccountFlags(work.given, 'project create')
  const warnings = await warnOfPatterns(change.models, work)
  const project = await work.projects.create(
    { name: referenceOf(work), ...changedSettings(change), ...logContentsOf(work, 'project create') },
    work.by,
  )
  return report(work, { project, done: 'created', warnings })
}

async function update(work: Work): Promise<number> {
  const change = readAccountFlags(work.given, 'project update')
  const warnings = await warnOfPatterns(change.models, work)
  const name = work.given.text('name')
  const own = { ...(name !== undefined && { name }), ...logContentsOf(work, 'project update') }
  const changed = (present: Project) => ({ ...changedSettings(change, present), ...own })
  const project = await work.projects.update(referenceOf(work), changed, work.by)
  return report(work, { project, done: 'updated', warnings })
}

function logContentsOf({ given }: Work, command: string): { log_contents?: LogContents | null } {
  const text = given.text('log-contents')
  if (text === undefined) return {}
  if (text === 'default') return { log_contents: null }
  const log_contents = LOG_CONTENTS.find((one) => one === text)
  if (log_contents) return { log_contents }
  const found = JSON.stringify(text)
  throw new UsageError(command, `--log-contents: found ${found}, must be ${LOG_CONTENTS.join(', ')} or default`)
}

async function setDisabled(work: Work, disabled: boolean): Promise<number> {
  const project = await work.projects.update(referenceOf(work), { disabled }, work.by)
  return report(work, { project, done: disabled ? 'disabled; its tokens are refused' : 'enabled' })
}

async function remove(work: Work): Promise<number> {
  const project = await work.projects.delete(referenceOf(work), work.by)
  const refused = (await work.tokens.list({ project_id: project.project_id })).filter(({ disabled }) => !disabled)
  return report(work, { project, done: `deleted; ${tokenCount(refused.length)} refused` })
}

const tokenCount = (count: number): string =>
  count === 0 ? 'it had no tokens that would be' : count === 1 ? 'its token is' : `its ${count} tokens are`

type Reported = { project: Project; done: string; warnings?: readonly string[] }

function report({ given, terminal }: Work, { project, done, warnings = [] }: Reported): number {
  const { project_id, name } = project
  if (given.has('json')) terminal.out(json({ project, ...(warnings.length > 0 ? { warnings } : {}) }))
  else if (given.has('quiet')) terminal.out(`${project_id}\n`)
  else terminal.out(`Project ${project_id} (${name}) is ${done}.\n`)
  return 0
}

async function list({ given, projects, tokens, terminal }: Work): Promise<number> {
  const now = unixSeconds(systemClock)
  const counts = new Map<string | null, number>()
  for (const { project_id, disabled } of await tokens.list())
    if (!disabled) counts.set(project_id, (counts.get(project_id) ?? 0) + 1)
  const rows = (await projects.list()).map((project) => ({
    ...project,
    status: statusOf(project, now),
    tokens: counts.get(project.project_id) ?? 0,
  }))
  if (given.has('json')) terminal.out(json({ projects: rows }))
  else if (rows.length === 0) terminal.out('There are no projects. Make one with: gatehouse project create <name>\n')
  else {
    const head = ['ID', 'NAME', 'STATUS', 'TOKENS', 'MODELS', 'FAMILIES', 'CREATED', 'EXPIRES']
    const body = rows.map((row) => [
      row.project_id,
      row.name,
      row.status,
      String(row.tokens),
      row.models.join(','),
      row.families?.join(',') ?? 'all',
      timeText(row.created_at),
      timeText(row.expires_at),
    ])
    terminal.out(headedTable(head, body, terminal))
  }
  return 0
}

const statusOf = (project: Project, now: number): string => accountStatus(project, { now, off: 'disabled' })

async function show(work: Work): Promise<number> {
  const { given, projects, tokens, terminal } = work
  const project = await projects.choose(referenceOf(work))
  const owned = await tokens.list({ project_id: project.project_id })
  const now = unixSeconds(systemClock)
  const status = statusOf(project, now)
  if (given.has('json')) {
    terminal.out(json({ project: { ...project, status }, tokens: owned }))
    return 0
  }
  terminal.out(`${bold(terminal, `${project.name} (${project.project_id})`)}\n`)
  terminal.out(
    accountText(project, [
      ['status', status],
      ['contents', project.log_contents ?? ''],
    ]),
  )
  const rows = owned.map((token) => [`  ${token.token_id}`, token.name, accountStatus(token, { now, off: 'revoked' })])
  terminal.out(rows.length === 0 ? 'It has no tokens.\n' : `Tokens:\n${table(rows)}`)
  return 0
}
