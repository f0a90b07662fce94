/** Holds the amounts that a call counts against its limits until it is settled. */
import type { Clock } from '../../kit/clock.ts'
import type { Units } from '../../spec/usage.ts'
import type { TaskLimit } from '../../store/tokens/lease-store.ts'
import { CALLS, type Counter, type Limited } from './scopes.ts'
import { type Exceeded, type LimitReport, type LimitStatus, statusOf } from './status.ts'
import { add, expire, partAt, takeBack } from './window.ts'

export type Limits = Pick<Limited, 'counters' | 'limits' | 'tasks'>

/** What the call at hand needs of each unit, and one open call: written and read without waiting in between. */
const needed = new Float64Array(CALLS + 1)

/** Notes what a call needs, for the functions below. */
export function need(units: Readonly<Units>): void {
  const { input_tokens, output_tokens } = units
  needed[0] = 1
  needed[1] = amount(input_tokens)
  needed[2] = amount(output_tokens)
  needed[3] = (needed[1] as number) + (needed[2] as number)
  needed[4] = amount(units.images)
  needed[5] = amount(units.videos)
  needed[6] = amount(units.video_seconds)
  needed[7] = amount(units.three_d)
  needed[8] = amount(units.audio_seconds)
  needed[CALLS] = 1
}

/** A provider's wrong count must not corrupt the sums. */
const MOST_UNITS = 1_000_000_000_000
const amount = (count = 0): number => (count > 0 ? Math.min(count, MOST_UNITS) : 0)

/** A new call is behind all that wait; one that waits is behind those that were tried before it in the round. */
const isBehind = ({ blocked_in }: Counter, round: number): boolean => round === NEW || blocked_in === round

/** Instead of a round: the call does not wait. */
export const NEW = 0

/** The place of the first limit that the needed amounts exceed; -1: none. */
function exceeded({ counters, limits }: Limits, now: number, round: number): number {
  for (let at = 0; at < counters.length; at++) {
    const counter = counters[at] as Counter
    const { window } = counter
    const limit = limits[at] as number
    counter.limit = limit
    const amount = needed[counter.unit] as number
    if (amount === 0) continue
    if (window.expires_at <= now) expire(window, now)
    const usable = counter.held_until <= now ? 0 : counter.held < limit ? counter.held : limit
    if (window.total + amount > usable || (counter.waiting > 0 && isBehind(counter, round))) return at
  }
  return -1
}

function use(counter: Counter, amount: number, onUsed: HoldParts['onUsed']): void {
  counter.recent += amount
  if (!counter.is_noted) onUsed?.(counter)
}

function take({ counters }: Limits, now: number, { onUsed, onChanged }: TakeParts): void {
  for (let at = 0; at < counters.length; at++) {
    const counter = counters[at] as Counter
    const amount = needed[counter.unit] as number
    counter.users++
    if (amount === 0) continue
    if (counter.is_concurrent) counter.window.total += 1
    else add(counter.window, amount, now)
    use(counter, amount, onUsed)
    onChanged?.(counter, amount, now)
  }
}

/** Until the work ends, what it is to count in is not forgotten. */
export function keeping<Result>(lists: readonly Limits[], work: Promise<Result>): Promise<Result> {
  const change = (by: number) => {
    for (const { counters } of lists) for (const counter of counters) counter.users += by
  }
  change(1)
  return work.finally(() => change(-1))
}

/** What Valkey answers. `at`: the time at which the call is counted. */
export type Verdict = { at: number; blocked?: undefined } | { blocked: Exceeded }

/** By how much a counter has changed. `part`: 0 for open calls. */
export type Change = { counter: Counter; part: number; amount: number }

export type Needed = { counter: Counter; limit: number; amount: number }

/** What was noted by `need`, of each limit. */
export const neededOf = (lists: readonly Limits[]): Needed[] =>
  lists.flatMap(({ counters, limits }) =>
    counters.flatMap((counter, at) => {
      const limit = limits[at] as number
      const amount = needed[counter.unit] as number
      counter.limit = limit
      return amount > 0 ? [{ counter, limit, amount }] : []
    }),
  )

export function firstExceeded(lists: readonly Limits[], now: number, round: number): Exceeded | undefined {
  for (let list = 0; list < lists.length; list++) {
    const limits = lists[list] as Limits
    const at = exceeded(limits, now, round)
    if (at === -1) continue
    const counter = limits.counters[at] as Counter
    return { counter, limit: limits.limits[at] as number, amount: needed[counter.unit] as number }
  }
  return undefined
}

export type TakeParts = Pick<HoldParts, 'onUsed' | 'onChanged'>

export type HoldParts = {
  clock: Clock
  /** Where counters are shared with other processes: something was used of one whose use is not noted yet. */
  onUsed?: ((counter: Counter) => void) | undefined
  /** By how much a counter has changed, at a time; not called for what Valkey has counted itself. */
  onChanged?: ((counter: Counter, amount: number, at: number) => void) | undefined
  /** Something that was taken is free again. */
  onFreed?: () => void
}

/** One object for each call, without closures. What a call takes and uses is counted in each of its lists. */
export class LimitHold implements LimitReport {
  readonly #parts: HoldParts
  #lists: readonly Limits[]
  #at = 0
  #input = 0
  #output = 0
  #images = 0
  #videos = 0
  #seconds = 0
  #three_d = 0
  #audio = 0

  constructor(lists: readonly Limits[], parts: HoldParts) {
    this.#lists = lists
    this.#parts = parts
  }

  /** Counts what was noted by `need`. `parts`: others than for all other changes. */
  take(now: number, parts: TakeParts = this.#parts): void {
    this.#at = now
    this.#input = needed[1] as number
    this.#output = needed[2] as number
    this.#images = needed[4] as number
    this.#videos = needed[5] as number
    this.#seconds = needed[6] as number
    this.#three_d = needed[7] as number
    this.#audio = needed[8] as number
    const lists = this.#lists
    for (let list = 0; list < lists.length; list++) take(lists[list] as Limits, now, parts)
  }

  /** Counts what was used instead of what was taken. More than that counts from now on. */
  settle(used: Readonly<Units>): void {
    need(used)
    this.#settle()
  }

  /** As if the call had never been. */
  cancel(): void {
    needed.fill(0)
    this.#settle()
  }

  #settle(): void {
    const now = this.#parts.clock.steady()
    const lists = this.#lists
    for (let list = 0; list < lists.length; list++) this.#correct(lists[list] as Limits, now, this.#parts)
    this.#parts.onFreed?.()
  }

  /** What undoes all that was taken, for Valkey. */
  reversal(): Change[] {
    return this.#lists.flatMap(({ counters }) =>
      counters.flatMap((counter) => {
        if (counter.is_concurrent) return [{ counter, part: 0, amount: -1 }]
        const amount = this.#taken(counter.unit)
        return amount > 0 ? [{ counter, part: partAt(counter.window, this.#at), amount: -amount }] : []
      }),
    )
  }

  /** Takes what was noted by `need` from other lists instead, as Valkey has counted it. */
  takeInstead(lists: readonly Limits[], at: number, parts: TakeParts): void {
    const next = needed.slice()
    needed.fill(0)
    for (const list of this.#lists) this.#correct(list, at, parts)
    needed.set(next)
    this.#lists = lists
    this.take(at, parts)
  }

  /** Takes what was noted by `need` from other lists instead, or throws and holds what it held. */
  replace(lists: readonly Limits[], assertFits: (now: number) => void): void {
    const now = this.#parts.clock.steady()
    const next = needed.slice()
    const before = this.#lists
    const held = Float64Array.from(needed, (_, unit) => (unit === CALLS ? 1 : this.#taken(unit)))
    needed.fill(0)
    for (const list of before) this.#correct(list, now, this.#parts)
    needed.set(next)
    try {
      assertFits(now)
      this.#lists = lists
    } catch (thrown) {
      needed.set(held)
      throw thrown
    } finally {
      this.take(now)
    }
  }

  #taken(unit: number): number {
    switch (unit) {
      case 0:
        return 1
      case 1:
        return this.#input
      case 2:
        return this.#output
      case 3:
        return this.#input + this.#output
      case 4:
        return this.#images
      case 5:
        return this.#videos
      case 6:
        return this.#seconds
      case 7:
        return this.#three_d
      default:
        return this.#audio
    }
  }

  #correct({ counters }: Limits, now: number, { onUsed, onChanged }: TakeParts): void {
    for (let at = 0; at < counters.length; at++) {
      const counter = counters[at] as Counter
      const { window, unit } = counter
      counter.users--
      if (counter.is_concurrent) {
        window.total -= 1
        onChanged?.(counter, -1, now)
        continue
      }
      const change = (needed[unit] as number) - this.#taken(unit)
      if (change === 0) continue
      if (window.expires_at <= now) expire(window, now)
      if (change < 0) takeBack(window, -change, this.#at)
      else {
        add(window, change, now)
        use(counter, change, onUsed)
      }
      onChanged?.(counter, change, change < 0 ? this.#at : now)
    }
  }

  tasks(): TaskLimit[] {
    return this.#lists.flatMap(({ tasks }) => tasks)
  }

  statuses(): LimitStatus[] {
    const now = this.#parts.clock.steady()
    const strictest: LimitStatus[] = []
    for (const { counters, limits } of this.#lists) {
      for (let at = 0; at < counters.length; at++) {
        const counter = counters[at] as Counter
        if (counter.is_concurrent) continue
        const status = statusOf(counter, limits[at] ?? 0, now)
        const place = placeOf(strictest, status.unit)
        const before = strictest[place]
        if (!before || status.remaining < before.remaining) strictest[place] = status
      }
    }
    return strictest
  }
}

/** Of the status of this unit, or of the next one. */
function placeOf(statuses: readonly LimitStatus[], unit: LimitStatus['unit']): number {
  let at = 0
  while (at < statuses.length && statuses[at]?.unit !== unit) at++
  return at
}
