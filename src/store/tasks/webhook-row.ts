/** Webhooks and their attempts as the store keeps them. */

/** `attempts`: how many attempts were saved so far; 0 before the first. */
export type Webhook = { callback_id: string; task_id: string; token_id: string; url: string; attempts: number }

/** One request to the receiver; `status` 0: no response, and `error` says why. */
export type WebhookAttempt = { at_ms: number; status: number; error: string | null; took_ms: number }

/** The webhook of an ended task. `attempts`: since it was last made due by an operator; `tries`: all of 90 days. */
export type WebhookDelivery = Webhook & {
  project_id: string | null
  due_ms: number | null
  delivered_at: number | null
  last_status: number | null
  ended_ms: number
  tries: WebhookAttempt[]
}

export type WebhookState = 'pending' | 'delivered' | 'given_up'
