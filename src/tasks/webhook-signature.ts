/** How webhooks are signed, so that their receiver can verify the sender (Standard Webhooks, symmetric). */
import { createHmac } from 'node:crypto'
import { randomAlphanumerics } from '../kit/secret.ts'
import type { SecretStore } from '../store/store.ts'

/** The secret from which the secret of each token is derived; the same for all processes on one store. */
export const webhookMasterSecret = (secrets: SecretStore): Promise<string> =>
  secrets.get('callbacks', () => randomAlphanumerics(48))

/** What the holder of a token verifies signatures with: 32 bytes that cannot be derived from another token's. */
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
