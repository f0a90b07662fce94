/** Contract of the leases of rate limits that the processes of all gateways exchange. */

/** What a process wants of one limit. */
export type LeaseWish = {
  /** Names the limit among all. */
  counter: string
  limit: number
  /** 0: counted while it is open. */
  window_ms: number
  /** What this process has in its window: what it holds at least. */
  total: number
  /** How much it wants to hold. */
  requested: number
  /** The parts of its window, by after how long they leave it. */
  parts: readonly (readonly [leaves_in_ms: number, amount: number])[]
}

/** What one process holds of one limit, as it is stored. */
export type LeaseRow = {
  counter: string
  process_id: string
  held: number
  /** `<milliseconds after renewed_ms>:<amount>`, separated by commas: what was used, by when it leaves the window. */
  used: string
  window_ms: number
  renewed_ms: number
  /** From when on it counts nothing. */
  ends_ms: number
}

/** How many unfinished tasks there may be that are equal to a new one in these columns. `name`: of what is limited. */
export type TaskLimit = {
  name: string
  columns: readonly ('model' | 'project_id' | 'token_id' | 'end_user')[]
  limit: number
}

/** `others`: what all other processes hold. `apart`: the part of it that is not counted elsewhere. */
export type Lease = { counter: string; held: number; others: number; apart: number }

/** `moves`: how often the due times were moved when the time was read; a write is refused if they were moved since. */
type StoreTime = { now_ms: number; moves?: number | undefined }

export type RateLimitStore = {
  /**
   * Renews the leases of a process, and grants what the others leave of each limit; one transaction. What a process held
   * whose lease was not renewed counts no longer, except for what it has used. `processes`: how many have leases now.
   * `elsewhere`: the counter that processes hold as long as all they use is counted elsewhere as well; `apart`: how many
   * others do not hold it, or did not when they ended, and may still count. Rejects with `DueTimesMoved`.
   */
  exchange(
    process_id: string,
    wishes: readonly LeaseWish[],
    time: StoreTime,
    elsewhere?: string,
  ): Promise<{ leases: Lease[]; processes: number; apart: number }>
}

/** A process uses what it holds for so long after it asked for it, by its own clock. */
export const LEASE_VALID_MS = 3_000
/** After so long others count it as over: longer, since clocks differ by a little. */
export const LEASE_LAPSES_MS = 4_000

/** What the names of those counters begin with. */
export const ELSEWHERE = 'valkey/'
