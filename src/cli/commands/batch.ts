/** `gatehouse batch`: lists, shows and cancels batches, whether or not a gateway is running. */
import type { AdminBatch } from '../../admin/routes/batches.ts'
import { notOneOf } from '../../kit/nearest.ts'
import { BATCH_STATUSES, readBatchStatuses } from '../../spec/batch.ts'
import { commandOf, OPTIONS_HELP, type Work } from '../accounts.ts'
import { pathWith, readLimit } from '../admin-api.ts'
import { UsageError } from '../arguments.ts'
import { table } from '../table.ts'
import { timeOf } from '../terminal.ts'

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
${OPTIONS_HELP}

Examples:
  gatehouse batch list --status unfinished
  gatehouse batch cancel batch_0mjuohs00wjpHk56LpEnpo3B
`

const WHICH = 'a batch: its batch_id, as gatehouse batch list shows it'

export const run = commandOf('batch', HELP, {
  list: { flags: { status: 'text', token: 'text', limit: 'text' }, run: list },
  show: { positionals: [WHICH], run: show },
  cancel: { positionals: [WHICH], run: cancel },
})

async function list({ given, api, tokens }: Work) {
  const [status, which] = [given.text('status'), given.text('token')]
  const unknown = status === undefined ? undefined : readBatchStatuses(status).unknown
  if (unknown !== undefined)
    throw new UsageError('batch list', `--status: ${notOneOf(unknown, [...BATCH_STATUSES, 'unfinished'])}`)
  const path = pathWith('/batches', {
    status,
    token_id: which === undefined ? undefined : (await tokens.choose(which)).token_id,
  })
  const page = await api.some(path, { limit: readLimit('batch list', given.text('limit')), after: undefined })
  const batches = page.rows as AdminBatch[]
  return {
    data: { batches, has_more: page.next !== undefined },
    text: () => table(batches.map(cellsOf)) || 'There are no such batches.\n',
  }
}

const cellsOf = ({ batch_id, status, lines, endpoint, created_at }: AdminBatch): string[] => [
  batch_id,
  status,
  `${lines.succeeded}/${lines.total}`.padStart(13),
  endpoint,
  timeOf(created_at),
]

async function show({ given, api }: Work) {
  const batch = (await api.call(`/batches/${encodeURIComponent(given.positionals[0] ?? '')}`)).body as AdminBatch
  return { data: { batch }, text: () => textOf(batch) }
}

function textOf(batch: AdminBatch): string {
  const { lines, waiting } = batch
  const since = waiting?.since_ms === undefined ? '' : ` since ${timeOf(waiting.since_ms / 1000)}`
  return `${table([cellsOf(batch)])}  token ${batch.token_id}, model ${batch.model ?? 'of each line'}, expires ${timeOf(batch.expires_at)}
  ${lines.succeeded} succeeded, ${lines.errored} errored, ${lines.canceled} canceled, ${lines.expired} expired
${waiting ? `  waits${since}: ${waiting.code}: ${waiting.message}\n` : ''}`
}

async function cancel({ given, api }: Work) {
  const path = `/batches/${encodeURIComponent(given.positionals[0] ?? '')}/cancel`
  const batch = (await api.call(path, { method: 'POST', body: {} })).body as AdminBatch
  return { data: { batch }, text: () => `The batch ${batch.batch_id} is ${batch.status}.\n` }
}
