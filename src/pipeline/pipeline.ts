/** THE ONE ROAD: every call of every family passes through here, in this order, and is recorded exactly once. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Catalogue, Chosen } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import { type AttemptPolicy, tryTargets } from '../routing/attempt.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { Call, CallRecord } from './call.ts'
import { type CallSubscriber, publishTo } from './events.ts'
import type { AnyMeter, Execution, Family, StreamFamily, UsageOf } from './family.ts'
import { createSettlements, type RecordUsage, type Settlement } from './settle.ts'
import { deliver } from './stream.ts'

type Answered<Answer, M extends AnyMeter> = { answer: Answer; usage: UsageOf<M> }

/** A call that fits its model. The caller decides its response headers, and then calls `answer`, once. */
type Started<Work, Answer, M extends AnyMeter> = Chosen & {
  work: Work
  /** Sends the call. Rejects with GatewayError; the call is settled when it settles. */
  answer(): Promise<Answered<Answer, M>>
}

/** What is known of a request before it is validated. */
type Requested = {
  family: EndpointFamily
  /** As the client wrote it, of any type. */
  model: unknown
}

type Streaming<Work> = Chosen & {
  work: Work
  record: Readonly<CallRecord>
  /** Resolves when the first part is there; rejects with the provider's refusal. */
  started: Promise<void>
  /** The encoded answer. A failure after the first part is its last part. */
  parts: AsyncIterable<string | Uint8Array>
  /** Settles a call of which no more is read: the client has left. */
  abandon(): Promise<void>
}

export type Pipeline = {
  /**
   * Throws GatewayError where the caller may not use this model, before more is done with the request: a body of a
   * forbidden model is never validated. Every call is checked again, with the model that its parser has read.
   */
  authorize(call: Call, requested: Requested): void
  /** Prepares a call with one answer. Throws GatewayError. Nothing is sent until its `answer` is called. */
  start<Input, Work, Answer, M extends AnyMeter>(
    family: Family<Input, Work, Answer, M>,
    call: Call,
    input: Input,
  ): Started<Work, Answer, M>
  /** The same, with its answer. */
  run<Input, Work, Answer, M extends AnyMeter>(
    family: Family<Input, Work, Answer, M>,
    call: Call,
    input: Input,
  ): Promise<Chosen & { work: Work } & Answered<Answer, M>>
  /** A call with a streamed answer. Throws GatewayError before anything is sent. It is settled when the stream ends. */
  stream<Input, Work, M extends AnyMeter>(
    family: StreamFamily<Input, Work, M>,
    call: Call,
    input: Input,
  ): Streaming<Work>
  /** Resolves when every call is settled, at the latest at the deadline. */
  close(options: { deadline_ms: number }): Promise<void>
}

type PipelineParts = {
  catalogue: Pick<Catalogue, 'require'>
  recordUsage: RecordUsage
  subscribers: readonly CallSubscriber[]
  clock: Clock
  log: Log
}

/** A call whose request fits its model; nothing was sent yet. */
type Opened<Work, M extends AnyMeter> = Chosen & {
  record: CallRecord
  work: Work
  meter: M
  execution: Execution<M>
  settlement: Settlement
}

export function createPipeline({ catalogue, recordUsage, subscribers, clock, log }: PipelineParts): Pipeline {
  const events = publishTo(subscribers, log)
  const settlements = createSettlements({ recordUsage, events, clock, log })

  /** resolve, authorize, fit, admit: synchronous, since nothing has to wait. */
  function open<Input, Work, Answer, M extends AnyMeter>(
    family: Family<Input, Work, Answer, M>,
    call: Call,
    input: Input,
  ): Opened<Work, M> {
    const record = newRecord(call, family.endpoint(input))
    events.started(record)
    try {
      const { model, requested } = catalogue.require(family.modelOf(input), record.family, call.caller)
      record.model = model.id
      const work = family.fit(model, input, call)
      const meter = family.meter(work)
      const execution = executionOf(record, { call, meter, policy: family.policy })
      return { model, requested, record, work, meter, execution, settlement: settlements.open(record, meter) }
    } catch (thrown) {
      settlements.refused(record, thrown)
      throw thrown
    }
  }

  /** attempt: what a family may do with the targets of its model. */
  function executionOf<M extends AnyMeter>(
    record: CallRecord,
    { call, meter, policy }: Pick<Execution<M>, 'call' | 'meter'> & { policy: AttemptPolicy },
  ): Execution<M> {
    const observer = {
      attemptStarted(target: Target) {
        record.target = target
        record.attempts++
        events.attemptStarted(record, target)
      },
      attemptFailed: (target: Target, error: unknown) => events.attemptFailed(record, target, error),
    }
    return {
      call,
      meter,
      attempt: (targets, execute) => tryTargets(targets, { signal: call.signal, policy, execute, observer }),
    }
  }

  async function answer<Work, Answer, M extends AnyMeter>(
    family: Family<never, Work, Answer, M>,
    { work, meter, execution, settlement }: Opened<Work, M>,
  ): Promise<Answered<Answer, M>> {
    try {
      const answer = await family.execute(work, execution)
      const usage = (await meter?.usage()) as UsageOf<M>
      await settlement.succeeded()
      return { answer, usage }
    } catch (thrown) {
      await settlement.failed(thrown)
      throw thrown
    }
  }

  return {
    authorize(call, { family, model }) {
      if (typeof model !== 'string') return // the parser says what it should be
      try {
        catalogue.require(model, family, call.caller)
      } catch (thrown) {
        const record = newRecord(call, family)
        events.started(record)
        settlements.refused(record, thrown)
        throw thrown
      }
    },

    start(family, call, input) {
      const opened = open(family, call, input)
      const { model, requested, work } = opened
      return { model, requested, work, answer: () => answer(family, opened) }
    },

    async run(family, call, input) {
      const opened = open(family, call, input)
      const { model, requested, work } = opened
      const { answer: answered, usage } = await answer(family, opened)
      return { model, requested, work, answer: answered, usage }
    },

    stream(family, call, input) {
      const { model, requested, record, work, meter, execution, settlement } = open(family, call, input)
      record.is_stream = true
      const stream = family.execute(work, execution)
      const started = stream.then(
        () => {},
        async (thrown) => {
          await settlement.failed(call.signal.reason ?? thrown)
          throw thrown
        },
      )
      started.catch(() => {}) // whoever does not wait for it reads the failure as the last part
      return {
        model,
        requested,
        record,
        work,
        started,
        parts: deliver({
          family,
          stream,
          work,
          call,
          meter,
          settlement,
          log,
          onFirstByte: () => events.firstByte(record),
        }),
        abandon: () => settlement.succeeded(),
      }
    },

    close: settlements.close,
  }
}

const newRecord = (call: Call, family: CallRecord['family']): CallRecord => ({
  call,
  family,
  model: undefined,
  target: undefined,
  attempts: 0,
  is_stream: false,
  units: undefined,
  error: undefined,
  upstream_status: undefined,
})
