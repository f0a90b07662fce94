/** The HTTP request of one attempt, and the secrets with which it is signed. */
import { createHmac } from 'node:crypto'
import type { JobContext } from '../../jobs/job-loop.ts'
import { type Answer, postSigned } from '../../jobs/signed-post.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { GuardedFetch } from '../../kit/guarded-fetch.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { Task, TaskData } from '../../spec/task.ts'
import type { SecretStore, TaskStore } from '../../store/store.ts'
import type { Webhook } from '../../store/tasks/webhook-row.ts'
import { isEnded } from './lifecycle.ts'
import type { TaskTraces } from './task-traces.ts'

export type DeliveryParts = {
  guardedFetch: GuardedFetch
  master_secret: string
  /** The task as a client would read it now, with fresh links. */
  describe(task: Task): TaskData
  /** The event of the end of a batch; undefined: there is none of this id, or it has not ended. */
  batchEnd?(batch_id: string): Promise<WebhookEnd | undefined>
  /** Origins that may be called although they are private. */
  private_origins(): readonly string[]
  /** Absent: no traces are recorded. */
  traces?: TaskTraces | undefined
  clock: Clock
}

/** What a webhook tells of. `finish_time`: unix seconds. */
export type WebhookEnd = { finish_time: number; type: string; data: () => unknown; task?: Task }

/** Undefined: it was deleted. */
export async function endOf(
  { describe, batchEnd }: Pick<DeliveryParts, 'describe' | 'batchEnd'>,
  tasks: Pick<TaskStore, 'find'>,
  { task_id }: Pick<Webhook, 'task_id'>,
): Promise<WebhookEnd | undefined> {
  if (BATCH.test(task_id)) return batchEnd?.(task_id)
  const task = await tasks.find(task_id)
  if (!task || !isEnded(task)) return undefined
  const type = task.status === 'SUCCESS' ? 'task.succeeded' : 'task.failed'
  // Its data is what a poll returns (specification 2.7), and the model's id.
  return { task, type, finish_time: task.finish_time, data: () => ({ ...describe(task), model: task.model }) }
}

const BATCH = /^(msg)?batch_/

/** Rejects when the stop interrupts it, and on an internal error. */
export async function deliver(
  parts: DeliveryParts,
  { webhook, end }: { webhook: Webhook; end: WebhookEnd },
  context: JobContext,
): Promise<Answer> {
  const { guardedFetch, master_secret, clock } = parts
  const { task, type, data } = end
  const body = JSON.stringify({ type, timestamp: new Date(end.finish_time * 1000).toISOString(), data: data() })
  const secret = webhookSecret(master_secret, webhook.token_id)
  const signed = { secret, id: webhook.callback_id, timestamp: unixSeconds(clock) }
  const post = { guardedFetch, url: webhook.url, body, signed, private_origins: parts.private_origins() }
  if (!parts.traces || !task) return postSigned(post, context)
  const delivery = { task, host: URL.parse(webhook.url)?.host ?? '', attempt: webhook.attempts + 1 }
  return parts.traces.delivery(delivery, (headers) => postSigned({ ...post, headers }, context))
}

/** The secret from which the secret of each token is derived; the same for all processes on one store. */
export const webhookMasterSecret = (secrets: SecretStore): Promise<string> =>
  secrets.get('callbacks', () => randomAlphanumerics(48))

/** The secret with which the holder of a token verifies signatures: 32 bytes that another token's secret does not reveal. */
export const webhookSecret = (master: string, token_id: string): string =>
  `whsec_${createHmac('sha256', master).update(token_id).digest('base64')}`
