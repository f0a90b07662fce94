/**
 * Has garbage collected while much is read. What a line of a large batch leaves is a few kilobytes, of which an earlier
 * collection has promoted a part: the runtime would let tens of megabytes wait for its next full collection, and more where
 * its threads find no processor.
 */
import { fullGC } from 'bun:jsc'

const BYTES_BETWEEN = 4 * 1024 * 1024
/** Everything waits for a collection, some 20 ms: it takes at most so much of the time. */
const MOST_SHARE = 0.05
let since = 0
let next = 0

/** So much was read. */
export function collectAfter(bytes: number): void {
  since += bytes
  if (since < BYTES_BETWEEN) return
  const start = performance.now()
  if (start < next) return
  since = 0
  fullGC()
  const end = performance.now()
  next = end + (end - start) / MOST_SHARE
}
