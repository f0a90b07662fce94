/** Creates tokens: their secrets, and the validation of their fields. */
import type { TokenDefaults } from '../config/schema/account-schema.ts'
import { randomAlphanumerics, sha256 } from '../kit/secret.ts'
import { UNSET_SETTINGS } from '../spec/account-settings.ts'
import { invalidValue } from '../spec/error.ts'
import type { StoredToken } from '../store/tokens/account-store.ts'
import { type AccountSettings, readName, readSettings } from './settings.ts'

/** The fields of a new token; absent ones come from the configuration, or are not set. */
export type TokenOrder = Partial<AccountSettings> & {
  name: string
  project_id?: string | null
  /** To be used instead of a random one. */
  secret?: string
}

const SECRET_LENGTH = 48
/** `sk-` and six characters distinguish tokens and leave 42 characters (250 bits) secret. */
const VISIBLE_LENGTH = 9
const DAY_SECONDS = 86_400

/** What a secret of any origin looks like: long enough not to be guessed, and fit for a header. */
const SECRET = /^[\x21-\x7e]{20,512}$/

export const isSecret = (text: string): boolean => SECRET.test(text)

export const newSecret = (): string => `sk-${randomAlphanumerics(SECRET_LENGTH)}`

/** The hash to store, and the prefix to show: never more than a quarter of a secret that somebody chose. */
export function formatOf(secret: string): Pick<StoredToken, 'hash' | 'prefix'> {
  return { hash: sha256(secret), prefix: secret.slice(0, Math.min(VISIBLE_LENGTH, Math.floor(secret.length / 4))) }
}

/** Throws invalid_value for a given secret that is not acceptable. The message reveals only its length. */
export function checkSecret(secret: string): void {
  if (isSecret(secret)) return
  throw invalidValue(
    'secret',
    `A token's secret must have 20 to 512 visible ASCII characters and no spaces; the given one ${
      secret.length < 20 || secret.length > 512 ? `has ${secret.length}` : 'holds something else'
    }.`,
  )
}

/** What is not set, for tokens and projects. */
export const NOTHING_SET = { ...UNSET_SETTINGS, disabled: false }

/** A new token as it will be stored, and its secret. Throws invalid_value, naming the field. */
export function makeToken(order: TokenOrder, { defaults, now }: { defaults: TokenDefaults; now: number }) {
  const { secret = newSecret(), project_id = null, ...given } = order
  checkSecret(secret)
  const { models = ['*'], families = null, expires_after_days } = defaults
  const expires_at = expires_after_days === undefined ? null : now + Math.ceil(expires_after_days * DAY_SECONDS)
  const token: StoredToken = {
    token_id: `tok_${randomAlphanumerics(16)}`,
    project_id,
    ...formatOf(secret),
    previous_hash: null,
    previous_expires_at: null,
    ...NOTHING_SET,
    ...readSettings({ models, families }, now),
    expires_at,
    ...readSettings(given, now),
    name: readName(order.name),
    created_at: now,
    last_used_at: null,
  }
  return { token, secret }
}
