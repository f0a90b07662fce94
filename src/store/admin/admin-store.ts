/** Contract of stored administrators. */
import type { AdminRole, AdminSession, AdminToken } from '../../spec/admin.ts'
import type { AuditDraft } from '../../spec/audit.ts'
import type { StorePage } from '../page.ts'

/** With the SHA-256 (hex) of its secret, which is never stored. */
export type StoredAdminToken = AdminToken & { hash: string }

export type AdminTokenStore = {
  /** Throws if its `admin_token_id` or `hash` exists. */
  add(token: StoredAdminToken, audit: AuditDraft): Promise<void>
  find(admin_token_id: string): Promise<StoredAdminToken | undefined>
  findByHash(hash: string): Promise<StoredAdminToken | undefined>
  /** Oldest first; revoked ones too. */
  page(options: { limit: number; after?: string[] }): Promise<StorePage<StoredAdminToken>>
  /** The token, revoked; undefined if there is none. */
  revoke(
    admin_token_id: string,
    audit: (before: StoredAdminToken, after: StoredAdminToken) => AuditDraft,
  ): Promise<StoredAdminToken | undefined>
  /**
   * For the configuration file: the token with this hash is like this; it is added where there is none. Writes nothing, and
   * records nothing, where nothing differs.
   */
  declare(
    token: StoredAdminToken,
    audit: (before: StoredAdminToken | undefined, after: StoredAdminToken) => AuditDraft,
  ): Promise<StoredAdminToken>
  /** Those of the configuration file that are not revoked. */
  declared(): Promise<StoredAdminToken[]>
  /** Stores when it was last used (unix seconds); a time never decreases. */
  touch(admin_token_id: string, last_used_at: number): Promise<void>
}

/** The response that was sent to a request with an idempotency key; `status` null: none yet. */
export type StoredAnswer = { body_hash: string; status: number | null; answer: string | null }

export type AdminKeyStore = {
  /**
   * Reserves a key for a request; the present row where the key is in use already. Deletes what has expired.
   * `scope`: of the caller. Throws storage_quota_exceeded where the caller has `limit` keys.
   */
  reserve(row: {
    scope: string
    key: string
    body_hash: string
    now: number
    expires_at: number
    limit: number
  }): Promise<StoredAnswer | undefined>
  /** Stores the response of a reserved key. */
  answer(row: { scope: string; key: string; status: number; answer: string }): Promise<void>
  /** Frees a reserved key, for a request that has changed nothing. */
  release(row: { scope: string; key: string }): Promise<void>
}

/** With the SHA-256 (hex) of the cookie, and of the admin token that began it: it ends with that. */
export type StoredSession = AdminSession & { hash: string; token_hash: string | null }

/** Who logs in by a link. */
export type LinkPerson = { name: string; role: AdminRole; project_id: string | null }

export type AdminSessionStore = {
  /** Adds a link for one login, by the SHA-256 of its secret; `person` null: as owner. Deletes those that have expired. */
  addLink(
    link: { hash: string; actor: string; expires_at: number; person: LinkPerson | null },
    audit: AuditDraft,
  ): Promise<void>
  /**
   * Makes a session of a link, and deletes the link: of two logins with one link, one succeeds, on every engine and for
   * any number of processes. Undefined: there is no such link, or it has expired.
   */
  login(
    link: { hash: string; now: number },
    make: (person: LinkPerson | null) => { session: StoredSession; audit: AuditDraft },
  ): Promise<StoredSession | undefined>
  /** Adds a session of somebody who has logged in elsewhere. */
  add(session: StoredSession, audit: AuditDraft): Promise<void>
  findByHash(hash: string): Promise<StoredSession | undefined>
  /** Newest first, without those that ended before `now`. */
  page(options: { now: number; limit: number; after?: string[] }): Promise<StorePage<StoredSession>>
  touch(session_id: string, last_used_at: number): Promise<void>
  /** Ends a session, or all; returns how many there were. */
  end(which: { session_id: string } | 'all', audit: AuditDraft): Promise<number>
}

export type AdminStore = { tokens: AdminTokenStore; keys: AdminKeyStore; sessions: AdminSessionStore }
