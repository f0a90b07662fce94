/**
 * Plans: what a caller may do with a model, and how. A plan is made at the first call of a caller at a model, and dropped
 * when anything changes that it was made of.
 */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Catalogue, CatalogueModel } from '../models/catalogue.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { CallFamily } from '../spec/endpoint-family.ts'
import type { Caller } from '../spec/token.ts'
import type { Gate, Plan } from './call.ts'
import type { GuardPlan, Guards } from './guards/guards.ts'
import { haveConditions } from './routing/conditions.ts'

export type Plans = {
  /** Throws GatewayError where the caller may not use the model. */
  of(caller: Caller, name: string | undefined, family: CallFamily): Plan
  /** The gates of a model that takes over a call. */
  gatesOf(caller: Caller, model: CatalogueModel): readonly Gate[]
  /** What checks the contents of calls at a model; undefined: nothing does. */
  guardsOf(caller: Caller, model: CatalogueModel): GuardPlan | undefined
}

type PlansParts = {
  catalogue: Pick<Catalogue, 'require'> & Partial<Pick<Catalogue, 'changesAfter' | 'revision'>>
  /** All, in the order in which a call passes them. */
  gates: readonly Gate[]
  /** Absent: there are none. */
  guards?: Guards
  clock: Clock
}

/** All are dropped when there are more: each costs about 500 bytes. */
export const MAX_PLANS = 10_000

type PlansOfCaller = Map<CallFamily, Map<string | undefined, Plan>>

export function createPlans({ catalogue, gates, guards: all_guards, clock }: PlansParts): Plans {
  /** Of the configuration, the accounts, the overrides, the catalogue and its prices. Undefined: no plan is kept. */
  const { revision } = catalogue
  let made_of: number | undefined
  let kept = new WeakMap<Caller, PlansOfCaller>()
  let count = 0
  /** In unix seconds: models may have another status before the one, and from the other. */
  let [from, until] = [0, 0]

  const gatesOf = (caller: Caller, model: CatalogueModel): readonly Gate[] =>
    gates.filter(({ applies }) => applies?.(caller, model) ?? true)

  const guardsOf = (caller: Caller, model: CatalogueModel) => all_guards?.planOf(caller, model)

  function make(caller: Caller, name: string | undefined, family: CallFamily): Plan {
    const chosen = catalogue.require(name, family, caller)
    const { model } = chosen
    const has_fallbacks = Object.keys(model.fallbacks).length > 0
    const has_conditions = haveConditions(model.targets)
    const has_limited_targets = model.targets.some(({ provider }) =>
      gates.some((gate) => gate.limitsProvider?.(provider.id)),
    )
    const mayRepeat = model.routing.tries !== undefined
    const guards = guardsOf(caller, model)
    return {
      ...chosen,
      name,
      family,
      gates: gatesOf(caller, model),
      guards,
      has_fallbacks,
      has_conditions,
      has_limited_targets,
      is_plain:
        model.targets.length === 1 && !(guards || has_fallbacks || has_conditions || has_limited_targets || mayRepeat),
      headers: modelHeaders(chosen, clock),
    }
  }

  function forget(now: number): void {
    kept = new WeakMap()
    count = 0
    from = now
    until = catalogue.changesAfter?.(now) ?? Number.POSITIVE_INFINITY
    made_of = revision?.current
  }

  function plansOf(caller: Caller, family: CallFamily): Map<string | undefined, Plan> {
    let ofCaller = kept.get(caller)
    if (!ofCaller) {
      ofCaller = new Map()
      kept.set(caller, ofCaller)
    }
    let ofFamily = ofCaller.get(family)
    if (!ofFamily) {
      ofFamily = new Map()
      ofCaller.set(family, ofFamily)
    }
    return ofFamily
  }

  return {
    of(caller, name, family) {
      if (!revision) return make(caller, name, family)
      const now = unixSeconds(clock)
      if (revision.current !== made_of || now >= until || now < from) forget(now)
      const known = kept.get(caller)?.get(family)?.get(name)
      if (known) return known
      const plan = make(caller, name, family)
      if (count >= MAX_PLANS) forget(now)
      count++
      plansOf(caller, family).set(name, plan)
      return plan
    },
    gatesOf,
    guardsOf,
  }
}
