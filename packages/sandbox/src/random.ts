/** Pseudo-random numbers, the same for the same seed. */
import { sha256 } from '../../../src/kit/secret.ts'

export type Random = ReturnType<typeof createRandom>

const ALPHANUMERICS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Small fast counter generator (sfc32); its four 32-bit words are the start of the seed's SHA-256. */
export function createRandom(seed: string) {
  const digest = sha256(seed)
  const word = (at: number) => Number.parseInt(digest.slice(at * 8, at * 8 + 8), 16) | 0
  let a = word(0)
  let b = word(1)
  let c = word(2)
  let counter = word(3)
  /** From 0 to 1, 1 excluded. */
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
  /** A whole number from 0 to `limit`, `limit` excluded. */
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    below,
    /** One of `items`, which must not be empty. */
    pick<T>(items: readonly T[]): T {
      if (items.length === 0) throw new RangeError('nothing to pick from')
      return items[below(items.length)] as T
    },
    alphanumerics(length: number) {
      let text = ''
      while (text.length < length) text += ALPHANUMERICS[below(ALPHANUMERICS.length)]
      return text
    },
  }
}
