/** Remembers texts by 64 bits of each, in memory that the garbage collector does not visit: tens of thousands of short ones, once. */

const FIRST_PLACES = 1_024
const [LOW_SEED, HIGH_SEED] = crypto.getRandomValues(new Uint32Array(2)) as unknown as [number, number]

type TextSet = {
  /** False: it was added before. Of 50,000 texts two are taken for one in one of 10^10 sets, and nobody knows which. */
  add(text: string): boolean
}

export function createTextSet(): TextSet {
  let table = new Uint32Array(FIRST_PLACES * 2)
  let size = 0

  function put(into: Uint32Array, low: number, high: number): boolean {
    const mask = into.length / 2 - 1
    for (let place = low & mask; ; place = (place + 1) & mask) {
      const [one, other] = [into[place * 2], into[place * 2 + 1]]
      if (one === low && other === high) return false
      if (one !== 0 || other !== 0) continue
      into[place * 2] = low
      into[place * 2 + 1] = high
      return true
    }
  }

  function grow(): void {
    const larger = new Uint32Array(table.length * 2)
    for (let at = 0; at < table.length; at += 2) {
      const [low = 0, high = 0] = [table[at], table[at + 1]]
      if (low !== 0 || high !== 0) put(larger, low, high)
    }
    table = larger
  }

  return {
    add(text) {
      if (size * 4 >= table.length) grow()
      // The second half is never 0, which is an empty place.
      const high = Bun.hash.xxHash32(text, HIGH_SEED) || 1
      const isNew = put(table, Bun.hash.xxHash32(text, LOW_SEED), high)
      if (isNew) size++
      return isNew
    },
  }
}
