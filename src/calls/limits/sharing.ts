/** Shares rate limits with other processes: by leases of the store, and by counts in Valkey while all processes count there. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Valkey } from '../../store/engines/valkey.ts'
import type { RateLimitStore } from '../../store/tokens/lease-store.ts'
import type { Change, Needed, TakeParts, Verdict } from './hold.ts'
import { Leases, type WhenStoreFails } from './leases.ts'
import type { Counter } from './scopes.ts'
import { ValkeyCounts } from './valkey-counts.ts'

export type Sharing = {
  /** The time of all windows. */
  readonly clock: Clock
  /** Notes what this process takes and gives back. */
  readonly noting: TakeParts
  /** Notes what was counted by `count`. */
  readonly counted: TakeParts
  /** Whether `count` admits calls; else, and where it is absent, each process admits by what it holds of a limit. */
  decides?: () => boolean
  /**
   * Counts a call at all processes, or not at all. With `instead`, these changes count only with it. Undefined: that is not
   * possible now, and what this process holds decides.
   */
  count(checks: readonly Needed[], instead?: readonly Change[]): Promise<Verdict | undefined>
  /** Notes how much others than this process have used. */
  look(counters: readonly Counter[]): Promise<void>
  mayGrow(counter: Counter, now: number): boolean
  /** Asks for so much more of each: of all that a call must keep, since what nobody asks for may be given back. Resolves once the store has answered, or after a short time. */
  ask(requested: readonly { counter: Counter; amount: number }[]): Promise<void>
  /** Reports what was used, and gives back the rest. */
  close(): Promise<void>
}

export type SharedLimits = { store: RateLimitStore; process_id: string; valkey?: Valkey | undefined }

type SharingParts = SharedLimits & {
  counters(): Iterable<Counter>
  /** That of the store. */
  clock: Clock
  log: Log
  when_store_fails(): WhenStoreFails
}

type Counts = Pick<Sharing, 'decides' | 'count' | 'look'>

const UNCOUNTED: Counts = { count: async () => undefined, look: async () => {} }

const countedBy = (counts: ValkeyCounts): Counts => ({
  decides: () => counts.decides(),
  count: (checks, instead) => counts.count(checks, instead),
  look: (counters) => counts.look(counters),
})

/** Of a process that has all limits for itself. */
export const unshared = (clock: Clock): Sharing => ({
  clock,
  noting: {},
  counted: {},
  ...UNCOUNTED,
  mayGrow: () => false,
  ask: async () => {},
  close: async () => {},
})

export function createSharing({ valkey, counters, ...parts }: SharingParts): Sharing {
  const time = { shift: 0 }
  const clock: Clock = valkey ? { ...parts.clock, steady: () => parts.clock.steady() + time.shift } : parts.clock
  const ask: Sharing['ask'] = (requested) => leases.ask(requested)
  const counts =
    valkey && new ValkeyCounts({ ...parts, valkey, time, counters, announce: () => void leases.report(), ask })
  const leases = new Leases({ ...parts, clock, presence: counts?.presence })
  const onUsed = leases.used
  return {
    clock,
    noting: counts ? { onUsed, onChanged: (counter, amount, at) => counts.changed(counter, amount, at) } : { onUsed },
    counted: { onUsed },
    ...(counts ? countedBy(counts) : UNCOUNTED),
    mayGrow: (counter, now) => leases.mayGrow(counter, now),
    ask,
    async close() {
      await counts?.close()
      await leases.close()
    },
  }
}
