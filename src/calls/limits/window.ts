/**
 * A sliding window: what was admitted in the last second, minute, hour or day. It is counted in parts of 1/128 of the
 * length, and a part leaves as a whole, when its last moment has left: so no window of that length ever holds more than
 * is counted, and a saturated limit admits at least 128/129 of what it could.
 */
import type { RateUnit, RateWindow } from '../../spec/rate-limit.ts'

export const WINDOW_PARTS = 128

export const WINDOW_MS: Record<RateWindow, number> = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }

export type Window = {
  readonly unit: RateUnit
  readonly length_ms: number
  readonly part_ms: number
  /** What is in the window, as of the last `expire`. */
  total: number
  /** When the oldest part leaves; infinite without one. */
  expires_at: number
  /** The parts that are not empty, oldest first: their numbers and amounts by turns, in a ring. */
  ring: Float64Array
  first: number
  count: number
}

/** Most windows see few calls: the ring grows with its parts. */
const FIRST_CAPACITY = 4

export const createWindow = (unit: RateUnit, window: RateWindow): Window => ({
  unit,
  length_ms: WINDOW_MS[window],
  part_ms: WINDOW_MS[window] / WINDOW_PARTS,
  total: 0,
  expires_at: Number.POSITIVE_INFINITY,
  ring: new Float64Array(2 * FIRST_CAPACITY),
  first: 0,
  count: 0,
})

/** Where the part is that is `index` after the oldest. */
const slotOf = ({ ring, first }: Window, index: number): number => (2 * (first + index)) % ring.length

/** When the part at a slot has left as a whole. */
const endOf = ({ ring, part_ms, length_ms }: Window, slot: number): number =>
  ((ring[slot] as number) + 1) * part_ms + length_ms

/** Removes what has left the window. To be called before `total` is read. */
export function expire(window: Window, now: number): void {
  while (window.expires_at <= now) {
    window.total -= window.ring[slotOf(window, 0) + 1] as number
    window.first = (window.first + 1) % (window.ring.length / 2)
    if (--window.count === 0) {
      window.total = 0 // sums of fractions leave a remainder
      window.expires_at = Number.POSITIVE_INFINITY
    } else window.expires_at = endOf(window, slotOf(window, 0))
  }
}

/** Counts an amount now; in the newest part where `now` is before it. */
export function add(window: Window, amount: number, now: number): void {
  const part = partAt(window, now)
  const { ring, count } = window
  window.total += amount
  if (count > 0) {
    const last = slotOf(window, count - 1)
    if ((ring[last] as number) >= part) {
      ring[last + 1] = (ring[last + 1] as number) + amount
      return
    }
  }
  if (2 * count === ring.length) grow(window)
  const slot = slotOf(window, window.count++)
  window.ring[slot] = part
  window.ring[slot + 1] = amount
  if (window.count === 1) window.expires_at = endOf(window, slot)
}

function grow(window: Window): void {
  const ring = new Float64Array(2 * window.ring.length)
  const head = window.ring.subarray(2 * window.first)
  ring.set(head)
  ring.set(window.ring.subarray(0, 2 * window.first), head.length)
  window.ring = ring
  window.first = 0
}

/** Takes back what was counted at a time, as far as that is still in the window. */
export function takeBack(window: Window, amount: number, at: number): void {
  const index = indexOf(window, partAt(window, at))
  if (index === -1) return
  const slot = slotOf(window, index)
  const counted = window.ring[slot + 1] as number
  const taken = Math.min(amount, counted)
  window.ring[slot + 1] = counted - taken
  window.total -= taken
}

/** The place of a part among those that are not empty; -1: it has left. */
function indexOf(window: Window, part: number): number {
  let from = 0
  let to = window.count - 1
  while (from <= to) {
    const middle = (from + to) >> 1
    const found = window.ring[slotOf(window, middle)] as number
    if (found === part) return middle
    if (found < part) from = middle + 1
    else to = middle - 1
  }
  return -1
}

/** When so much has left the window; undefined: it does not hold as much. */
export function freeAt(window: Window, amount: number): number | undefined {
  let left = 0
  for (let index = 0; index < window.count; index++) {
    const slot = slotOf(window, index)
    left += window.ring[slot + 1] as number
    if (left >= amount) return endOf(window, slot)
  }
  return undefined
}

/** When the window is empty, if nothing is added. */
export const emptyAt = (window: Window, now: number): number =>
  window.count === 0 ? now : endOf(window, slotOf(window, window.count - 1))

/** Calls `each` with every part, oldest first: when it leaves, and its amount. */
export function eachPart(window: Window, each: (leaves_at: number, amount: number) => void): void {
  for (let index = 0; index < window.count; index++) {
    const slot = slotOf(window, index)
    each(endOf(window, slot), window.ring[slot + 1] as number)
  }
}

/** The time by which windows are counted changes by so much: parts leave when they would have, or up to one part later. */
export function shiftParts(window: Window, change_ms: number): void {
  const parts = Math.ceil(change_ms / window.part_ms)
  for (let index = 0; index < window.count; index++) {
    const slot = slotOf(window, index)
    window.ring[slot] = (window.ring[slot] as number) + parts
  }
  if (window.count > 0) window.expires_at = endOf(window, slotOf(window, 0))
}

/** The number of the part that a time is in. */
export const partAt = (window: Window, at: number): number => Math.floor(at / window.part_ms)
