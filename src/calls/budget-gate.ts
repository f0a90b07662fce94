/** Budgets as a gate: a call is admitted if the most that it can cost is left in every budget that it counts towards. */
import type { Config } from '../config/config.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { mostOf } from '../models/prices.ts'
import { GatewayError } from '../spec/error.ts'
import type { Units } from '../spec/usage.ts'
import type { TaskBudget } from '../store/ledger/budget-store.ts'
import type { BudgetCallHold, Budgets } from './budgets/budgets.ts'
import type { AdmissionRequest, Gate, Hold } from './call.ts'
import { createLikelyOutputs } from './likely-outputs.ts'
import { withOutput, withShorterAnswer } from './shorter-answer.ts'

type BudgetGateParts = {
  budgets: Pick<Budgets, 'admit' | 'mayApply'>
  /** Another object after a reload. */
  config(): Pick<Config, 'budgets'> & { ledger: Pick<Config['ledger'], 'unknown_price'> }
  /** Changes with the configuration. Absent: that is asked for at each call. */
  revision?: { readonly current: number }
  clock: Clock
}

export function createBudgetGate({ budgets, config, revision, clock }: BudgetGateParts): Gate {
  const outputs = createLikelyOutputs()

  /** Whether a call is refused whose price is not known, where it counts towards a budget. */
  const refusesUnknown = () => config().ledger.unknown_price === 'refuse'

  /** Whether calls hold what they probably cost, as far as that is known, instead of the most that they can cost. */
  function holdsLikely(): boolean {
    if (!revision || revision.current !== made_of) {
      const { budgets: configured } = config()
      made_of = revision?.current
      isLikely = !Array.isArray(configured) && configured.hold === 'likely'
    }
    return isLikely
  }
  let made_of: number | undefined
  let isLikely = false

  function unitsOf({ call, model, estimate: { most } }: AdmissionRequest): Units {
    const likely = holdsLikely() ? outputs.of(call.caller.token_id, model.id) : undefined
    return likely === undefined || likely >= most.output_tokens ? most : withOutput(most, likely)
  }

  const most = (request: AdmissionRequest): number | null =>
    mostOf({ model: request.model, units: unitsOf(request), at: unixSeconds(clock) })

  /** One object for each call, without closures. */
  class BudgetHold implements Hold {
    readonly #held: BudgetCallHold

    constructor(held: BudgetCallHold) {
      this.#held = held
    }

    moveTo(request: AdmissionRequest): void {
      const amount = most(request)
      if (amount === null && refusesUnknown()) throw unknownPrice(request)
      this.#held.raise(amount ?? 0)
    }

    settle(_: Units, charged: number): void {
      this.#held.settle(charged)
    }

    forTask(): TaskBudget {
      return this.#held.forTask()
    }

    moved(): void {
      this.#held.moved()
    }
  }

  /** Learns from the answer. Estimates are no answers: they may be the most that was possible. */
  class LearningHold extends BudgetHold {
    #request: AdmissionRequest

    constructor(held: BudgetCallHold, request: AdmissionRequest) {
      super(held)
      this.#request = request
    }

    override moveTo(request: AdmissionRequest): void {
      super.moveTo(request)
      this.#request = request
    }

    override settle(used: Units, charged: number): void {
      super.settle(used, charged)
      const { call, model } = this.#request
      if (used.output_tokens > 0 && !used.estimated) outputs.learn(call.caller.token_id, model.id, used.output_tokens)
    }
  }

  return {
    name: 'budgets',
    applies: budgets.mayApply,
    admit(request) {
      const { caller, end_user, record } = request.call
      const amount = most(request)
      const now_ms = clock.now()
      if (record) record.admitted_ms = now_ms
      try {
        const held = budgets.admit(caller, end_user, amount ?? 0, now_ms)
        if (held === undefined) return undefined
        return held instanceof Promise ? checkedLater(held, amount, request) : checked(held, amount, request)
      } catch (thrown) {
        return refuse(thrown, request)
      }
    },
  }

  function refuse(thrown: unknown, request: AdmissionRequest): never {
    throw withShorterAnswer(thrown, { request, units: unitsOf(request), at: unixSeconds(clock) })
  }

  function checkedLater(held: Promise<BudgetCallHold>, amount: number | null, request: AdmissionRequest) {
    return held.then(
      (held) => checked(held, amount, request),
      (thrown) => refuse(thrown, request),
    )
  }

  function checked(held: BudgetCallHold, amount: number | null, request: AdmissionRequest): Hold {
    if (amount !== null || !refusesUnknown())
      return holdsLikely() ? new LearningHold(held, request) : new BudgetHold(held)
    held.settle(0)
    throw unknownPrice(request)
  }
}

const unknownPrice = ({ model }: AdmissionRequest): GatewayError =>
  new GatewayError(
    'insufficient_quota',
    `The price of the model "${model.id}" is not known, so its calls cannot be counted towards a budget. The operator of the gateway can set its prices (0 where it is free).`,
  )
