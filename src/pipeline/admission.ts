/** The stage admit: limits and budgets decide whether a call may run, and hold what it can use until it is settled. */
import { type Estimate, NO_UNITS, type Units } from '../spec/units.ts'
import type { AdmissionRequest, CallRecord, Hold } from './call.ts'
import type { AnyMeter, Family, PreparedCall } from './family.ts'

/** Limits, or budgets. */
export type Gate = {
  /** Throws GatewayError, or rejects with it, where the call may not run. A promise only where it has to wait. */
  admit(request: AdmissionRequest): Hold | undefined | Promise<Hold | undefined>
}

const NO_ESTIMATE: Estimate = { expected: NO_UNITS, most: NO_UNITS }

type Admitting<Work> = Pick<PreparedCall<Work, unknown, AnyMeter>, 'model' | 'work' | 'record'>

export type Admission = {
  /** Undefined: the call is admitted. A promise where it has to wait. Throws GatewayError. */
  admit<Work>(
    family: Pick<Family<never, Work, never, AnyMeter>, 'estimate'>,
    call: Admitting<Work>,
  ): Promise<void> | undefined
  /** Before a fallback takes over. Throws GatewayError. */
  moveTo<Work>(family: Pick<Family<never, Work, never, AnyMeter>, 'estimate'>, call: Admitting<Work>): void
}

export function createAdmission(gates: readonly Gate[]): Admission {
  /** At one gate after another; the first that refuses undoes those before it. */
  async function pass(
    request: AdmissionRequest,
    { holds, waiting, next }: { holds: Hold[]; waiting: Promise<Hold | undefined>; next: number },
  ): Promise<void> {
    try {
      const hold = await waiting
      if (hold) holds.push(hold)
      for (const gate of gates.slice(next)) {
        const hold = await gate.admit(request)
        if (hold) holds.push(hold)
      }
    } catch (thrown) {
      undo(holds)
      throw thrown
    }
  }

  function admitAt(request: AdmissionRequest, holds: Hold[]): Promise<void> | undefined {
    try {
      for (let at = 0; at < gates.length; at++) {
        const hold = gates[at]?.admit(request)
        if (hold instanceof Promise) return pass(request, { holds, waiting: hold, next: at + 1 })
        if (hold) holds.push(hold)
      }
    } catch (thrown) {
      undo(holds)
      throw thrown
    }
    return undefined
  }

  return {
    admit(family, { model, work, record }) {
      if (gates.length === 0) return undefined
      const holds: Hold[] = []
      record.holds = holds
      record.is_refused = true
      const waiting = admitAt(requestOf(family, { model, work, record }), holds)
      if (!waiting) {
        record.is_refused = false
        return undefined
      }
      return waiting.then(() => {
        record.is_refused = false
      })
    },
    moveTo(family, call) {
      const { holds } = call.record
      if (!holds || holds.length === 0) return
      const request = requestOf(family, call)
      for (const hold of holds) hold.moveTo(request)
    },
  }
}

function requestOf<Work>(
  { estimate }: Pick<Family<never, Work, never, AnyMeter>, 'estimate'>,
  { model, work, record }: Admitting<Work>,
): AdmissionRequest {
  const { call, family } = record
  record.estimate = estimate?.(work, model) ?? NO_ESTIMATE
  return { call, family, model, estimate: record.estimate }
}

function undo(holds: Hold[]): void {
  for (const hold of holds.splice(0)) {
    if (hold.cancel) hold.cancel()
    else hold.settle(NO_UNITS, 0)
  }
}

/** Releases what is held for a call. */
export function releaseHolds({ holds, entries }: CallRecord, used: Units): void {
  if (!holds || holds.length === 0) return
  let charged = 0
  for (const { amount } of entries ?? []) charged += amount ?? 0
  for (const hold of holds.splice(0)) hold.settle(used, charged)
}
