/** The rows of the live tail: bounded, newest first, and still while the tail is paused. */
import { type FilteredRow, type FilterValues, meets } from './filters.ts'

export type LiveRow<Row> = { key: number; row: Row }

/** `waiting`: rows that came while it was paused; `dropped`: events that the gateway could not send in time. */
export type LiveState<Row> = { rows: readonly LiveRow<Row>[]; waiting: number; seen: number; dropped: number }

/** Shown at once. */
export const MAX_LIVE_ROWS = 200

export class LiveRows<Row extends FilteredRow> {
  #filters: FilterValues
  #shown: readonly LiveRow<Row>[] = []
  /** Oldest first. */
  #waiting: LiveRow<Row>[] = []
  #waiting_count = 0
  #seen = 0
  #dropped = 0

  constructor(filters: FilterValues = {}) {
    this.#filters = filters
  }

  /** False: the row does not meet the filters. */
  add(row: Row): boolean {
    if (!meets(row, this.#filters)) return false
    this.#waiting.push({ key: ++this.#seen, row })
    this.#waiting_count++
    // Twice as many, so that an array of the newest is made once for many rows.
    if (this.#waiting.length >= 2 * MAX_LIVE_ROWS) this.#waiting = this.#waiting.slice(-MAX_LIVE_ROWS)
    return true
  }

  lose(events: number): void {
    this.#dropped += events
  }

  /** Moves what waits to what is shown; while paused, only the counts change. */
  take({ isPaused }: { isPaused: boolean }): LiveState<Row> {
    if (!isPaused && this.#waiting.length > 0) {
      const added = this.#waiting.slice(-MAX_LIVE_ROWS).reverse()
      this.#shown = [...added, ...this.#shown].slice(0, MAX_LIVE_ROWS)
      this.#waiting = []
      this.#waiting_count = 0
    }
    return { rows: this.#shown, waiting: this.#waiting_count, seen: this.#seen, dropped: this.#dropped }
  }
}
