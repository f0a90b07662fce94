/** The pipeline: every call of every family passes these stages in this order and is recorded exactly once. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Catalogue, Chosen } from '../models/catalogue.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { CallFamily } from '../spec/endpoint-family.ts'
import { createAdmission, createAttemptAdmission, gone } from './admission.ts'
import { collectBatched, readBatched } from './batched-call.ts'
import type { ResponseCache } from './cache/response-cache.ts'
import type { Call, CallRecord, CallSubscriber, Gate, Plan, TraceAttempt } from './call.ts'
import { usageForClient } from './entries.ts'
import { createFallbacks } from './fallback.ts'
import type { Answered, AnyMeter, Family, Parts, ResponseStream, StreamFamily, UsageOf } from './family.ts'
import { type EmbedText, lookUpAnswer, lookUpStream, lookupFor } from './lookup.ts'
import { createPlans, type Plans } from './plan.ts'
import { PreparedCall } from './prepared-call.ts'
import { boundsOf } from './routing/bounds.ts'
import { OpenAttempt, sendAttempt } from './routing/open-attempt.ts'
import type { Router } from './routing/router.ts'
import { createSettlements, publishTo, type RecordUsage } from './settle.ts'
import { DeliveredStream } from './stream.ts'

/** What is known of a request before it is validated. */
type Requested = {
  family: CallFamily
  /** As the client sent it, of any type. */
  model: unknown
}

/** A streamed call that was sent. */
export type SentStream = {
  /** How the call stands; it tells in the end how the stream ended. */
  record: Readonly<CallRecord>
  /** Resolves when the first part has arrived; rejects with the provider's error. */
  started: Promise<void>
  /** The encoded response. A failure after the first part is encoded as the last part. */
  parts: Parts
  /** Settles a call that is not read to its end, because the client has left. */
  abandon(): Promise<void>
}

/** A call that fits its model. It is neither open nor recorded until `send` is called, once. */
type Sendable<Work, Result> = Pick<Chosen, 'model'> & {
  readonly work: Work
  /** Of its response: those of its plan, and others that the caller of this adds. */
  readonly headers: Record<string, string>
  send(): Result
}

export type Pipeline = {
  /**
   * Throws GatewayError where the caller may not use this model, before the request is validated. The call keeps the
   * result, so that the model is resolved once; if the parser reads another model, that one is resolved and authorized.
   */
  authorize(call: Call, requested: Requested): void
  /** Prepares a call with one answer. Throws GatewayError. `send` rejects with GatewayError, after the call was settled. */
  prepare<Input, Work, Answer, M extends AnyMeter>(
    family: Family<Input, Work, Answer, M>,
    call: Call,
    input: Input,
  ): Sendable<Work, Promise<Answered<Work, Answer, M>>>
  /** Prepares a call and sends it. */
  run<Input, Work, Answer, M extends AnyMeter>(
    family: Family<Input, Work, Answer, M>,
    call: Call,
    input: Input,
  ): Promise<Pick<Chosen, 'requested'> & Answered<Work, Answer, M>>
  /** Prepares a call with a streamed answer. Throws GatewayError. Once sent, it is settled when the stream ends. */
  prepareStream<Input, Work, M extends AnyMeter>(
    family: StreamFamily<Input, Work, M>,
    call: Call,
    input: Input,
  ): Pick<Chosen, 'requested'> & Sendable<Work, SentStream>
  /** Resolves when every call is settled, at the latest at the deadline. */
  close(options: { deadline_ms: number }): Promise<void>
}

type PipelineParts = {
  catalogue: Pick<Catalogue, 'require'>
  /** Absent: made anew for each call. */
  plans?: Plans | undefined
  recordUsage: RecordUsage
  /** Whether the end of a response waits until its call is recorded. Absent: never. */
  isDurable?: () => boolean
  router: Pick<Router, 'attempt' | 'only' | 'candidates'>
  subscribers: readonly CallSubscriber[]
  /** Limits and budgets, in the order in which a call passes them. Absent: none. */
  gates?: readonly Gate[]
  /** Absent: nothing is cached. */
  cache?: ResponseCache
  /** For semantic caches. Absent: there are none. */
  embedText?: EmbedText
  /** Absent: no traces are recorded. */
  traceAttempt?: TraceAttempt | undefined
  clock: Clock
  log: Log
}

export function createPipeline(parts: PipelineParts): Pipeline {
  const { catalogue, recordUsage, subscribers, gates = [], cache, embedText, clock, log } = parts
  const events = publishTo(subscribers, log)
  const settlements = createSettlements({ recordUsage, isDurable: parts.isDurable, events, clock, log })
  const plans = parts.plans ?? createPlans({ catalogue, gates, clock })
  const [admission, attempts] = [createAdmission(), createAttemptAdmission(gates)]
  const execution = { ...parts, plans, attempts, events, answer }
  const fallbacks = createFallbacks({ catalogue, admission, plans, clock })

  /** resolve, authorize, fit: synchronous, since nothing has to wait. */
  function open<Input, Work, Answer, M extends AnyMeter>(
    family: Family<Input, Work, Answer, M>,
    call: Call,
    input: Input,
  ): PreparedCall<Work, Answer, M> {
    const record = newRecord(call, family.endpoint(input), unixSeconds(clock))
    events.started(record)
    try {
      const plan = planFor(call, family.modelOf(input), record.family)
      const prepared = new PreparedCall<Work, Answer, M>(family as never, input, record, execution, plan)
      if (mayFallBack(prepared)) fallbacks.replaceBeforehand(prepared)
      return prepared
    } catch (thrown) {
      settlements.refused(record, thrown)
      throw thrown
    }
  }

  /** That of `authorize`, where it is of the requested model. */
  function planFor(call: Call, name: string | undefined, family: CallFamily): Plan {
    const { plan, caller } = call
    return plan && plan.name === name && plan.family === family ? plan : plans.of(caller, name, family)
  }

  /** Another model than that of the plan may have replaced it beforehand. */
  const headersOf = ({ model, plan }: Pick<PreparedCall<never, never, AnyMeter>, 'model' | 'plan'>) =>
    model === plan.model ? { ...plan.headers } : modelHeaders({ model, requested: plan.requested }, clock)

  /** Whether the cache is on for a call: all that it costs where it is off. */
  const isCached = ({ model, record }: Pick<PreparedCall<never, never, AnyMeter>, 'model' | 'record'>) =>
    model.cache !== undefined || record.call.options?.cache !== undefined

  /** At the targets of its model, then of its fallbacks where it has any. Called once. */
  function execute<Work, Answer, M extends AnyMeter>(prepared: PreparedCall<Work, Answer, M>): Promise<Answer> {
    const started = begin(prepared)
    return started instanceof OpenAttempt ? sendAttempt<Answer>(started, prepared) : started
  }

  /** The same, but the only attempt of a call that nothing else may serve is left to the caller of this. */
  function begin<Work, Answer, M extends AnyMeter>(prepared: PreparedCall<Work, Answer, M>) {
    prepared.bounds = boundsOf(prepared.model.routing, prepared.call.arrived, prepared.call.options)
    return mayFallBack(prepared) ? fallbacks.execute(prepared) : prepared.begin()
  }

  async function cachedAnswer<Work, Answer, M extends AnyMeter>(
    prepared: PreparedCall<Work, Answer, M>,
  ): Promise<Pick<Answered<Work, Answer, M>, 'answer' | 'usage'> | undefined> {
    const { descriptor } = prepared
    const { codec } = descriptor
    const lookup = codec && lookupFor(descriptor, prepared, embedText)
    if (!cache || !codec || !lookup) return undefined
    return await lookUpAnswer(codec, { cache, lookup, prepared }, async () => ({
      answer: await execute(prepared),
      usage: await usageForClient<Work, M>(descriptor, prepared),
    }))
  }

  async function answer<Work, Answer, M extends AnyMeter>(
    prepared: PreparedCall<Work, Answer, M>,
  ): Promise<Answered<Work, Answer, M>> {
    const { record, descriptor } = prepared
    const { exchange } = record.call
    if (exchange && !exchange.result) return collectBatched(prepared, exchange)
    settlements.open(prepared)
    try {
      const waiting = exchange ? undefined : admission.admit(descriptor, prepared)
      if (waiting) await waiting
      const cached = cache && !exchange && isCached(prepared) ? await cachedAnswer(prepared) : undefined
      const started = exchange ? readBatched(prepared, exchange) : cached ? undefined : begin(prepared)
      let answer: Answer
      if (started instanceof OpenAttempt) {
        try {
          const read = prepared.read(await started.send(true, prepared))
          answer = read instanceof Promise ? await read : read
        } catch (thrown) {
          started.failed(thrown)
          throw thrown
        }
        started.answered()
        prepared.serving(started)
      } else answer = started ? await started : (cached as { answer: Answer }).answer
      const usage = cached ? cached.usage : usageForClient<Work, M>(descriptor, prepared)
      const counted = usage instanceof Promise ? await usage : usage
      if (prepared.ending.aborted && prepared.meter) throw prepared.ending.reason // it was read to its end for its usage
      const settled = settlements.succeeded(prepared)
      if (settled) await settled
      return { answer, usage: counted, model: prepared.model, work: prepared.work }
    } catch (thrown) {
      void settlements.failed(prepared, thrown) // the client gets the error before the usage is estimated
      throw thrown
    }
  }

  function stream<Work, M extends AnyMeter>(
    family: Pick<
      StreamFamily<never, Work, M>,
      'estimate' | 'is_admitted' | 'encodeError' | 'errorForClient' | 'cacheable' | 'replay' | 'asksForCost'
    >,
    prepared: PreparedCall<Work, ResponseStream<UsageOf<M>>, M>,
  ): SentStream {
    const { record } = prepared
    settlements.open(prepared)
    const executed = () => execute(prepared)
    const lookUp = () => {
      const { replay, encodeError } = family
      const lookup = cache && replay && isCached(prepared) ? lookupFor(family, prepared, embedText) : undefined
      return cache && replay && lookup
        ? lookUpStream({ replay, encodeError }, { cache, lookup, prepared }, executed)
        : executed()
    }
    const onFirstByte = () => events.firstByte(record)
    const response = Promise.try(() => admission.admit(family, prepared)?.then(lookUp) ?? lookUp())
    const parts = new DeliveredStream(family, prepared, { response, settlements, onFirstByte, log })
    const started = response.then(
      (stream) => parts.begin(stream),
      (thrown) => {
        void settlements.failed(prepared, record.call.signal.reason ?? thrown)
        throw thrown
      },
    )
    started.catch(() => {}) // a reader that does not wait for it reads the failure as the last part
    return {
      record,
      started,
      parts,
      abandon: () =>
        (record.is_refused ? settlements.failed(prepared, gone()) : settlements.left(prepared)) ?? Promise.resolve(),
    }
  }

  return {
    authorize(call, { family, model }) {
      if (typeof model !== 'string') return // the parser reports what it must be
      try {
        call.plan = plans.of(call.caller, model, family)
      } catch (thrown) {
        const record = newRecord(call, family, unixSeconds(clock))
        events.started(record)
        settlements.refused(record, thrown)
        throw thrown
      }
    },

    prepare(family, call, input) {
      const prepared = open(family, call, input)
      prepared.headers = headersOf(prepared)
      return prepared
    },

    async run(family, call, input) {
      const prepared = open(family, call, input)
      return { requested: prepared.plan.requested, ...(await answer(prepared)) }
    },

    prepareStream(family, call, input) {
      const prepared = open(family, call, input)
      const { model, work, plan, record } = prepared
      record.is_stream = true
      const send = () => stream(family, prepared)
      return { model, requested: plan.requested, work, headers: headersOf(prepared), send }
    },

    close: settlements.close,
  }
}

/** Whether other models may serve a call: those of its plan, or those that it names itself. */
const mayFallBack = ({ plan, call }: Pick<PreparedCall<never, never, AnyMeter>, 'plan' | 'call'>): boolean =>
  plan.has_fallbacks || call.options?.models !== undefined

function newRecord(call: Call, family: CallFamily, at: number): CallRecord {
  const record: CallRecord = { call, family, at, attempts: [], is_stream: false, error: undefined }
  call.record = record
  return record
}
