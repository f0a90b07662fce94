/** The stage admit: limits and budgets decide whether a call may run, and hold what it can use until it is settled. */
import type { CatalogueModel } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import { type Estimate, NO_UNITS, type Units } from '../spec/usage.ts'
import type { AdmissionRequest, CallRecord, Gate, Hold } from './call.ts'
import type { AnyMeter, Family } from './family.ts'

const NO_ESTIMATE: Estimate = { expected: NO_UNITS, most: NO_UNITS }

type Admitting<Work> = { model: CatalogueModel; work: Work; record: CallRecord; meter: AnyMeter }

/** A call with the gates that it passes. */
type Gated<Work> = Admitting<Work> & { gates: readonly Gate[] }

export type Admission = {
  /** Undefined: the call is admitted. A promise where it has to wait. Throws GatewayError. */
  admit<Work>(
    family: Pick<Family<never, Work, never, AnyMeter>, 'estimate' | 'is_admitted'>,
    call: Gated<Work>,
  ): Promise<void> | undefined
  /**
   * Before a fallback takes over, which has these gates; `passed`: those of the model before. Throws GatewayError. A promise
   * where it has to wait.
   */
  moveTo<Work>(
    family: Pick<Family<never, Work, never, AnyMeter>, 'estimate' | 'is_admitted'>,
    call: Gated<Work> & { passed: readonly Gate[] },
  ): Promise<void>
}

/** The request is longer than when the call was admitted. Throws GatewayError. */
export async function holdMore<Work>(
  family: Pick<Family<never, Work, never, AnyMeter>, 'estimate' | 'is_admitted'>,
  call: Admitting<Work>,
): Promise<void> {
  if (!call.record.holds) return
  const request = requestOf(family, call)
  for (const hold of call.record.holds) await hold.moveTo(request)
}

/** Attempts at providers, which have limits of their own. */
export type AttemptAdmission = {
  hasLimits(targets: readonly Target[]): boolean
  limitsProvider(provider_id: string): boolean
  /** The targets whose providers are below their limits, in order. Throws the refusal of the first where there is none. */
  targetsWithinLimits(record: CallRecord, targets: readonly Target[]): Promise<readonly Target[]>
  /** Why the provider of a target may get no attempt now; undefined: it may. */
  limitOf(record: CallRecord, target: Target): string | undefined
  /** Executes an attempt, and holds what it can use. Throws GatewayError where its provider is at its limit. */
  withinLimits<Answer>(record: CallRecord, attempt: LimitedAttempt<Answer>): Promise<Answer>
}

type LimitedAttempt<Answer> = { target: Target; signal: AbortSignal; execute(): Promise<Answer> }

/** Undefined where no gate limits attempts. */
export function createAttemptAdmission(gates: readonly Gate[]): AttemptAdmission | undefined {
  const gate = gates.find(({ admitAttempt }) => admitAttempt !== undefined)
  if (!gate) return undefined
  const estimateOf = ({ estimate = NO_ESTIMATE }: CallRecord) => estimate
  return {
    hasLimits(targets) {
      for (const { provider } of targets) if (gate.limitsProvider?.(provider.id)) return true
      return false
    },
    limitsProvider: (provider_id) => gate.limitsProvider?.(provider_id) ?? false,
    async targetsWithinLimits(record, targets) {
      const within = new Map<string, boolean>()
      for (const { provider } of targets) {
        if (within.has(provider.id)) continue
        const may = gate.mayAttempt?.(provider.id, estimateOf(record)) ?? true
        within.set(provider.id, may instanceof Promise ? await may : may)
      }
      const found = targets.filter(({ provider }) => within.get(provider.id))
      const [first] = targets
      if (found.length === 0 && first) (await gate.admitAttempt?.(first.provider.id, estimateOf(record)))?.cancel?.()
      return found.length === 0 ? targets : found
    },
    limitOf: (record, { provider }) => gate.limitOfAttempt?.(provider.id, estimateOf(record)),
    async withinLimits(record, { target, signal, execute }) {
      const admitted = gate.admitAttempt?.(target.provider.id, estimateOf(record))
      const hold = admitted instanceof Promise ? await admitted : admitted
      if (!hold) return execute()
      try {
        const answer = await execute()
        // What serves the call is settled with it.
        if (signal.aborted || record.holds === undefined) hold.settle(NO_UNITS, 0)
        else record.holds.push(hold)
        return answer
      } catch (thrown) {
        hold.settle(NO_UNITS, 0)
        throw thrown
      }
    },
  }
}

export function createAdmission(): Admission {
  /** At one gate after another from `waiting` on; the first that refuses undoes those before it. */
  async function pass(request: AdmissionRequest, { record, holds, waiting, left }: Waiting): Promise<void> {
    const take = (hold: Hold | undefined) => {
      if (hold) holds.push(hold)
      if (record.holds === undefined) throw gone() // the call has ended
    }
    try {
      take(await waiting)
      for (const gate of left) take(await gate.admit(request))
    } catch (thrown) {
      undo(holds)
      throw thrown
    }
    record.is_refused = false
  }

  return {
    admit(family, call) {
      const { record, gates } = call
      if (family.is_admitted === false) return undefined
      // Also where there is no gate: attempts may be limited by the estimate, and what they hold is settled with the call.
      const holds: Hold[] = []
      record.holds = holds
      const request = requestOf(family, call)
      record.is_refused = gates.length > 0
      try {
        for (let at = 0; at < gates.length; at++) {
          const hold = gates[at]?.admit(request)
          if (hold instanceof Promise) return pass(request, { record, holds, waiting: hold, left: gates.slice(at + 1) })
          if (hold) holds.push(hold)
        }
      } catch (thrown) {
        undo(holds)
        throw thrown
      }
      record.is_refused = false
      return undefined
    },
    async moveTo(family, call) {
      const { record, gates, passed } = call
      const { holds } = record
      if (!holds) return
      const request = requestOf(family, call) // notes the estimate, also where nothing is held
      const added: Hold[] = []
      try {
        for (const gate of gates) {
          const hold = passed.includes(gate) ? undefined : await gate.admit(request)
          if (hold) added.push(hold)
        }
        for (const hold of holds) await hold.moveTo(request)
        if (record.holds === undefined && added.length > 0) throw gone() // the call has ended
      } catch (thrown) {
        undo(added)
        throw thrown
      }
      holds.push(...added)
    },
  }
}

type Waiting = { record: CallRecord; holds: Hold[]; waiting: Promise<Hold | undefined>; left: readonly Gate[] }

/** Why a call that has ended is not sent. */
export const gone = (): GatewayError =>
  new GatewayError('client_closed_request', 'The client left before the call was sent.')

function requestOf<Work>(
  { estimate }: Pick<Family<never, Work, never, AnyMeter>, 'estimate' | 'is_admitted'>,
  { model, work, record, meter }: Admitting<Work>,
): AdmissionRequest {
  const { call, family } = record
  record.estimate = estimate?.(work, model) ?? NO_ESTIMATE
  const request: AdmissionRequest = { call, family, model, estimate: record.estimate }
  if (!meter) request.is_unrecorded = true
  return request
}

export function undo(holds: Hold[]): void {
  for (const hold of holds.splice(0)) {
    if (hold.cancel) hold.cancel()
    else hold.settle(NO_UNITS, 0)
  }
}

/** Releases what is held for a call. */
export function releaseHolds(record: CallRecord, used: Units): void {
  const { holds, entries } = record
  record.holds = undefined
  if (!holds) return
  let charged = 0
  if (entries) for (const { amount } of entries) charged += amount ?? 0
  for (const hold of holds) hold.settle(used, charged)
  holds.length = 0 // a gate that still waits must not settle them again
}
