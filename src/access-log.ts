/** The access log: one line for each request, with what HTTP and the pipeline know of it. */
import type { FinishedRequest } from './http/context.ts'
import type { Log, LogFields } from './kit/log.ts'
import type { Call, CallRecord } from './pipeline/call.ts'
import type { CallSubscriber } from './pipeline/events.ts'
import { targetName } from './providers/provider.ts'
import { attemptReport } from './routing/attempt.ts'

type AccessLog = {
  calls: CallSubscriber
  requestFinished(request: FinishedRequest): void
}

export function createAccessLog({ log }: { log: Log }): AccessLog {
  const settled = new WeakSet<CallRecord>()
  /** Failed requests whose usage is still being estimated. */
  const waiting = new Map<CallRecord, FinishedRequest>()

  function write({ context, path, status, outcome, total_ms }: FinishedRequest, record: CallRecord | undefined): void {
    const { request_id, request, note } = context
    const fields: LogFields = { request_id, method: request.method, path, status, outcome, total_ms }
    Object.assign(fields, note)
    if (record) addCall(fields, record)
    log.info('request', fields)
  }

  return {
    calls: {
      finished(record) {
        settled.add(record)
        const request = waiting.get(record)
        if (!request) return
        waiting.delete(record)
        write(request, record)
      },
    },
    requestFinished(request) {
      const { record }: Call = request.context
      // The response to a failed call is sent before the call is settled.
      if (record?.error !== undefined && !settled.has(record)) waiting.set(record, request)
      else write(request, record)
    },
  }
}

function addCall(
  fields: LogFields,
  { call, model, target, attempts, units, cache, cache_similarity, queued_ms }: CallRecord,
): void {
  fields.model = model
  if (cache) fields.cache = cache
  if (cache_similarity !== undefined) fields.cache_similarity = cache_similarity
  if (queued_ms !== undefined) fields.queued_ms = Math.round(queued_ms)
  fields.target = target && targetName(target)
  fields.key = target?.key
  fields.tags = call.options?.tags?.join(',')
  if (attempts.length > 1) fields.attempts = attempts.map(attemptReport)
  fields.input_tokens = units?.input_tokens
  fields.output_tokens = units?.output_tokens
  if (units?.estimated) fields.estimated = true
}
