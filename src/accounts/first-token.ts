/** Issues the first token of an empty store, which allows everything. */
import type { TokenDefaults } from '../config/schema/account-schema.ts'
import type { Log } from '../kit/log.ts'
import type { Token } from '../spec/token.ts'
import type { StoredToken, TokenStore } from '../store/tokens/account-store.ts'
import { checkSecret, makeToken } from './issue.ts'

type FirstTokenParts = {
  store: Pick<TokenStore, 'findByHash'>
  /** False: the store has a token already. */
  addFirst(token: StoredToken): Promise<boolean>
  shown(token: StoredToken): Token
  defaults: TokenDefaults
  now(): number
  log: Log
}

const FIRST_NAME = 'first token'

/** `secret`: instead of a random one. Undefined: the store has a token already. */
export const createFirstToken =
  ({ store, addFirst, shown, defaults, now, log }: FirstTokenParts) =>
  async ({ secret }: { secret?: string } = {}): Promise<{ token: Token; secret: string } | undefined> => {
    if (secret !== undefined) checkSecret(secret)
    // The operator's own token: it allows everything and does not expire, whatever the defaults are.
    const order = { name: FIRST_NAME, models: ['*'], families: null, expires_at: null }
    const made = makeToken(secret === undefined ? order : { ...order, secret }, { defaults, now: now() })
    if (await addFirst(made.token)) return { token: shown(made.token), secret: made.secret }
    if (secret !== undefined) {
      const existing = await store.findByHash(made.token.hash)
      if (!existing) log.warn('bootstrap token ignored: the store has tokens already')
      else if (existing.disabled || (existing.expires_at !== null && existing.expires_at <= now()))
        log.warn('the bootstrap token is revoked or expired', { token_id: existing.token_id })
    }
    return undefined
  }
