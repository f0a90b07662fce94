/**
 * Gives for a secret its token, the project of the token, and the caller that both make; the secrets that were presented lately, and when
 * tokens were last used.
 */
import { networkMatcher } from '../kit/address.ts'
import { BatchQueue } from '../kit/batch-queue.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { hash32 } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller, Project, Token } from '../spec/token.ts'
import type { StoredProject, StoredToken, TokenStore } from '../store/tokens/account-store.ts'
import { callerOf, rememberAnswers } from './caller.ts'

export type Grant = {
  token: StoredToken
  caller: Caller
  /** From when the secret is invalid, in unix seconds. */
  ends_at: number | null
  /** Why its project lets none of its tokens in. */
  refusal: string | undefined
  /** From when its project is over, in unix seconds. */
  project_ends_at: number | null
  /** Absent: every address. */
  isAllowedFrom: ((address: string) => boolean) | undefined
  /** When its last use was recorded, in unix seconds. */
  used_at: number
}

type GrantParts = { token: StoredToken; project: StoredProject | undefined; hash: string; as_of: number }

/** `hash`: of the secret by which the token was found, its present or its previous one. */
export function grantOf({ token, project, hash, as_of }: GrantParts): Grant {
  const { project_id, expires_at } = token
  const isDeleted = project_id !== null && (!project || project.deleted_at !== null)
  return {
    token,
    caller: { ...callerOf(token, project), as_of },
    ends_at: hash === token.hash ? expires_at : earliest(expires_at, token.previous_expires_at ?? 0),
    refusal: isDeleted ? 'was deleted' : project?.disabled ? 'is disabled' : undefined,
    project_ends_at: project?.expires_at ?? null,
    isAllowedFrom: addressCheck(project ? [token, project] : [token]),
    used_at: 0,
  }
}

const earliest = (one: number | null, other: number): number => (one === null ? other : Math.min(one, other))

/** With brackets, zone and port. A forwarded one is what somebody wrote in a header. */
const MAX_ADDRESS = 64

/** An address must be allowed by all of them. */
function addressCheck(accounts: readonly (Token | Project)[]): Grant['isAllowedFrom'] {
  const checks = accounts.flatMap((account) =>
    account.allowed_addresses ? [networkMatcher(account.allowed_addresses)] : [],
  )
  if (checks.length === 0) return undefined
  const isAllowedFrom = rememberAnswers((address) => checks.every((isAllowed) => isAllowed(address)))
  return (address) => address.length <= MAX_ADDRESS && isAllowedFrom(address)
}

/** Why the project of the token is not active; undefined: it is, or there is none. */
export function projectTrouble({ refusal, project_ends_at }: Grant, now: number): string | undefined {
  return refusal ?? (project_ends_at !== null && project_ends_at <= now ? 'has expired' : undefined)
}

/** Throws `project_disabled` where the project of the token is not active. */
export function assertProjectActive(grant: Grant, now: number): void {
  const trouble = projectTrouble(grant, now)
  if (trouble === undefined) return
  throw new GatewayError('project_disabled', `The project ${grant.token.project_id} of this token ${trouble}.`)
}

/** Throws `address_not_allowed`; the address is read only for a token that is limited to some. */
export function assertAddress({ token, isAllowedFrom }: Grant, from: { readonly address: string }, log: Log): void {
  if (!isAllowedFrom) return
  const { address } = from
  if (isAllowedFrom(address)) return
  // The secret is valid: it may have been stolen.
  log.warn('token refused: its address is not allowed', {
    token_id: token.token_id,
    address: address.slice(0, MAX_ADDRESS),
  })
  throw new GatewayError(
    'address_not_allowed',
    `The token ${token.token_id} may not be used from the address ${shownAddress(address)}.`,
  )
}

const shownAddress = (address: string): string =>
  address.length <= MAX_ADDRESS && /^[\w.:%[\]]+$/.test(address) ? address : 'of this request'

/** After this time all are forgotten, so that no secret stays in memory because it was used once. */
export const RECENT_MILLISECONDS = 60_000
/** Each costs about 200 bytes. */
export const MAX_RECENT = 10_000

/**
 * A secret is found by a hash with a random seed and then compared. An attacker cannot choose secrets of the same hash, so
 * the comparison, whose time depends on the secrets, is reached by one wrong secret in 2^32.
 */
export class RecentSecrets {
  readonly #clock: Clock
  readonly #seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
  readonly #entries = new Map<number, { secret: string; grant: Grant }>()
  /** When the first of them was remembered. */
  #since = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(secret: string): Grant | undefined {
    if (this.#entries.size === 0) return undefined
    this.expire()
    const entry = this.#entries.get(hash32(secret, this.#seed))
    return entry?.secret === secret ? entry.grant : undefined
  }

  add(secret: string, grant: Grant): void {
    if (this.#entries.size >= MAX_RECENT) this.forget()
    if (this.#entries.size === 0) this.#since = this.#clock.steady()
    this.#entries.set(hash32(secret, this.#seed), { secret, grant })
  }

  expire(): void {
    if (this.#entries.size > 0 && this.#clock.steady() - this.#since >= RECENT_MILLISECONDS) this.forget()
  }

  forget(): void {
    this.#entries.clear()
  }
}

const WRITE_EVERY_MILLISECONDS = 30_000
const WRITE_MILLISECONDS = 10_000
const MAX_TOKENS = 50_000
/** Rows of one transaction: it blocks the event loop for a few milliseconds. */
const TOKENS_PER_WRITE = 500

type LastUsedParts = { store: Pick<TokenStore, 'touch'>; clock: Clock; log: Log }

/** Records when tokens were last used, and writes it from time to time: a hint for operators, not an audit log. */
export function createLastUsed({ store, clock, log }: LastUsedParts): {
  used(token_id: string): void
  close(): Promise<void>
} {
  /** In unix seconds, of the tokens that wait to be written. */
  const times = new Map<string, number>()
  const queue = new BatchQueue<string>({
    name: 'last use of tokens',
    async write(token_ids) {
      const rows = token_ids.flatMap((token_id) => {
        const last_used_at = times.get(token_id)
        return last_used_at === undefined ? [] : [{ token_id, last_used_at }]
      })
      await store.touch(rows)
      // One that was used meanwhile waits again.
      for (const { token_id, last_used_at } of rows)
        if (times.get(token_id) === last_used_at || !queue.push(token_id)) times.delete(token_id)
      return 0
    },
    max_queued: MAX_TOKENS,
    max_batch: TOKENS_PER_WRITE,
    every_ms: WRITE_EVERY_MILLISECONDS,
    timeout_ms: WRITE_MILLISECONDS,
    clock,
    log,
  })
  return {
    used(token_id) {
      if (times.has(token_id) || queue.push(token_id)) times.set(token_id, unixSeconds(clock))
    },
    close: () => queue.close({ deadline_ms: WRITE_MILLISECONDS }),
  }
}
