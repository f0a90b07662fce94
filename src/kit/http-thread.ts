/** How the thread of the runtime that speaks with upstreams is scheduled. Linux only. */
import { openLibc } from './libc.ts'

/** Of <sched.h>. */
const SCHED_OTHER = 0
const SCHED_BATCH = 3
const THIS_THREAD = 0

/**
 * On a busy core, Linux would interrupt the event loop for each request that it hands to that thread and for each response
 * that arrives. Scheduled as a batch, the thread waits until the event loop waits, or for its share of the core, and then
 * serves all that has come (docs/decisions/0029). It takes the policy of the thread that starts it, with the first
 * request: this one must be the first, and goes nowhere. Where the system refuses, nothing changes.
 */
export async function batchHttpThread(): Promise<void> {
  const libc = process.platform === 'linux' ? openLibc() : undefined
  if (libc === undefined) return
  const priority = new Int32Array([0])
  if (libc.sched_setscheduler(THIS_THREAD, SCHED_BATCH, priority) !== 0) return
  const refused = fetch('http://localhost', { unix: '/proc/none' }).catch(() => {})
  libc.sched_setscheduler(THIS_THREAD, SCHED_OTHER, priority)
  await refused
}
