/** What the request log records of a request that has ended. */
import type { Call, CallRecord } from '../../calls/call.ts'
import { type Attempt, attemptReport } from '../../calls/routing/attempt.ts'
import type { FinishedRequest } from '../../http/context.ts'
import { tenth } from '../../kit/clock.ts'
import { targetName } from '../../providers/provider.ts'
import type { LedgerEntry } from '../../store/ledger/ledger-entry.ts'
import type { RequestDetail, RequestRow } from '../../store/requests/request-row.ts'
import type { EndedRequest } from './requests.ts'

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
  return record ? callRow(record, ended, offset) : refusedRow(request as FinishedRequest, offset)
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
