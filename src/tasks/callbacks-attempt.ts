/** One callback in hand, from its task's row to the row that says what came of it. */
import type { Log, LogFields } from '../kit/log.ts'
import type { Task } from '../spec/task.ts'
import type { Callback, CallbackStore, TaskStore } from '../store/store.ts'
import { type Answer, type DeliveryParts, deliver } from './callbacks-delivery.ts'
import { isEnded } from './lifecycle.ts'

export type AttemptParts = {
  store: { callbacks: CallbackStore; tasks: Pick<TaskStore, 'find'> }
  delivery: DeliveryParts
  log: Log
  /** Aborted when the gateway stops and can wait no longer. */
  stopped: AbortSignal
}

/** From one attempt to the next; the last one counts for all that follow. */
const BACK_OFF_SECONDS = [5, 30, 120, 600, 1_800, 3_600, 7_200]
/** After the end of the task; the last attempt is made then. */
const GIVE_UP_SECONDS = 86_400
/** A receiver may ask for a pause of at most this. */
const LONGEST_PAUSE_SECONDS = 3_600

/** Never rejects; whether the receiver answered, whatever it said. */
export async function attempt(parts: AttemptParts, callback: Callback): Promise<{ answered: boolean }> {
  const { store, log, stopped, delivery } = parts
  try {
    const task = await store.tasks.find(callback.task_id)
    const began_ms = delivery.clock.now()
    const answer = task && isEnded(task) ? await tryOnce(parts, { callback, task }) : { status: 0 }
    await write(parts, { callback, task, answer, took_ms: delivery.clock.now() - began_ms })
    return { answered: answer.status !== 0 }
  } catch (error) {
    // Nothing is written down: the lease runs out, and it is sent again with the same id.
    if (!stopped.aborted) log.error('callback not written down', fieldsOf(callback), error)
    return { answered: true } // nothing is known against the receiver
  }
}

/** A fault of our own counts as an attempt, so that it is not repeated every minute for ever. */
async function tryOnce(parts: AttemptParts, tried: { callback: Callback; task: Task }): Promise<Answer> {
  try {
    return await deliver(parts.delivery, tried, parts.stopped)
  } catch (error) {
    parts.stopped.throwIfAborted()
    parts.log.error('callback failed', fieldsOf(tried.callback), error)
    return { status: 0, why: 'internal_error' }
  }
}

type Tried = { callback: Callback; task: Task | undefined; answer: Answer; took_ms: number }

async function write({ store, log, delivery }: AttemptParts, tried: Tried): Promise<void> {
  const { callback, task, answer, took_ms } = tried
  const { callback_id, attempts } = callback
  const { status, why } = answer
  const now_ms = delivery.clock.now()
  const delivered_at = status >= 200 && status < 300 ? Math.floor(now_ms / 1000) : null
  const is_over = !task || delivered_at !== null || status === 410 // Gone: the receiver wants no more of them
  const due_ms = is_over ? null : nextAttempt(task, { attempts, answer, now_ms })
  await store.callbacks.save(callback_id, { due_ms, delivered_at, status })
  const fields = { ...fieldsOf(callback), status, attempt: attempts + 1, total_ms: took_ms, error: why }
  if (delivered_at !== null) log.info('callback delivered', fields)
  else if (!task) log.info('callback dropped: its task was deleted', fieldsOf(callback))
  else if (due_ms === null) log.warn('callback given up', fields)
  else log.warn('callback not delivered', { ...fields, again_seconds: Math.round((due_ms - now_ms) / 1000) })
}

type Tries = { attempts: number; answer: Answer; now_ms: number }

/** Unix milliseconds; null: it was tried for long enough. */
function nextAttempt({ finish_time }: Task, { attempts, answer, now_ms }: Tries): number | null {
  const last_ms = (finish_time + GIVE_UP_SECONDS) * 1000
  if (now_ms >= last_ms) return null
  const pause = BACK_OFF_SECONDS[Math.min(attempts, BACK_OFF_SECONDS.length - 1)] ?? 0
  const wished = Math.min(answer.retry_after_seconds ?? 0, LONGEST_PAUSE_SECONDS)
  return Math.min(now_ms + Math.max(pause, wished) * 1000, last_ms)
}

/** Path and query may hold a secret of the receiver's. */
const fieldsOf = ({ callback_id, task_id, token_id, url }: Callback): LogFields => ({
  callback_id,
  task_id,
  token_id,
  host: hostOf(url),
})

export const hostOf = (url: string): string => URL.parse(url)?.host ?? ''
