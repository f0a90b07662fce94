/**
 * Ephemeral client secrets: signed, not stored. Each is bound to the token that made it, to a model, to the settings of the session,
 * and to a time; the limits and budgets of its token count.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'

export const CLIENT_SECRET_PREFIX = 'ek_'

/** Longer ones would not fit into the head of a request. */
const MAX_SECRET_CHARACTERS = 8_000

export type ClientSecret = {
  token_id: string
  /** The model as its maker named it. */
  model: string
  /** Unix seconds. */
  expires_at: number
  /** The session that it opens begins with these settings; the client may not change the model. */
  session: JsonRecord
}

export type ClientSecrets = {
  /** Undefined: its settings are too long. */
  make(secret: ClientSecret): string | undefined
  /** Undefined: it was not made here, or was changed, or has expired. */
  read(text: string): ClientSecret | undefined
}

/** `master`: a secret of the installation, the same in all its processes. `now`: unix seconds. */
export function createClientSecrets({ master, now }: { master: string; now(): number }): ClientSecrets {
  const sign = (payload: string) => createHmac('sha256', master).update(`realtime client secret ${payload}`).digest()

  return {
    make(secret) {
      const payload = Buffer.from(JSON.stringify(secret)).toString('base64url')
      const text = `${CLIENT_SECRET_PREFIX}${payload}.${sign(payload).toString('base64url')}`
      return text.length > MAX_SECRET_CHARACTERS ? undefined : text
    },
    read(text) {
      if (!text.startsWith(CLIENT_SECRET_PREFIX) || text.length > MAX_SECRET_CHARACTERS) return undefined
      const [payload = '', signature = ''] = text.slice(CLIENT_SECRET_PREFIX.length).split('.')
      const [given, right] = [Buffer.from(signature, 'base64url'), sign(payload)]
      if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined
      const secret = parseJson(Buffer.from(payload, 'base64url').toString())
      if (!isRecord(secret) || Number(secret.expires_at) <= now()) return undefined
      return secret as ClientSecret
    },
  }
}
