/** The request log as the gateway stores it: a row for each call, its tags, what clients think of it, and contents. */
import type { Units } from '../../spec/usage.ts'

/** One upstream call of a request. */
type AttemptRow = {
  target: string
  key?: string | undefined
  /** From the arrival of the request to the start of the attempt; absent in rows of older versions. */
  start_ms?: number | undefined
  /** Milliseconds to its first byte or its error. */
  ms?: number | undefined
  error?: string | undefined
  upstream_status?: number | undefined
  hedge?: true | undefined
  lost?: true | undefined
  /** What followed it, where it did not serve the call. */
  next?: string | undefined
}

/** What is shown and not searched. Milliseconds from the arrival, but for `queued_ms`, which is a length of time. */
export type RequestDetail = {
  method?: string | undefined
  path?: string | undefined
  outcome?: string | undefined
  /** The model that was requested, where another one served the call. */
  requested_model?: string | undefined
  key?: string | undefined
  stream?: true | undefined
  queued_ms?: number | undefined
  first_byte_ms?: number | undefined
  cache?: string | undefined
  cache_similarity?: number | undefined
  /** What the guards of the call have decided: never the content. */
  guards?: readonly { name: string; on: string; outcome: string }[] | undefined
  upstream_status?: number | undefined
  units?: Units | undefined
  /** What the provider charges, in nano-units; null: not known. */
  provider_cost?: number | null | undefined
  attempts?: AttemptRow[] | undefined
  metadata?: Record<string, string> | undefined
  task_id?: string | undefined
  /** The person who called, where the call is one of the playground. */
  playground?: string | undefined
  /** The response that it has created in the background, or that it is. */
  websocket?: string | undefined
}

export type RequestRow = {
  /** Unique. Given by the store: see `RequestLogStore.reserve`. */
  row_id: number
  /** Its arrival, in unix milliseconds. */
  at_ms: number
  /** The caller's where it gave one, which it may repeat. */
  request_id: string
  token_id: string
  project_id: string | null
  end_user: string | null
  session: string | null
  trace_id: string | null
  /** Empty where no call was made, as are the next three. */
  family: string
  model: string
  provider: string
  /** `provider/model`. */
  target: string
  /** Of the HTTP response; 0: it is not the call of one request. */
  status: number
  error: string | null
  total_ms: number
  /** What the caller is charged, in nano-units; null: not known, or nothing was used. */
  cost: number | null
  tags: readonly string[]
  detail: RequestDetail
}

/** Every condition must hold. Times in unix milliseconds, `to_ms` is not included; `min_cost` in nano-units. */
export type RequestFilter = {
  from_ms?: number
  to_ms?: number
  request_id?: string
  trace_id?: string
  session?: string
  end_user?: string
  tag?: string
  token_id?: string
  project_id?: string
  model?: string
  target?: string
  provider?: string
  /** A status, or the hundreds of a class: 4 is 400 to 499. */
  status?: number
  /** A code; `any`: every error. */
  error?: string
  min_cost?: number
  min_ms?: number
}

export type RequestPosition = { at_ms: number; row_id: number }

/** In the order of the query. `next`: where the next page starts; undefined: there is none. A page may be short, or empty, and not the last. */
export type RequestPage = { rows: RequestRow[]; next: RequestPosition | undefined }

export type RequestQuery = {
  filter: RequestFilter
  after?: RequestPosition | undefined
  limit: number
  /** By time. Default `desc`: newest first. */
  order?: 'asc' | 'desc'
}

export type FacetName = 'model' | 'provider' | 'target' | 'token' | 'project' | 'status' | 'error' | 'user' | 'tag'

/** How many rows have each value; of the newest `rows`, since `oldest_ms`, where it is partial. */
export type FacetCounts = {
  counts: Map<FacetName, Map<string, number>>
  rows: number
  oldest_ms: number | null
  is_partial: boolean
}

/** What a client thinks of a response. */
export type Feedback = { row_id: number; score: number | null; text: string | null; created_ms: number }

export type RequestLogStore = {
  /** Ids for new rows: the result and the next `count - 1`. No other process gets them. */
  reserve(count: number): Promise<number>
  /** Adds rows and their sums in one transaction; rows that exist change nothing. `is_repeated`: false where no row can exist. */
  append(rows: readonly RequestRow[], options?: { is_repeated?: boolean }): Promise<void>
  /** Examines a bounded number of rows, so that a search never takes long. */
  search(query: RequestQuery): Promise<RequestPage>
  /** Examines rows for a bounded time. */
  facets(filter: RequestFilter): Promise<FacetCounts>
  find(row_ids: readonly number[]): Promise<RequestRow[]>
  /** Deletes one batch of rows that arrived before; false: nothing is left. */
  prune(before_ms: number): Promise<boolean>
  /** Replaces earlier feedback on the row. */
  addFeedback(feedback: Feedback): Promise<void>
  feedback(row_ids: readonly number[]): Promise<Feedback[]>
  /** What the tasks of these ids are charged and what they cost, in nano-units; tasks that have not ended are missing. */
  taskCharges(task_ids: readonly string[]): Promise<Map<string, { amount: number | null; cost: number | null }>>
}
