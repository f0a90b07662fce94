/** Pseudo-random choices that are the same for the same seed, so that a difference can be reproduced. */

export class Random {
  #state: number

  constructor(seed: number | string) {
    this.#state = typeof seed === 'number' ? seed >>> 0 : Number(BigInt.asUintN(32, BigInt(Bun.hash(seed))))
  }

  /** Mulberry32; from 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  /** True in this part of all cases, from 0 to 1. */
  chance(part: number): boolean {
    return this.next() < part
  }

  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T
  }

  /** The members that chance includes, each in this part of all cases. */
  some(members: Record<string, unknown>, part: number): Record<string, unknown> {
    return Object.fromEntries(Object.entries(members).filter(() => this.chance(part)))
  }
}
