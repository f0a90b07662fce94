/**
 * Joins each request that has ended with its call, and gives lists of them to the recorders, off the path of calls. The first
 * of these is the access log: one line for each request, with what HTTP and the pipeline know of it.
 */
import type { CallRecord, CallSubscriber } from '../../calls/call.ts'
import type { Attempt } from '../../calls/routing/attempt.ts'
import { targetName } from '../../calls/routing/target-state.ts'
import type { FinishedRequest } from '../../http/context.ts'
import { type Clock, tenth } from '../../kit/clock.ts'
import type { Log, LogFields } from '../../kit/log.ts'
import type { RequestRow } from '../../store/requests/request-row.ts'

/**
 * One of both is always there. Without a record: no call was made, such as for `GET /v1/models` or a wrong token. Without
 * a request: the call is not the one call of a request (`Call.is_detached`).
 */
export type EndedRequest = Ended &
  (
    | { readonly request: FinishedRequest; readonly record?: CallRecord }
    | { readonly request?: undefined; readonly record: CallRecord }
  )

type Ended = {
  /** When it ended, by the steady clock. */
  readonly at: number
  /** Why its client had left by then, as an error code; undefined: it had not. */
  readonly left: string | undefined
  /** Made once, for all recorders that need it. */
  row?: RequestRow
}

/** What all of a list have in common. */
export type Recording = {
  /** From the steady clock to unix milliseconds. */
  readonly offset: number
  /** Calls the function for each: an exception is logged, and the others are still recorded. */
  each(ended: readonly EndedRequest[], record: (one: EndedRequest) => void): void
}

/** Is given each request exactly once, after its call was settled: its entries, units and errors are final. */
export type Recorder = (ended: readonly EndedRequest[], recording: Recording) => void

type Requests = {
  calls: CallSubscriber
  requestFinished(request: FinishedRequest): void
  /** Records all that have ended until now. */
  flush(): void
}

/** How long the end of a call waits for others: readers in this process flush first. */
const HOLD_MILLISECONDS = 20
const MAX_HELD = 64

type RequestsParts = { recorders: readonly Recorder[]; clock: Clock; log: Log }

export function createRequests({ recorders, clock, log }: RequestsParts): Requests {
  /** Requests whose response was sent, while the usage of their call is still being counted. */
  const waiting = new Map<CallRecord, FinishedRequest>()
  let held: EndedRequest[] = []
  let isTimed = false

  function each(ended: readonly EndedRequest[], record: (one: EndedRequest) => void): void {
    for (const one of ended) {
      try {
        record(one)
      } catch (error) {
        log.error('a request could not be recorded', {}, error)
      }
    }
  }

  function flush(): void {
    if (held.length === 0) return
    const ended = held
    held = []
    const recording = { offset: clock.now() - clock.steady(), each }
    for (const record of recorders) {
      try {
        record(ended, recording)
      } catch (error) {
        log.error('a recorder of requests failed', {}, error)
      }
    }
  }

  function add(request: FinishedRequest | undefined, record: CallRecord | undefined): void {
    const ending = record && (record.call.ending ?? record.call.signal)
    const left = ending?.aborted ? (ending.reason?.code ?? '') : undefined
    held.push({ request, record, at: clock.steady(), left } as EndedRequest)
    if (held.length >= MAX_HELD) flush()
    if (isTimed || held.length === 0) return
    isTimed = true
    clock.after(HOLD_MILLISECONDS, () => {
      isTimed = false
      flush()
    })
  }

  return {
    calls: {
      finished(record) {
        if (record.call.is_detached) return add(undefined, record)
        const request = waiting.get(record)
        if (!request) return
        waiting.delete(record)
        add(request, record)
      },
    },
    requestFinished(request) {
      const { record } = request.context as { record?: CallRecord }
      if (record?.is_open) waiting.set(record, request)
      else add(request, record)
    },
    flush,
  }
}

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
  { call, model, target, attempts, units, cache, cache_similarity, guards, queued_ms }: CallRecord,
): void {
  fields.model = model
  if (cache) fields.cache = cache
  if (cache_similarity !== undefined) fields.cache_similarity = cache_similarity
  if (guards) fields.guards = guards.map(({ name, on, outcome }) => `${name} ${on} ${outcome}`).join(', ')
  if (queued_ms !== undefined) fields.queued_ms = tenth(queued_ms)
  fields.target = target && targetName(target)
  fields.key = target?.key
  fields.tags = call.options?.tags?.join(',')
  if (attempts.length > 1) fields.attempts = attempts.map((attempt) => attemptReport(attempt))
  fields.input_tokens = units?.input_tokens
  fields.output_tokens = units?.output_tokens
  if (units?.estimated) fields.estimated = true
}

/**
 * What is reported of one upstream call. Members that are undefined are left out of JSON. `arrived`: of the request, by
 * the steady clock; given where the start of the attempt is reported too.
 */
export const attemptReport = (
  { target, started, error, upstream_status, ms, next, is_hedge, is_lost }: Attempt,
  arrived?: number,
) => ({
  target: targetName(target),
  key: target.key,
  error,
  upstream_status,
  start_ms: arrived === undefined ? undefined : tenth(started - arrived),
  ms: ms === undefined ? undefined : tenth(ms),
  hedge: is_hedge || undefined,
  lost: is_lost || undefined,
  next,
})
