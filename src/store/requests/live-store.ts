/** What processes tell each other of what happens, while somebody follows it. */

/** `text`: JSON. `gap`: nobody followed before it, so events were not stored. */
export type LiveRow = { sequence: number; at_ms: number; type: string; project_id: string | null; text: string }

export type LiveStore = {
  /**
   * Asks all processes to store their events until then, in unix milliseconds. Where nobody had asked, they notice a change
   * of the tokens' revision, and a row of type `gap` begins.
   */
  ask(until_ms: number, now_ms: number): Promise<void>
  askedUntil(): Promise<number>
  /** In the order of their sequence for every reader. Keeps some thousand rows. */
  append(rows: readonly Omit<LiveRow, 'sequence'>[]): Promise<void>
  /** In order. */
  after(sequence: number, limit: number): Promise<LiveRow[]>
  last(): Promise<number>
}
