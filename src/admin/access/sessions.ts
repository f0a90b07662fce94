/** Sessions of administrators in a browser: begun by a one-time link or by a login elsewhere, and ended. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { randomAlphanumerics, sha256 } from '../../kit/secret.ts'
import {
  type AdminCaller,
  type AdminRole,
  type AdminSession,
  isProjectRole,
  type Membership,
} from '../../spec/admin.ts'
import type { AuditEvent, AuditOrigin } from '../../spec/audit.ts'
import type { AdminSessionStore, LinkPerson, StoredSession } from '../../store/admin/admin-store.ts'
import type { StorePage } from '../../store/page.ts'

type Browser = { address: string; user_agent: string; request_id?: string }

/** Who has logged in elsewhere: with an OpenID provider, or with an admin token, whose hash is given. */
type Person = {
  actor: string
  role: AdminRole
  project_id?: string
  memberships?: Membership[]
  token_hash?: string
}

/** For whom a link is; absent: for an owner without a name. */
type LinkOrder = { person?: LinkPerson; seconds?: number }

/** `secret`: the value of the cookie, which is stored as a hash. */
type NewSession = { session: AdminSession; secret: string }

export type AdminSessions = {
  /** A link's secret, for one login; as owner within 15 minutes where nothing else is ordered. */
  createLink(by: AuditOrigin, order?: LinkOrder): Promise<{ secret: string; expires_at: number }>
  /** Undefined where the secret is of no link, or the link was used or has expired. */
  login(secret: string, browser: Browser): Promise<NewSession | undefined>
  /** Begins a session of a person whose identity is established. */
  begin(person: Person, browser: Browser): Promise<NewSession>
  /** The caller with this cookie; undefined: there is no such session, or it has ended. */
  callerOf(secret: string): Promise<AdminCaller | undefined>
  page(options: { limit: number; after?: string[] }): Promise<StorePage<AdminSession>>
  /** Whether there was such a session. */
  end(session_id: string, by: AuditOrigin): Promise<boolean>
  endAll(by: AuditOrigin): Promise<number>
}

type SessionParts = {
  store: AdminSessionStore
  isActive(token_hash: string): Promise<boolean>
  settings(): { session_hours: number; idle_minutes: number }
  clock: Clock
  log: Log
}

const LINK_PREFIX = 'ghl-'
const SESSION_PREFIX = 'ghs-'
const SECRET_LENGTH = 48
const LINK_SECONDS = 900
/** A time of last use is written at most so often. */
const TOUCH_SECONDS = 60
const MAX_USER_AGENT = 200

export function createAdminSessions({ store, isActive, settings, clock, log }: SessionParts): AdminSessions {
  const now = () => unixSeconds(clock)
  const draft = (by: AuditOrigin, event: Omit<AuditEvent, 'object_type'>) => ({
    ...by,
    ...event,
    object_type: 'session',
    at_ms: clock.now(),
  })

  function make({ address, user_agent }: Browser, person?: Person): StoredSession & { secret: string } {
    const session_id = `ses_${randomAlphanumerics(16)}`
    const secret = `${SESSION_PREFIX}${randomAlphanumerics(SECRET_LENGTH)}`
    return {
      session_id,
      secret,
      hash: sha256(secret),
      actor: person?.actor ?? `login:${session_id}`,
      role: person?.role ?? 'owner',
      project_id: person?.project_id ?? null,
      memberships: person?.memberships && person.memberships.length > 1 ? person.memberships : [],
      token_hash: person?.token_hash ?? null,
      address,
      user_agent: user_agent.slice(0, MAX_USER_AGENT).replaceAll('\0', '').toWellFormed(),
      created_at: now(),
      last_used_at: now(),
      expires_at: now() + Math.ceil(settings().session_hours * 3600),
    }
  }

  const loginOf = (session: AdminSession, { address, request_id }: Browser) =>
    draft(
      { actor: session.actor, address, ...(request_id !== undefined && { request_id }) },
      { action: 'session.login', object_id: session.session_id, project_id: session.project_id, after: session },
    )

  const isOver = ({ expires_at, last_used_at }: StoredSession): boolean =>
    expires_at <= now() || last_used_at + settings().idle_minutes * 60 <= now()

  return {
    async createLink(by, { person, seconds = LINK_SECONDS } = {}) {
      const secret = `${LINK_PREFIX}${randomAlphanumerics(SECRET_LENGTH)}`
      const expires_at = now() + seconds
      const project = person?.project_id ? { project_id: person.project_id } : {}
      await store.addLink(
        { hash: sha256(secret), actor: by.actor, expires_at, person: person ?? null },
        draft(by, { action: 'login_link.create', object_id: '', ...project, after: { expires_at, ...person } }),
      )
      return { secret, expires_at }
    },

    async login(link, browser) {
      if (!link.startsWith(LINK_PREFIX)) return undefined
      let cookie = ''
      const session = await store.login({ hash: sha256(link), now: now() }, (person) => {
        const { secret, ...made } = make(browser, person ? personOf(person) : undefined)
        cookie = secret
        return { session: made, audit: loginOf(shown(made), browser) }
      })
      return session && { session: shown(session), secret: cookie }
    },

    async begin(person, browser) {
      const { secret, ...session } = make(browser, person)
      await store.add(session, loginOf(shown(session), browser))
      return { session: shown(session), secret }
    },

    async callerOf(secret) {
      if (!secret.startsWith(SESSION_PREFIX)) return undefined
      const session = await store.findByHash(sha256(secret))
      if (!session || isOver(session)) return undefined
      const { session_id, actor, role, project_id, memberships, token_hash } = session
      if (token_hash !== null && !(await isActive(token_hash))) return undefined
      if (now() - session.last_used_at >= TOUCH_SECONDS) {
        await store.touch(session_id, now()).catch((error: unknown) => {
          log.error('the last use of a session was not stored', { session_id }, error)
        })
      }
      return {
        actor,
        role,
        via: 'session',
        session_id,
        ...(project_id !== null && { project_id }),
        ...(memberships.length > 0 && { memberships }),
      }
    },

    async page(options) {
      const { rows, next } = await store.page({ ...options, now: now() })
      return { rows: rows.filter((session) => !isOver(session)).map(shown), next }
    },

    end: async (session_id, by) =>
      (await store.end({ session_id }, draft(by, { action: 'session.logout', object_id: session_id }))) > 0,
    endAll: (by) => store.end('all', draft(by, { action: 'session.logout_all', object_id: '*' })),
  }
}

const personOf = ({ name, role, project_id }: LinkPerson): Person => ({
  actor: `person:${name}`,
  role,
  ...(isProjectRole(role) && project_id !== null && { project_id }),
})

function shown({ hash: _, token_hash: __, ...session }: StoredSession): AdminSession {
  return session
}
