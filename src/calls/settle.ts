/** Settles a call: records its usage exactly once, however it ended, and notifies the subscribers. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import { NO_UNITS, type Units } from '../spec/usage.ts'
import type { LedgerEntry } from '../store/ledger/ledger-entry.ts'
import { releaseHolds } from './admission.ts'
import type { CallEvents, CallRecord, CallSubscriber, DoubtfulAttempt, Meter } from './call.ts'
import { callEntry, hasCounted, lostEntry, mayHaveCharged, noteDoubt } from './entries.ts'
import { noteEnd } from './fallback.ts'
import type { AnyMeter } from './family.ts'
import { AnswerBlocked } from './guarded-call.ts'
import type { PreparedCall } from './prepared-call.ts'
import { ServingTogether } from './routing/attempt.ts'

/** Where entries of the ledger go. Must not throw. The result: resolves once they cannot be lost; undefined: nobody waits. */
export type RecordUsage = (entries: readonly LedgerEntry[]) => Promise<void> | undefined

export type Settled = Pick<
  PreparedCall<unknown, unknown, AnyMeter>,
  'record' | 'meter' | 'policy' | 'model' | 'bounds' | 'settled'
>

/**
 * Of `succeeded`, `left` and `failed` only the first has an effect on a call, and the others wait for it. A promise only
 * where something is waited for: a usage that is estimated, or a journal that has to be durable.
 */
export type Settlements = {
  /** Counts a call as open until it is settled. Without a meter its usage is not recorded. */
  open(call: Settled): void
  /** Whether the end of a response waits until its call is recorded. */
  isAwaited(): boolean
  succeeded(call: Settled): Promise<void> | undefined
  /** The response was not read to its end. */
  left(call: Settled): Promise<void> | undefined
  failed(call: Settled, thrown: unknown): Promise<void> | undefined
  /** Ends a call that was refused before anything was sent. */
  refused(record: CallRecord, thrown: unknown): void
  /** Waits until every open call is settled, at most until the deadline. */
  close(options: { deadline_ms: number }): Promise<void>
}

/** After these errors a caller that has got nothing is charged for what its provider may have charged. */
const CHARGED_ERRORS: ReadonlySet<ErrorCode> = new Set(['upstream_timeout', 'shutting_down', 'client_closed_request'])

type SettlementsParts = {
  recordUsage: RecordUsage
  /** Whether the entries of a call are durable before its response ends. Absent: never. */
  isDurable?: (() => boolean) | undefined
  events: CallEvents
  clock: Clock
  log: Log
}

export function createSettlements({
  recordUsage,
  isDurable = () => false,
  events,
  clock,
  log,
}: SettlementsParts): Settlements {
  let open = 0
  let idle: PromiseWithResolvers<void> | undefined

  /** By its meter. A promise only where the usage is estimated. */
  function unitsOf(record: CallRecord, meter: Meter<unknown>): Units | Promise<Units> {
    try {
      const usage = meter.usage()
      return usage instanceof Promise ? estimatedUnits(record, meter, usage) : meter.units(usage)
    } catch (error) {
      return unmeasurable(record, error)
    }
  }

  async function estimatedUnits(record: CallRecord, meter: Meter<unknown>, usage: Promise<unknown>): Promise<Units> {
    try {
      return meter.units(await usage)
    } catch (error) {
      return unmeasurable(record, error)
    }
  }

  function unmeasurable({ call, estimate }: CallRecord, error: unknown): Units {
    log.error('usage could not be measured', { request_id: call.request_id }, error)
    return { ...(estimate?.most ?? NO_UNITS), estimated: true }
  }

  /**
   * `isCounted`: the meter has counted what the call used. `charged`: the attempt that it is charged for at the most that
   * this can have used, instead.
   */
  function settle(call: Settled, isCounted: boolean, charged?: DoubtfulAttempt): Promise<void> | undefined {
    const { record, meter } = call
    call.settled = true
    const isRecorded = meter !== undefined && !record.is_refused
    const counted = isRecorded && isCounted && record.cache !== 'hit' ? unitsOf(record, meter) : undefined
    const lost = isRecorded && record.doubts ? unitsOfLost(record, record.doubts) : undefined
    if (counted instanceof Promise || lost?.some(isLater)) {
      const later = finishLater(call, { counted, lost, charged })
      call.settled = later
      return later
    }
    return finish(call, counted, lost as Counted[] | undefined, charged)
  }

  async function finishLater(call: Settled, { counted, lost = [], charged }: Estimated): Promise<void> {
    const [units, ...lostUnits] = await Promise.all([counted, ...lost])
    const recorded = finish(call, units, lostUnits, charged)
    if (recorded) await recorded
  }

  /**
   * Records what the call used, releases what it holds, and notifies the subscribers. `units`: of the call; `lost`: of each
   * attempt in doubt; undefined: not counted.
   */
  function finish(
    call: Settled,
    units: Counted,
    lost: Counted[] | undefined,
    charged: DoubtfulAttempt | undefined,
  ): Promise<void> | undefined {
    const { record, meter } = call
    let recorded: Promise<void> | undefined
    try {
      if (meter && !record.is_refused) {
        const entries = entriesOf(call, units, lost, charged)
        record.entries = entries
        recorded = recordUsage(entries)
        if (recorded) call.settled = recorded
      }
    } catch (error) {
      log.error('a call could not be recorded', { request_id: record.call.request_id }, error)
    }
    try {
      releaseHolds(record, record.units ?? unmeasured(record))
    } finally {
      record.is_open = false
      events.finished(record)
      if (--open === 0) idle?.resolve()
    }
    return recorded
  }

  /** The entry of the call first. Also sets the units of the record. */
  function entriesOf(
    { record, model }: Settled,
    units: Counted,
    lost: Counted[] | undefined,
    charged: DoubtfulAttempt | undefined,
  ): LedgerEntry[] {
    // Of its admission: what it is charged counts towards the budgets that hold it. Without budgets, of its arrival.
    const at_ms = record.admitted_ms ?? Math.round(clock.now() - (clock.steady() - record.call.arrived))
    const entry = callEntry(record, model, at_ms, units, charged)
    record.units = entry.units
    const entries = [entry]
    if (record.doubts) {
      for (const [at, attempt] of record.doubts.entries())
        entries.push(lostEntry(entry, { attempt, at: record.at, counted: lost?.[at], number: at + 1 }))
    }
    return entries
  }

  /** What attempts have counted that another one has beaten; undefined: nothing. */
  const unitsOfLost = (record: CallRecord, doubts: readonly DoubtfulAttempt[]) =>
    doubts.map(({ lost_hedge }) => (lost_hedge && hasCounted(lost_hedge) ? unitsOf(record, lost_hedge) : undefined))

  /** An attempt that has begun to answer, or may be doing so, and that has delivered nothing. */
  function noteUnanswered({ record, model }: Settled): void {
    const { target, estimate } = record
    if (target) noteDoubt(record, { target, model, most: estimate?.most })
  }

  /** The same of attempts at the same time, which share the estimate of the call: once for each target. */
  function noteAllUnanswered({ record, model }: Settled): void {
    const { attempts, estimate, doubts = [] } = record
    const targets = new Set(attempts.filter(({ error }) => error === undefined).map(({ target }) => target))
    for (const { target } of doubts) if (target) targets.delete(target)
    for (const target of targets) noteDoubt(record, { target, model, most: estimate?.most })
  }

  /** What was delivered counts; where nothing was, the most that the attempt can have used. */
  function settleUnfinished(call: Settled, isCharged: boolean, thrown?: unknown): Promise<void> | undefined {
    const { record, meter, policy } = call
    const isServed = record.serving !== undefined || thrown instanceof AnswerBlocked
    const isOfSeveral = record.serving instanceof ServingTogether
    endAttempt(record, thrown)
    if (isServed && meter && hasCounted(meter)) return settle(call, true)
    const isOpen = isServed || (thrown === undefined && record.attempts.at(-1)?.ms === undefined)
    if (isOfSeveral)
      noteAllUnanswered(call) // whatever the error of one of them says
    else if (isOpen && (thrown === undefined || mayHaveCharged(thrown, policy))) noteUnanswered(call)
    return settle(call, false, isCharged ? record.doubts?.pop() : undefined)
  }

  return {
    open(call) {
      open++
      call.record.is_open = true
    },
    isAwaited: isDurable,
    succeeded(call) {
      if (call.settled) return waitingOf(call)
      endAttempt(call.record)
      return settle(call, true)
    },
    left: (call) => (call.settled ? waitingOf(call) : settleUnfinished(call, true)),
    failed(call, thrown) {
      if (call.settled) return waitingOf(call)
      const { record, policy } = call
      noteEnd(call, thrown)
      noteError(record, thrown)
      const isOrder = policy === 'until_accepted'
      return settleUnfinished(call, isOrder || isChargedAfter(call, thrown), thrown)
    },
    refused(record, thrown) {
      noteError(record, thrown)
      events.finished(record)
    },
    async close({ deadline_ms }) {
      if (open === 0) return
      idle = Promise.withResolvers<void>()
      const cancel = clock.after(deadline_ms, () => {
        log.error('calls were not settled before the deadline', { calls: open })
        idle?.resolve()
      })
      await idle.promise
      cancel()
    },
  }
}

type Counted = Units | undefined

type Estimated = {
  counted: Counted | Promise<Units>
  lost: (Counted | Promise<Units>)[] | undefined
  charged: DoubtfulAttempt | undefined
}

const isLater = (units: unknown): boolean => units instanceof Promise

const waitingOf = ({ settled }: Settled): Promise<void> | undefined => (settled === true ? undefined : settled)

/** A call without a meter, such as the submission of a task, counts as estimated where it succeeded. */
const unmeasured = ({ error, estimate }: CallRecord): Units =>
  error === undefined ? (estimate?.expected ?? NO_UNITS) : NO_UNITS

function endAttempt(record: CallRecord, error?: unknown): void {
  record.serving?.end(error)
  record.serving = undefined
}

/** Not after an error that the provider has returned: it has delivered nothing, and the caller can do nothing about it. */
const isChargedAfter = ({ record: { call, error }, meter }: Settled, thrown: unknown): boolean =>
  call.signal.aborted ||
  (error === 'upstream_cut' && meter?.hasDelivered?.() === true) ||
  (error !== undefined &&
    CHARGED_ERRORS.has(error) &&
    !(thrown instanceof GatewayError && thrown.detail.accepted === 'no'))

function noteError(record: CallRecord, thrown: unknown): void {
  if (thrown instanceof GatewayError) {
    record.error = thrown.code
    record.upstream_status = thrown.detail.upstream_status
  } else record.error = 'internal_error'
}

const EVENTS = ['started', 'attemptStarted', 'attemptFailed', 'firstByte', 'finished'] as const

/** One object that calls every subscriber in order. An exception in a subscriber is logged; the others are still called. */
export function publishTo(subscribers: readonly CallSubscriber[], log: Log): CallEvents {
  const events: Partial<Record<keyof CallEvents, (record: never, attempt: never, error: never) => void>> = {}
  for (const name of EVENTS) {
    const listeners = subscribers.flatMap((subscriber) => {
      const listener = subscriber[name]?.bind(subscriber) as ((...values: unknown[]) => void) | undefined
      return listener ? [listener] : []
    })
    // Parameters and not a list of them: this is called several times a call.
    events[name] = (record: unknown, attempt: unknown, error: unknown) => {
      for (const listener of listeners) {
        try {
          listener(record, attempt, error)
        } catch (thrown) {
          log.error('a subscriber of call events failed', { call_event: name }, thrown)
        }
      }
    }
  }
  const all = events as CallEvents
  return {
    ...all,
    finished(record) {
      all.finished(record)
      if (record.call.atEnd) callAtEnd(record, log)
    },
  }
}

/** Calls what was added by `whenEnded`. */
function callAtEnd(record: CallRecord, log: Log): void {
  for (const work of record.call.atEnd ?? []) {
    try {
      work(record)
    } catch (thrown) {
      log.error('what was to be done at the end of a call failed', { request_id: record.call.request_id }, thrown)
    }
  }
}
