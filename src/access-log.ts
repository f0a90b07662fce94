/** The access log: one line for each request, with what HTTP and the pipeline know of it. */
import type { FinishedRequest } from './http/context.ts'
import type { Log } from './kit/log.ts'
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
      const record = records.get(context)
      log.info('request', {
        request_id,
        method: request.method,
        path,
        status,
        outcome,
        total_ms,
        ...note,
        ...(record && fieldsOf(record)),
      })
    },
  }
}

function fieldsOf({ model, target, attempts, units }: CallRecord) {
  return {
    model,
    target: target && `${target.provider.id}/${target.model}`,
    ...(attempts > 1 ? { attempts } : {}),
    input_tokens: units?.input_tokens,
    output_tokens: units?.output_tokens,
    ...(units?.estimated ? { estimated: true } : {}),
  }
}
