/** Joins each request that has ended with its call, once both are known. */
import type { FinishedRequest } from '../http/context.ts'
import type { Log } from '../kit/log.ts'
import type { CallRecord } from '../pipeline/call.ts'
import type { CallSubscriber } from '../pipeline/events.ts'

/**
 * One of both is always there. Without a record: no call was made, such as for `GET /v1/models` or a wrong token. Without
 * a request: the call is not the one call of a request (`Call.is_detached`).
 */
export type EndedRequest = { request: FinishedRequest; record?: CallRecord } | { request?: never; record: CallRecord }

/** Told of each request exactly once, after its call was settled: its entries, units and errors are final. Must return at once. */
export type RequestObserver = (ended: EndedRequest) => void

type RequestJoin = {
  calls: CallSubscriber
  requestFinished(request: FinishedRequest): void
}

/** An exception in an observer is logged; the others are still told. */
export function joinRequests(observers: readonly RequestObserver[], log: Log): RequestJoin {
  /** Requests whose response was sent, while the usage of their call is still being counted. */
  const waiting = new Map<CallRecord, FinishedRequest>()

  function notify(ended: EndedRequest): void {
    for (const observer of observers) {
      try {
        observer(ended)
      } catch (error) {
        log.error('an observer of requests failed', {}, error)
      }
    }
  }

  return {
    calls: {
      finished(record) {
        if (record.call.is_detached) return notify({ record })
        const request = waiting.get(record)
        if (!request) return
        waiting.delete(record)
        notify({ request, record })
      },
    },
    requestFinished(request) {
      const { record } = request.context as { record?: CallRecord }
      if (record?.is_open) waiting.set(record, request)
      else notify(record ? { request, record } : { request })
    },
  }
}
