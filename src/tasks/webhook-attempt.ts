/** One attempt to deliver one webhook: reads its task, delivers it, and stores the outcome. */
import type { JobContext } from '../jobs/job-loop.ts'
import type { Log, LogFields } from '../kit/log.ts'
import type { Task } from '../spec/task.ts'
import type { TaskStore, Webhook, WebhookStore } from '../store/store.ts'
import { isEnded } from './lifecycle.ts'
import { type Answer, type DeliveryParts, deliver } from './webhook-delivery.ts'

type AttemptParts = {
  store: { webhooks: WebhookStore; tasks: Pick<TaskStore, 'find'> }
  delivery: DeliveryParts
  log: Log
}

/** `answered`: whether the receiver answered, with whatever status. `due_ms`: when the next attempt is due. */
type Outcome = { answered: boolean; due_ms: number | undefined }

/** Pauses between attempts; the last one applies to all further attempts. */
const BACKOFF_SECONDS = [5, 30, 120, 600, 1_800, 3_600, 7_200]
/** Counted from the end of the task; the last attempt is made then. */
const GIVE_UP_SECONDS = 86_400
/** A receiver may ask for a pause of at most this. */
const MAX_PAUSE_SECONDS = 3_600

/** Rejects when the stop interrupts it or the store fails: nothing is stored then, and it is sent again with the same id. */
export async function attempt(parts: AttemptParts, webhook: Webhook, context: JobContext): Promise<Outcome> {
  const { store, delivery } = parts
  const task = await store.tasks.find(webhook.task_id)
  const start_ms = delivery.clock.steady()
  const answer = task && isEnded(task) ? await tryOnce(parts, { webhook, task }, context) : { status: 0 }
  const due_ms = await save(parts, { webhook, task, answer, took_ms: delivery.clock.steady() - start_ms })
  return { answered: answer.status !== 0, due_ms: due_ms ?? undefined }
}

/** An internal error counts as an attempt, so that it is not repeated every minute without end. */
async function tryOnce(
  parts: AttemptParts,
  tried: { webhook: Webhook; task: Task },
  context: JobContext,
): Promise<Answer> {
  try {
    return await deliver(parts.delivery, tried, context)
  } catch (error) {
    if (context.stopping()) throw error
    parts.log.error('webhook delivery failed', fieldsOf(tried.webhook), error)
    return { status: 0, error: 'internal_error' }
  }
}

type Tried = { webhook: Webhook; task: Task | undefined; answer: Answer; took_ms: number }

/** When the next attempt is due; null: never. */
async function save({ store, log, delivery }: AttemptParts, tried: Tried): Promise<number | null> {
  const { webhook, task, answer, took_ms } = tried
  const { callback_id, attempts } = webhook
  const { status, error } = answer
  const now_ms = delivery.clock.now()
  const delivered_at = status >= 200 && status < 300 ? Math.floor(now_ms / 1000) : null
  const is_over = !task || delivered_at !== null || status === 410 // Gone: the receiver wants no more events
  const due_ms = is_over ? null : nextAttemptAt(task, { attempts, answer, now_ms })
  await store.webhooks.save(callback_id, { due_ms, delivered_at, status })
  const fields = { ...fieldsOf(webhook), status, attempt: attempts + 1, total_ms: took_ms, error }
  if (delivered_at !== null) log.info('webhook delivered', fields)
  else if (!task) log.info('webhook dropped: its task was deleted', fieldsOf(webhook))
  else if (due_ms === null) log.warn('webhook given up', fields)
  else log.warn('webhook not delivered', { ...fields, again_seconds: Math.round((due_ms - now_ms) / 1000) })
  return due_ms
}

type Attempts = { attempts: number; answer: Answer; now_ms: number }

/** Unix milliseconds; null: no attempt is left. */
function nextAttemptAt({ finish_time }: Task, { attempts, answer, now_ms }: Attempts): number | null {
  const last_ms = (finish_time + GIVE_UP_SECONDS) * 1000
  if (now_ms >= last_ms) return null
  const pause = BACKOFF_SECONDS[Math.min(attempts, BACKOFF_SECONDS.length - 1)] ?? 0
  const requested = Math.min(answer.retry_after_seconds ?? 0, MAX_PAUSE_SECONDS)
  return Math.min(now_ms + Math.max(pause, requested) * 1000, last_ms)
}

/** Path and query are left out: they may hold a secret of the receiver. */
export const fieldsOf = ({ callback_id, task_id, token_id, url }: Webhook): LogFields => ({
  callback_id,
  task_id,
  token_id,
  host: hostOf(url),
})

export const hostOf = (url: string): string => URL.parse(url)?.host ?? ''
