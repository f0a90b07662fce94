/** `gatehouse requests`: searches the request log, whether or not a gateway is running. */
import { chooseToken } from '../accounts/choose.ts'
import { REQUEST_CONDITIONS, readRequestFilter } from '../observe/request-filter.ts'
import { cursorOf, type RequestView, readCursor, viewRequests } from '../observe/request-view.ts'
import type { Project, Token } from '../spec/token.ts'
import { openStore } from '../store/open-store.ts'
import type { RequestFilter, RequestPosition } from '../store/request-row.ts'
import type { Store } from '../store/store.ts'
import { type AdminApi, API_FLAGS, API_OPTIONS_HELP, connectedApi, pathWith } from './admin-api.ts'
import { type Arguments, type FlagTable, readArguments, UsageError } from './arguments.ts'
import { remoteProjects, remoteTokens } from './remote-accounts.ts'
import { showRequest } from './requests-show.ts'
import { storeToRead } from './store-location.ts'
import { table } from './table.ts'
import { json, type Terminal } from './terminal.ts'
import { readTimeRange } from './time-range.ts'

const HELP = `Usage: gatehouse requests [options]
       gatehouse requests show <id> [--contents] [options]

Shows calls from the request log, the newest first: of a running gateway (--url), or of its store. A running gateway
adds calls within a second after they end. All conditions must hold.

Options:
  --from <when>           2026-01-31, 2026-01-31T18:00Z, 7d for 7 days, or last-week (default: everything that is kept)
  --to <when>             the same; a date includes that day (default: today)
  --request-id <id>       the id of the request: the client's own, or that of the response header x-request-id
  --token <token>         a token: its id or its name
  --project <project>     a project: its id or its name
  --model <id>            the full id of a model
  --target <target>       a provider and its model, such as acme/large
  --provider <id>         a provider
  --status <status>       an HTTP status such as 429, or a class such as 5xx
  --error <code>          an error code; any for every error
  --user <name>           the end user
  --session <name>        the session, from the header x-gatehouse-session
  --tag <tag>             a tag from x-gatehouse-tags, or a pair of metadata as key:value
  --trace-id <id>         the id of the trace
  --min-cost <amount>     only what was charged this much or more
  --min-ms <number>       only what took this many milliseconds or longer
  --limit <number>        at most this many, 1 to 1000 (default: 50)
  --after <cursor>        continue where the last page ended
${API_OPTIONS_HELP}
  --data-dir <directory>  the data directory (default: GATEHOUSE_DATA_DIR, then data_dir of the configuration file,
                          then ./data); not used with GATEHOUSE_DATABASE_URL
  --config <file>         the configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print {"data": [...], "next_cursor": ...} as one line of JSON, with all that is recorded

Examples:
  gatehouse requests --error any --from 1d
  gatehouse requests --token laptop --min-cost 0.05 --json
  gatehouse requests --request-id req_0123456789abcdefghijABCD --json
  gatehouse requests show req_0123456789abcdefghijABCD --contents

Commands:
  show <id>          print one request as JSON, by its id or that of its row
      --contents         with its recorded prompt and response, decrypted with GATEHOUSE_CONTENTS_KEY; the audit log
                         records who has read them
`

const DEFAULT_LIMIT = 50
const MAX_LISTED = 1_000
/** Some three years: rows are kept for less. */
const ALL_DAYS = 1_000
const COMMAND = 'requests'

const flagOf = (name: string) => name.replace('_', '-')

export async function run(args: string[], terminal: Terminal): Promise<number> {
  if (args[0] === 'show') return showRequest(args.slice(1), terminal, HELP)
  const conditions = Object.keys(REQUEST_CONDITIONS).map((name) => [flagOf(name), 'text'] as const)
  const flags: FlagTable = {
    ...Object.fromEntries(conditions),
    from: 'text',
    to: 'text',
    limit: 'text',
    after: 'text',
    ...API_FLAGS,
    config: 'text',
    'data-dir': 'text',
  }
  const given = readArguments({ command: COMMAND, args, flags })
  if (given.has('help')) {
    terminal.out(HELP)
    return 0
  }
  const { from, to } = readTimeRange(COMMAND, given, ALL_DAYS)
  const filter = readRequestFilter(
    (name) => given.text(flagOf(name)),
    (name, rule) => {
      throw new UsageError(COMMAND, `--${flagOf(name)}: ${rule}, found ${JSON.stringify(given.text(flagOf(name)))}`)
    },
  )
  const limit = readLimit(given.text('limit'))
  const api = connectedApi(given, terminal)
  const { data, next_cursor } = api
    ? await searchGateway(api, given, { from, to, limit })
    : await searchStore(storeToRead(given, terminal), filter, { from, to, limit, after: readAfter(given) })
  if (given.has('json')) terminal.out(json({ data, next_cursor }))
  else {
    terminal.out(data.length === 0 ? 'No request matches.\n' : textOf(data))
    if (next_cursor !== null) terminal.err(`There are more requests; the next page: --after ${next_cursor}\n`)
  }
  return 0
}

type Page = { from: number; to: number; limit: number }
type Found = { data: RequestView[]; next_cursor: string | null }

async function searchStore(
  url: string,
  filter: RequestFilter,
  { from, to, after, limit }: Page & { after: RequestPosition | undefined },
): Promise<Found> {
  const store = await openStore({ url })
  try {
    await nameAccounts(filter, { tokens: store.tokens.list, projects: store.projects.list })
    const range = { from_ms: from * 1000, to_ms: to * 1000 }
    const { rows, next } = await searchAll(store, { ...filter, ...range }, { after, limit })
    return { data: await viewRequests(store.requestLog, rows), next_cursor: next ? cursorOf(next) : null }
  } finally {
    await store.close()
  }
}

async function searchGateway(api: AdminApi, given: Arguments, { from, to, limit }: Page): Promise<Found> {
  const given_names = { token_id: given.text('token'), project_id: given.text('project') }
  const named: Pick<RequestFilter, 'token_id' | 'project_id'> = Object.fromEntries(
    Object.entries(given_names).filter(([, name]) => name !== undefined),
  )
  await nameAccounts(named, { tokens: remoteTokens(api).list, projects: remoteProjects(api).list })
  const conditions = Object.keys(REQUEST_CONDITIONS).map((name) => [name, given.text(flagOf(name))] as const)
  const path = pathWith('/requests', {
    ...Object.fromEntries(conditions),
    token: named.token_id,
    project: named.project_id,
    from: String(from),
    to: String(to),
  })
  const { rows, next = null } = await api.some(path, { limit, after: given.text('after') })
  return { data: rows as RequestView[], next_cursor: next }
}

/** A search ends after a bounded number of rows; nobody waits for this process, so it goes on. */
async function searchAll(
  { requestLog }: Store,
  filter: RequestFilter,
  { after, limit }: Pick<Parameters<Store['requestLog']['search']>[0], 'after' | 'limit'>,
) {
  const found = await requestLog.search({ filter, after, limit })
  while (found.next && found.rows.length < limit) {
    const more = await requestLog.search({ filter, after: found.next, limit: limit - found.rows.length })
    found.rows.push(...more.rows)
    found.next = more.next
  }
  return found
}

/** A token or project that is not known may have been deleted, and still have rows: its id is searched as it is. */
async function nameAccounts(
  filter: Pick<RequestFilter, 'token_id' | 'project_id'>,
  list: { tokens(): Promise<Token[]>; projects(): Promise<Project[]> },
): Promise<void> {
  if (filter.token_id !== undefined && !filter.token_id.startsWith('tok_')) {
    filter.token_id = chooseToken(await list.tokens(), filter.token_id).token_id
  }
  const { project_id } = filter
  if (project_id === undefined || project_id.startsWith('proj_')) return
  const named = (await list.projects()).find(({ name }) => name === project_id)
  if (!named) throw new UsageError(COMMAND, `there is no project ${JSON.stringify(project_id)}`)
  filter.project_id = named.project_id
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LISTED) return limit
  throw new UsageError(COMMAND, `--limit: found ${JSON.stringify(text)}, must be a number from 1 to ${MAX_LISTED}`)
}

function readAfter(given: Arguments) {
  const text = given.text('after')
  if (text === undefined) return undefined
  const position = readCursor(text)
  if (position) return position
  throw new UsageError(COMMAND, `--after: found ${JSON.stringify(text)}, must be a cursor as --json or a page shows it`)
}

function textOf(data: readonly RequestView[]): string {
  const rows = data.map(
    ({ at_ms, status, error, model, target, total_ms, input_tokens, output_tokens, cost, request_id }) => [
      new Date(at_ms).toISOString().slice(0, 19).replace('T', ' '),
      String(status),
      model || '-',
      target || '-',
      `${Math.round(total_ms)} ms`,
      `${input_tokens}+${output_tokens}`,
      cost === null ? '-' : String(cost),
      request_id,
      error ?? '',
    ],
  )
  return table([['time', 'status', 'model', 'target', 'duration', 'tokens', 'cost', 'request_id', 'error'], ...rows])
}
