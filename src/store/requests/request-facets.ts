/** Counts the values of what the request log is filtered by: of the newest rows, as many as a bounded time allows. */
import type { Database } from '../tables.ts'
import type { FacetCounts, FacetName, RequestFilter } from './request-row.ts'
import { openWalk, ROWS_PER_STEP } from './request-walk.ts'

/** No other step starts after so many milliseconds: one takes some 10. */
const MAX_STARTED_MILLISECONDS = 60
/** The rows of the first step; each other one has twice as many, so that a slow database is not asked for too many at once. */
const FIRST_ROWS = 500
/** The most values of one facet that are counted; where there are more, the answer is partial. */
export const MAX_FACET_VALUES = 5_000

export const FACETS = {
  model: 'model',
  provider: 'provider',
  target: 'target',
  token: 'token_id',
  project: 'project_id',
  status: 'status',
  error: 'error',
  user: 'end_user',
} as const satisfies Partial<Record<FacetName, string>>
const NAMES = Object.keys(FACETS) as (keyof typeof FACETS)[]
const COLUMNS = [...Object.values(FACETS), 'tags'] as const

/** `now`: milliseconds that never go back. */
export async function countFacets(
  db: Database,
  filter: RequestFilter,
  now: () => number = () => performance.now(),
): Promise<FacetCounts> {
  const started = now()
  const counts = new Map<FacetName, Map<string, number>>([...NAMES, 'tag' as const].map((name) => [name, new Map()]))
  let rows = 0
  let oldest_ms: number | null = null
  let isPartial = false
  function count(name: FacetName, value: string | number | null | undefined): void {
    if (value === null || value === undefined || value === '') return
    const values = counts.get(name) as Map<string, number>
    const known = values.get(String(value))
    if (known === undefined && values.size >= MAX_FACET_VALUES) isPartial = true
    else values.set(String(value), (known ?? 0) + 1)
  }
  const walk = await openWalk(db, { filter, columns: COLUMNS })
  let after: { at_ms: number; row_id: number } | undefined
  for (let limit = FIRST_ROWS; walk; limit = Math.min(2 * limit, ROWS_PER_STEP)) {
    if (after && now() - started >= MAX_STARTED_MILLISECONDS) {
      isPartial = true
      break
    }
    const { found, end } = await walk.step(after, limit)
    for (const row of found) {
      for (const name of NAMES) count(name, row[FACETS[name]])
      if (row.tags) for (const tag of JSON.parse(row.tags) as string[]) count('tag', tag)
    }
    rows += found.length
    const last = found.at(-1)
    after = found.length === limit ? last : end
    oldest_ms = (after ?? last)?.at_ms ?? oldest_ms
    if (!after) break
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { counts, rows, oldest_ms, is_partial: isPartial }
}
