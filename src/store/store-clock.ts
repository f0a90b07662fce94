/** The clock of stored due times: that of the database where it has one, so that all gateways agree, and without jumps. */
import { uptime } from 'node:os'
import { type Clock, shiftedNow, systemClock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Store } from './store.ts'
import { type DueTimes, DueTimesMoved } from './tasks/due-times.ts'

/** Smaller differences are followed without moving due times: the daemons that keep clocks right correct less at once. */
const STEP_MILLISECONDS = 5_000
/** How often the time of the database is read. */
const READ_MILLISECONDS = 1_000

type StoreClockParts = {
  clock: Clock
  dueTimes: DueTimes
  log: Log
  /** How long the machine was suspended: this time has passed, although the steady clock stood still. */
  suspended_ms: () => number
}

const suspendedMilliseconds = (): number => uptime() * 1000 - performance.now()

/** `align` notices that the clock was set, and moves the due times by as much before it follows. */
export async function createStoreClock({ clock, dueTimes, log, suspended_ms }: StoreClockParts): Promise<Clock> {
  const { now: databaseNow } = dueTimes
  const ownOffset = () => clock.now() - clock.steady()
  let moves = await dueTimes.moves()
  const shift = { offset: (await measure())[0] }
  let suspended = suspended_ms()
  let read_at = clock.steady()
  let aligning: Promise<void> | undefined
  let is_moving = false

  /** Bounds of the difference between the time and the steady clock: between its two reads much may happen. */
  async function measure(): Promise<[least: number, most: number]> {
    const before = clock.steady()
    const time = databaseNow ? await databaseNow() : clock.now()
    return [time - clock.steady(), time - before]
  }

  async function follow([least, most]: [number, number]): Promise<void> {
    const change = Math.min(Math.max(shift.offset, least), most) - shift.offset
    const before = suspended
    suspended = suspended_ms()
    const slept = suspended - before >= STEP_MILLISECONDS ? suspended - before : 0
    const step = Math.round(change - slept)
    shift.offset += change
    if (Math.abs(step) < STEP_MILLISECONDS) return
    is_moving = true
    try {
      const moved = await dueTimes.move(step, moves)
      moves = moved ? moves + 1 : await dueTimes.moves()
      log.warn('the clock was set', { seconds: step / 1000, moved_due_times: moved })
    } catch (error) {
      shift.offset -= change // the next alignment tries again
      suspended = before
      throw error
    } finally {
      is_moving = false
    }
  }

  async function readAndFollow(): Promise<void> {
    const bounds = await measure()
    read_at = clock.steady()
    await follow(bounds)
  }

  async function adopt(): Promise<void> {
    await aligning
    await readAndFollow()
    moves = await dueTimes.moves()
  }

  return {
    now: shiftedNow(clock, shift),
    // While they are moved, the time is that of after.
    moves: () => (is_moving ? moves + 1 : moves),
    realign() {
      aligning = adopt().finally(() => {
        aligning = undefined
      })
      return aligning
    },
    steady: clock.steady,
    after: clock.after,
    align() {
      if (aligning) return aligning
      if (databaseNow ? clock.steady() - read_at < READ_MILLISECONDS : isClose(ownOffset(), shift.offset))
        return undefined
      aligning = readAndFollow().finally(() => {
        aligning = undefined
      })
      return aligning
    },
  }
}

const ATTEMPTS = 3

/** Runs a write that stores a time, and again where the due times were moved since that time was read. */
export async function writeAtTime<T>(
  clock: Clock,
  write: (time: { now_ms: number; moves: number | undefined }) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    await clock.align?.()
    try {
      return await write({ now_ms: clock.now(), moves: clock.moves?.() })
    } catch (error) {
      if (!(error instanceof DueTimesMoved) || attempt === ATTEMPTS) throw error
      await clock.realign?.()
    }
  }
}

/** The commonest case, without a promise: the clocks differ by what rounding and slow corrections explain. */
const isClose = (one: number, other: number): boolean => Math.abs(one - other) < 100

/** The clock of a store: that of its database where it has one. An injected clock also stands for that of the database. */
export function storeClockFor({ dueTimes }: Store, { clock, log }: { clock: Clock; log: Log }): Promise<Clock> {
  if (clock === systemClock) return createStoreClock({ clock, dueTimes, suspended_ms: suspendedMilliseconds, log })
  const { moves, move } = dueTimes
  return createStoreClock({ clock, dueTimes: { moves, move }, suspended_ms: () => 0, log })
}
