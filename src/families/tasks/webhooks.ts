/** Webhooks: notify clients that their task has ended. Signed, delivered at least once, retried for a day. */
import { createJobLoop, type LoopControl } from '../../jobs/job-loop.ts'
import type { Log } from '../../kit/log.ts'
import { GatewayError } from '../../spec/error.ts'
import type { TaskStore, WebhookStore } from '../../store/store.ts'
import type { Webhook } from '../../store/tasks/webhook-row.ts'
import { isEnded } from './lifecycle.ts'
import { attempt, fieldsOf, hostOf } from './webhook-attempt.ts'
import { type DeliveryParts, webhookSecret } from './webhook-delivery.ts'
import { createWebhookSlots } from './webhook-slots.ts'

export type Webhooks = LoopControl & {
  /** The secret with which the webhooks of this token's tasks are signed. */
  secretOf(token_id: string): string
}

export type WebhookParts = Omit<DeliveryParts, 'private_origins'> & {
  store: { webhooks: WebhookStore; tasks: Pick<TaskStore, 'find'> & Partial<Pick<TaskStore, 'watch'>> }
  /** Origins that may be called although they are private; read for each delivery. Default: none. */
  private_origins?(): readonly string[]
  log: Log
  /** How many are delivered at a time. Default 32. */
  concurrency?: number
}

const DEFAULT_CONCURRENCY = 32
/** Enough for a receiver that stores the event and then responds; Standard Webhooks recommends 15 to 30. */
const ANSWER_MILLISECONDS = 15_000
/** Well above the timeout of an attempt and the writes around it. */
const LEASE_MILLISECONDS = 60_000
/** Another process on this store may have ended a task, and a store that failed may be available again. */
const POLL_MILLISECONDS = 5_000

export function createWebhooks(parts: WebhookParts): Webhooks {
  const { store, clock, log, concurrency = DEFAULT_CONCURRENCY, private_origins = () => [] } = parts
  const slots = createWebhookSlots({ concurrency, clock })
  const attempting = { store, delivery: { ...parts, private_origins }, log }
  const deliveryOf = ({ url, token_id }: Webhook) => ({ host: hostOf(url), token_id })

  const loop = createJobLoop<Webhook>(
    {
      name: 'webhook',
      fieldsOf,
      lease_ms: LEASE_MILLISECONDS,
      poll_ms: POLL_MILLISECONDS,
      async queues() {
        const due_ms = await store.webhooks.earliest()
        return due_ms === null ? [] : [{ queue: '', due_ms }]
      },
      concurrency: () => concurrency,
      claim: ({ now_ms, until_ms, limit }) => store.webhooks.claim({ now_ms, until_ms, limit }),
      fairness: {
        reserve: (webhook) => slots.reserve(deliveryOf(webhook)),
        postpone: (jobs) =>
          store.webhooks.postpone(jobs.map(({ job: { callback_id }, due_ms }) => ({ callback_id, due_ms }))),
      },
      timeout: {
        ms: ANSWER_MILLISECONDS,
        error: () => new GatewayError('upstream_timeout', 'The receiver did not answer in time.'),
      },
      async run(webhook, context) {
        const start_ms = clock.steady()
        let answered = true // a failure of the gateway says nothing about the receiver
        try {
          const outcome = await attempt(attempting, webhook, context)
          answered = outcome.answered
          return outcome.due_ms
        } finally {
          slots.release(deliveryOf(webhook), { answered, took_ms: clock.steady() - start_ms })
        }
      },
      // No `release`: a claim has no fence here, so only the end of the lease is certain not to meet another process.
      watch: (wake) =>
        store.tasks.watch?.((change) => {
          if (isEnded(change)) wake()
        }) ?? (() => {}),
    },
    { clock, log },
  )

  return {
    start: loop.start,
    stop: loop.stop,
    idle: loop.idle,
    secretOf: (token_id) => webhookSecret(parts.master_secret, token_id),
  }
}
