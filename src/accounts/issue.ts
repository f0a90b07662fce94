/** Creates tokens: their secrets, and the validation of their fields. */

import type { TokenDefaults } from '../config/schema.ts'
import { patternProblem } from '../config/semantic-checks.ts'
import { randomAlphanumerics, sha256 } from '../kit/secret.ts'
import { ENDPOINT_FAMILIES, type EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import type { StoredToken } from '../store/store.ts'

/** The fields of a new token; absent ones come from the configuration. */
export type TokenOrder = {
  name: string
  /** Glob patterns of model ids. */
  models?: string[]
  /** null is every family. */
  families?: EndpointFamily[] | null
  /** Unix seconds; null is never. */
  expires_at?: number | null
  /** To be used instead of a random one. */
  secret?: string
}

const SECRET_LENGTH = 48
/** `sk-` and six characters distinguish tokens and leave 42 characters (250 bits) secret. */
const VISIBLE_LENGTH = 9
const DAY_SECONDS = 86_400
/** The end of the year 9999: a greater time is in milliseconds, or a mistake. */
const LATEST = 253_402_300_799
const MAX_NAME = 100
const MAX_PATTERNS = 1_000

/** What a secret of any origin looks like: long enough not to be guessed, and fit for a header. */
const SECRET = /^[\x21-\x7e]{20,512}$/
/** Control characters would garble terminals and logs. */
const CONTROL = /\p{Cc}/u

export const isSecret = (text: string): boolean => SECRET.test(text)

export const newSecret = (): string => `sk-${randomAlphanumerics(SECRET_LENGTH)}`

/** The hash to store, and the prefix to show: never more than a quarter of a secret that somebody chose. */
export function formatOf(secret: string): Pick<StoredToken, 'hash' | 'prefix'> {
  return { hash: sha256(secret), prefix: secret.slice(0, Math.min(VISIBLE_LENGTH, Math.floor(secret.length / 4))) }
}

/** Throws invalid_value for a given secret that is not acceptable. The message reveals only its length. */
export function checkSecret(secret: string): void {
  if (isSecret(secret)) return
  throw new GatewayError(
    'invalid_value',
    `A token's secret must have 20 to 512 visible ASCII characters and no spaces; the given one ${
      secret.length < 20 || secret.length > 512 ? `has ${secret.length}` : 'holds something else'
    }.`,
    { param: 'secret' },
  )
}

/** A new token as it will be stored, and its secret. Throws invalid_value, naming the field. */
export function makeToken(order: TokenOrder, { defaults, now }: { defaults: TokenDefaults; now: number }) {
  const secret = order.secret ?? newSecret()
  checkSecret(secret)
  const { expires_after_days } = defaults
  const usual = expires_after_days === undefined ? null : now + Math.ceil(expires_after_days * DAY_SECONDS)
  const token: StoredToken = {
    token_id: `tok_${randomAlphanumerics(16)}`,
    name: readName(order.name),
    ...formatOf(secret),
    models: readModels(order.models ?? defaults.models ?? ['*']),
    families: readFamilies(order.families === undefined ? (defaults.families ?? null) : order.families),
    expires_at: order.expires_at === undefined ? usual : readExpiry(order.expires_at, now),
    disabled: false,
    created_at: now,
    last_used_at: null,
  }
  return { token, secret }
}

function readName(given: string): string {
  const name = given.trim()
  if (name === '') throw invalid('name', 'must not be empty')
  if (name.length > MAX_NAME) throw invalid('name', `must have at most ${MAX_NAME} characters; it has ${name.length}`)
  if (CONTROL.test(name)) throw invalid('name', 'must not hold control characters')
  return name
}

function readModels(patterns: string[]): string[] {
  if (patterns.length === 0) throw invalid('models', 'must hold at least one pattern; "*" is every model')
  if (patterns.length > MAX_PATTERNS) throw invalid('models', `must hold at most ${MAX_PATTERNS} patterns`)
  for (const [index, pattern] of patterns.entries()) {
    const trouble = patternProblem(pattern)
    if (trouble) throw invalid(`models[${index}]`, trouble)
  }
  return [...new Set(patterns)]
}

function readFamilies(families: EndpointFamily[] | null): EndpointFamily[] | null {
  if (families === null) return null
  if (families.length === 0) throw invalid('families', 'must hold at least one family; null is every family')
  const unknown = families.find((family) => !ENDPOINT_FAMILIES.includes(family))
  if (unknown === undefined) return [...new Set(families)]
  throw invalid('families', `found ${JSON.stringify(unknown)}, must be one of ${ENDPOINT_FAMILIES.join(', ')}`)
}

function readExpiry(expires_at: number | null, now: number): number | null {
  if (expires_at === null) return null
  if (!Number.isInteger(expires_at) || expires_at > LATEST) {
    throw invalid('expires_at', `must be a time in whole unix seconds; found ${expires_at}`)
  }
  if (expires_at <= now) throw invalid('expires_at', `must lie in the future; ${expires_at} has passed (now ${now})`)
  return expires_at
}

const invalid = (param: string, trouble: string) =>
  new GatewayError('invalid_value', `${param}: ${trouble}.`, { param })
