/** Posts an event to a receiver, signed so that it can verify the sender (Standard Webhooks 1.0, symmetric). */
import { createHmac } from 'node:crypto'
import { AddressRefused, type GuardedFetch } from '../kit/guarded-fetch.ts'
import type { JobContext } from './job-loop.ts'

/** `status`: 0 if there was no response; `error` is then the reason. */
export type Answer = { status: number; error?: string; retry_after_seconds?: number }

type Post = {
  guardedFetch: GuardedFetch
  url: string
  body: string
  headers?: Record<string, string>
  /** Absent: not signed. */
  signed?: Signed
  /** Origins that may be called although they are private. */
  private_origins: readonly string[]
}

/** Rejects when the stop interrupts it. */
export async function postSigned(
  { guardedFetch, url, body, headers, signed, private_origins }: Post,
  { signal, stopping }: Pick<JobContext, 'signal' | 'stopping'>,
): Promise<Answer> {
  const signature = signed ? signatureHeaders(signed, body) : {}
  try {
    const answer = await guardedFetch({
      url,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'Gatehouse', ...headers, ...signature },
      body,
      signal,
      redirects: 0, // whoever named the receiver did not name the target of a redirect
      private_origins: originsOf(private_origins),
    })
    // The status is enough; the body is not read.
    void answer.body.cancel().catch(() => {})
    return { status: answer.status, ...retryAfter(answer.headers) }
  } catch (error) {
    if (stopping()) throw error
    return { status: 0, error: signal.aborted ? 'timeout' : codeOf(error) }
  }
}

/** As URLs have them. */
export const originsOf = (origins: readonly string[]): string[] =>
  origins.map((text) => URL.parse(text)?.origin ?? text)

/** Pauses between attempts; the last one applies to all further attempts. */
const BACKOFF_SECONDS = [5, 30, 120, 600, 1_800, 3_600, 7_200]
/** Counted from the event; the last attempt is made then. */
const GIVE_UP_SECONDS = 86_400
/** A receiver may ask for a pause of at most this. */
const MAX_PAUSE_SECONDS = 3_600

type Attempts = { attempts: number; answer: Answer; now_ms: number }

/** When to try again after `attempts` earlier attempts and this answer, in unix milliseconds; null: no attempt is left. */
export function nextAttemptAt(event_seconds: number, { attempts, answer, now_ms }: Attempts): number | null {
  const last_ms = (event_seconds + GIVE_UP_SECONDS) * 1000
  if (now_ms >= last_ms) return null
  const pause = BACKOFF_SECONDS[Math.min(attempts, BACKOFF_SECONDS.length - 1)] ?? 0
  const requested = Math.min(answer.retry_after_seconds ?? 0, MAX_PAUSE_SECONDS)
  return Math.min(now_ms + Math.max(pause, requested) * 1000, last_ms)
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

type Signed = {
  secret: string
  /** The same for every attempt. */
  id: string
  /** Unix seconds. */
  timestamp: number
}

/** The headers that Standard Webhooks 1.0 names. */
export function signatureHeaders({ secret, id, timestamp }: Signed, body: string): Record<string, string> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': `v1,${signature}` }
}
