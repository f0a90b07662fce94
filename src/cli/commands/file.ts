/** `gatehouse file`: lists, shows and deletes files of clients, whether or not a gateway is running. */
import { STORED_PURPOSES } from '../../spec/file.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import { type Action, runAction, STORE_OPTIONS_HELP, type Work } from '../accounts.ts'
import { API_OPTIONS_HELP, pathWith, readLimit } from '../admin-api.ts'
import { json, type Terminal, timeOf } from '../terminal.ts'

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
${API_OPTIONS_HELP}
${STORE_OPTIONS_HELP}

Examples:
  gatehouse file list --purpose batch --token laptop
  gatehouse file delete file-gh0mjuohs00wjpHk56LpEnpo3B
`

const WHICH = 'a file: its file_id, as gatehouse file list shows it'

const ACTIONS: Record<string, Action> = {
  list: { flags: { purpose: 'text', token: 'text', limit: 'text' }, positionals: [], run: list },
  show: { flags: {}, positionals: [WHICH], run: show },
  delete: { flags: {}, positionals: [WHICH], run: remove },
}

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  runAction({ command: 'file', help: HELP, actions: ACTIONS }, args, terminal)

async function list({ given, api, tokens, terminal }: Work): Promise<number> {
  const which = given.text('token')
  const path = pathWith('/files', {
    purpose: given.text('purpose'),
    token_id: which === undefined ? undefined : (await tokens.choose(which)).token_id,
  })
  const page = await api.some(path, { limit: readLimit('file list', given.text('limit')), after: undefined })
  const files = page.rows as AdminFile[]
  if (given.has('json')) terminal.out(json({ files, has_more: page.next !== undefined }))
  else if (files.length === 0) terminal.out('There are no such files.\n')
  else for (const file of files) terminal.out(`${lineOf(file)}\n`)
  return 0
}

type AdminFile = Omit<FileRow, 'output_key'>

const lineOf = ({ file_id, purpose, bytes, created_at, filename }: AdminFile): string =>
  [file_id, purpose.padEnd(12), String(bytes).padStart(11), timeOf(created_at), JSON.stringify(filename)].join('  ')

const pathOf = ({ given }: Work) => `/files/${encodeURIComponent(given.positionals[0] ?? '')}`

async function show(work: Work): Promise<number> {
  const { given, api, terminal } = work
  const file = (await api.call(pathOf(work))).body as AdminFile
  if (given.has('json')) terminal.out(json({ file }))
  else {
    const { token_id, content_type, expires_at } = file
    const expires = expires_at === null ? 'kept until it is deleted' : `expires ${timeOf(expires_at)}`
    terminal.out(`${lineOf(file)}\n  token ${token_id}, ${content_type}, ${expires}\n`)
  }
  return 0
}

async function remove(work: Work): Promise<number> {
  const { given, api, terminal } = work
  const { file_id } = (await api.call(pathOf(work), { method: 'DELETE' })).body as AdminFile
  terminal.out(given.has('json') ? json({ file_id, deleted: true }) : `The file ${file_id} is deleted.\n`)
  return 0
}
