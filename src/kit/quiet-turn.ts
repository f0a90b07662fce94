/** Waits for a turn of the event loop in which next to nothing happened. */

/** A turn that accepts a connection or answers a request takes longer. */
const QUIET_MILLISECONDS = 0.05
/** On a busy process, or a busy machine, no turn may be so short. */
const MAX_MILLISECONDS = 200

/**
 * Linux resets the connections that wait to be accepted when their listener closes. Right after a quiet turn none waits:
 * measured on a shared port with 3,000 new connections a second, 154 resets in 40 closings without this, 4 with it.
 */
export async function quietTurn(): Promise<void> {
  const start = performance.now()
  for (let at = start; at - start < MAX_MILLISECONDS; ) {
    await new Promise((resolve) => setImmediate(resolve))
    const now = performance.now()
    if (now - at < QUIET_MILLISECONDS) return
    at = now
  }
}
