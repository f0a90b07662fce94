/**
 * Has garbage collected while much is read. What a line of a large batch leaves is a few kilobytes, of which an earlier
 * collection has promoted a part: the runtime would let tens of megabytes wait for its next full collection, and more where
 * its threads find no processor.
 */
import { fullGC } from 'bun:jsc'

const BYTES_BETWEEN = 4 * 1024 * 1024
/** Everything waits for a collection, some 20 ms of a small heap: it takes at most so much of the time. */
const MOST_SHARE = 0.05
/** Where more is in use, a collection takes 100 ms and more, which matters more than tens of megabytes: the next one is far off. */
const LARGE_BYTES = 100 * 1024 * 1024
const REST_MILLISECONDS = 600_000

/** To be called with the bytes of each read. `collect` returns the bytes in use after it. */
export function createCollector(collect: () => number, now: () => number): (bytes: number) => void {
  let since = 0
  let next = 0
  return (bytes) => {
    since += bytes
    if (since < BYTES_BETWEEN) return
    const start = now()
    if (start < next) return
    since = 0
    const left = collect()
    const end = now()
    next = end + (left > LARGE_BYTES ? REST_MILLISECONDS : (end - start) / MOST_SHARE)
  }
}

export const collectAfter = createCollector(fullGC, () => performance.now())
