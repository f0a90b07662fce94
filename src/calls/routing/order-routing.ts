/** Routing of durable orders: one step chooses a target and stores it, and a later one, perhaps after a restart, calls it. */
import type { RoutingConfig } from '../../config/schema/routing-schema.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Target } from '../../providers/provider.ts'
import { type Choice, chooseAvailable, chooseAvoided } from './choose.ts'
import { expectedCost } from './conditions.ts'
import type { Memory } from './memory.ts'
import { logChange, noteError } from './open-attempt.ts'
import { outcomeOf } from './outcome.ts'
import { answered, begin, note, type Outcome } from './target-state.ts'

type Choosing = {
  settings: RoutingConfig
  /** The state ids of the targets that are not to be chosen. */
  tried: readonly string[]
}

/** How an order ended at its target. `isAborted`: by the gateway, so that it says nothing about the target. */
type OrderEnd = { error: unknown; isAborted: boolean }

export type OrderRouting = {
  /** One that is avoided only where no other is left; undefined: all were tried. */
  choose(targets: readonly Target[], choosing: Choosing): Target | undefined
  /** An order is sent to the target. Call the result once, when the target has answered. */
  begin(target: Target): (end?: OrderEnd) => void
}

type OrderRoutingParts = {
  candidatesOf: Memory['candidatesOf']
  clock: Clock
  log: Log
  random(): number
}

export const createOrderRouting = ({ candidatesOf, clock, log, random }: OrderRoutingParts): OrderRouting => ({
  choose(targets, { settings, tried }) {
    const now = unixSeconds(clock)
    const candidates = candidatesOf(targets, settings, true)
    const choice: Choice = {
      strategy: settings.strategy ?? 'priority',
      now: clock.steady(),
      random,
      affinity: undefined,
      isTried: ({ state }) => tried.includes(state.id),
      costOf: (target) => expectedCost(target, undefined, now),
    }
    return (chooseAvailable(candidates, choice) ?? chooseAvoided(candidates, choice))?.target
  },
  begin(target) {
    const [candidate] = candidatesOf([target], NO_SETTINGS, true)
    if (!candidate) return () => {}
    const { state } = candidate
    const started = clock.steady()
    const isProbe = begin(state, started)
    return (end) => {
      answered(state, clock.steady())
      state.open--
      if (end && !end.isAborted) noteError(state, end.error, clock.steady())
      const outcome: Outcome = end
        ? outcomeOf(end.error, { isAborted: end.isAborted, wasSilent: state.last_ok_at < started })
        : { kind: 'ok', first_byte_ms: clock.steady() - started }
      logChange(log, state, note(state, outcome, { now: clock.steady(), started, isProbe }))
    }
  },
})

/** Nothing is chosen by them. */
const NO_SETTINGS: RoutingConfig = {}
