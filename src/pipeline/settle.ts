/** Settles a call: records its usage exactly once, however it ended, and notifies the subscribers. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import { NO_UNITS, type Units } from '../spec/units.ts'
import type { LedgerEntry } from '../store/ledger-entry.ts'
import { releaseHolds } from './admission.ts'
import type { CallRecord, DoubtfulAttempt, Meter } from './call.ts'
import { hasCounted, mayHaveCharged, noteDoubt } from './doubt.ts'
import { callEntry, lostEntry } from './entries.ts'
import type { CallEvents } from './events.ts'
import type { AnyMeter } from './family.ts'
import type { PreparedCall } from './prepared-call.ts'

/** Where entries of the ledger go. Must not throw. The result: resolves once they cannot be lost; undefined: nobody waits. */
export type RecordUsage = (entries: readonly LedgerEntry[]) => Promise<void> | undefined

type Settled = Pick<PreparedCall<unknown, unknown, AnyMeter>, 'record' | 'meter' | 'policy' | 'model'>

/** Only the first of these calls has an effect; the others wait for it. */
export type Settlement = {
  /** Whether the end of the response waits until the call is recorded. */
  isAwaited(): boolean
  succeeded(): Promise<void>
  /** The response was not read to its end. */
  left(): Promise<void>
  failed(thrown: unknown): Promise<void>
}

type Settlements = {
  /** Counts a call as open until it is settled. Without a meter its usage is not recorded. */
  open(call: Settled): Settlement
  /** Ends a call that was refused before anything was sent. */
  refused(record: CallRecord, thrown: unknown): void
  /** Waits until every open call is settled, at most until the deadline. */
  close(options: { deadline_ms: number }): Promise<void>
}

/** After these errors the caller is charged for what its provider may have charged. */
const CHARGED_ERRORS: ReadonlySet<ErrorCode> = new Set([
  'upstream_cut',
  'upstream_timeout',
  'shutting_down',
  'client_closed_request',
])

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
    const failed = (error: unknown): Units => {
      log.error('usage could not be measured', { request_id: record.call.request_id }, error)
      return { ...(record.estimate?.most ?? NO_UNITS), estimated: true }
    }
    try {
      const usage = meter.usage()
      return usage instanceof Promise ? usage.then((found) => meter.units(found)).catch(failed) : meter.units(usage)
    } catch (error) {
      return failed(error)
    }
  }

  /**
   * Asynchronous only where something waits: mostly nothing does. `isCounted`: the meter has counted what the call used.
   * `charged`: the attempt that it is charged for at the most that this can have used, instead.
   */
  async function settle(call: Settled, isCounted: boolean, charged?: DoubtfulAttempt): Promise<void> {
    const { record, meter } = call
    let isRecorded: Promise<void> | undefined
    try {
      if (meter && !record.is_refused) {
        const counted = isCounted && record.cache !== 'hit' ? unitsOf(record, meter) : undefined
        const units = counted instanceof Promise ? await counted : counted
        const entry = entryOf(call, units, charged)
        const entries = [entry]
        for (const attempt of record.doubts ?? NONE) {
          const lost = unitsOfLost(record, attempt)
          const counted = lost instanceof Promise ? await lost : lost
          entries.push(lostEntry(entry, { attempt, at: record.at, counted, number: entries.length }))
        }
        record.entries = entries
        isRecorded = recordUsage(entries)
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
    if (isRecorded) await isRecorded
  }

  /** Also sets the units of the record. */
  function entryOf({ record, model }: Settled, units: Units | undefined, charged?: DoubtfulAttempt): LedgerEntry {
    // Of its admission: what it is charged counts towards the budgets that hold it. Without budgets, of its arrival.
    const at_ms = record.admitted_ms ?? Math.round(clock.now() - (clock.steady() - record.call.arrived))
    const entry = callEntry({ record, model, now_ms: at_ms, units, charged })
    record.units = entry.units
    return entry
  }

  /** What an attempt has counted that another one has beaten; undefined: nothing. */
  const unitsOfLost = (record: CallRecord, { lost_hedge }: DoubtfulAttempt) =>
    lost_hedge && hasCounted(lost_hedge) ? unitsOf(record, lost_hedge) : undefined

  /** An attempt that has begun to answer, or may be doing so, and that has delivered nothing. */
  function noteUnanswered({ record, model }: Settled): void {
    const { target, estimate } = record
    if (target) noteDoubt(record, { target, model, most: estimate?.most })
  }

  /** One object for each call, without closures. */
  class OneSettlement implements Settlement {
    readonly #call: Settled
    #settled: Promise<void> | undefined

    constructor(call: Settled) {
      this.#call = call
    }

    isAwaited(): boolean {
      return isDurable()
    }

    succeeded(): Promise<void> {
      if (this.#settled) return this.#settled
      endAttempt(this.#call.record)
      this.#settled = settle(this.#call, true)
      return this.#settled
    }

    left(): Promise<void> {
      this.#settled ??= this.#unfinished(true)
      return this.#settled
    }

    failed(thrown: unknown): Promise<void> {
      if (this.#settled) return this.#settled
      const { record, policy } = this.#call
      noteError(record, thrown)
      const isOrder = policy === 'until_accepted'
      this.#settled = this.#unfinished(isOrder || isChargedAfter(record, thrown), thrown)
      return this.#settled
    }

    /** What was delivered counts; where nothing was, the most that the attempt can have used. */
    #unfinished(isCharged: boolean, thrown?: unknown): Promise<void> {
      const { record, meter, policy } = this.#call
      const isServed = record.serving !== undefined
      endAttempt(record, thrown)
      if (isServed && meter && hasCounted(meter)) return settle(this.#call, true)
      const isOpen = isServed || (thrown === undefined && record.attempts.at(-1)?.ms === undefined)
      if (isOpen && (thrown === undefined || mayHaveCharged(thrown, policy))) noteUnanswered(this.#call)
      return settle(this.#call, false, isCharged ? record.doubts?.pop() : undefined)
    }
  }

  return {
    open(call) {
      open++
      call.record.is_open = true
      return new OneSettlement(call)
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

const NONE: readonly DoubtfulAttempt[] = []

/** A call without a meter, such as the submission of a task, counts as estimated where it succeeded. */
const unmeasured = ({ error, estimate }: CallRecord): Units =>
  error === undefined ? (estimate?.expected ?? NO_UNITS) : NO_UNITS

function endAttempt(record: CallRecord, error?: unknown): void {
  record.serving?.end(error)
  record.serving = undefined
}

/** Not after an error that the provider has returned: it has delivered nothing, and the caller can do nothing about it. */
const isChargedAfter = ({ call, error }: CallRecord, thrown: unknown): boolean =>
  call.signal.aborted ||
  (error !== undefined &&
    CHARGED_ERRORS.has(error) &&
    !(thrown instanceof GatewayError && thrown.detail.accepted === 'no'))

function noteError(record: CallRecord, thrown: unknown): void {
  if (thrown instanceof GatewayError) {
    record.error = thrown.code
    record.upstream_status = thrown.detail.upstream_status
  } else record.error = 'internal_error'
}
