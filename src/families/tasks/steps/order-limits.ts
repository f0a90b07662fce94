/** Orders count against the rate limits of the provider that gets them: one that is at its limit gets none. */
import { GatewayError } from '../../../spec/error.ts'
import { NO_UNITS, type Units } from '../../../spec/usage.ts'
import { expectedUnits } from '../task-charge.ts'
import type { ClaimedTask } from './claimed-task.ts'

/** What is counted of one order; call one of them, once. */
export type OrderHold = {
  /** The provider got it. `isAccepted`: perhaps. */
  sent(isAccepted: boolean): void
  /** As if there had been no order. */
  notSent(): void
}

const NO_HOLD: OrderHold = { sent: () => {}, notSent: () => {} }

const estimateOf = ({ task }: ClaimedTask) => {
  const units = expectedUnits(task)
  return { expected: units, most: units }
}

/** Those of the targets whose providers are below their limits, in the same order. */
export async function belowLimits<T extends { provider: { id: string } }>(
  claimed: ClaimedTask,
  targets: readonly T[],
): Promise<readonly T[]> {
  const { attemptLimits } = claimed
  if (!attemptLimits) return targets
  const below = new Map<string, boolean>()
  for (const { provider } of targets) {
    if (!below.has(provider.id)) below.set(provider.id, await mayOrder(claimed, provider.id))
  }
  return targets.filter(({ provider }) => below.get(provider.id))
}

const mayOrder = async (claimed: ClaimedTask, provider_id: string): Promise<boolean> =>
  (await claimed.attemptLimits?.mayAttempt?.(provider_id, estimateOf(claimed))) ?? true

/** Counts the order of a task at its provider, or returns why the provider gets none now. */
export async function admitOrder(claimed: ClaimedTask): Promise<OrderHold | GatewayError> {
  const { attemptLimits, task } = claimed
  if (!attemptLimits) return NO_HOLD
  const estimate = estimateOf(claimed)
  try {
    const hold = await attemptLimits.admitAttempt?.(task.provider, estimate)
    if (!hold) return NO_HOLD
    const settle = (used: Units) => hold.settle(used, 0)
    return {
      sent: (isAccepted) => settle(isAccepted ? estimate.expected : NO_UNITS),
      notSent: () => (hold.cancel ? hold.cancel() : settle(NO_UNITS)),
    }
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown
    throw thrown
  }
}

/** Counts an order that is repeated because its first sending is in doubt: it must not wait, so it only counts where it fits. */
export async function countRepeated(claimed: ClaimedTask): Promise<OrderHold> {
  const hold = await admitOrder(claimed)
  return hold instanceof GatewayError ? NO_HOLD : hold
}
