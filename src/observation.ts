/** What is told of requests and calls: the access log. Observers never delay a call. */
import type { FinishedRequest } from './http/context.ts'
import type { Log } from './kit/log.ts'
import { createAccessLog } from './observe/access-log.ts'
import { joinRequests } from './observe/requests.ts'
import type { CallSubscriber } from './pipeline/events.ts'
import type { Telemetry } from './tracing.ts'

type Observation = {
  /** Subscribers of the pipeline. */
  calls: readonly CallSubscriber[]
  /** To be called at the end of each request. */
  requestFinished(request: FinishedRequest): void
}

type ObservationParts = {
  /** Absent: nothing is exported by OTLP. */
  telemetry?: Telemetry | undefined
  log: Log
}

export function createObservation({ telemetry, log }: ObservationParts): Observation {
  const observers = [createAccessLog({ log })]
  if (telemetry?.tracing) observers.push(telemetry.tracing.observe)
  const requests = joinRequests(observers, log)
  return { calls: [requests.calls], requestFinished: requests.requestFinished }
}
