/** Searches the request log. A search ends after a bounded number of rows and a bounded time, and its cursor continues it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Database, Tables } from '../tables.ts'
import type { RequestPage, RequestPosition, RequestQuery, RequestRow } from './request-row.ts'
import { openWalk } from './request-walk.ts'

/** After its first step, a search starts no other one after so many milliseconds, */
const MAX_STARTED_MILLISECONDS = 30
/** or so many steps. */
const MAX_STEPS = 8
type FoundRow = Tables['request_log']

/** `now`: milliseconds that never go back. */
export async function searchRequests(
  db: Database,
  { filter, after, limit, order = 'desc' }: RequestQuery,
  now: () => number = () => performance.now(),
): Promise<RequestPage> {
  const started = now()
  const walk = await openWalk(db, { filter, after, order })
  if (!walk) return { rows: [], next: undefined }
  const positions: RequestPosition[] = []
  let position = after
  for (let step = 0; step === 0 || (step < MAX_STEPS && now() - started < MAX_STARTED_MILLISECONDS); step++) {
    const { found, end } = await walk.step(position, limit + 1 - positions.length)
    positions.push(...found)
    if (positions.length > limit) {
      const page = positions.slice(0, limit)
      return { rows: await rowsAt(db, page), next: page.at(-1) }
    }
    position = end
    if (!end) break
    await nextTurn()
  }
  return { rows: await rowsAt(db, positions), next: position }
}

async function rowsAt(db: Database, at: readonly RequestPosition[]): Promise<RequestRow[]> {
  if (at.length === 0) return []
  const ids = at.map(({ row_id }) => row_id)
  const rows = new Map((await findRows(db, ids)).map((row) => [row.row_id, row]))
  return ids.flatMap((id) => rows.get(id) ?? [])
}

export async function findRows(db: Database, row_ids: readonly number[]): Promise<RequestRow[]> {
  if (row_ids.length === 0) return []
  const rows = await db
    .selectFrom('request_log')
    .selectAll()
    .where('row_id', 'in', [...row_ids])
    .execute()
  return rows.map(toRow)
}

const toRow = ({ tags, detail, ...row }: FoundRow): RequestRow => ({
  ...row,
  tags: tags === null ? [] : (JSON.parse(tags) as string[]),
  detail: JSON.parse(detail) as RequestRow['detail'],
})
