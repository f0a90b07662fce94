/** Settles a call: records its usage exactly once, however it ended, and notifies the subscribers. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import { NO_UNITS, type Units } from '../spec/units.ts'
import type { LedgerEntry } from '../store/ledger-entry.ts'
import { releaseHolds } from './admission.ts'
import type { CallRecord, Meter } from './call.ts'
import { callEntry, lostEntry } from './entries.ts'
import type { CallEvents } from './events.ts'
import type { AnyMeter, Metering } from './family.ts'

/** Where entries of the ledger go. Must not throw. The result: resolves once they cannot be lost; undefined: nobody waits. */
export type RecordUsage = (entries: readonly LedgerEntry[]) => Promise<void> | undefined

type Settled = { record: CallRecord; metering: Metering<AnyMeter>; model: CatalogueModel }

/** Only the first of these calls has an effect; the others wait for it. */
export type Settlement = {
  /** Whether the end of the response waits until the call is recorded. */
  isAwaited(): boolean
  succeeded(): Promise<void>
  /** Counts the usage of a failed call where the provider may have charged for it. */
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

/** After these errors the provider may have charged, although its response never arrived in full. */
const MAY_HAVE_BEEN_CHARGED: ReadonlySet<ErrorCode> = new Set([
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

  /** A promise only where the usage is estimated. */
  function unitsOf(record: CallRecord, meter: Meter<unknown>): Units | Promise<Units> {
    const failed = (error: unknown): Units => {
      log.error('usage could not be measured', { request_id: record.call.request_id }, error)
      return { ...NO_UNITS, estimated: true }
    }
    try {
      const usage = meter.usage()
      return usage instanceof Promise ? usage.then((found) => meter.units(found)).catch(failed) : meter.units(usage)
    } catch (error) {
      return failed(error)
    }
  }

  /** Asynchronous only where something waits: mostly nothing does. */
  async function settle(call: Settled, isCharged: boolean): Promise<void> {
    const { record, metering } = call
    let isRecorded: Promise<void> | undefined
    try {
      if (metering.current && !record.is_refused) {
        const counts = isCharged && record.cache !== 'hit'
        const counted = counts ? unitsOf(record, metering.current) : undefined
        const units = counted instanceof Promise ? await counted : counted
        const lost = metering.lost && unitsOf(record, metering.lost)
        record.entries = entriesOf(call, units, lost instanceof Promise ? await lost : lost)
        isRecorded = recordUsage(record.entries)
      }
    } catch (error) {
      log.error('a call could not be recorded', { request_id: record.call.request_id }, error)
    }
    try {
      releaseHolds(record, record.units ?? unmeasured(record))
      if (isRecorded) await isRecorded
    } finally {
      record.is_open = false
      events.finished(record)
      if (--open === 0) idle?.resolve()
    }
  }

  /** Also sets the units of the record. */
  function entriesOf(call: Settled, units: Units | undefined, lost_units: Units | undefined): LedgerEntry[] {
    const { record, model, metering } = call
    // Of its admission: what it is charged counts towards the budgets that hold it. Without budgets, of its arrival.
    const at_ms = record.admitted_ms ?? Math.round(clock.now() - (clock.steady() - record.call.arrived))
    const entry = callEntry({ record, model, now_ms: at_ms, units })
    record.units = entry.units
    if (!lost_units) return [entry]
    record.units = sumOf(entry.units, lost_units)
    return [entry, lostEntry(entry, { record, model, target: metering.lost_target, units: lost_units })]
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

    failed(thrown: unknown): Promise<void> {
      if (this.#settled) return this.#settled
      const { record, metering } = this.#call
      noteError(record, thrown)
      endAttempt(record, thrown)
      this.#settled = settle(this.#call, mayBeCharged(record) || metering.current?.isCharged?.() === true)
      return this.#settled
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

/** A call without a meter, such as the submission of a task, counts as estimated where it succeeded. */
const unmeasured = ({ error, estimate }: CallRecord): Units =>
  error === undefined ? (estimate?.expected ?? NO_UNITS) : NO_UNITS

/** What a call used where two targets were asked: the provider of the one that was given up may charge as well. */
const sumOf = (own: Units, lost: Units): Units => ({
  input_tokens: own.input_tokens + lost.input_tokens,
  output_tokens: own.output_tokens + lost.output_tokens,
  estimated: true,
})

function endAttempt(record: CallRecord, error?: unknown): void {
  record.endAttempt?.(error)
  record.endAttempt = undefined
}

const mayBeCharged = ({ call, error }: CallRecord): boolean =>
  call.signal.aborted || (error !== undefined && MAY_HAVE_BEEN_CHARGED.has(error))

function noteError(record: CallRecord, thrown: unknown): void {
  if (thrown instanceof GatewayError) {
    record.error = thrown.code
    record.upstream_status = thrown.detail.upstream_status
  } else record.error = 'internal_error'
}
