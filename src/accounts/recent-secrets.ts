/** Remembers secrets that were presented lately and what each gives, so that a call of a known client hashes nothing. */
import type { Clock } from '../kit/clock.ts'
import { hash32 } from '../kit/hash.ts'
import type { Grant } from './grant.ts'

/** After this time all are forgotten, so that no secret stays in memory because it was used once. */
export const RECENT_MILLISECONDS = 60_000
/** Each costs about 200 bytes. */
export const MAX_RECENT = 10_000

/**
 * A secret is found by a hash with a random seed and then compared. An attacker cannot choose secrets of the same hash, so
 * the comparison, whose time depends on the secrets, is reached by one wrong secret in 2^32.
 */
export class RecentSecrets {
  readonly #clock: Clock
  readonly #seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
  readonly #entries = new Map<number, { secret: string; grant: Grant }>()
  /** When the first of them was remembered. */
  #since = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(secret: string): Grant | undefined {
    if (this.#entries.size === 0) return undefined
    this.expire()
    const entry = this.#entries.get(hash32(secret, this.#seed))
    return entry?.secret === secret ? entry.grant : undefined
  }

  add(secret: string, grant: Grant): void {
    if (this.#entries.size >= MAX_RECENT) this.forget()
    if (this.#entries.size === 0) this.#since = this.#clock.steady()
    this.#entries.set(hash32(secret, this.#seed), { secret, grant })
  }

  expire(): void {
    if (this.#entries.size > 0 && this.#clock.steady() - this.#since >= RECENT_MILLISECONDS) this.forget()
  }

  forget(): void {
    this.#entries.clear()
  }
}
