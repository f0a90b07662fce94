/** `gatehouse requests show`: one row of the request log, with its contents if they are asked for. */
import { createAudit } from '../audit/audit.ts'
import { readEnvironment } from '../config/environment.ts'
import { systemClock } from '../kit/clock.ts'
import { contentsKeys, readContents } from '../observe/contents-log.ts'
import { viewRequests } from '../observe/request-view.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { commandLineActor } from './actor.ts'
import { type AdminApi, API_FLAGS, connectedApi, GatewayRefusal, pathWith } from './admin-api.ts'
import { readArguments, UsageError } from './arguments.ts'
import { storeToRead } from './store-location.ts'
import { json, type Terminal } from './terminal.ts'

const COMMAND = 'requests show'
/** More are not listed where a client has repeated an id. */
const MOST_OF_ONE_ID = 10
const FLAGS = { contents: 'switch', ...API_FLAGS, config: 'text', 'data-dir': 'text' } as const

export async function showRequest(args: string[], terminal: Terminal, help: string): Promise<number> {
  const given = readArguments({ command: COMMAND, args, flags: FLAGS, positionals: ['an id'] })
  if (given.has('help')) {
    terminal.out(help)
    return 0
  }
  const [id = ''] = given.positionals
  const api = connectedApi(given, terminal)
  const with_contents = given.has('contents')
  const shown = api
    ? await requestOfGateway(api, id, with_contents)
    : await requestOfStore(storeToRead(given, terminal), { id, with_contents, terminal })
  terminal.out(given.has('json') ? json(shown) : `${JSON.stringify(shown, undefined, 2)}\n`)
  return 0
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
async function requestOfGateway(api: AdminApi, given_id: string, with_contents: boolean) {
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

type Requested = { id: string; with_contents: boolean; terminal: Terminal }

async function requestOfStore(url: string, { id: given_id, with_contents, terminal }: Requested) {
  const store = await openStore({ url })
  try {
    const id = await rowId(given_id, async (request_id) => {
      const { rows } = await store.requestLog.search({ filter: { request_id }, limit: MOST_OF_ONE_ID })
      return rows.map(({ row_id }) => String(row_id))
    })
    const [row] = await viewRequests(store.requestLog, await store.requestLog.find([Number(id)]))
    if (!row) throw new Error(`There is no request ${JSON.stringify(id)}.`)
    return with_contents ? { ...row, contents: (await contentsOf(row, store, terminal)) ?? null } : row
  } finally {
    await store.close()
  }
}

type Row = { id: string; request_id: string; project_id: string | null }

async function contentsOf({ id, request_id, project_id }: Row, store: Store, { environment, cwd }: Terminal) {
  const keys = contentsKeys(readEnvironment({ environment, cwd }))
  const found = await readContents({ row_id: Number(id), request_id }, { store: store.requestContents, keys })
  if (!found) return undefined
  // Recorded before anybody has read them.
  await createAudit({ store: store.audit, clock: systemClock }).record({
    ...commandLineActor(),
    action: 'request.read_contents',
    object_type: 'request',
    object_id: id,
    project_id,
  })
  return found
}
