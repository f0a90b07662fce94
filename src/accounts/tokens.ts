/** Tokens: create, list, change, authenticate. */
import type { TokenDefaults } from '../config/schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { sha256 } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller, Token } from '../spec/token.ts'
import type { StoredToken, TokenStore } from '../store/account-store.ts'
import { chooseToken } from './choose.ts'
import { checkSecret, formatOf, isSecret, makeToken, newSecret, type TokenOrder } from './issue.ts'
import { createKnownTokens } from './known.ts'
import { createLastUsed } from './last-used.ts'
import { createSlowDown } from './slow-down.ts'

/** The origin of a request; its address is read only after a failure, since determining it costs time. */
type From = { readonly address: string; signal: AbortSignal }

/** A token and its secret, which is shown only once. */
type Issued = { token: Token; secret: string }

export type Tokens = {
  /**
   * The caller with this secret. Synchronous for a cached token. A bad secret is refused with invalid_api_key, with a
   * growing delay per address.
   */
  authenticate(secret: string | undefined, from: From): Caller | Promise<Caller>
  /** Throws invalid_value, naming the field. */
  issue(order: TokenOrder): Promise<Issued>
  /** Creates the first token of an empty store; undefined when the store has one already. */
  issueFirst(order?: { secret?: string }): Promise<Issued | undefined>
  /** Oldest first. */
  list(): Promise<Token[]>
  /** Revokes a token, effective immediately. `which`: its id, its name, or the start of its id or visible prefix. */
  revoke(which: string): Promise<Token>
  /** Replaces the secret of a token; the old one is invalid immediately. */
  rotate(which: string): Promise<Issued>
  /**
   * Whether the token by which this caller was authenticated is still valid: not revoked, expired or replaced. While the
   * store is unavailable, what was known last counts.
   */
  isValid(caller: Caller): boolean | Promise<boolean>
  /** Records that a token was used now. */
  used(token_id: string): void
  /** Starts polling for changes by other processes. Resolves when the present revision is known. */
  start(): Promise<void>
  /** Stops polling and writes when tokens were last used. */
  close(): Promise<void>
}

type TokensParts = {
  store: TokenStore
  clock: Clock
  log: Log
  defaults: TokenDefaults
  /** Called twice a second, and after each change by this process: tokens may have become invalid. */
  onLook?(): void
}

/** One message for every reason, so that it does not reveal which secrets exist. */
const REFUSAL = 'Missing or invalid API key. Send it as "Authorization: Bearer <token>".'
const FIRST_NAME = 'first token'

export function createTokens({ store, clock, log, defaults, onLook = () => {} }: TokensParts): Tokens {
  const known = createKnownTokens({ store, clock, log, onLook })
  const lastUsed = createLastUsed({ store, clock, log })
  const slowDown = createSlowDown({ clock, log })

  const inForce = ({ disabled, expires_at }: StoredToken) =>
    !disabled && (expires_at === null || expires_at > unixSeconds(clock))

  function refuse(from: From): Promise<never> | never {
    const waited = slowDown.failed(from.address, from.signal)
    const refusal = new GatewayError('invalid_api_key', REFUSAL)
    if (!waited) throw refusal
    return waited.then(() => {
      throw refusal
    })
  }

  function admit({ token, caller }: { token: StoredToken; caller: Caller }): Caller {
    lastUsed.used(token.token_id)
    return caller
  }

  async function authenticateByStore(hash: string, from: From): Promise<Caller> {
    const found = await known.find(hash)
    return found && inForce(found.token) ? admit(found) : refuse(from)
  }

  async function isFound(hash: string): Promise<boolean> {
    try {
      const found = await known.find(hash)
      return found !== undefined && inForce(found.token)
    } catch {
      return true // unknown, because the store cannot be reached
    }
  }

  async function change(which: string, fields: Parameters<TokenStore['update']>[1]): Promise<StoredToken> {
    const token = chooseToken(await store.list(), which)
    if (!(await store.update(token.token_id, fields))) {
      throw new GatewayError('invalid_value', `The token ${token.token_id} no longer exists.`, { param: 'token' })
    }
    known.doubt()
    return { ...token, ...fields }
  }

  return {
    authenticate(secret, from) {
      // Nothing was guessed, so there is no delay: a browser or a probe without a token gets its response at once.
      if (secret === undefined || secret === '') throw new GatewayError('invalid_api_key', REFUSAL)
      if (!isSecret(secret)) return refuse(from)
      const hash = sha256(secret)
      const found = known.recall(hash)
      if (!found) return authenticateByStore(hash, from)
      return inForce(found.token) ? admit(found) : refuse(from)
    },

    async issue(order) {
      const { token, secret } = makeToken(order, { defaults, now: unixSeconds(clock) })
      if (order.secret !== undefined && (await store.findByHash(token.hash))) {
        throw new GatewayError('invalid_value', 'secret: another token has it already.', { param: 'secret' })
      }
      await store.add(token)
      known.doubt()
      return { token: shown(token), secret }
    },

    async issueFirst({ secret } = {}) {
      if (secret !== undefined) checkSecret(secret)
      // The operator's own token: it allows everything and does not expire, whatever the defaults are.
      const order = { name: FIRST_NAME, models: ['*'], families: null, expires_at: null }
      const created = makeToken(secret === undefined ? order : { ...order, secret }, {
        defaults,
        now: unixSeconds(clock),
      })
      if (await store.addFirst(created.token)) {
        known.doubt()
        return { token: shown(created.token), secret: created.secret }
      }
      if (secret !== undefined) {
        const existing = await store.findByHash(created.token.hash)
        if (!existing) log.warn('bootstrap token ignored: the store has tokens already')
        else if (!inForce(existing))
          log.warn('the bootstrap token is revoked or expired', { token_id: existing.token_id })
      }
      return undefined
    },

    async list() {
      return (await store.list()).map(shown)
    },

    async revoke(which) {
      return shown(await change(which, { disabled: true }))
    },

    async rotate(which) {
      const { token_id, disabled, expires_at } = chooseToken(await store.list(), which)
      if (disabled || (expires_at !== null && expires_at <= unixSeconds(clock))) {
        const why = disabled ? 'revoked' : 'expired'
        throw new GatewayError('invalid_value', `The token ${token_id} is ${why}; create a new one instead.`, {
          param: 'token',
        })
      }
      const secret = newSecret()
      return { token: shown(await change(token_id, formatOf(secret))), secret }
    },

    isValid(caller) {
      const hash = known.hashOf(caller)
      if (hash === undefined) return true
      const found = known.recall(hash)
      return found ? inForce(found.token) : isFound(hash)
    },

    used: lastUsed.used,
    start: known.start,
    async close() {
      await known.close()
      await lastUsed.close()
    },
  }
}

/** A token without the hash of its secret. */
function shown({ hash: _, ...token }: StoredToken): Token {
  return token
}
