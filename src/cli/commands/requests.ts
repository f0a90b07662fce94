/** `gatehouse requests`: searches the request log, whether or not a gateway is running. */
import { REQUEST_CONDITIONS, readRequestFilter } from '../../observe/requests/request-filter.ts'
import type { RequestView } from '../../observe/requests/request-view.ts'
import { runWork, type Work } from '../accounts.ts'
import { API_FLAGS, API_OPTIONS_HELP, pathWith, readLimit } from '../admin-api.ts'
import { type Arguments, STORE_FLAGS, UsageError } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import { table } from '../table.ts'
import { json, type Terminal } from '../terminal.ts'
import { readTimeRange } from '../time-range.ts'
import { showRequest } from './requests-show.ts'

const HELP = `Usage: gatehouse requests [options]
       gatehouse requests show <id> [--contents] [options]

Shows calls from the request log, the newest first: of a running gateway (--url), or of its store. All conditions must
hold.

Options:
  --from <when>           2026-01-31, 2026-01-31T18:00Z, 7d for 7 days, or last-week (default: everything that is kept)
  --to <when>             the same; a date includes that day (default: today)
  --request-id <id>       the id of the request: the client's own, or that of x-request-id
  --token <token>         a token: its id or its name
  --project <project>     a project: its id or its name
  --model <id>            the full id of a model
  --target <target>       a provider's model, such as acme/large
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
  --data-dir <directory>  data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data); not for PostgreSQL
  --config <file>         configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print {"data": [...], "next_cursor": ...} as one line of JSON, with all that is recorded

Examples:
  gatehouse requests --error any --from 1d
  gatehouse requests --token laptop --min-cost 0.05 --json
  gatehouse requests --request-id req_0123456789abcdefghijABCD --json
  gatehouse requests show req_0123456789abcdefghijABCD --contents

Commands:
  show <id>          print one request as JSON, by its id or that of its row
      --contents         with its recorded prompt and response, decrypted with GATEHOUSE_CONTENTS_KEY
`

/** Some three years: rows are kept for less. */
const ALL_DAYS = 1_000
const COMMAND = 'requests'

const flagOf = (name: string) => name.replace('_', '-')

const FLAGS = [...Object.keys(REQUEST_CONDITIONS).map(flagOf), 'from', 'to', 'limit', 'after']

const list = plainCommand(COMMAND, HELP, {
  flags: { ...Object.fromEntries(FLAGS.map((name) => [name, 'text' as const])), ...API_FLAGS, ...STORE_FLAGS },
  run: readAndSearch,
})

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  args[0] === 'show' ? showRequest(HELP)(args.slice(1), terminal) : list(args, terminal)

async function readAndSearch(given: Arguments, terminal: Terminal): Promise<number> {
  const { from, to } = readTimeRange(COMMAND, given, ALL_DAYS)
  readRequestFilter(
    (name) => given.text(flagOf(name)),
    (name, rule) => {
      throw new UsageError(COMMAND, `--${flagOf(name)}: ${rule}, found ${JSON.stringify(given.text(flagOf(name)))}`)
    },
  )
  const page = { from, to, limit: readLimit(COMMAND, given.text('limit')), after: given.text('after') }
  return runWork(COMMAND, { run: (work) => search(work, page) }, { given, terminal })
}

type Page = { from: number; to: number; limit: number; after: string | undefined }

async function search(work: Work, { from, to, limit, after }: Page): Promise<number> {
  const { given, api, terminal } = work
  const conditions = Object.keys(REQUEST_CONDITIONS).map((name) => [name, given.text(flagOf(name))] as const)
  const path = pathWith('/requests', {
    ...Object.fromEntries(conditions),
    ...(await accountsIn(work)),
    from: String(from),
    to: String(to),
  })
  const { rows, next = null } = await api.some(path, { limit, after }).catch((error: Error) => {
    throw new Error(error.message.replace('"cursor"', '--after'))
  })
  const data = rows as RequestView[]
  if (given.has('json')) terminal.out(json({ data, next_cursor: next }))
  else {
    terminal.out(data.length === 0 ? 'No request matches.\n' : textOf(data))
    if (next !== null) terminal.err(`There are more requests; the next page: --after ${next}\n`)
  }
  return 0
}

/** The ids of those that are named. One that is not known may have been deleted, and still have rows: its id is searched as it is. */
async function accountsIn({ given, tokens, projects }: Work): Promise<{ token?: string; project?: string }> {
  const [token, project] = [given.text('token'), given.text('project')]
  const found: { token?: string; project?: string } = {}
  if (token !== undefined) found.token = token.startsWith('tok_') ? token : (await tokens.choose(token)).token_id
  if (project === undefined || project.startsWith('proj_')) return project === undefined ? found : { ...found, project }
  const named = (await projects.list()).find(({ name }) => name === project)
  if (!named) throw new UsageError(COMMAND, `there is no project ${JSON.stringify(project)}`)
  return { ...found, project: named.project_id }
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
