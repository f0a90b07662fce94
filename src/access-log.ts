/** The access log: one line for each request, with what HTTP and the pipeline know of it. */
import type { FinishedRequest } from './http/context.ts'
import type { Log, LogFields } from './kit/log.ts'
import type { Call, CallRecord } from './pipeline/call.ts'
import type { CallSubscriber } from './pipeline/events.ts'

type AccessLog = {
  calls: CallSubscriber
  requestFinished(request: FinishedRequest): void
}

export function createAccessLog({ log }: { log: Log }): AccessLog {
  /** The call of each request that is one; forgotten with the request. */
  const records = new WeakMap<Call, CallRecord>()
  return {
    calls: {
      started(record) {
        records.set(record.call, record)
      },
    },
    requestFinished({ context, path, status, outcome, total_ms }) {
      const { request_id, request, note } = context
      const fields: LogFields = { request_id, method: request.method, path, status, outcome, total_ms }
      Object.assign(fields, note)
      const record = records.get(context)
      if (record) addCall(fields, record)
      log.info('request', fields)
    },
  }
}

function addCall(fields: LogFields, { model, target, attempts, units }: CallRecord): void {
  fields.model = model
  fields.target = target && `${target.provider.id}/${target.model}`
  if (attempts > 1) fields.attempts = attempts
  fields.input_tokens = units?.input_tokens
  fields.output_tokens = units?.output_tokens
  if (units?.estimated) fields.estimated = true
}
