/** Divides a capacity between those who ask for parts of it. */

/**
 * The largest share with which the sum of all demands, each cut to the share, does not exceed the capacity: whoever asks
 * for less than the share gets all of it (max-min fairness). Infinity if all demands fit.
 */
export function fairShare(demands: Iterable<number>, capacity: number): number {
  const ascending = [...demands].sort((one, other) => one - other)
  let left = capacity
  for (const [index, demand] of ascending.entries()) {
    const share = left / (ascending.length - index)
    if (demand > share) return share
    left -= demand
  }
  return Number.POSITIVE_INFINITY
}
