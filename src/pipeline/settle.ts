/** Settles a call: records its usage exactly once, however it ended, and notifies the subscribers. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import { NO_UNITS, type Units } from '../spec/units.ts'
import { releaseHolds } from './admission.ts'
import type { CallRecord, Meter } from './call.ts'
import type { CallEvents } from './events.ts'
import type { AnyMeter, Metering } from './family.ts'

/** Where usage goes. Must neither wait nor throw. */
export type RecordUsage = (
  use: { token_id: string; model: string; error: boolean; estimated: boolean } & Pick<
    Units,
    'input_tokens' | 'output_tokens'
  >,
) => void

/** Only the first of these calls has an effect; the others wait for it. */
export type Settlement = {
  succeeded(): Promise<void>
  /** Counts the usage of a failed call where the provider may have charged for it. */
  failed(thrown: unknown): Promise<void>
}

type Settlements = {
  /** Counts a call as open until it is settled. Without a meter its usage is not recorded. */
  open(record: CallRecord, metering: Metering<AnyMeter>): Settlement
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

type SettlementsParts = { recordUsage: RecordUsage; events: CallEvents; clock: Clock; log: Log }

export function createSettlements({ recordUsage, events, clock, log }: SettlementsParts): Settlements {
  let open = 0
  let idle: PromiseWithResolvers<void> | undefined

  async function unitsOf(record: CallRecord, meter: Meter<unknown>): Promise<Units> {
    try {
      return meter.units(await meter.usage())
    } catch (error) {
      log.error('usage could not be measured', { request_id: record.call.request_id }, error)
      return { ...NO_UNITS, estimated: true }
    }
  }

  async function settle(record: CallRecord, { current: meter, lost }: Metering<AnyMeter>, isCharged: boolean) {
    if (meter && !record.is_refused) {
      const own = isCharged && record.cache !== 'hit' ? await unitsOf(record, meter) : NO_UNITS
      const units = lost ? sumOf(own, await unitsOf(record, lost)) : own
      record.units = units
      recordUsage({
        token_id: record.call.caller.token_id,
        model: record.model ?? '',
        input_tokens: units.input_tokens,
        output_tokens: units.output_tokens,
        error: record.error !== undefined && !record.call.signal.aborted,
        estimated: units.estimated ?? false,
      })
    }
    releaseHolds(record, record.units ?? NO_UNITS)
    events.finished(record)
    if (--open === 0) idle?.resolve()
  }

  return {
    open(record, metering) {
      open++
      let settled: Promise<void> | undefined
      return {
        succeeded() {
          if (settled) return settled
          endAttempt(record)
          settled = settle(record, metering, true)
          return settled
        },
        failed(thrown) {
          if (settled) return settled
          noteError(record, thrown)
          endAttempt(record, thrown)
          settled = settle(record, metering, mayBeCharged(record) || metering.current?.isCharged?.() === true)
          return settled
        },
      }
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
