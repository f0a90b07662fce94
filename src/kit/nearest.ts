/** Finds the word that was probably intended. */

/** The allowed word closest to `word`, if at most `bound` of its letters differ: by default a third, as in a typing error. */
export function nearest(
  word: string,
  allowed: readonly string[],
  bound: number = Math.max(1, Math.floor(word.length / 3)),
): string | undefined {
  const lower = word.toLowerCase()
  let best: string | undefined
  let bestDistance = bound + 1
  for (const candidate of allowed) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue
    const distance = editDistance(lower, candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** `; did you mean "..."?`, or nothing. */
export function meantHint(word: string, allowed: readonly string[]): string {
  const meant = nearest(word, allowed)
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}

/** As the rest of a sentence that begins with the name of the place. */
export const notOneOf = (found: string, allowed: readonly string[]): string =>
  `found ${JSON.stringify(found)}, must be one of ${allowed.join(', ')}${meantHint(found, allowed)}`

/**
 * The number of insertions, deletions, replacements and swaps of neighbours between two words; `limit` for that many or
 * more. Cheap, since clients choose the words: only cells of the matrix that can stay below the limit are computed.
 */
function editDistance(from: string, to: string, limit: number): number {
  // What both begin and end with is left out: names of models share long beginnings.
  let start = 0
  while (start < from.length && start < to.length && from.charCodeAt(start) === to.charCodeAt(start)) start++
  let [height, width] = [from.length - start, to.length - start]
  while (height > 0 && width > 0 && from.charCodeAt(start + height - 1) === to.charCodeAt(start + width - 1)) {
    height--
    width--
  }
  let before: number[] = []
  let previous = Array.from({ length: width + 1 }, (_, index) => index)
  for (let i = 1; i <= height; i++) {
    const letter = from.charCodeAt(start + i - 1)
    const row: number[] = new Array(width + 1).fill(limit)
    row[0] = i
    let least = i
    const last = Math.min(width, i + limit)
    for (let j = Math.max(1, i - limit); j <= last; j++) {
      const other = to.charCodeAt(start + j - 1)
      let cost = (previous[j - 1] ?? limit) + (letter === other ? 0 : 1)
      cost = Math.min(cost, (previous[j] ?? limit) + 1, (row[j - 1] ?? limit) + 1)
      const isSwap =
        i > 1 && j > 1 && letter === to.charCodeAt(start + j - 2) && from.charCodeAt(start + i - 2) === other
      if (isSwap) cost = Math.min(cost, (before[j - 2] ?? limit) + 1)
      row[j] = cost
      if (cost < least) least = cost
    }
    if (least >= limit) return limit
    before = previous
    previous = row
  }
  return Math.min(limit, previous[width] ?? limit)
}
