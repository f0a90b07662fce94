/** The HTTP request of one attempt, signed so that the receiver can verify the sender (Standard Webhooks, symmetric). */
import { createHmac } from 'node:crypto'
import type { JobContext } from '../jobs/job-loop.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { AddressRefused, type GuardedFetch } from '../kit/guarded-fetch.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import type { Task, TaskData } from '../spec/task.ts'
import type { SecretStore, Webhook } from '../store/store.ts'
import { originsOf } from './callback.ts'

export type DeliveryParts = {
  guardedFetch: GuardedFetch
  master_secret: string
  /** The task as a client would read it now, with fresh links. */
  describe(task: Task): TaskData
  /** Origins that may be called although they are private. */
  private_origins(): readonly string[]
  clock: Clock
}

/** `status`: 0 if there was no response; `error` is then the reason. */
export type Answer = { status: number; error?: string; retry_after_seconds?: number }

/** Rejects when the stop interrupts it, and on an internal error. */
export async function deliver(
  parts: DeliveryParts,
  { webhook, task }: { webhook: Webhook; task: Task },
  { signal, stopping }: JobContext,
): Promise<Answer> {
  const { guardedFetch, master_secret, clock } = parts
  const body = JSON.stringify(eventOf(task, parts.describe(task)))
  const secret = webhookSecret(master_secret, webhook.token_id)
  const signed = signatureHeaders({ secret, id: webhook.callback_id, timestamp: unixSeconds(clock), body })
  const headers = { 'content-type': 'application/json', 'user-agent': 'Gatehouse', ...signed }
  const private_origins = originsOf(parts.private_origins())
  try {
    const answer = await guardedFetch({
      url: webhook.url,
      method: 'POST',
      headers,
      body,
      signal,
      redirects: 0, // the client that asked for the webhook did not name the target of a redirect
      private_origins,
    })
    // The status is enough; the body is not read.
    void answer.body.cancel().catch(() => {})
    return { status: answer.status, ...retryAfter(answer.headers) }
  } catch (error) {
    if (stopping()) throw error
    return { status: 0, error: signal.aborted ? 'timeout' : codeOf(error) }
  }
}

/** The event: its type is the outcome, its data is what a poll returns (specification 2.7) and the model's id. */
function eventOf({ status, finish_time, model }: Task, data: TaskData) {
  return {
    type: status === 'SUCCESS' ? 'task.succeeded' : 'task.failed',
    timestamp: new Date(finish_time * 1000).toISOString(),
    data: { ...data, model },
  }
}

function retryAfter(headers: Headers): { retry_after_seconds?: number } {
  const text = headers.get('retry-after') ?? ''
  // Seconds only: a date is rare here, and depends on the receiver's clock.
  return /^\d{1,6}$/.test(text) ? { retry_after_seconds: Number(text) } : {}
}

/** Only a code: a message may contain the URL with a secret of the receiver. */
function codeOf(error: unknown): string {
  if (error instanceof AddressRefused) return 'address_refused'
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'no_answer'
}

/** The secret from which the secret of each token is derived; the same for all processes on one store. */
export const webhookMasterSecret = (secrets: SecretStore): Promise<string> =>
  secrets.get('callbacks', () => randomAlphanumerics(48))

/** The secret with which the holder of a token verifies signatures: 32 bytes that another token's secret does not reveal. */
export const webhookSecret = (master: string, token_id: string): string =>
  `whsec_${createHmac('sha256', master).update(token_id).digest('base64')}`

type Signed = {
  secret: string
  /** The same for every attempt. */
  id: string
  /** Unix seconds. */
  timestamp: number
  body: string
}

/** The headers that Standard Webhooks 1.0 names. */
export function signatureHeaders({ secret, id, timestamp, body }: Signed): Record<string, string> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': `v1,${signature}` }
}
