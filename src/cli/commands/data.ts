/** `gatehouse data`: what is held about one end user of a client, exported or erased. */
import { resolve } from 'node:path'
import { createAudit } from '../../admin/audit/audit.ts'
import { ConfigError, problemText } from '../../config/check/problem.ts'
import { readEnvironment } from '../../config/load/environment.ts'
import type { RequestSink } from '../../config/schema/request-log-schema.ts'
import { systemClock, unixSeconds } from '../../kit/clock.ts'
import { endUserName } from '../../kit/end-user-name.ts'
import { randomAlphanumerics, sha256 } from '../../kit/secret.ts'
import { contentsKeys, readContents } from '../../observe/requests/contents-log.ts'
import { viewRequests } from '../../observe/requests/request-view.ts'
import type { RequestPosition } from '../../store/requests/request-row.ts'
import type { EndUser, EndUserRest, EndUserRows } from '../../store/tokens/end-user-store.ts'
import { commandOf, STORE_OPTIONS_HELP, type StoreWork, storeAction } from '../accounts.ts'
import { UsageError } from '../arguments.ts'
import { configOf } from '../config-of.ts'
import { json } from '../terminal.ts'

const HELP = `Usage: gatehouse data <export | erase> --user <name> [options]

What the gateway holds about an end user. Works on the store, whether or not a gateway is running.

Commands:
  export             print each request of the request log as a line of JSON, with recorded contents, decrypted with
                     GATEHOUSE_CONTENTS_KEY
  erase              delete for ever: requests of the request log, stored responses, conversations, and ended tasks with
                     their files. Prints what is left, such as rows in sinks of the request log
      --yes                  do it; without, only count
      --pseudonymise         also write a random name into the ledger, which keeps its entries, and into budgets

Options:
  --user <name>           the end user, exactly as clients name it
  --project <project>     only of this project: its id or its name
${STORE_OPTIONS_HELP}

Examples:
  gatehouse data export --user user-42 > user-42.ndjson
  gatehouse data erase --user user-42 --yes --pseudonymise
`

const FLAGS = { user: 'text', project: 'text' } as const
const PAGE = 200
export const run = commandOf('data', HELP, {
  export: storeAction({ flags: FLAGS, run: exportData }),
  erase: storeAction({ flags: { ...FLAGS, yes: 'switch', pseudonymise: 'switch' }, run: erase }),
})

async function readUser({ given, projects }: StoreWork, action: string): Promise<EndUser> {
  const end_user = endUserName(given.text('user') ?? '')
  if (end_user === undefined) throw new UsageError(`data ${action}`, 'needs --user <name>')
  const project = given.text('project')
  return { end_user, project_id: project === undefined ? undefined : (await projects.choose(project)).project_id }
}

async function* requestsOf(work: StoreWork, user: EndUser) {
  const { end_user, project_id } = user
  const filter = { end_user, ...(project_id !== undefined && { project_id }) }
  let after: RequestPosition | undefined
  do {
    const { rows, next } = await work.store.requestLog.search({ filter, after, limit: PAGE })
    yield rows
    after = next
  } while (after)
}

async function exportData(work: StoreWork): Promise<number> {
  const { store, terminal } = work
  const user = await readUser(work, 'export')
  const { environment, cwd } = terminal
  const keys = contentsKeys(readEnvironment({ environment, cwd }))
  // Before anything is read.
  await record(work, user, { action: 'end_user.export' })
  for await (const rows of requestsOf(work, user)) {
    for (const view of await viewRequests(store.requestLog, rows)) {
      const row = { row_id: Number(view.id), request_id: view.request_id }
      const contents = await readContents(row, { store: store.requestContents, keys })
      terminal.out(json({ ...view, contents: contents ?? null }))
    }
  }
  return 0
}

const record = ({ store, by }: StoreWork, user: EndUser, done: { action: string; after?: object }) =>
  createAudit({ store: store.audit, clock: systemClock }).record({
    ...by,
    ...done,
    object_type: 'end_user',
    object_id: nameOf(user.end_user),
    project_id: user.project_id ?? null,
  })

async function erase(work: StoreWork) {
  const { given, store } = work
  const user = await readUser(work, 'erase')
  const { unfinished_tasks, ledger_entries, ...found } = await store.endUsers.count(user)
  const sinks = sinksOf(work)
  if (!given.has('yes')) {
    const head = `Found ${textOf(found)} of this end user. Nothing is erased without --yes.\n`
    return {
      data: { erased: false, ...found, unfinished_tasks, ledger_entries, ...sinks },
      text: () => head + restText({ unfinished_tasks, ledger_entries, sinks }),
    }
  }
  const erased = await eraseAll(work, user)
  const pseudonym = given.has('pseudonymise') ? `erased_${randomAlphanumerics(16)}` : undefined
  const now_ms = systemClock.now()
  const renamed = pseudonym === undefined ? 0 : await store.endUsers.pseudonymise(user, { pseudonym, now_ms })
  await record(work, user, { action: 'end_user.erase', after: { ...erased, pseudonymised: renamed } })
  const rest = { unfinished_tasks, ledger_entries: pseudonym === undefined ? ledger_entries : 0 }
  const named = pseudonym === undefined ? '' : `${count(renamed, 'ledger entry')} now name ${pseudonym}.\n`
  return {
    data: { erased: true, ...erased, pseudonymised: renamed, pseudonym, ...rest, ...sinks },
    text: () => `Erased ${textOf(erased)}.\n${named}${restText({ ...rest, sinks })}`,
  }
}

async function eraseAll({ store }: StoreWork, user: EndUser): Promise<EndUserRows> {
  const erased: EndUserRows = { requests: 0, contents: 0, responses: 0, conversations: 0, tasks: 0 }
  const kinds = Object.keys(erased) as (keyof EndUserRows)[]
  for (;;) {
    const batch = await store.endUsers.erase(user, unixSeconds(systemClock))
    if (kinds.every((kind) => batch[kind] === 0)) return erased
    for (const kind of kinds) erased[kind] += batch[kind]
  }
}

const textOf = ({ requests, contents, responses, conversations, tasks }: EndUserRows): string =>
  `${count(requests, 'request')}, ${count(contents, 'recorded content')}, ${count(responses, 'response')}, ${count(conversations, 'conversation')} and ${count(tasks, 'task')}`

const count = (number: number, noun: string): string => {
  const plural = noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : `${noun}s`
  return `${number} ${number === 1 ? noun : plural}`
}

type Sinks = { sinks: string[]; configuration_error?: string }

/** What an erasure leaves, each with what to do about it. */
function restText({ unfinished_tasks, ledger_entries, sinks }: EndUserRest & { sinks: Sinks }): string {
  const lines: string[] = []
  if (unfinished_tasks > 0)
    lines.push(`${count(unfinished_tasks, 'task')} that did not end: cancel with \`gatehouse task cancel\`, and repeat`)
  if (ledger_entries > 0) lines.push(`the name in ${count(ledger_entries, 'ledger entry')}: use --pseudonymise`)
  for (const sink of sinks.sinks) lines.push(`rows in a sink of the request log: ${sink}`)
  if (sinks.configuration_error !== undefined)
    lines.push(`rows in sinks of the request log, which are not known: ${sinks.configuration_error}`)
  lines.push('uploaded files and batches, which have no end user: delete them as their token')
  lines.push('copies elsewhere: backups, exports, logs, traces and providers')
  return `Not erased:\n${lines.map((line) => `  ${line}\n`).join('')}`
}

/** Where rows of the request log go besides the store. An invalid configuration does not keep anything from being erased. */
function sinksOf({ given, terminal }: StoreWork): Sinks {
  try {
    const { request_log, data_dir } = configOf(given, terminal)
    return { sinks: request_log.sinks.map((sink) => sinkName(sink, data_dir)) }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { sinks: [], configuration_error: error.problems[0] ? problemText(error.problems[0]) : error.message }
  }
}

/** An address without what may hold a secret. */
function sinkName({ file, http, clickhouse }: RequestSink, data_dir: string): string {
  if (file) return `${resolve(data_dir, file.path)} and the files beside it`
  if (clickhouse) {
    const { url, database = 'default', table = 'gatehouse_requests' } = clickhouse
    return `${database}.${table} in ClickHouse at ${new URL(url).origin}`
  }
  const { origin, pathname } = new URL(http?.url ?? '')
  return `${origin}${pathname}`
}

/** The audit log is never changed, so it does not name whom it is about; who knows the name finds the rows. */
const nameOf = (end_user: string): string => `user_${sha256(end_user).slice(0, 16)}`
