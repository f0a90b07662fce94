/** Reads the video responses of chat-compatible upstreams: the official fields, the specification's, New API's. */
import { byName } from '../../kit/by-name.ts'
import { asRecord, isRecord, type JsonRecord } from '../../kit/json.ts'
import { FAIL_CODES, type FailCode } from '../../spec/task.ts'
import { isHttpUrl, type OrderClient } from '../orders/order-client.ts'
import type { TaskProgress } from '../provider.ts'

/** The places of an order's id: New API has it twice, the specification within `data`. */
export function orderIdIn(response: JsonRecord): unknown[] {
  const data = asRecord(response.data)
  return [response.id, response.task_id, data.task_id, data.id]
}

/** In lower case. NOT_START and SUBMITTED are the specification's own; a gateway that is waiting has not failed. */
const STATES = byName<'QUEUED' | 'IN_PROGRESS' | 'SUCCESS' | FailCode>(
  ['QUEUED', 'not_start submitted queued queueing pending created'],
  ['IN_PROGRESS', 'in_progress processing running generating'],
  ['SUCCESS', 'success succeeded succeed completed done'],
  ['generation_failed', 'failure failed error'],
  ['timeout', 'expired'],
  ['canceled', 'cancelled canceled'],
)

/** `contentUrl` is the URL of the file when the response has no other. */
export function readVideo(response: JsonRecord, client: OrderClient, contentUrl: string): TaskProgress {
  const task = isRecord(response.data) && response.data.status !== undefined ? response.data : response
  const state = STATES[client.readStatus(task.status).toLowerCase()]
  if (state === undefined) return {}
  if (state === 'SUCCESS') return withExpiry(client.success(filesIn(task, client.base_url) ?? [contentUrl]), task)
  if (state === 'QUEUED' || state === 'IN_PROGRESS') return { status: state, ...progressIn(task.progress) }
  const error = asRecord(task.error)
  const reason = [task.fail_reason, error.message, task.error, response.message].find(isText)
  return client.failure(failCodeOf(state, [task.fail_code, error.code]), reason)
}

/** Unix seconds; some upstreams use 0 for never. */
const withExpiry = (progress: TaskProgress, { expires_at }: JsonRecord): TaskProgress =>
  progress.status === 'SUCCESS' && typeof expires_at === 'number' && expires_at > 0
    ? { ...progress, expires_at }
    : progress

/** A number, or text such as `30%`. */
function progressIn(value: unknown): { progress?: number } {
  const percent = typeof value === 'string' ? Number.parseFloat(value) : value
  return typeof percent === 'number' && percent >= 0 && percent <= 100 ? { progress: Math.floor(percent) } : {}
}

/** Older versions of New API put the URL into `fail_reason`; URLs may be relative to the gateway. */
function filesIn(task: JsonRecord, base: string): string[] | undefined {
  const metadata = asRecord(task.metadata)
  const outputs = Array.isArray(task.outputs) ? task.outputs : []
  const found =
    outputs.length > 0 ? outputs : [task.result_url, task.video_url, task.url, metadata.url, task.fail_reason]
  const urls = found.filter(isText).flatMap((value) => {
    if (isHttpUrl(value)) return [value]
    return value.startsWith('/') ? [new URL(value, base).href] : []
  })
  if (urls.length === 0) return undefined
  return outputs.length > 0 ? urls : urls.slice(0, 1)
}

/** Another Gatehouse returns our own codes; of other codes only the unambiguous ones are mapped. */
function failCodeOf(otherwise: FailCode, codes: unknown[]): FailCode {
  const code = codes.find(isText)
  if (code === undefined) return otherwise
  if (Object.hasOwn(FAIL_CODES, code)) return code as FailCode
  if (/moderation|polic|safety|sensitive/i.test(code)) return 'content_policy_violation'
  if (/^invalid_|bad_request/i.test(code)) return 'invalid_input'
  if (/rate_limit/i.test(code)) return 'upstream_rate_limited'
  if (/server_error|internal|upstream/i.test(code)) return 'upstream_error'
  return otherwise
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
