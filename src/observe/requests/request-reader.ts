/** Reads the request log for operators, and takes what clients think of responses. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Caller } from '../../spec/token.ts'
import type {
  FacetCounts,
  RequestFilter,
  RequestLogStore,
  RequestPosition,
  RequestQuery,
} from '../../store/requests/request-row.ts'
import type { Contents } from './captured-contents.ts'
import { type RequestView, viewRequests } from './request-view.ts'

/** `score`, `text`: null where it was not given. */
type GivenFeedback = { request_id: string; score: number | null; text: string | null }

/** `key_id`: of the key that they are encrypted with. */
type RecordedContents = Contents & { key_id: string }

export type RequestReader = {
  /** Newest first; a page may be short, or empty, and not the last. */
  page(query: RequestQuery): Promise<{ data: RequestView[]; next: RequestPosition | undefined }>
  /** How many rows have each value, of as many rows as a bounded time allows. */
  facets(filter: RequestFilter): Promise<FacetCounts>
  find(row_id: number): Promise<RequestView | undefined>
  /** The rows beside this one, of those that meet the filter. */
  neighbors(row: Pick<RequestView, 'id' | 'at_ms'>, filter: RequestFilter): Promise<RequestNeighbors>
  /** What is recorded of its prompt and its response; undefined: nothing. Throws contents_unreadable. */
  contents(request: Pick<RequestView, 'id' | 'request_id'>): Promise<RecordedContents | undefined>
  /** Joins feedback to the newest request of this id that the caller, or its project, has made; undefined: there is none. */
  rate(
    caller: Pick<Caller, 'token_id' | 'project_id'>,
    given: GivenFeedback,
  ): Promise<{ created_at: number } | undefined>
}

/** Ids of rows; null: there is none. `is_partial`: the search ended at its bound, so that there may be one after all. */
type RequestNeighbors = { newer: string | null; older: string | null; is_partial: boolean }

/** Of one direction, searches that continue each other. */
const MAX_NEIGHBOR_SEARCHES = 4

type ReaderParts = {
  store: Pick<RequestLogStore, 'search' | 'facets' | 'find' | 'feedback' | 'taskCharges' | 'addFeedback'>
  /** Writes what this process has in memory. */
  flush(): Promise<void>
  contents(row: { row_id: number; request_id: string }): Promise<RecordedContents | undefined>
  clock: Clock
}

export function createRequestReader({ store, flush, contents, clock }: ReaderParts): RequestReader {
  async function newestOf(filter: RequestFilter): Promise<number | undefined> {
    const { rows } = await store.search({ filter, limit: 1 })
    return rows[0]?.row_id
  }

  async function beside(filter: RequestFilter, from: RequestPosition, order: 'asc' | 'desc') {
    let after: RequestPosition | undefined = from
    for (let count = 0; after && count < MAX_NEIGHBOR_SEARCHES; count++) {
      const { rows, next } = await store.search({ filter, after, limit: 1, order })
      if (rows[0]) return { id: String(rows[0].row_id), is_partial: false }
      after = next
    }
    return { id: null, is_partial: after !== undefined }
  }

  async function ownRow({ token_id, project_id }: Pick<Caller, 'token_id' | 'project_id'>, request_id: string) {
    const of_project = project_id === undefined ? undefined : await newestOf({ request_id, project_id })
    return of_project ?? newestOf({ request_id, token_id })
  }

  return {
    async page(query) {
      await flush()
      const { rows, next } = await store.search(query)
      return { data: await viewRequests(store, rows), next }
    },
    async facets(filter) {
      await flush()
      return store.facets(filter)
    },
    async find(row_id) {
      await flush()
      const [found] = await viewRequests(store, await store.find([row_id]))
      return found
    },
    async neighbors({ id, at_ms }, filter) {
      await flush()
      const from = { at_ms, row_id: Number(id) }
      const newer = await beside(filter, from, 'asc')
      const older = await beside(filter, from, 'desc')
      return { newer: newer.id, older: older.id, is_partial: newer.is_partial || older.is_partial }
    },
    contents: ({ id, request_id }) => contents({ row_id: Number(id), request_id }),
    async rate(caller, { request_id, score, text }) {
      let row_id = await ownRow(caller, request_id)
      if (row_id === undefined) {
        // Its row may still be in memory.
        await flush()
        row_id = await ownRow(caller, request_id)
      }
      if (row_id === undefined) return undefined
      await store.addFeedback({ row_id, score, text, created_ms: Math.round(clock.now()) })
      return { created_at: unixSeconds(clock) }
    },
  }
}
