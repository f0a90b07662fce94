/** Work with a time limit: its object is its timer, so that a limit which is not reached costs nothing but a place in a list. */
import type { Clock } from './clock.ts'
import type { Waiting } from './timer-lists.ts'

export abstract class TimeLimited implements Waiting {
  due = 0
  #list: Set<Waiting> | undefined
  #cancel: (() => void) | undefined

  /** Called once, when the time is up. */
  protected abstract timeIsUp(): void

  /** One at a time. */
  protected startTimer(clock: Clock, ms: number): void {
    this.#list = clock.wait?.(ms, this)
    if (!this.#list) this.#cancel = clock.after(ms, () => this.work())
  }

  protected stopTimer(): void {
    this.#list?.delete(this)
    this.#cancel?.()
    this.#list = this.#cancel = undefined
  }

  protected get isTimed(): boolean {
    return this.#list !== undefined || this.#cancel !== undefined
  }

  work(): void {
    this.#list = this.#cancel = undefined
    this.timeIsUp()
  }
}
