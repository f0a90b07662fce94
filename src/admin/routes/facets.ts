/** The admin API's facets: the values by which the request log can be filtered, with counts. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import type { RequestReader } from '../../observe/requests/request-reader.ts'
import { orNull, titled } from '../../spec/fields.ts'
import type { FacetName } from '../../store/requests/request-row.ts'
import { type NamedAccounts, nameOf } from './account-names.ts'
import { REQUEST_FILTERS, readRequestQuery } from './request-query.ts'
import { adminRoute } from './route.ts'

type FacetRouteParts = { requests: Pick<RequestReader, 'facets'>; named: NamedAccounts }

/** Of one facet. */
const MAX_VALUES = 20

const Facets = titled('RequestFacets', {
  object: Type.Literal('facets'),
  partial: Type.Boolean({
    description: 'Whether only the newest rows were counted, as many as a bounded time allows.',
  }),
  rows: Type.Integer({ description: 'How many rows were counted.' }),
  from: orNull(Type.Integer(), 'Unix seconds: where it is partial, rows since then were counted.'),
  facets: Type.Array(
    Type.Object({
      filter: Type.String({ description: 'The filter of the request log.' }),
      values: Type.Array(
        Type.Object({
          value: Type.String({ description: 'For the filter.' }),
          name: Type.String({ description: 'Of the token or project; otherwise the value.' }),
          count: Type.Integer(),
        }),
        { description: `The most frequent first, at most ${MAX_VALUES}.` },
      ),
      more: Type.Boolean({ description: 'Whether there are further values.' }),
    }),
  ),
})

export function facetRoutes({ requests, named }: FacetRouteParts): Route[] {
  async function facets(context: Context): Promise<Response> {
    const filter = readRequestQuery(context)
    const found = filter ? await requests.facets(filter) : NONE
    const { counts, rows, oldest_ms, is_partial } = found
    const data = await Promise.all([...counts].map(([name, values]) => facetOf(name, values)))
    const from = is_partial && oldest_ms !== null ? Math.floor(oldest_ms / 1000) : null
    return Response.json({ object: 'facets', partial: is_partial, rows, from, facets: data })
  }

  async function facetOf(filter: FacetName, counts: ReadonlyMap<string, number>) {
    const ordered = [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    const values = ordered.slice(0, MAX_VALUES).map(async ([value, count]) => ({
      value,
      name: filter === 'token' || filter === 'project' ? await nameOf(named, filter, value) : value,
      count,
    }))
    return { filter, values: await Promise.all(values), more: ordered.length > MAX_VALUES }
  }

  return [
    adminRoute(['GET', '/admin/v1/requests/facets', { right: 'read', project: 'own' }], {
      summary: 'The values that the request log can be filtered by',
      description:
        'How many requests that meet all conditions have each model, provider, target, token, project, status, error, end user and tag. Rows are counted from the newest on for at most a tenth of a second; where there are more, the counts are partial. A project_admin sees those of its project.',
      query: REQUEST_FILTERS,
      response: Facets,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: facets,
    }),
  ]
}

const NONE = { counts: new Map(), rows: 0, oldest_ms: null, is_partial: false }
