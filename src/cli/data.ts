/** `gatehouse data`: what is held about one end user of a client, exported or erased. */
import { createAudit } from '../audit/audit.ts'
import { readEnvironment } from '../config/environment.ts'
import { systemClock } from '../kit/clock.ts'
import { endUserName } from '../kit/end-user-name.ts'
import { sha256 } from '../kit/secret.ts'
import { contentsKeys, readContents } from '../observe/contents-log.ts'
import { viewRequests } from '../observe/request-view.ts'
import type { RequestPosition } from '../store/request-row.ts'
import { type Action, runAction, STORE_OPTIONS_HELP, type Work } from './accounts.ts'
import { UsageError } from './arguments.ts'
import { json, type Terminal } from './terminal.ts'

const HELP = `Usage: gatehouse data <export | erase> --user <name> [options]

What the request log holds about an end user, as clients name them (user, safety_identifier, metadata.user_id or the
header x-gatehouse-user). Works on the store, whether or not a gateway is running.

Commands:
  export             print each request as a line of JSON, with its recorded prompt and response where there is one,
                     decrypted with GATEHOUSE_CONTENTS_KEY
  erase              delete these requests with their contents, feedback and tags, for ever. The ledger keeps its
                     entries, with the name of the end user, for as long as ledger.keep_days says
      --yes                  do it; without, only count

Options:
  --user <name>           the end user, exactly as clients name it
  --project <project>     only of this project: its id or its name
${STORE_OPTIONS_HELP}

Examples:
  gatehouse data export --user user-42 > user-42.ndjson
  gatehouse data erase --user user-42 --yes
`

const FLAGS = { user: 'text', project: 'text' } as const
const PAGE = 200
const ACTIONS: Record<string, Action> = {
  export: { flags: FLAGS, positionals: [], run: exportData },
  erase: { flags: { ...FLAGS, yes: 'switch' }, positionals: [], run: erase },
}

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  runAction({ command: 'data', help: HELP, actions: ACTIONS }, args, terminal)

async function readUser({ given, projects }: Work, action: string) {
  const end_user = endUserName(given.text('user') ?? '')
  if (end_user === undefined) throw new UsageError(`data ${action}`, 'needs --user <name>')
  const project = given.text('project')
  return { end_user, project_id: project === undefined ? undefined : (await projects.choose(project)).project_id }
}

async function* requestsOf(work: Work, user: { end_user: string; project_id: string | undefined }) {
  const { end_user, project_id } = user
  const filter = { end_user, ...(project_id !== undefined && { project_id }) }
  let after: RequestPosition | undefined
  do {
    const { rows, next } = await work.store.requestLog.search({ filter, after, limit: PAGE })
    yield rows
    after = next
  } while (after)
}

async function exportData(work: Work): Promise<number> {
  const { store, terminal, by } = work
  const user = await readUser(work, 'export')
  const { environment, cwd } = terminal
  const keys = contentsKeys(readEnvironment({ environment, cwd }))
  // Recorded before anything is read.
  await createAudit({ store: store.audit, clock: systemClock }).record({
    ...by,
    action: 'end_user.export',
    object_type: 'end_user',
    object_id: nameOf(user.end_user),
    project_id: user.project_id ?? null,
  })
  for await (const rows of requestsOf(work, user)) {
    for (const view of await viewRequests(store.requestLog, rows)) {
      const row = { row_id: Number(view.id), request_id: view.request_id }
      const contents = await readContents(row, { store: store.requestContents, keys })
      terminal.out(json({ ...view, contents: contents ?? null }))
    }
  }
  return 0
}

async function erase(work: Work): Promise<number> {
  const { given, store, terminal, by } = work
  const user = await readUser(work, 'erase')
  if (!given.has('yes')) {
    let requests = 0
    for await (const rows of requestsOf(work, user)) requests += rows.length
    if (given.has('json')) terminal.out(json({ erased: false, requests }))
    else terminal.out(`${requests} requests of this end user are recorded. Nothing is erased without --yes.\n`)
    return 0
  }
  const erased = { requests: 0, contents: 0 }
  for (;;) {
    const { requests, contents } = await store.requestLog.erase(user)
    if (requests + contents === 0) break
    erased.requests += requests
    erased.contents += contents
  }
  await createAudit({ store: store.audit, clock: systemClock }).record({
    ...by,
    action: 'end_user.erase',
    object_type: 'end_user',
    object_id: nameOf(user.end_user),
    project_id: user.project_id ?? null,
    after: erased,
  })
  if (given.has('json')) terminal.out(json({ erased: true, ...erased }))
  else terminal.out(`Erased ${erased.requests} requests and ${erased.contents} contents.\n`)
  return 0
}

/** The audit log is never changed, so it does not name whom it is about; who knows the name finds the rows. */
const nameOf = (end_user: string): string => `user_${sha256(end_user).slice(0, 16)}`
