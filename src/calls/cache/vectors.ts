/** The vectors of the semantic cache, in memory: the newest ones within the bounds, each with the key of its response. */
import type { Neighbour } from '../../store/requests/cache-store.ts'

type Entry = { partition: string; key: string; vector: Float32Array; expires_ms: number }

type Search = { vector: Float32Array; threshold: number; now_ms: number }

/** The newest of a partition are compared: with 1536 numbers each, that takes 4 milliseconds, in which nothing else runs. */
const MOST_COMPARED = 2_000
const MOST_NUMBERS_COMPARED = MOST_COMPARED * 1_536

export function createVectors() {
  /** The oldest first: of all partitions, and of each one by the key of the response. */
  const entries = new Set<Entry>()
  const partitions = new Map<string, Map<string, Entry>>()
  let bytes = 0

  function drop(entry: Entry): void {
    if (!entries.delete(entry)) return
    bytes -= entry.vector.byteLength
    const partition = partitions.get(entry.partition)
    partition?.delete(entry.key)
    if (partition?.size === 0) partitions.delete(entry.partition)
  }

  return {
    /** Adds a vector of length 1, or replaces that of the key; then removes the oldest ones above the bound. */
    add(entry: Entry, { max_vector_bytes }: { max_vector_bytes: number }): void {
      const replaced = partitions.get(entry.partition)?.get(entry.key)
      if (replaced) drop(replaced)
      partitions.getOrInsertComputed(entry.partition, () => new Map()).set(entry.key, entry)
      entries.add(entry)
      bytes += entry.vector.byteLength
      for (const oldest of entries) {
        if (bytes <= max_vector_bytes) break
        drop(oldest)
      }
    },
    /** The most similar vector of the partition that is not below the threshold and has not expired. */
    nearest(partition: string, { vector, threshold, now_ms }: Search): Neighbour | undefined {
      const all = [...(partitions.get(partition)?.values() ?? [])]
      let found: Neighbour | undefined
      const most = Math.min(MOST_COMPARED, Math.ceil(MOST_NUMBERS_COMPARED / vector.length))
      for (const entry of all.slice(-most)) {
        if (entry.expires_ms <= now_ms) drop(entry)
        else if (entry.vector.length === vector.length) {
          const similarity = product(entry.vector, vector)
          if (similarity >= (found?.similarity ?? threshold)) found = { key: entry.key, similarity }
        }
      }
      return found
    },
    /** The response of the key is gone. */
    remove(partition: string, key: string): void {
      const entry = partitions.get(partition)?.get(key)
      if (entry) drop(entry)
    },
    /** The responses of the partitions whose name has this text are gone. */
    removeWith(part: string): void {
      for (const entry of entries) if (entry.partition.includes(part)) drop(entry)
    },
  }
}

/** Of two vectors of length 1: the cosine of their angle. Rounding may make it a little more than 1. */
function product(one: Float32Array, other: Float32Array): number {
  const whole = one.length - (one.length % 4)
  let [a, b, c, d] = [0, 0, 0, 0] // four sums do not wait for each other
  for (let at = 0; at < whole; at += 4) {
    a += (one[at] as number) * (other[at] as number)
    b += (one[at + 1] as number) * (other[at + 1] as number)
    c += (one[at + 2] as number) * (other[at + 2] as number)
    d += (one[at + 3] as number) * (other[at + 3] as number)
  }
  for (let at = whole; at < one.length; at++) a += (one[at] as number) * (other[at] as number)
  return Math.min(1, a + b + c + d)
}

/** The vector with length 1; undefined for one without direction, or with numbers that are none. */
export function normalized(numbers: readonly number[]): Float32Array | undefined {
  let squares = 0
  for (const number of numbers) squares += number * number
  const length = Math.sqrt(squares)
  if (!(length > 0 && length < Number.POSITIVE_INFINITY)) return undefined
  return Float32Array.from(numbers, (number) => number / length)
}
