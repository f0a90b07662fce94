/** What is counted for one call until it is settled. */
import type { Units } from '../../spec/units.ts'
import type { Counting } from './counting.ts'
import { firstExceeded, keeping, LimitHold, type Limits, NEW, need, neededOf } from './hold.ts'

/** Looks up all limits that a request must keep. */
type ListsFor<Moved> = (request: Moved, now: number) => readonly Limits[]

type MovedCall = { estimate: { expected: Units } }

/** The hold of a call, which may move to another model. */
export class CallLimitHold<Moved extends MovedCall> extends LimitHold {
  readonly #counting: Counting
  readonly #listsFor: ListsFor<Moved>
  /** What ends the call, where that came while Valkey was asked about another model. */
  #end: (() => void) | undefined
  #isMoving = false

  constructor(lists: readonly Limits[], counting: Counting, listsFor: ListsFor<Moved>) {
    super(lists, counting.parts)
    this.#counting = counting
    this.#listsFor = listsFor
  }

  override settle(used: Units): void {
    if (this.#isMoving) this.#end = () => super.settle(used)
    else super.settle(used)
  }

  override cancel(): void {
    if (this.#isMoving) this.#end = () => super.cancel()
    else super.cancel()
  }

  /** A promise only where limits are counted in Valkey. */
  moveTo(request: Moved): void | Promise<void> {
    const { clock, sharing, refusalFor } = this.#counting
    const lists = this.#listsFor(request, clock.steady())
    need(request.estimate.expected)
    if (sharing.decides()) return keeping(lists, this.#moveByCount(request, lists))
    this.replace(lists, (now) => {
      const blocked = firstExceeded(lists, now, NEW)
      if (blocked) throw refusalFor(blocked, now)
    })
  }

  async #moveByCount(request: Moved, lists: readonly Limits[]): Promise<void> {
    const { clock, sharing, refusalFor } = this.#counting
    this.#isMoving = true
    try {
      const verdict = await sharing.count(neededOf(lists), this.reversal())
      if (!verdict) return await this.moveTo(request)
      if (verdict.blocked) throw refusalFor(verdict.blocked, clock.steady())
      need(request.estimate.expected)
      this.takeInstead(lists, verdict.at, sharing.counted)
    } finally {
      this.#isMoving = false
      const end = this.#end
      this.#end = undefined
      end?.()
    }
  }
}
