/** Shared by every admission against limits: the time, the parts of a hold, and the error of a refusal. */
import type { Clock } from '../../kit/clock.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { HoldParts } from './hold.ts'
import type { Sharing } from './sharing.ts'
import type { Exceeded } from './status.ts'

export type Counting = {
  /** The time of all windows. */
  readonly clock: Clock
  readonly sharing: Sharing
  readonly parts: HoldParts
  /** Also reports the refusal. */
  refusalFor(blocked: Exceeded, now: number): GatewayError
}

/** Whether a call would fit if this process held more. */
export const mayFit = ({ sharing }: Counting, { counter, limit, amount }: Exceeded, now: number): boolean =>
  counter.window.total + amount <= limit && counter.waiting === 0 && sharing.mayGrow(counter, now)
