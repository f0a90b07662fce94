/** Contract of the live events that processes exchange while one is followed in another process. */

/**
 * `text`: JSON. `process_id` and `number`: of the process in which it happened, and among its events; null where an earlier
 * version wrote it. `late` 1: it had happened before the process began to write.
 */
export type LiveRow = {
  sequence: number
  at_ms: number
  type: string
  project_id: string | null
  text: string
  process_id: string | null
  number: number | null
  late: number | null
}

export type LiveStore = {
  /**
   * Asks the other processes to store their events until then, in unix milliseconds. Where this process had not asked, they
   * notice a change of the tokens' revision. Resolves with whether it had.
   */
  ask(process_id: string, until_ms: number, now_ms: number): Promise<boolean>
  /** Until when a process other than this one has asked; 0: none has. */
  askedUntil(process_id: string): Promise<number>
  /** In the order of their sequence for every reader. Keeps some thousand rows. */
  append(rows: readonly Omit<LiveRow, 'sequence'>[]): Promise<void>
  /** In order. */
  after(sequence: number, limit: number): Promise<LiveRow[]>
  last(): Promise<number>
}
