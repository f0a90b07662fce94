/** One attempt to deliver one callback: what is sent, and what the answer means. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { AddressRefused, type GuardedFetch } from '../kit/guarded-fetch.ts'
import type { Task, TaskData } from '../spec/task.ts'
import type { Callback } from '../store/store.ts'
import { callbackSecret, signatureHeaders } from './callbacks-signature.ts'

export type DeliveryParts = {
  guardedFetch: GuardedFetch
  master_secret: string
  /** The task as a poll would answer it now, with links that are fresh. */
  describe(task: Task): TaskData
  /** Origins that may be called although they are private. */
  private_origins(): readonly string[]
  clock: Clock
}

/** `status`: 0 when there was no answer, and then `why` says what there was instead. */
export type Answer = { status: number; why?: string; retry_after_seconds?: number }

/** Longer than a receiver needs that only writes the event down and answers; Standard Webhooks asks for 15 to 30. */
const ANSWER_MILLISECONDS = 15_000

/** Resolves with what came of it; rejects when `signal` is aborted, and for a fault of our own. */
export async function deliver(
  parts: DeliveryParts,
  { callback, task }: { callback: Callback; task: Task },
  signal: AbortSignal,
): Promise<Answer> {
  const { guardedFetch, master_secret, clock } = parts
  const body = JSON.stringify(eventOf(task, parts.describe(task)))
  const secret = callbackSecret(master_secret, callback.token_id)
  const signed = signatureHeaders({ secret, id: callback.callback_id, timestamp: unixSeconds(clock), body })
  const headers = { 'content-type': 'application/json', 'user-agent': 'Gatehouse', ...signed }
  const over = new AbortController()
  const cancel = clock.after(ANSWER_MILLISECONDS, () => over.abort(new Error('The receiver kept silent.')))
  try {
    const answer = await guardedFetch({
      url: callback.url,
      method: 'POST',
      headers,
      body,
      signal: AbortSignal.any([signal, over.signal]),
      redirects: 0, // where it leads to was not named by who asked for the callback
      private_origins: parts.private_origins().map((text) => URL.parse(text)?.origin ?? text),
    })
    // The status says all; what else is said is not read.
    void answer.body.cancel().catch(() => {})
    return { status: answer.status, ...retryAfter(answer.headers) }
  } catch (error) {
    signal.throwIfAborted()
    return { status: 0, why: over.signal.aborted ? 'timeout' : whyNot(error) }
  } finally {
    cancel()
  }
}

/** What is sent: the type says how it ended, the data is that of a poll (specification 2.7), and the model's id. */
function eventOf({ status, finish_time, model }: Task, data: TaskData) {
  return {
    type: status === 'SUCCESS' ? 'task.succeeded' : 'task.failed',
    timestamp: new Date(finish_time * 1000).toISOString(),
    data: { ...data, model },
  }
}

function retryAfter(headers: Headers): { retry_after_seconds?: number } {
  const text = headers.get('retry-after') ?? ''
  // Seconds; a date is as rare here as it is hard to trust.
  return /^\d{1,6}$/.test(text) ? { retry_after_seconds: Number(text) } : {}
}

/** A code only: a message may hold the address, and that a secret of the receiver's. */
function whyNot(error: unknown): string {
  if (error instanceof AddressRefused) return 'address_refused'
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'no_answer'
}
