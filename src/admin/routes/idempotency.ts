/** Idempotency keys of the admin API: a POST that is sent twice is carried out once, and answered twice. */
import Type from 'typebox'
import { parseIdempotencyKey } from '../../families/tasks/routes/request-parameters.ts'
import { bodyLimits } from '../../http/body.ts'
import { type BodyParts, readAhead } from '../../http/checked-body.ts'
import type { Context } from '../../http/context.ts'
import { unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { type BoxKey, seal, unseal } from '../../kit/sealed-box.ts'
import { sha256 } from '../../kit/secret.ts'
import { GatewayError } from '../../spec/error.ts'
import { parameter } from '../../spec/fields.ts'
import type { Parameter } from '../../spec/operation.ts'
import type { AdminKeyStore } from '../../store/admin/admin-store.ts'

const KEEP_SECONDS = 86_400
/** Of each administrator. */
const MAX_KEYS = 10_000

type Handle = (context: Context) => Response | Promise<Response>
type Parts = BodyParts & {
  keys: AdminKeyStore /** The secret that the request carries. */
  secretOf(context: Context): string
  log: Log
}

/** Handles a POST. The stored response may contain a secret: it is encrypted with the secret of the administrator. */
export function idempotently(handle: Handle, parts: Parts): Handle {
  return async (context) => {
    const key = parseIdempotencyKey(context.request)
    if (key === undefined) return handle(context)
    const { keys, clock, secretOf } = parts
    const secret = secretOf(context)
    const bytes = await readAhead(context, bodyLimits(context, 'text', parts))
    const body_hash = sha256(`${context.request.url} ${Buffer.from(bytes).toString('latin1')}`)
    const [scope, now] = [sha256(`idempotency ${secret}`), unixSeconds(clock)]
    const row = { scope, key, body_hash, now, expires_at: now + KEEP_SECONDS, limit: MAX_KEYS }
    const present = await keys.reserve(row)
    if (present) return replay(present, { body_hash, secret, key })
    const response = await handled(context, () => keys.release({ scope, key }))
    const text = await response.clone().text()
    const answer = { scope, key, status: response.status, answer: seal(text, boxOf(secret, key)) }
    // It was carried out, and its response may be the only place of a secret.
    await keys.answer(answer).catch((error: unknown) => {
      parts.log.error('a response was not stored under its Idempotency-Key', { request_id: context.request_id }, error)
    })
    return response
  }

  async function handled(context: Context, release: () => Promise<void>): Promise<Response> {
    try {
      return await handle(context)
    } catch (error) {
      // A refused request has changed nothing: it may be sent again with this key, corrected or not.
      if (error instanceof GatewayError && error.status < 500) await release()
      throw error
    }
  }
}

type Replay = { body_hash: string; secret: string; key: string }

function replay(
  present: { body_hash: string; status: number | null; answer: string | null },
  { body_hash, secret, key }: Replay,
): Response {
  if (present.body_hash !== body_hash) {
    throw new GatewayError('idempotency_key_reused', 'This Idempotency-Key was used for another request.', {
      param: 'Idempotency-Key',
    })
  }
  if (present.status === null || present.answer === null) {
    throw new GatewayError(
      'idempotency_key_in_use',
      'The first request with this Idempotency-Key has not been answered yet. If that lasts, look up whether it was carried out.',
      { retry_after: 1 },
    )
  }
  return new Response(unseal(present.answer, boxOf(secret, key)), {
    status: present.status,
    headers: { 'content-type': 'application/json', 'idempotent-replayed': 'true' },
  })
}

const boxOf = (secret: string, key: string): BoxKey => ({ secret, salt: key, purpose: 'gatehouse idempotency' })

export const IDEMPOTENCY_HEADER: Record<string, Parameter> = {
  'Idempotency-Key': parameter(
    'The same key with the same body within 24 hours returns the first response instead of acting again; with another body it is rejected.',
    Type.String({ minLength: 1, maxLength: 255 }),
  ),
}
