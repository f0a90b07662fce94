/** What is told of requests and calls: the access log. Observers never delay a call. */
import type { FinishedRequest } from './http/context.ts'
import type { Log } from './kit/log.ts'
import { createAccessLog } from './observe/access-log.ts'
import { joinRequests } from './observe/requests.ts'
import type { CallSubscriber } from './pipeline/events.ts'

type Observation = {
  /** Subscribers of the pipeline. */
  calls: readonly CallSubscriber[]
  /** To be called at the end of each request. */
  requestFinished(request: FinishedRequest): void
}

export function createObservation({ log }: { log: Log }): Observation {
  const requests = joinRequests([createAccessLog({ log })], log)
  return { calls: [requests.calls], requestFinished: requests.requestFinished }
}
