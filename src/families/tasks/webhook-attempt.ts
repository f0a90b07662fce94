/** One attempt to deliver one webhook: reads its task, delivers it, and stores the outcome. */
import type { JobContext } from '../../jobs/job-loop.ts'
import { type Answer, nextAttemptAt } from '../../jobs/signed-post.ts'
import type { Log, LogFields } from '../../kit/log.ts'
import type { TaskStore, WebhookStore } from '../../store/store.ts'
import type { Webhook } from '../../store/tasks/webhook-row.ts'
import { type DeliveryParts, deliver, endOf, type WebhookEnd } from './webhook-delivery.ts'

type AttemptParts = {
  store: { webhooks: WebhookStore; tasks: Pick<TaskStore, 'find'> }
  delivery: DeliveryParts
  log: Log
}

/** `answered`: whether the receiver answered, with whatever status. `due_ms`: when the next attempt is due. */
type Outcome = { answered: boolean; due_ms: number | undefined }

/** Rejects when the stop interrupts it or the store fails: nothing is stored then, and it is sent again with the same id. */
export async function attempt(parts: AttemptParts, webhook: Webhook, context: JobContext): Promise<Outcome> {
  const { store, delivery } = parts
  const end = await endOf(delivery, store.tasks, webhook)
  const start_ms = delivery.clock.steady()
  const answer = end ? await tryOnce(parts, { webhook, end }, context) : { status: 0 }
  const due_ms = await save(parts, { webhook, end, answer, took_ms: delivery.clock.steady() - start_ms })
  return { answered: answer.status !== 0, due_ms: due_ms ?? undefined }
}

/** An internal error counts as an attempt, so that it is not repeated every minute without end. */
async function tryOnce(
  parts: AttemptParts,
  tried: { webhook: Webhook; end: WebhookEnd },
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

type Tried = { webhook: Webhook; end: WebhookEnd | undefined; answer: Answer; took_ms: number }

/** When the next attempt is due; null: never. */
async function save({ store, log, delivery }: AttemptParts, tried: Tried): Promise<number | null> {
  const { webhook, end, answer, took_ms } = tried
  const { callback_id, attempts } = webhook
  const { status, error } = answer
  const now_ms = delivery.clock.now()
  const delivered_at = status >= 200 && status < 300 ? Math.floor(now_ms / 1000) : null
  const is_over = !end || delivered_at !== null || status === 410 // Gone: the receiver wants no more events
  const due_ms = is_over ? null : nextAttemptAt(end.finish_time, { attempts, answer, now_ms })
  const attempt = { at_ms: now_ms, status, error: error ?? null, took_ms: Math.round(took_ms) }
  await store.webhooks.save(callback_id, { due_ms, delivered_at, ...attempt })
  const fields = { ...fieldsOf(webhook), status, attempt: attempts + 1, total_ms: took_ms, error }
  if (delivered_at !== null) log.info('webhook delivered', fields)
  else if (!end) log.info('webhook dropped: its task was deleted', fieldsOf(webhook))
  else if (due_ms === null) log.warn('webhook given up', fields)
  else log.warn('webhook not delivered', { ...fields, again_seconds: Math.round((due_ms - now_ms) / 1000) })
  return due_ms
}

/** Path and query are left out: they may hold a secret of the receiver. */
export const fieldsOf = ({ callback_id, task_id, token_id, url }: Webhook): LogFields => ({
  callback_id,
  task_id,
  token_id,
  host: hostOf(url),
})

export const hostOf = (url: string): string => URL.parse(url)?.host ?? ''
