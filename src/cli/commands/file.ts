/** `gatehouse file`: lists, shows and deletes files of clients, whether or not a gateway is running. */
import { notOneOf } from '../../kit/nearest.ts'
import { STORED_PURPOSES } from '../../spec/file.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import { commandOf, OPTIONS_HELP, type Work } from '../accounts.ts'
import { pathWith, readLimit } from '../admin-api.ts'
import { UsageError } from '../arguments.ts'
import { timeOf } from '../terminal.ts'

const HELP = `Usage: gatehouse file <list | show | delete> [options]

Works on a running gateway (--url), or on its store: a running gateway removes the content.

Commands:
  list                   show files, newest first
      --purpose <purpose>    only these: ${STORED_PURPOSES.join(', ')}
      --token <token>        only files of this token: its id or its name
      --limit <number>       at most this many, 1 to 1000 (default: 50)
  show <file_id>         show what is known of a file, without its content
  delete <file_id>       delete a file with its content: requests and batches that name it fail from then on

Options:
${OPTIONS_HELP}

Examples:
  gatehouse file list --purpose batch --token laptop
  gatehouse file delete file-gh0mjuohs00wjpHk56LpEnpo3B
`

const WHICH = 'a file: its file_id, as gatehouse file list shows it'

export const run = commandOf('file', HELP, {
  list: { flags: { purpose: 'text', token: 'text', limit: 'text' }, run: list },
  show: { positionals: [WHICH], run: show },
  delete: { positionals: [WHICH], run: remove },
})

async function list({ given, api, tokens }: Work) {
  const [purpose, which] = [given.text('purpose'), given.text('token')]
  if (purpose !== undefined && !STORED_PURPOSES.some((known) => known === purpose))
    throw new UsageError('file list', `--purpose: ${notOneOf(purpose, STORED_PURPOSES)}`)
  const path = pathWith('/files', {
    purpose,
    token_id: which === undefined ? undefined : (await tokens.choose(which)).token_id,
  })
  const page = await api.some(path, { limit: readLimit('file list', given.text('limit')), after: undefined })
  const files = page.rows as AdminFile[]
  return {
    data: { files, has_more: page.next !== undefined },
    text: () => files.map((file) => `${lineOf(file)}\n`).join('') || 'There are no such files.\n',
  }
}

type AdminFile = Omit<FileRow, 'output_key'>

const lineOf = ({ file_id, purpose, bytes, created_at, filename }: AdminFile): string =>
  [file_id, purpose.padEnd(12), String(bytes).padStart(11), timeOf(created_at), JSON.stringify(filename)].join('  ')

const pathOf = ({ given }: Work) => `/files/${encodeURIComponent(given.positionals[0] ?? '')}`

async function show(work: Work) {
  const file = (await work.api.call(pathOf(work))).body as AdminFile
  return { data: { file }, text: () => textOf(file) }
}

function textOf(file: AdminFile): string {
  const { token_id, content_type, expires_at } = file
  const expires = expires_at === null ? 'kept until it is deleted' : `expires ${timeOf(expires_at)}`
  return `${lineOf(file)}\n  token ${token_id}, ${content_type}, ${expires}\n`
}

async function remove(work: Work) {
  const { file_id } = (await work.api.call(pathOf(work), { method: 'DELETE' })).body as AdminFile
  return { data: { file_id, deleted: true }, text: () => `The file ${file_id} is deleted.\n` }
}
