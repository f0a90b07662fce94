/** Tokens: create, list, change, authenticate. `by`: who does it, for the audit log; absent: the gateway itself. */
import type { TokenDefaults } from '../config/schema/account-schema.ts'
import { unixSeconds } from '../kit/clock.ts'
import { sha256 } from '../kit/secret.ts'
import { type AuditOrigin, BY_GATEWAY } from '../spec/audit.ts'
import { GatewayError, invalidValue } from '../spec/error.ts'
import type { Caller, Token } from '../spec/token.ts'
import type { StorePage } from '../store/page.ts'
import type { StoredToken, TokenPageOptions, TokenStore } from '../store/tokens/account-store.ts'
import { accountEvent } from './account-event.ts'
import { chooseToken, noToken, revoked, type TokenReference } from './choose.ts'
import { assertNotDeclared, type DeclareToken, declareToken } from './declare-token.ts'
import { createFirstToken } from './first-token.ts'
import { assertAddress, assertProjectActive, createLastUsed, type Grant, grantOf, projectTrouble } from './grant.ts'
import { formatOf, isSecret, makeToken, newSecret, type TokenOrder } from './issue.ts'
import { createKnownTokens, type KnownTokensParts } from './known.ts'
import { assertNotPlayground, createPlaygroundTokens, type PlaygroundPerson } from './playground-tokens.ts'
import { type AccountSettings, readSettings, withImportLabels } from './settings.ts'
import { createSlowDown } from './slow-down.ts'

/** The origin of a request; its address is read only where it is needed, since determining it costs time. */
type From = { readonly address: string; signal: AbortSignal }

/** A token and its secret, which is shown only once. */
type Issued = { token: Token; secret: string }

/** What can be changed without a new secret. */
type TokenChange = Partial<AccountSettings> & { project_id?: string | null }

/** `check`: as for `revoke`. */
type RotateOptions = { overlap_seconds?: number; by?: AuditOrigin; check?: (present: Token) => void }

export type Tokens = {
  /**
   * The caller with this secret. Synchronous for a cached token. A bad secret is refused with invalid_api_key, with a
   * growing delay per address; a valid one may be refused with address_not_allowed or project_disabled.
   */
  authenticate(secret: string | undefined, from: From): Caller | Promise<Caller>
  /** Throws invalid_value, naming the field. */
  issue(order: TokenOrder, by?: AuditOrigin): Promise<Issued>
  /** Creates the first token of an empty store; undefined when the store has one already. */
  issueFirst(order?: { secret?: string }): Promise<Issued | undefined>
  /**
   * The caller as which a person calls models in the console: of a token without a secret, made with the first call.
   * Throws permission_denied where it is revoked, address_not_allowed, project_disabled.
   */
  playground(person: PlaygroundPerson, from: From, by: AuditOrigin): Promise<Caller>
  /** All, or those of a project, oldest first. */
  list(filter?: { project_id?: string }): Promise<Token[]>
  /** The token with this id or name, or whose id or visible prefix starts so. Throws invalid_value. */
  choose(which: string): Promise<Token>
  /**
   * Changes a token, to what a function makes of its present settings: no other change comes between. Throws
   * invalid_value, naming the field.
   */
  update(
    which: TokenReference,
    change: TokenChange | ((present: Token) => TokenChange),
    by?: AuditOrigin,
  ): Promise<Token>
  /**
   * Revokes a token, effective immediately. `which`: its id, its name, or the start of its id or visible prefix.
   * `check` is given its present settings, and no other change comes between; what it throws stops the revocation.
   */
  revoke(which: TokenReference, by?: AuditOrigin, check?: (present: Token) => void): Promise<Token>
  /** Replaces the secret of a token; the old one is valid for the overlap, and the one before it no longer. Default 0. */
  rotate(which: TokenReference, options?: RotateOptions): Promise<Issued>
  declare: DeclareToken
  /** Revokes a declared token. */
  undeclare(token_id: string, by: AuditOrigin): Promise<void>
  find(token_id: string): Promise<Token | undefined>
  page(options: Omit<TokenPageOptions, 'now'>): Promise<StorePage<Token>>
  /**
   * Whether the token by which this caller was authenticated is still valid: not revoked, expired or replaced, and its
   * project active. While the store is unavailable, what was known last counts.
   */
  isValid(caller: Caller): boolean | Promise<boolean>
  /** The caller that a token makes now, for work that its request has left; undefined: revoked or expired, or its project is. */
  callerOf(token_id: string): Promise<Caller | undefined>
  used(token_id: string): void
  /** To be called after a change of a project by this process: takes effect immediately. */
  projectChanged(): void
  /** Starts polling for changes by other processes. Resolves when the present revision is known. */
  start(): Promise<void>
  /** Stops polling and writes when tokens were last used. */
  close(): Promise<void>
}

type TokensParts = KnownTokensParts & {
  store: TokenStore
  defaults: TokenDefaults
  /** Why a secret is refused that is not one of an API token; undefined: for the common reason. */
  explainRefusal?(secret: string): string | undefined
}

/** One message for every reason, so that it does not reveal which secrets exist. */
const REFUSAL = 'Missing or invalid API key. Send it as "Authorization: Bearer <token>".'
/** 90 days: longer, and the old secret is not being replaced. */
const MAX_OVERLAP_SECONDS = 7_776_000

export function createTokens(parts: TokensParts): Tokens {
  const { store, projects, clock, log, defaults, revision, onLook = () => {}, explainRefusal = () => undefined } = parts
  const known = createKnownTokens({ store, projects, clock, log, revision, onLook })
  const lastUsed = createLastUsed({ store, clock, log })
  const slowDown = createSlowDown({ clock, log })
  const now = () => unixSeconds(clock)

  const hasEnded = ({ ends_at }: Grant, at: number) => ends_at !== null && ends_at <= at

  function refuse(from: From, message = REFUSAL): Promise<never> | never {
    const waited = slowDown.failed(from.address, from.signal)
    const refusal = new GatewayError('invalid_api_key', message)
    if (!waited) throw refusal
    return waited.then(() => {
      throw refusal
    })
  }

  function admit(grant: Grant, from: From): Caller | Promise<never> {
    const at = now()
    if (hasEnded(grant, at)) return refuse(from)
    assertAddress(grant, from, log)
    assertProjectActive(grant, at)
    if (grant.used_at !== at) {
      grant.used_at = at
      lastUsed.used(grant.token.token_id)
    }
    return grant.caller
  }

  async function authenticateByStore(secret: string, from: From): Promise<Caller> {
    const found = await known.find(sha256(secret))
    return found ? admit(found, from) : refuse(from, explainRefusal(secret))
  }

  const isActive = (grant: Grant): boolean => !hasEnded(grant, now()) && projectTrouble(grant, now()) === undefined

  async function isFound(hash: string): Promise<boolean> {
    try {
      const found = await known.find(hash)
      return found !== undefined && isActive(found)
    } catch {
      return true // unknown, because the store cannot be reached
    }
  }

  /** By its id without reading the others. */
  const choose = async (which: string): Promise<StoredToken> =>
    (await store.find(which.trim())) ?? chooseToken(await store.list(), which)

  type Action = `token.${string}`
  type Changing = { fields: Parameters<TokenStore['update']>[1]; action: Action; by: AuditOrigin | undefined }

  const draft = (by: AuditOrigin, action: Action, states: { before?: Token; after: Token }) => ({
    ...accountEvent({ by, action, now_ms: clock.now() }, states.after.token_id, states.after.project_id),
    ...states,
  })

  async function change(which: TokenReference, { fields, action, by = BY_GATEWAY }: Changing): Promise<StoredToken> {
    const { token_id } = typeof which === 'string' ? await choose(which) : which
    const changed = await store.update(token_id, fields, (before, after) =>
      draft(by, action, { before: shown(before), after: shown(after) }),
    )
    if (!changed) throw noToken(token_id)
    known.doubt()
    return changed
  }

  async function add(token: StoredToken, by: AuditOrigin): Promise<void> {
    await store.add(token, draft(by, 'token.create', { after: shown(token) }))
    known.doubt()
  }

  async function addFirst(token: StoredToken): Promise<boolean> {
    const isAdded = await store.addFirst(token, draft(BY_GATEWAY, 'token.create', { after: shown(token) }))
    if (isAdded) known.doubt()
    return isAdded
  }

  const playground = createPlaygroundTokens({ store, known, add, assertProject, now })

  async function assertProject(project_id: string | null | undefined): Promise<void> {
    if (project_id === undefined || project_id === null) return
    const project = await projects.find(project_id)
    if (project && project.deleted_at === null) return
    const trouble = `project_id: there is no project ${JSON.stringify(project_id)}.`
    throw invalidValue('project_id', trouble)
  }

  return {
    authenticate(secret, from) {
      // Nothing was guessed, so there is no delay: a browser or a probe without a token gets its response at once.
      if (secret === undefined || secret === '') throw new GatewayError('invalid_api_key', REFUSAL)
      const recent = known.recent.get(secret)
      if (recent) return admit(recent, from)
      if (!isSecret(secret)) return refuse(from)
      const grant = known.recallSecret(secret)
      return grant ? admit(grant, from) : authenticateByStore(secret, from)
    },

    async issue(order, by = BY_GATEWAY) {
      const { token, secret } = makeToken(order, { defaults, now: now() })
      await assertProject(order.project_id)
      if (order.secret !== undefined && (await store.findByHash(token.hash))) {
        throw invalidValue('secret', 'secret: another token has it already.')
      }
      await add(token, by)
      return { token: shown(token), secret }
    },

    declare: declareToken({ store, add, change, now }),
    async undeclare(token_id, by) {
      await change(token_id, { fields: { disabled: true, declared: false }, action: 'token.revoke', by })
    },

    issueFirst: createFirstToken({ store, addFirst, shown, defaults, now, log }),
    async playground(person, from, by) {
      return admit(await playground(person, by), from)
    },

    async list(filter) {
      return (await store.list(filter)).map(shown)
    },

    async find(token_id) {
      const token = await store.find(token_id)
      return token && shown(token)
    },

    async page(options) {
      const { rows, next } = await store.page({ ...options, now: now() })
      return { rows: rows.map(shown), next }
    },

    choose: async (which) => shown(await choose(which)),

    async update(which, change_, by) {
      if (typeof change_ !== 'function') await assertProject(change_.project_id)
      const fields = (present: StoredToken) => {
        assertNotDeclared('token', present)
        if (present.disabled) throw revoked(present)
        const { project_id, ...given } = typeof change_ === 'function' ? change_(shown(present)) : change_
        if (project_id !== undefined) assertNotPlayground(present)
        const settings = withImportLabels(readSettings(given, now()), present)
        return project_id === undefined ? settings : { ...settings, project_id }
      }
      return shown(await change(which, { fields, action: 'token.update', by }))
    },

    async revoke(which, by, check = () => {}) {
      const fields = (present: StoredToken) => {
        assertNotDeclared('token', present)
        check(shown(present))
        return { disabled: true }
      }
      return shown(await change(which, { fields, action: 'token.revoke', by }))
    },

    async rotate(which, { overlap_seconds = 0, by, check = () => {} } = {}) {
      if (!Number.isInteger(overlap_seconds) || overlap_seconds < 0 || overlap_seconds > MAX_OVERLAP_SECONDS) {
        const rule = `must be a whole number of seconds from 0 to ${MAX_OVERLAP_SECONDS}; found ${overlap_seconds}`
        throw invalidValue('overlap_seconds', `overlap_seconds: ${rule}.`)
      }
      const secret = newSecret()
      const fields = (present: StoredToken) => {
        const { token_id, disabled, expires_at, hash } = present
        assertNotDeclared('token', present)
        assertNotPlayground(present)
        check(shown(present))
        if (disabled) throw revoked({ token_id })
        if (expires_at !== null && expires_at <= now()) throw revoked({ token_id }, 'expired')
        const previous = overlap_seconds > 0 ? { hash, expires_at: now() + overlap_seconds } : undefined
        return {
          ...formatOf(secret),
          previous_hash: previous?.hash ?? null,
          previous_expires_at: previous?.expires_at ?? null,
        }
      }
      const token = await change(which, { fields, action: 'token.rotate', by })
      return { token: shown(token), secret }
    },

    isValid(caller) {
      const hash = known.hashOf(caller)
      if (hash === undefined) return true
      const found = known.recall(hash)
      return found ? isActive(found) : isFound(hash)
    },

    async callerOf(token_id) {
      const as_of = known.revision()
      const token = await store.find(token_id)
      if (!token || token.disabled) return undefined
      const project = token.project_id === null ? undefined : await projects.find(token.project_id)
      const grant = grantOf({ token, project, hash: token.hash, as_of })
      return isActive(grant) ? grant.caller : undefined
    },

    projectChanged: known.doubt,
    used: lastUsed.used,
    start: known.start,
    async close() {
      await known.close()
      await lastUsed.close()
    },
  }
}

/** A token without the hashes of its secrets. */
function shown({ hash: _, previous_hash: __, ...token }: StoredToken): Token {
  return token
}
