/** The pipeline: every call of every family passes these stages in this order and is recorded exactly once. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Catalogue, CatalogueModel, Chosen } from '../models/catalogue.ts'
import type { AttemptObserver, Router } from '../routing/router.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { Call, CallRecord } from './call.ts'
import { type CallSubscriber, publishTo } from './events.ts'
import type { AnyMeter, Execution, Family, Metering, PreparedCall, StreamFamily, UsageOf } from './family.ts'
import { createSettlements, type RecordUsage } from './settle.ts'
import { deliver } from './stream.ts'

type Answered<Answer, M extends AnyMeter> = { answer: Answer; usage: UsageOf<M> }

/** What is known of a request before it is validated. */
type Requested = {
  family: EndpointFamily
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
  parts: AsyncIterable<string | Uint8Array>
  /** Settles a call that is not read to its end, because the client has left. */
  abandon(): Promise<void>
}

/** A call that fits its model. It is neither open nor recorded until `send` is called, once. */
type Sendable<Work, Result> = Chosen & { work: Work; send(): Result }

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
  ): Sendable<Work, Promise<Answered<Answer, M>>>
  /** Prepares a call and sends it. */
  run<Input, Work, Answer, M extends AnyMeter>(
    family: Family<Input, Work, Answer, M>,
    call: Call,
    input: Input,
  ): Promise<Chosen & { work: Work } & Answered<Answer, M>>
  /** Prepares a call with a streamed answer. Throws GatewayError. Once sent, it is settled when the stream ends. */
  prepareStream<Input, Work, M extends AnyMeter>(
    family: StreamFamily<Input, Work, M>,
    call: Call,
    input: Input,
  ): Sendable<Work, SentStream>
  /** Resolves when every call is settled, at the latest at the deadline. */
  close(options: { deadline_ms: number }): Promise<void>
}

type Executing<Work, M extends AnyMeter> = {
  record: CallRecord
  model: CatalogueModel
  work: Work
  metering: Metering<M>
  family: Pick<Family<never, Work, unknown, M>, 'policy' | 'is_observed' | 'is_hedged' | 'meter' | 'affinity'>
}

type PipelineParts = {
  catalogue: Pick<Catalogue, 'require'>
  recordUsage: RecordUsage
  router: Pick<Router, 'attempt'>
  subscribers: readonly CallSubscriber[]
  clock: Clock
  log: Log
}

export function createPipeline({ catalogue, recordUsage, router, subscribers, clock, log }: PipelineParts): Pipeline {
  const events = publishTo(subscribers, log)
  const settlements = createSettlements({ recordUsage, events, clock, log })

  /** resolve, authorize, fit, admit: synchronous, since nothing has to wait. */
  function open<Input, Work, Answer, M extends AnyMeter>(
    family: Family<Input, Work, Answer, M>,
    call: Call,
    input: Input,
  ): PreparedCall<Work, M> {
    const record = newRecord(call, family.endpoint(input))
    events.started(record)
    try {
      const { model, requested } = chosenFor(call, family.modelOf(input), record.family)
      record.model = model.id
      const work = family.fit(model, input, call)
      const metering: Metering<M> = { current: family.meter(work) }
      const execution = executionOf({ record, model, work, metering, family })
      return { model, requested, record, work, metering, execution }
    } catch (thrown) {
      settlements.refused(record, thrown)
      throw thrown
    }
  }

  /** The model that `authorize` has resolved, where it is the requested one. */
  function chosenFor(call: Call, name: string | undefined, family: EndpointFamily): Chosen {
    const { authorized } = call
    if (authorized && authorized.name === name && authorized.family === family) return authorized.chosen
    return catalogue.require(name, family, call.caller)
  }

  /** attempt: what a family may do with the targets of its model. */
  function executionOf<Work, M extends AnyMeter>(executing: Executing<Work, M>): Execution<M> {
    const { record, model, work, metering, family } = executing
    const { call } = record
    /** Of the second one of two tries at the same time. */
    let hedge: { meter: M } | undefined
    const observer: AttemptObserver = {
      attemptStarted(attempt) {
        record.target = attempt.target
        record.attempts.push(attempt)
        events.attemptStarted(record, attempt)
      },
      attemptFailed: (attempt, error) => events.attemptFailed(record, attempt, error),
      serving(attempt, end) {
        record.target = attempt.target
        record.endAttempt = record.endAttempt ? both(record.endAttempt, end) : end
        if (!hedge) return
        metering.lost = attempt.is_hedge ? metering.current : hedge.meter
        if (attempt.is_hedge) metering.current = hedge.meter
      },
    }
    const { arrived, signal } = call
    const { routing: settings } = model
    const { policy, is_observed = true, is_hedged = true } = family
    return {
      call,
      attempt(targets, execute) {
        return router.attempt(targets, {
          settings,
          arrived,
          signal,
          is_stream: record.is_stream,
          policy,
          is_observed,
          is_hedged,
          affinity: (sticky) => family.affinity?.(work, call, sticky),
          execute(target, signal, { is_hedge }) {
            const meter = is_hedge ? family.meter(work) : metering.current
            if (is_hedge) hedge = { meter }
            return execute(target, { signal, meter, is_hedge })
          },
          observer,
        })
      },
    }
  }

  async function answer<Work, Answer, M extends AnyMeter>(
    family: Pick<Family<never, Work, Answer, M>, 'execute'>,
    { record, work, metering, execution }: PreparedCall<Work, M>,
  ): Promise<Answered<Answer, M>> {
    const settlement = settlements.open(record, metering)
    try {
      const answer = await family.execute(work, execution)
      const usage = (await metering.current?.usage()) as UsageOf<M>
      await settlement.succeeded()
      return { answer, usage }
    } catch (thrown) {
      void settlement.failed(thrown) // the client gets the error before the usage is estimated
      throw thrown
    }
  }

  function stream<Work, M extends AnyMeter>(
    family: StreamFamily<never, Work, M>,
    prepared: PreparedCall<Work, M>,
  ): SentStream {
    const { record, work, metering, execution } = prepared
    const settlement = settlements.open(record, metering)
    const response = Promise.try(() => family.execute(work, execution))
    const started = response.then(
      () => {},
      (thrown) => {
        void settlement.failed(record.call.signal.reason ?? thrown)
        throw thrown
      },
    )
    started.catch(() => {}) // a reader that does not wait for it reads the failure as the last part
    const onFirstByte = () => events.firstByte(record)
    return {
      record,
      started,
      parts: deliver(family, prepared, { response, settlement, onFirstByte, log }),
      abandon: () => settlement.succeeded(),
    }
  }

  return {
    authorize(call, { family, model }) {
      if (typeof model !== 'string') return // the parser reports what it must be
      try {
        call.authorized = { name: model, family, chosen: catalogue.require(model, family, call.caller) }
      } catch (thrown) {
        const record = newRecord(call, family)
        events.started(record)
        settlements.refused(record, thrown)
        throw thrown
      }
    },

    prepare(family, call, input) {
      const prepared = open(family, call, input)
      const { model, requested, work } = prepared
      return { model, requested, work, send: () => answer(family, prepared) }
    },

    async run(family, call, input) {
      const prepared = open(family, call, input)
      const { model, requested, work } = prepared
      const { answer: answered, usage } = await answer(family, prepared)
      return { model, requested, work, answer: answered, usage }
    },

    prepareStream(family, call, input) {
      const prepared = open(family, call, input)
      const { model, requested, work } = prepared
      prepared.record.is_stream = true
      return { model, requested, work, send: () => stream(family, prepared) }
    },

    close: settlements.close,
  }
}

type EndAttempt = NonNullable<CallRecord['endAttempt']>

const both =
  (one: EndAttempt, other: EndAttempt): EndAttempt =>
  (error) => {
    one(error)
    other(error)
  }

function newRecord(call: Call, family: EndpointFamily): CallRecord {
  const record: CallRecord = { call, family, attempts: [], is_stream: false, error: undefined }
  call.record = record
  return record
}
