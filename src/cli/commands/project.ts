/** `gatehouse project`: creates, changes, lists and deletes projects, whether or not a gateway is running. */
import { systemClock, unixSeconds } from '../../kit/clock.ts'
import { LOG_CONTENTS, type LogContents, type Project } from '../../spec/token.ts'
import {
  ACCOUNT_FLAGS,
  ACCOUNT_FLAGS_HELP,
  assertNamesChange,
  changedSettings,
  readAccountFlags,
} from '../account-flags.ts'
import { accountStatus, accountText } from '../account-text.ts'
import { commandOf, OPTIONS_HELP, type Work, warnOfPatterns } from '../accounts.ts'
import { UsageError } from '../arguments.ts'
import { headedTable, table, timeText } from '../table.ts'
import { bold } from '../terminal.ts'

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
${OPTIONS_HELP}

Examples:
  gatehouse project create mobile --limit requests_per_minute=600 --budget 50/month
  gatehouse project update mobile --models 'acme/*' --limit tokens_per_day=2000000 --end-user-limit requests_per_day=50
  gatehouse token create --name app --project mobile
`

const WHICH = 'a project: its id or its name, as gatehouse project list shows them'
const QUIET = { quiet: 'switch' } as const

const OWN_FLAGS = { ...ACCOUNT_FLAGS, 'log-contents': 'text', ...QUIET } as const
const UPDATE_FLAGS = { name: 'text', ...OWN_FLAGS } as const

export const run = commandOf('project', HELP, {
  create: { flags: OWN_FLAGS, positionals: ['a name, as in mobile'], creates: true, run: create },
  update: { flags: UPDATE_FLAGS, positionals: [WHICH], run: update },
  list: { run: list },
  show: { positionals: [WHICH], run: show },
  disable: { flags: QUIET, positionals: [WHICH], run: (work) => setDisabled(work, true) },
  enable: { flags: QUIET, positionals: [WHICH], run: (work) => setDisabled(work, false) },
  delete: { flags: QUIET, positionals: [WHICH], run: remove },
})

const referenceOf = ({ given }: Work): string => given.positionals[0] ?? ''

async function create(work: Work) {
  const change = readAccountFlags(work.given, 'project create')
  const warnings = await warnOfPatterns(change.models, work)
  const project = await work.projects.create(
    { name: referenceOf(work), ...changedSettings(change), ...logContentsOf(work, 'project create') },
    work.by,
  )
  return report(project, 'created', warnings)
}

async function update(work: Work) {
  assertNamesChange(work.given, UPDATE_FLAGS, 'project update')
  const change = readAccountFlags(work.given, 'project update')
  const warnings = await warnOfPatterns(change.models, work)
  const name = work.given.text('name')
  const own = { ...(name !== undefined && { name }), ...logContentsOf(work, 'project update') }
  const changed = (present: Project) => ({ ...changedSettings(change, present), ...own })
  const project = await work.projects.update(referenceOf(work), changed, work.by)
  return report(project, 'updated', warnings)
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

async function setDisabled(work: Work, disabled: boolean) {
  const project = await work.projects.update(referenceOf(work), { disabled }, work.by)
  return report(project, disabled ? 'disabled; its tokens are refused' : 'enabled')
}

async function remove(work: Work) {
  const project = await work.projects.delete(referenceOf(work), work.by)
  const refused = (await work.tokens.list({ project_id: project.project_id })).filter(({ disabled }) => !disabled)
  return report(project, `deleted; ${tokenCount(refused.length)} refused`)
}

const tokenCount = (count: number): string =>
  count === 0 ? 'it had no tokens that would be' : count === 1 ? 'its token is' : `its ${count} tokens are`

const report = (project: Project, done: string, warnings: readonly string[] = []) => ({
  data: { project, ...(warnings.length > 0 ? { warnings } : {}) },
  text: () => `Project ${project.project_id} (${project.name}) is ${done}.\n`,
  quiet: `${project.project_id}\n`,
})

async function list({ projects, tokens, terminal }: Work) {
  const now = unixSeconds(systemClock)
  const counts = new Map<string | null, number>()
  for (const { project_id, disabled } of await tokens.list())
    if (!disabled) counts.set(project_id, (counts.get(project_id) ?? 0) + 1)
  const rows = (await projects.list()).map((project) => ({
    ...project,
    status: statusOf(project, now),
    tokens: counts.get(project.project_id) ?? 0,
  }))
  const text = () => {
    if (rows.length === 0) return 'There are no projects. Make one with: gatehouse project create <name>\n'
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
    return headedTable(head, body, terminal)
  }
  return { data: { projects: rows }, text }
}

const statusOf = (project: Project, now: number): string => accountStatus(project, { now, off: 'disabled' })

async function show(work: Work) {
  const { projects, tokens, terminal } = work
  const project = await projects.choose(referenceOf(work))
  const owned = await tokens.list({ project_id: project.project_id })
  const now = unixSeconds(systemClock)
  const status = statusOf(project, now)
  const text = () => {
    const head = bold(terminal, `${project.name} (${project.project_id})`)
    const more = Object.entries({ status, contents: project.log_contents ?? '' })
    const rows = owned.map(({ token_id, name, ...token }) => [
      `  ${token_id}`,
      name,
      accountStatus(token, { now, off: 'revoked' }),
    ])
    const list = rows.length === 0 ? 'It has no tokens.\n' : `Tokens:\n${table(rows)}`
    return `${head}\n${accountText(project, more)}${list}`
  }
  return { data: { project: { ...project, status }, tokens: owned }, text }
}
