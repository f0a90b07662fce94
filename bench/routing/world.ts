/**
 * The targets of the simulation: what they would answer to a call at a time. All subjects see the same faults at the same
 * times, and the same call has the same luck at the same target, whoever sends it.
 */

export type Fault = 'refuses' | 'silent' | 'slow' | 'flapping' | 'limits'
/** Seconds from the start. */
export type Outage = { target: number; fault: Fault; from: number; to: number }
/** What a target does with a call. Milliseconds to the first byte, or to the error. */
export type Answer =
  | { kind: 'ok'; ms: number }
  | { kind: 'refused' | 'failed' | 'limited'; ms: number }
  | { kind: 'silent' }

export type World = {
  readonly seconds: number
  /** Per call. */
  readonly prices: readonly number[]
  readonly outages: readonly Outage[]
  answer(target: number, call: number, now_ms: number, open: number): Answer
}

/** A generator of numbers from 0 to 1, not including 1: the sequence is that of its seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const normalOf = (random: () => number) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

/** The usual time to the first byte of each target in milliseconds, and its price. */
const MEDIANS = [450, 550, 500, 700, 600]
const PRICES = [5, 3, 4, 2, 3]
/** The spread of single calls, in the exponent; one call in a hundred takes several times as long. */
const SPREAD = 0.35
const TAIL = { share: 0.01, factor: 6 }
/** The drift: a random walk that tends back to the median. */
const DRIFT = { step: 0.02, back: 0.002 }
/** Short times in which a target is slow, several in an hour. */
const SPIKE = { every_seconds: 600, seconds: 40, factor: 5 }
const SLOW_FACTOR = 10
const FLAP_SECONDS = 10
const LIMITED_SHARE = 0.8
/** Errors at any time. */
const ERROR_SHARE = 0.002
/** Above so many open calls a target gets slower. */
const CAPACITY = 150

const FAULTS: readonly Fault[] = ['refuses', 'silent', 'slow', 'flapping', 'limits']

/** In every five minutes but the first, one target has a fault for three. */
export function outagesOf(seconds: number, targets: number, seed: number): Outage[] {
  const random = randomOf(seed * 31 + 7)
  const outages: Outage[] = []
  for (let from = 300; from + 180 <= seconds; from += 300) {
    const fault = FAULTS[outages.length % FAULTS.length] ?? 'refuses'
    outages.push({ target: Math.floor(random() * targets), fault, from, to: from + 180 })
  }
  return outages
}

type WorldParts = { seconds: number; targets: number; seed: number; outages: readonly Outage[] }

export function createWorld({ seconds, targets, seed, outages }: WorldParts): World {
  const levels = Array.from({ length: targets }, (_, target) => levelsOf(seconds, seed * 100 + target, target))

  function faultAt(target: number, second: number): Fault | undefined {
    return outages.find((one) => one.target === target && second >= one.from && second < one.to)?.fault
  }

  return {
    seconds,
    prices: PRICES.slice(0, targets),
    outages,
    answer(target, call, now_ms, open) {
      const second = Math.floor(now_ms / 1000)
      const random = randomOf(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(call + 1, 0x85ebca6b) ^ (target * 0xc2b2ae35))
      const luck = random()
      const fault = faultAt(target, second)
      const isDown = fault === 'refuses' || (fault === 'flapping' && Math.floor(second / FLAP_SECONDS) % 2 === 0)
      if (isDown) return { kind: 'refused', ms: 5 }
      if (fault === 'silent') return { kind: 'silent' }
      if (fault === 'limits' && luck < LIMITED_SHARE) return { kind: 'limited', ms: 50 }
      if (luck > 1 - ERROR_SHARE) return { kind: 'failed', ms: 100 }
      const level = levels[target]?.[Math.min(second, seconds - 1)] ?? 1
      const tail = random() < TAIL.share ? TAIL.factor : 1
      const load = 1 + Math.max(0, open - CAPACITY) / CAPACITY
      const slow = fault === 'slow' ? SLOW_FACTOR : 1
      return { kind: 'ok', ms: level * Math.exp(SPREAD * normalOf(random)) * tail * load * slow }
    },
  }
}

/** The median of a target in each second. */
function levelsOf(seconds: number, seed: number, target: number): Float64Array {
  const random = randomOf(seed)
  const median = MEDIANS[target % MEDIANS.length] ?? 500
  const levels = new Float64Array(seconds)
  let drift = 0
  let spikeUntil = 0
  for (let second = 0; second < seconds; second++) {
    drift += DRIFT.step * normalOf(random) - DRIFT.back * drift
    if (random() < 1 / SPIKE.every_seconds) spikeUntil = second + SPIKE.seconds
    levels[second] = median * Math.exp(drift) * (second < spikeUntil ? SPIKE.factor : 1)
  }
  return levels
}
