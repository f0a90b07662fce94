/** The filters of the request log in the query of a route: their parameters, and how they are read. */
import Type from 'typebox'
import type { Context } from '../../http/context.ts'
import { REQUEST_CONDITIONS, readRequestFilter } from '../../observe/requests/request-filter.ts'
import type { RequestReader } from '../../observe/requests/request-reader.ts'
import type { RequestView } from '../../observe/requests/request-view.ts'
import { invalidValue } from '../../spec/error.ts'
import { parameter } from '../../spec/fields.ts'
import type { Parameter } from '../../spec/operation.ts'
import type { RequestFilter, RequestPosition } from '../../store/requests/request-row.ts'

const time = (description: string) => parameter(description, Type.Integer({ minimum: 0 }))
const conditions = Object.entries(REQUEST_CONDITIONS).map(([name, description]) => [
  name,
  // A long name of an end user is searched by its digest.
  parameter(description, Type.String(name === 'user' ? {} : { maxLength: 512 })),
])

export const REQUEST_FILTERS: Record<string, Parameter> = {
  ...Object.fromEntries(conditions),
  from: time('Unix seconds; included.'),
  to: time('Unix seconds; not included.'),
}

/** Of the log, newest first: at most this many rows are looked at. */
const PAGE_ROWS = 200
const MAX_PAGES = 10
export const NEWEST_ROWS = PAGE_ROWS * MAX_PAGES

/** Looks at the newest rows that meet a filter. Returns whether the log has more. */
export async function eachNewest(
  requests: Pick<RequestReader, 'page'>,
  filter: RequestFilter,
  look: (row: RequestView) => void,
): Promise<boolean> {
  let after: RequestPosition | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const { data, next } = await requests.page({ filter, after, limit: PAGE_ROWS })
    data.forEach(look)
    if (!next) return false
    after = next
  }
  return true
}

/** Undefined: no row that the caller may see meets it. */
export function readRequestQuery(context: Context): RequestFilter | undefined {
  const query = context.query()
  const filter = { ...conditionsOf(query), ...readTimes(query) }
  const own = context.admin.project_id
  if (own === undefined) return filter
  if (filter.project_id !== undefined && filter.project_id !== own) return undefined
  return { ...filter, project_id: own }
}

function conditionsOf(query: URLSearchParams): RequestFilter {
  return readRequestFilter(
    (name) => query.get(name)?.replaceAll('\0', '') ?? undefined,
    (param, rule) => {
      throw invalidValue(param, `"${param}" ${rule}.`)
    },
  )
}

function readTimes(query: URLSearchParams): RequestFilter {
  const filter: RequestFilter = {}
  for (const param of ['from', 'to'] as const) {
    const given = query.get(param)
    if (given === null) continue
    if (!/^\d{1,11}$/.test(given)) throw invalidValue(param, `"${param}" must be unix seconds.`)
    filter[`${param}_ms`] = Number(given) * 1000
  }
  return filter
}
