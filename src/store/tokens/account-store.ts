/** Contract of stored tokens and projects. */
import type { AuditDraft } from '../../spec/audit.ts'
import type { Project, Token } from '../../spec/token.ts'
import type { StorePage } from '../page.ts'

/** Which accounts a page has, and in which order (default: oldest first). */
export type AccountFilter = {
  /** Part of the name, in any case, or the start of the id or of the visible prefix. */
  text?: string
  /** Only those that are neither disabled nor expired, or only the others. */
  is_active?: boolean
  newestFirst?: boolean
}

/** `now`: unix seconds, at which those that have expired are not active. */
export type AccountPageOptions = AccountFilter & { limit: number; after?: string[]; now: number }
export type TokenPageOptions = AccountPageOptions & { project_id?: string }

/** Fields to change, or what makes them of the present record. */
type Change<Row, Fixed extends keyof Row> = Partial<Omit<Row, Fixed>> | ((present: Row) => Partial<Omit<Row, Fixed>>)

/** What is appended to the audit log with a change, in its transaction. */
type AuditOf<Row> = (before: Row, after: Row) => AuditDraft

/**
 * A token with the SHA-256 (hex) of its secret, and of the one before. The secrets themselves are never stored. A token of
 * the playground has no secret: its `hash` names its person and project, and is the hash of nothing.
 */
export type StoredToken = Token & { hash: string; previous_hash: string | null }

export type TokenStore = {
  /** Adds a token. Throws if its `token_id` or `hash` exists. */
  add(token: StoredToken, audit?: AuditDraft): Promise<void>
  /** Adds the token only if the store has no token; false if it has one. Atomic between processes. */
  addFirst(token: StoredToken, audit?: AuditDraft): Promise<boolean>
  /** The token whose secret, or whose previous secret, has this hash; the end of the previous one is not checked. */
  findByHash(hash: string): Promise<StoredToken | undefined>
  find(token_id: string): Promise<StoredToken | undefined>
  /** All tokens, or those of a project, oldest first. */
  list(filter?: { project_id?: string }): Promise<StoredToken[]>
  page(options: TokenPageOptions): Promise<StorePage<StoredToken>>
  /**
   * Changes fields of a token, to what a function makes of the present ones where one is given: no other change comes
   * between. Returns the changed token; undefined if it does not exist.
   */
  update(
    token_id: string,
    change: Change<StoredToken, 'token_id' | 'created_at'>,
    audit?: AuditOf<StoredToken>,
  ): Promise<StoredToken | undefined>
  /** Stores when tokens were last used (unix seconds); a time never decreases. Does not change the revision. */
  touch(used: { token_id: string; last_used_at: number }[]): Promise<void>
  /** A number that increases with every change of a token or a project, by any process: caches compare it. */
  revision(): Promise<number>
}

/** `deleted_at`: when it was deleted (unix seconds); its name is kept for what it used. */
export type StoredProject = Project & { deleted_at: number | null }

/** Every change counts in `TokenStore.revision`. */
export type ProjectStore = {
  /** False if another project has this name. Throws if its `project_id` exists. */
  add(project: StoredProject, audit?: AuditDraft): Promise<boolean>
  /** Deleted ones too. */
  find(project_id: string): Promise<StoredProject | undefined>
  findNamed(name: string): Promise<StoredProject | undefined>
  /** Oldest first, without deleted ones. */
  list(): Promise<StoredProject[]>
  page(options: AccountPageOptions): Promise<StorePage<StoredProject>>
  /** As for tokens; a deleted project is missing. */
  update(
    project_id: string,
    change: Change<StoredProject, 'project_id' | 'created_at'>,
    audit?: AuditOf<StoredProject>,
  ): Promise<StoredProject | 'missing' | 'name_taken'>
}
