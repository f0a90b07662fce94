/** The request log: a row for each call that has ended, and for each request of a known token that was refused before. */
import type { Call, CallRecord } from '../../calls/call.ts'
import type { Attempt } from '../../calls/routing/attempt.ts'
import { targetName } from '../../calls/routing/target-state.ts'
import type { FinishedRequest } from '../../http/context.ts'
import { type BatchHealth, BatchQueue } from '../../kit/batch-queue.ts'
import { type Clock, tenth, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Capture } from '../../protocols/shared/capture.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import type { RequestDetail, RequestLogStore, RequestRow } from '../../store/requests/request-row.ts'
import type { RequestSinks } from './request-sinks.ts'
import { attemptReport, type EndedRequest, type Recorder } from './requests.ts'

/** With what a request waits for others before, half a second: what a process that is killed loses at most, while its store can be written. */
const FLUSH_MILLISECONDS = 480
/** One transaction. On SQLite it blocks the event loop, some 10 microseconds a row: calls go on between two of them. */
const ROWS_PER_WRITE = 100
/** At thousands of calls a second: a row takes a fourth less, as each page that changes is written once for more rows. */
const ROWS_PER_WRITE_BEHIND = 400
/** Some 30 MB. */
const MAX_QUEUED = 20_000
const WRITE_MILLISECONDS = 10_000
/** Rows of one token in a minute that reached no provider and no cache: a client that repeats a refused request must not fill the disk. */
const REFUSED_PER_MINUTE = 600

type RequestLog = {
  record: Recorder
  /** `suppressed`: rows of refused requests beyond those of a minute. */
  health(): BatchHealth & { suppressed: number }
  /** Deletes one batch of rows that are no longer kept; false: nothing is left. */
  prune(): Promise<boolean>
  flush(): Promise<void>
  close(options: { deadline_ms: number }): Promise<void>
}

type RequestLogParts = {
  store: Pick<RequestLogStore, 'reserve' | 'append' | 'prune'>
  /** Where rows go besides; absent: nowhere. */
  sinks?: Pick<RequestSinks, 'push'> | undefined
  /** Records the contents of calls that are marked for it; absent: of none. */
  contents?: { add(capture: Capture, row: RequestRow): void } | undefined
  assignIds?: AssignIds
  onWritten?: () => void
  /** Read at each use. */
  settings(): { enabled: boolean; keep_days: number }
  clock: Clock
  log: Log
}

export function createRequestLog(parts: RequestLogParts): RequestLog {
  const { store, sinks, contents, onWritten, settings, clock, log } = parts
  const refused = createRefusedLimit()
  const assignIds = parts.assignIds ?? createIds(store)
  const rows = new BatchQueue<RequestRow>({
    name: 'the request log',
    async write(batch) {
      // A row with an id may have been written before, by an attempt whose end is not known.
      const is_repeated = batch.some(({ row_id }) => row_id !== 0)
      await assignIds(batch)
      await store.append(batch, { is_repeated })
      onWritten?.()
      return 0
    },
    max_queued: MAX_QUEUED,
    max_batch: ROWS_PER_WRITE,
    max_batch_behind: ROWS_PER_WRITE_BEHIND,
    every_ms: FLUSH_MILLISECONDS,
    timeout_ms: WRITE_MILLISECONDS,
    clock,
    log,
  })
  return {
    record(ended, { offset, each }) {
      const { enabled } = settings()
      if (!enabled && !sinks) return
      const added: RequestRow[] = []
      each(ended, (one) => {
        const { record } = one
        const hasServed = record !== undefined && (record.attempts.length > 0 || record.error === undefined)
        if (!hasServed && !refused.admits(one)) return
        const row = requestRow(one, offset)
        if (enabled) added.push(row)
        const capture = record?.call.capture
        if (enabled && capture?.is_recorded) contents?.add(capture, row)
        sinks?.push(row)
      })
      rows.pushAll(added)
    },
    health: () => ({ ...rows.health(), suppressed: refused.suppressed() }),
    prune: () => store.prune((unixSeconds(clock) - settings().keep_days * 86_400) * 1000),
    flush: () => rows.flush(),
    close: (options) => rows.close(options),
  }
}

export type AssignIds = (rows: readonly RequestRow[]) => Promise<void>

/** Gives ids to rows that have none, from ranges that no other process gets. A row keeps its id when it is written again. */
export function createIds(store: Pick<RequestLogStore, 'reserve'>): AssignIds {
  const RESERVED = 2_000
  let [next, end] = [0, 0]
  async function assign(rows: readonly RequestRow[]): Promise<void> {
    for (const row of rows) {
      if (row.row_id !== 0) continue
      if (next === end) {
        next = await store.reserve(RESERVED)
        end = next + RESERVED
      }
      row.row_id = next++
    }
  }
  /** One after the other: rows and their contents are written at the same time. */
  let last: Promise<unknown> = Promise.resolve()
  return (rows) => {
    const assigned = last.then(() => assign(rows))
    last = assigned.catch(() => undefined)
    return assigned
  }
}

function createRefusedLimit() {
  let minute = 0
  let counts = new Map<string, number>()
  let suppressed = 0
  return {
    admits({ record, request, at }: EndedRequest): boolean {
      const token_id = record?.call.caller.token_id ?? request?.context.caller.token_id ?? ''
      // Of known tokens, since nobody else may fill the disk.
      if (!record && (token_id === '' || !request || request.status < 400)) return false
      const now = Math.floor(at / 60_000)
      if (now !== minute) {
        minute = now
        counts = new Map()
      }
      const count = (counts.get(token_id) ?? 0) + 1
      counts.set(token_id, count)
      if (count <= REFUSED_PER_MINUTE) return true
      suppressed++
      return false
    },
    suppressed: () => suppressed,
  }
}

/** Clients choose these texts. */
const MAX_TEXT = 256
const MAX_METADATA = 16
const MAX_METADATA_KEY = 64
const MAX_METADATA_VALUE = 512
/** A pair of metadata is also found as a tag, `key:value`. */
const MAX_TAG = 128
const MAX_ATTEMPTS = 20
const NO_TAGS: readonly string[] = []

/** `row_id` is 0 until the store has given one. `offset`: from the steady clock to unix milliseconds. */
export function requestRow(ended: EndedRequest, offset: number): RequestRow {
  const { record, request } = ended
  ended.row ??= record ? callRow(record, ended, offset) : refusedRow(request as FinishedRequest, offset)
  return ended.row
}

function refusedRow(request: FinishedRequest, offset: number): RequestRow {
  const { context, status } = request
  const { caller } = context
  return {
    row_id: 0,
    at_ms: Math.round(context.arrived + offset),
    request_id: context.request_id,
    token_id: caller.token_id,
    project_id: caller.project_id ?? null,
    end_user: textOrNull((context as Partial<Call>).end_user),
    session: textOrNull((context as Partial<Call>).session),
    trace_id: context.trace?.trace_id ?? null,
    family: '',
    model: context.note.model ?? '',
    provider: '',
    target: '',
    status,
    error: context.note.error ?? null,
    total_ms: tenth(request.total_ms),
    cost: null,
    tags: NO_TAGS,
    detail: httpDetail(request),
  }
}

function callRow(record: CallRecord, { request, at }: EndedRequest, offset: number): RequestRow {
  const { call, target, entries } = record
  const total_ms = request ? request.total_ms : at - call.arrived
  const metadata = call.metadata && boundedMetadata(call.metadata)
  return {
    row_id: 0,
    at_ms: Math.round(call.arrived + offset),
    request_id: call.request_id,
    token_id: call.caller.token_id,
    project_id: call.caller.project_id ?? null,
    end_user: textOrNull(call.end_user),
    session: textOrNull(call.session),
    trace_id: call.trace?.trace_id ?? null,
    family: record.family,
    model: record.model ?? '',
    provider: target?.provider.id ?? '',
    target: target ? targetName(target) : '',
    status: request?.status ?? 0,
    error: record.error ?? request?.context.note.error ?? null,
    total_ms: tenth(total_ms),
    cost: entries?.[0] ? entries[0].amount : null,
    tags: metadata || call.options?.tags ? tagsOf(call, metadata) : NO_TAGS,
    detail: callDetail(record, request, metadata),
  }
}

function callDetail(
  record: CallRecord,
  request: FinishedRequest | undefined,
  metadata: Record<string, string> | undefined,
): RequestDetail {
  const detail = request ? httpDetail(request) : ({} as RequestDetail)
  const { call, attempts, entries, units, queued_ms } = record
  if (record.requested !== undefined) detail.requested_model = record.requested
  if (record.target?.key !== undefined) detail.key = record.target.key
  if (queued_ms !== undefined) detail.queued_ms = tenth(queued_ms)
  if (record.cache !== undefined) detail.cache = record.cache
  if (record.cache_similarity !== undefined) detail.cache_similarity = record.cache_similarity
  if (record.guards !== undefined) detail.guards = record.guards
  if (record.upstream_status !== undefined) detail.upstream_status = record.upstream_status
  if (units) detail.units = units
  if (entries?.[0]) detail.provider_cost = entries.length === 1 ? entries[0].cost : costOf(entries)
  const [first] = attempts
  if (first)
    detail.attempts = attempts.length === 1 ? [attemptReport(first, call.arrived)] : reportsOf(attempts, call.arrived)
  if (metadata) detail.metadata = metadata
  if (call.task_id !== undefined) detail.task_id = call.task_id
  if (call.caller.playground !== undefined) detail.playground = call.caller.playground
  return detail
}

const reportsOf = (attempts: readonly Attempt[], arrived: number) =>
  attempts.slice(0, MAX_ATTEMPTS).map((attempt) => attemptReport(attempt, arrived))

function httpDetail({ context, path, outcome }: FinishedRequest): RequestDetail {
  const { note, request } = context
  const detail: RequestDetail = { method: request.method, path, outcome }
  if (note.first_byte_ms !== undefined) detail.first_byte_ms = tenth(note.first_byte_ms)
  if (note.stream) detail.stream = true
  if (note.websocket !== undefined) detail.websocket = note.websocket
  if (note.upstream_status !== undefined) detail.upstream_status = note.upstream_status
  return detail
}

/** With what hedges have cost; null where any of it is not known. */
const costOf = (entries: readonly LedgerEntry[]): number | null =>
  entries.reduce<number | null>((sum, { cost }) => (sum === null || cost === null ? null : sum + cost), 0)

function tagsOf({ options }: Call, metadata: Record<string, string> | undefined): string[] {
  const pairs = Object.entries(metadata ?? {}).map(([key, value]) => `${key}:${value}`)
  return [...new Set([...(options?.tags ?? []), ...pairs.filter((pair) => pair.length <= MAX_TAG)])]
}

function boundedMetadata(given: Readonly<Record<string, unknown>>): Record<string, string> | undefined {
  const metadata: Record<string, string> = {}
  let count = 0
  for (const key in given) {
    const value = given[key]
    if (typeof value !== 'string' || key.length > MAX_METADATA_KEY) continue
    if (count++ === MAX_METADATA) break
    metadata[storable(key)] = storable(value.slice(0, MAX_METADATA_VALUE))
  }
  return count === 0 ? undefined : metadata
}

const textOrNull = (text: string | undefined): string | null =>
  text === undefined ? null : storable(text).slice(0, MAX_TEXT)

/** PostgreSQL's text type cannot hold NUL, nor half of a character. */
const storable = (text: string): string => text.replaceAll('\0', '').toWellFormed()
