/** `gatehouse requests show`: one row of the request log, with its contents if they are asked for. */
import { runWork, type Work } from '../accounts.ts'
import { type AdminApi, API_FLAGS, GatewayRefusal, pathWith } from '../admin-api.ts'
import { STORE_FLAGS, UsageError } from '../arguments.ts'
import { plainCommand } from '../command.ts'

const COMMAND = 'requests show'
/** More are not listed where a client has repeated an id. */
const MOST_OF_ONE_ID = 10
const FLAGS = { contents: 'switch', ...API_FLAGS, ...STORE_FLAGS } as const

export const showRequest = (help: string) =>
  plainCommand(COMMAND, help, {
    flags: FLAGS,
    positionals: ['an id'],
    run: (given, terminal) => runWork(COMMAND, { run: show }, { given, terminal }),
  })

async function show({ given, api }: Work) {
  const data = await requestOf(api, given.positionals[0] ?? '', given.has('contents'))
  return { data, text: () => `${JSON.stringify(data, undefined, 2)}\n` }
}

/** The id of a row, or that of a request, which a client may repeat. */
async function rowId(id: string, rowsOf: (request_id: string) => Promise<string[]>): Promise<string> {
  if (/^\d{1,15}$/.test(id)) return id
  const [one, ...others] = await rowsOf(id)
  if (one === undefined) throw new Error(`There is no request ${JSON.stringify(id)}.`)
  if (others.length === 0) return one
  const rows = [one, ...others].join(', ')
  throw new UsageError(COMMAND, `several requests have the id ${JSON.stringify(id)}: name one of the rows ${rows}`)
}

/** The gateway records who reads contents. */
async function requestOf(api: AdminApi, given_id: string, with_contents: boolean) {
  const id = await rowId(given_id, async (request_id) => {
    const { rows } = await api.some(pathWith('/requests', { request_id }), { limit: MOST_OF_ONE_ID })
    return (rows as { id: string }[]).map((row) => row.id)
  })
  const { body: row } = await api.call(`/requests/${id}`)
  if (!with_contents) return row
  const found = await api.call(`/requests/${id}/contents`).catch((error: unknown) => {
    if (error instanceof GatewayRefusal && error.status === 404) return undefined
    throw error
  })
  if (!found) return { ...row, contents: null }
  const { object: _, id: __, request_id: ___, ...contents } = found.body
  return { ...row, contents }
}
