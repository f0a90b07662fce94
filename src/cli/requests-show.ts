/** `gatehouse requests show`: one row of the request log, with its contents if they are asked for. */
import { createAudit } from '../audit/audit.ts'
import { readEnvironment } from '../config/environment.ts'
import { systemClock } from '../kit/clock.ts'
import { contentsKeys, readContents } from '../observe/contents-log.ts'
import { viewRequests } from '../observe/request-view.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { commandLineActor } from './actor.ts'
import { readArguments, UsageError } from './arguments.ts'
import { storeToRead } from './store-location.ts'
import { json, type Terminal } from './terminal.ts'

const COMMAND = 'requests show'
const FLAGS = { contents: 'switch', config: 'text', 'data-dir': 'text' } as const

export async function showRequest(args: string[], terminal: Terminal, help: string): Promise<number> {
  const given = readArguments({ command: COMMAND, args, flags: FLAGS, positionals: ['the id of a row'] })
  if (given.has('help')) {
    terminal.out(help)
    return 0
  }
  const [id = ''] = given.positionals
  if (!/^\d{1,15}$/.test(id)) {
    throw new UsageError(COMMAND, `found ${JSON.stringify(id)}, must be the id of a row, as --json shows it`)
  }
  const store = await openStore({ url: storeToRead(given, terminal) })
  try {
    const [row] = await viewRequests(store.requestLog, await store.requestLog.find([Number(id)]))
    if (!row) throw new Error(`There is no request ${id}.`)
    const contents = given.has('contents') ? await contentsOf(row, store, terminal) : undefined
    const shown = given.has('contents') ? { ...row, contents: contents ?? null } : row
    terminal.out(given.has('json') ? json(shown) : `${JSON.stringify(shown, undefined, 2)}\n`)
    return 0
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
