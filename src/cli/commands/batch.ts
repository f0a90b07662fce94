/** `gatehouse batch`: lists, shows and cancels batches, whether or not a gateway is running. */
import type { AdminBatch } from '../../admin/routes/batches.ts'
import { type Action, runAction, STORE_OPTIONS_HELP, type Work } from '../accounts.ts'
import { API_OPTIONS_HELP, pathWith, readLimit } from '../admin-api.ts'
import { json, type Terminal, timeOf } from '../terminal.ts'

const HELP = `Usage: gatehouse batch <list | show | cancel> [options]

Works on a running gateway (--url), or on its store: a running gateway applies the change.

Commands:
  list                   show batches, newest first
      --status <states>      only these, separated by commas: validating, in_progress, finalizing, completed,
                             failed, expired, cancelling, cancelled, or unfinished for all that have not ended
      --token <token>        only batches of this token: its id or its name
      --limit <number>       at most this many, 1 to 1000 (default: 50)
  show <batch_id>        show the state and the counts of a batch
  cancel <batch_id>      start no further lines; those that are executed now end

Options:
${API_OPTIONS_HELP}
${STORE_OPTIONS_HELP}

Examples:
  gatehouse batch list --status unfinished
  gatehouse batch cancel batch_0mjuohs00wjpHk56LpEnpo3B
`

const WHICH = 'a batch: its batch_id, as gatehouse batch list shows it'

const ACTIONS: Record<string, Action> = {
  list: { flags: { status: 'text', token: 'text', limit: 'text' }, positionals: [], run: list },
  show: { flags: {}, positionals: [WHICH], run: show },
  cancel: { flags: {}, positionals: [WHICH], run: cancel },
}

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  runAction({ command: 'batch', help: HELP, actions: ACTIONS }, args, terminal)

async function list({ given, api, tokens, terminal }: Work): Promise<number> {
  const which = given.text('token')
  const path = pathWith('/batches', {
    status: given.text('status'),
    token_id: which === undefined ? undefined : (await tokens.choose(which)).token_id,
  })
  const page = await api.some(path, { limit: readLimit('batch list', given.text('limit')), after: undefined })
  const batches = page.rows as AdminBatch[]
  if (given.has('json')) terminal.out(json({ batches, has_more: page.next !== undefined }))
  else if (batches.length === 0) terminal.out('There are no such batches.\n')
  else for (const batch of batches) terminal.out(`${lineOf(batch)}\n`)
  return 0
}

const lineOf = ({ batch_id, status, lines, endpoint, created_at }: AdminBatch): string =>
  [
    batch_id,
    status.padEnd(11),
    `${lines.succeeded}/${lines.total}`.padStart(13),
    endpoint.padEnd(22),
    timeOf(created_at),
  ].join('  ')

async function show({ given, api, terminal }: Work): Promise<number> {
  const batch = (await api.call(`/batches/${encodeURIComponent(given.positionals[0] ?? '')}`)).body as AdminBatch
  if (given.has('json')) terminal.out(json({ batch }))
  else {
    const { lines, waiting } = batch
    terminal.out(`${lineOf(batch)}\n`)
    terminal.out(
      `  token ${batch.token_id}, model ${batch.model ?? 'of each line'}, expires ${timeOf(batch.expires_at)}\n`,
    )
    terminal.out(
      `  ${lines.succeeded} succeeded, ${lines.errored} errored, ${lines.canceled} canceled, ${lines.expired} expired\n`,
    )
    const since = waiting?.since_ms === undefined ? '' : ` since ${timeOf(waiting.since_ms / 1000)}`
    if (waiting) terminal.out(`  waits${since}: ${waiting.code}: ${waiting.message}\n`)
  }
  return 0
}

async function cancel({ given, api, terminal }: Work): Promise<number> {
  const path = `/batches/${encodeURIComponent(given.positionals[0] ?? '')}/cancel`
  const batch = (await api.call(path, { method: 'POST', body: {} })).body as AdminBatch
  if (given.has('json')) terminal.out(json({ batch }))
  else terminal.out(`The batch ${batch.batch_id} is ${batch.status}.\n`)
  return 0
}
