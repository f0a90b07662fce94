/** The access log: one line for each request, with what HTTP and the pipeline know of it. */
import type { CallRecord } from '../../calls/call.ts'
import { targetName } from '../../calls/routing/target-state.ts'
import type { FinishedRequest } from '../../http/context.ts'
import { tenth } from '../../kit/clock.ts'
import type { Log, LogFields } from '../../kit/log.ts'
import { attemptReport } from './request-log.ts'
import type { Recorder } from './requests.ts'

export function createAccessLog({ log }: { log: Log }): Recorder {
  return (ended, { offset, each }) =>
    each(ended, ({ request, record, at }) => {
      if (request) log.info('request', fieldsOf(request, record), at + offset)
    })
}

function fieldsOf({ context, path, status, outcome, total_ms }: FinishedRequest, record?: CallRecord): LogFields {
  const { request_id, request, note, trace } = context
  const fields: LogFields = { request_id, method: request.method, path, status, outcome, total_ms: tenth(total_ms) }
  if (trace) fields.trace_id = trace.trace_id
  Object.assign(fields, note)
  if (note.first_byte_ms !== undefined) fields.first_byte_ms = tenth(note.first_byte_ms)
  if (record) addCall(fields, record)
  return fields
}

function addCall(
  fields: LogFields,
  { call, model, target, attempts, units, cache, cache_similarity, queued_ms }: CallRecord,
): void {
  fields.model = model
  if (cache) fields.cache = cache
  if (cache_similarity !== undefined) fields.cache_similarity = cache_similarity
  if (queued_ms !== undefined) fields.queued_ms = tenth(queued_ms)
  fields.target = target && targetName(target)
  fields.key = target?.key
  fields.tags = call.options?.tags?.join(',')
  if (attempts.length > 1) fields.attempts = attempts.map((attempt) => attemptReport(attempt))
  fields.input_tokens = units?.input_tokens
  fields.output_tokens = units?.output_tokens
  if (units?.estimated) fields.estimated = true
}
