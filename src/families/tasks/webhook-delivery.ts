/** The HTTP request of one attempt, and the secrets with which it is signed. */
import { createHmac } from 'node:crypto'
import type { JobContext } from '../../jobs/job-loop.ts'
import { type Answer, postSigned } from '../../jobs/signed-post.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { GuardedFetch } from '../../kit/guarded-fetch.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { Task, TaskData } from '../../spec/task.ts'
import type { SecretStore } from '../../store/store.ts'
import type { Webhook } from '../../store/tasks/webhook-row.ts'
import type { TaskTraces } from './task-traces.ts'

export type DeliveryParts = {
  guardedFetch: GuardedFetch
  master_secret: string
  /** The task as a client would read it now, with fresh links. */
  describe(task: Task): TaskData
  /** Origins that may be called although they are private. */
  private_origins(): readonly string[]
  /** Absent: no traces are recorded. */
  traces?: TaskTraces | undefined
  clock: Clock
}

/** Rejects when the stop interrupts it, and on an internal error. */
export async function deliver(
  parts: DeliveryParts,
  { webhook, task }: { webhook: Webhook; task: Task },
  context: JobContext,
): Promise<Answer> {
  const { guardedFetch, master_secret, clock } = parts
  const body = JSON.stringify(eventOf(task, parts.describe(task)))
  const secret = webhookSecret(master_secret, webhook.token_id)
  const signed = { secret, id: webhook.callback_id, timestamp: unixSeconds(clock) }
  const post = { guardedFetch, url: webhook.url, body, signed, private_origins: parts.private_origins() }
  if (!parts.traces) return postSigned(post, context)
  const delivery = { task, host: URL.parse(webhook.url)?.host ?? '', attempt: webhook.attempts + 1 }
  return parts.traces.delivery(delivery, (headers) => postSigned({ ...post, headers }, context))
}

/** The event: its type is the outcome, its data is what a poll returns (specification 2.7) and the model's id. */
function eventOf({ status, finish_time, model }: Task, data: TaskData) {
  return {
    type: status === 'SUCCESS' ? 'task.succeeded' : 'task.failed',
    timestamp: new Date(finish_time * 1000).toISOString(),
    data: { ...data, model },
  }
}

/** The secret from which the secret of each token is derived; the same for all processes on one store. */
export const webhookMasterSecret = (secrets: SecretStore): Promise<string> =>
  secrets.get('callbacks', () => randomAlphanumerics(48))

/** The secret with which the holder of a token verifies signatures: 32 bytes that another token's secret does not reveal. */
export const webhookSecret = (master: string, token_id: string): string =>
  `whsec_${createHmac('sha256', master).update(token_id).digest('base64')}`
