/**
 * Counts the tokens of a text by a table of byte pairs. The table is held as bytes and a hash of them: 5 MB where a map of strings
 * takes 60.
 */

type TokenTable = { count(text: string): number }

/** Room for the pieces of a text; a longer one gets its own. */
const SCRATCH_BYTES = 4_096
const NONE = 0xffff_ffff

/**
 * `lines`: `<base64 of the token> <rank>`, in the order of their ranks, as tiktoken's files have them. `split`: cuts a text into the pieces
 * within which bytes are paired; it must be global.
 */
export function createTokenTable(lines: string, split: RegExp): TokenTable {
  const { bytes, starts } = decoded(lines)
  const slots = hashed(bytes, starts)
  const encoder = new TextEncoder()
  let piece = new Uint8Array(SCRATCH_BYTES)

  /** Of the bytes of a piece; `NONE`: they are no token. */
  function rankOf(from: number, to: number): number {
    const mask = slots.length - 1
    for (let slot = hashOf(piece, from, to) & mask; ; slot = (slot + 1) & mask) {
      const rank = (slots[slot] as number) - 1
      if (rank < 0) return NONE
      const start = starts[rank] as number
      if ((starts[rank + 1] as number) - start !== to - from) continue
      let at = from
      while (at < to && piece[at] === bytes[start + at - from]) at++
      if (at === to) return rank
    }
  }

  /** Joins the neighbours whose pair has the lowest rank, until no pair is a token. */
  function pairedCount(length: number): number {
    /** Where the parts begin, and the end. */
    const parts = Array.from({ length: length + 1 }, (_, at) => at)
    const pairAt = (index: number) =>
      index + 2 < parts.length ? rankOf(parts[index] as number, parts[index + 2] as number) : NONE
    const ranks = parts.map((_, index) => pairAt(index))
    for (;;) {
      let lowest = NONE
      let best = 0
      for (let index = 0; index < ranks.length; index++) {
        const rank = ranks[index] as number
        if (rank >= lowest) continue
        lowest = rank
        best = index
      }
      if (lowest === NONE) return parts.length - 1
      parts.splice(best + 1, 1)
      ranks.splice(best + 1, 1)
      ranks[best] = pairAt(best)
      if (best > 0) ranks[best - 1] = pairAt(best - 1)
    }
  }

  function countPiece(text: string): number {
    // At most three bytes for each unit of UTF-16.
    if (text.length * 3 > piece.length) piece = new Uint8Array(text.length * 3)
    const { written } = encoder.encodeInto(text, piece)
    return rankOf(0, written) === NONE ? pairedCount(written) : 1
  }

  return {
    count(text) {
      let sum = 0
      for (const [part] of text.matchAll(split)) sum += countPiece(part)
      return sum
    },
  }
}

/** The bytes of all tokens, and where each begins; the last start is the end. */
function decoded(lines: string): { bytes: Uint8Array; starts: Uint32Array } {
  const bytes = Buffer.allocUnsafe(Buffer.byteLength(lines))
  const starts: number[] = [0]
  let used = 0
  for (let from = 0; from < lines.length; ) {
    const end = lines.indexOf('\n', from)
    const line = lines.slice(from, end < 0 ? undefined : end)
    from = end < 0 ? lines.length : end + 1
    if (line === '') continue
    const [text = '', rank] = line.split(' ')
    if (Number(rank) !== starts.length - 1) throw new Error(`The table of tokens has rank ${rank} out of order.`)
    used += bytes.write(text, used, 'base64')
    starts.push(used)
  }
  return { bytes: new Uint8Array(bytes.subarray(0, used)), starts: Uint32Array.from(starts) }
}

/** Ranks from 1 on, each at the slot of its hash or the next free one; less than half of the slots are taken. */
function hashed(bytes: Uint8Array, starts: Uint32Array): Int32Array {
  const count = starts.length - 1
  const slots = new Int32Array(2 ** Math.ceil(Math.log2(count * 2 + 1)))
  const mask = slots.length - 1
  for (let rank = 0; rank < count; rank++) {
    let slot = hashOf(bytes, starts[rank] as number, starts[rank + 1] as number) & mask
    while (slots[slot] !== 0) slot = (slot + 1) & mask
    slots[slot] = rank + 1
  }
  return slots
}

/** FNV-1a, 32 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c_9dc5
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x0100_0193)
  return hash >>> 0
}
