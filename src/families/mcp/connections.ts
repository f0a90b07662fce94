/** Connections of people to MCP servers: begun, finished and ended by them; their tokens are stored encrypted, and refreshed once. */
import type { Config } from '../../config/config.ts'
import { type Clock, pause, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { openSealed, sealingKey, sealText } from '../../kit/sealed-text.ts'
import { randomAlphanumerics, sha256 } from '../../kit/secret.ts'
import type { AccessToken } from '../../providers/mcp/access-token.ts'
import {
  createUserOAuth,
  GrantEnded,
  type OAuthServer,
  type PendingConsent,
  type UserTokens,
} from '../../providers/mcp/user-oauth.ts'
import type { AuditOrigin } from '../../spec/audit.ts'
import { GatewayError } from '../../spec/error.ts'
import type { McpConnectionRow } from '../../store/admin/mcp-connection-store.ts'
import type { Store } from '../../store/store.ts'
import { type Identified, personOf, pinnedAs } from './people.ts'

/** The person is not connected to the server. */
export class NotConnected extends GatewayError {
  readonly server: string
  /** Where it can connect; undefined: nobody knows who calls, or the gateway has no address of its own. */
  readonly address: string | undefined
  constructor(server: string, message: string, address?: string) {
    super('permission_denied', message)
    this.server = server
    this.address = address
  }
}

type State = 'connected' | 'ended' | 'none'
type PersonalServer = OAuthServer & { person: string }

export type McpConnections = {
  /** Undefined: the caller is no person. */
  personOf(caller: Identified, server: Pick<OAuthServer, 'oauth_user'> | undefined): string | undefined
  /** Where the authorization server sends the browser back. `reached_at`: the address of the console as a browser has used it. */
  redirectUri(reached_at: string): string
  /** The connection that counts now. Throws NotConnected. */
  require(server: PersonalServer): Promise<string>
  /** Of one connection; rejects with NotConnected once it has ended. */
  token(server: PersonalServer, connection_id: string): AccessToken
  state(server: PersonalServer): Promise<{ state: State; connected_at: number | null }>
  /** `session_id`: of the browser, which alone can finish it within 10 minutes. Returns the address of the authorization server. */
  begin(server: PersonalServer, from: { redirect_uri: string; session_id: string }): Promise<string>
  /** Returns the name of the server. `find`: the server of this name, as it is configured now. */
  finish(
    from: { person: string; session_id: string; query: string },
    find: FindServer,
    by: AuditOrigin,
  ): Promise<string>
  /** Whether the authorization server has revoked the tokens; they are deleted in any case. Tools stay approved as they were. */
  end(server: PersonalServer, by: AuditOrigin): Promise<{ revoked: boolean }>
  /** Those of all people, by connection_id after this one. */
  list(limit: number, after?: string): Promise<McpConnectionRow[]>
  /** The same by the operator, who also has the approved tools forgotten; undefined: there is none. */
  endNamed(connection_id: string, find: FindServer, by: AuditOrigin): Promise<{ revoked: boolean } | undefined>
}

type FindServer = (name: string) => OAuthServer | undefined

type ConnectionsParts = {
  store: Pick<Store, 'mcpConnections'>
  config(): Pick<Config, 'contents_key' | 'contents_key_old' | 'server' | 'admin' | 'mcp'>
  /** What the person is offered has changed. */
  onChange?(server: string, person: string): void
  clock: Clock
  log: Log
}

const BEGIN_SECONDS = 600
/** A use is stored no more often. */
const USE_SECONDS = 60
const MAX_QUERY = 8_192
/** Longer than a token request may take. */
const CLAIM_MS = 20_000
/** How often a process looks whether another one has refreshed the tokens. */
const LOOK_MS = 100
const PAGE = '/console/mcp'

export function createMcpConnections({
  store: { mcpConnections: rows },
  config,
  onChange,
  clock,
  log,
}: ConnectionsParts): McpConnections {
  const oauth = createUserOAuth({ clock, log })
  const refreshes = new Map<string, Promise<UserTokens>>()

  /** A token is of no use at another address, issuer or client than that for which it was granted. */
  const boundTo = ({ person, name, url, oauth_user }: PersonalServer, what: string): string =>
    JSON.stringify(['mcp', what, person, name, url, oauth_user?.issuer ?? null, oauth_user?.client_id ?? null])

  function seal(value: PendingConsent | UserTokens, bound_to: string): string {
    const key = sealingKey(config().contents_key ?? '')
    if (!key) throw new GatewayError('internal_error', 'GATEHOUSE_CONTENTS_KEY is not set.')
    const { key_id, sealed } = sealText(JSON.stringify(value), key, bound_to)
    return `${key_id}.${sealed}`
  }

  /** Undefined: of another key, or bound to something else. */
  function open(text: string, bound_to: string): unknown {
    const { contents_key, contents_key_old } = config()
    const keys = [contents_key, contents_key_old].flatMap((one) => sealingKey(one ?? '') ?? [])
    const [key_id = '', sealed = ''] = text.split('.')
    const opened = openSealed({ key_id, sealed }, keys, bound_to)
    return typeof opened === 'string' ? undefined : JSON.parse(opened.text)
  }

  const keyOf = ({ person, name }: PersonalServer) => ({ person, server: name })
  const tokensIn = (row: McpConnectionRow | undefined, server: PersonalServer) =>
    row?.sealed == null ? undefined : (open(row.sealed, boundTo(server, 'tokens')) as UserTokens | undefined)

  function notConnected(name: string, hasEnded: boolean): NotConnected {
    const { server, admin } = config()
    const base = consoleOrigin() ?? (admin.port === undefined ? server.base_url : undefined)
    const address = base === undefined ? undefined : base + PAGE
    const what = hasEnded
      ? `Your connection to the MCP server "${name}" has ended. Connect again`
      : `You are not connected to the MCP server "${name}". Connect`
    const where = address === undefined ? `on the page ${PAGE} of the console` : `at ${address}`
    return new NotConnected(name, `${what} ${where}, then repeat the request.`, address)
  }

  /** As the operator has written it for logins. */
  function consoleOrigin(): string | undefined {
    const { redirect_uri } = config().admin.oidc ?? {}
    return redirect_uri === undefined ? undefined : URL.parse(redirect_uri)?.origin
  }

  async function read(server: PersonalServer, connection_id: string) {
    const row = await rows.find(keyOf(server))
    if (row?.connection_id !== connection_id) throw notConnected(server.name, false)
    const tokens = tokensIn(row, server)
    if (!tokens) throw notConnected(server.name, true)
    return { row, tokens }
  }

  /** By one caller of all processes; the others get what it has stored. `isUsable`: tokens that need no refresh. */
  async function refresh(server: PersonalServer, connection_id: string, isUsable: (tokens: UserTokens) => boolean) {
    const waitUntil = clock.steady() + CLAIM_MS
    for (;;) {
      const { row, tokens } = await read(server, connection_id)
      if (isUsable(tokens)) return tokens
      const now = clock.now()
      if (await rows.claim(row, now, now + CLAIM_MS)) return await refreshClaimed(server, row, tokens)
      if (clock.steady() > waitUntil) {
        const message = `The tokens for the MCP server "${server.name}" are being refreshed; try again.`
        throw new GatewayError('upstream_timeout', message)
      }
      await pause(clock, LOOK_MS)
    }
  }

  async function refreshClaimed(
    server: PersonalServer,
    row: McpConnectionRow,
    tokens: UserTokens,
  ): Promise<UserTokens> {
    let next: UserTokens
    try {
      next = await oauth.refresh(server, tokens)
    } catch (thrown) {
      const hasEnded = thrown instanceof GrantEnded
      await rows.settle(row, hasEnded ? null : undefined)
      if (!hasEnded) throw thrown
      log.warn('a connection of a person to an mcp server has ended', { server: server.name })
      throw notConnected(server.name, true)
    }
    // Before they are used: the old refresh token may be worth nothing by now.
    if (await rows.settle(row, seal(next, boundTo(server, 'tokens')))) return next
    const now = tokensIn(await rows.find(keyOf(server)), server)
    if (!now || !isSameGrant(next, now)) await oauth.revoke(server, next)
    throw notConnected(server.name, false)
  }

  async function end(server: PersonalServer, by: AuditOrigin, pinned_as?: string): Promise<{ revoked: boolean }> {
    const { name, person } = server
    const audit = { ...by, ...EVENT, action: 'mcp_connection.delete', object_id: name, at_ms: clock.now() }
    const removed = await rows.remove(keyOf(server), { ...audit, before: { person } }, pinned_as)
    onChange?.(name, person)
    const tokens = tokensIn(removed, server)
    return { revoked: tokens !== undefined && (await oauth.revoke(server, tokens)) }
  }

  return {
    personOf: (caller, server) => personOf(caller, config(), server),
    redirectUri: (reached_at) => (consoleOrigin() ?? reached_at) + PAGE,

    async require(server) {
      const row = await rows.find(keyOf(server))
      if (row?.connection_id == null) throw notConnected(server.name, false)
      if (!tokensIn(row, server)) throw notConnected(server.name, true)
      const now = unixSeconds(clock)
      if (now - (row.last_used_at ?? 0) >= USE_SECONDS)
        await rows.used(row, now).catch(() => log.warn('use of an mcp connection not stored', { server: server.name }))
      return row.connection_id
    },

    token(server, connection_id) {
      let refused: string | undefined
      const isUsable = ({ access_token, refresh_at_ms = Number.POSITIVE_INFINITY }: UserTokens) =>
        access_token !== refused && refresh_at_ms > clock.now()
      return {
        async current() {
          const { tokens } = await read(server, connection_id)
          if (isUsable(tokens)) return tokens.access_token
          const mine = refreshes.get(connection_id) ?? refresh(server, connection_id, isUsable)
          refreshes.set(connection_id, mine)
          try {
            return (await mine).access_token
          } finally {
            if (refreshes.get(connection_id) === mine) refreshes.delete(connection_id)
          }
        },
        drop(token) {
          refused = token
        },
      }
    },

    async state(server) {
      const row = await rows.find(keyOf(server))
      if (row?.connection_id == null) return { state: 'none', connected_at: null }
      return { state: tokensIn(row, server) ? 'connected' : 'ended', connected_at: row.connected_at }
    },

    async begin(server, { redirect_uri, session_id }) {
      const { location, pending } = await oauth.begin(server, redirect_uri)
      await rows.begin(keyOf(server), {
        hash: hashOf(pending.state, session_id),
        sealed: seal(pending, boundTo(server, 'pending')),
        until: unixSeconds(clock) + BEGIN_SECONDS,
      })
      return location
    },

    async finish({ person, session_id, query }, find, by) {
      if (query.length > MAX_QUERY) throw refused(`the query exceeds ${MAX_QUERY} characters`)
      const state = new URLSearchParams(query).get('state') ?? ''
      const taken = await rows.take(person, hashOf(state, session_id), unixSeconds(clock))
      const found = taken && find(taken.server)
      if (!found) throw refused('this session has not begun it, or it is over 10 minutes old or was used')
      const server = { ...found, person }
      const pending = open(taken.pending, boundTo(server, 'pending')) as PendingConsent | undefined
      if (!pending) throw refused('the server is configured in another way since it was begun')
      const tokens = await oauth.finish(server, pending, query)
      const before = await rows.find(keyOf(server))
      const connected_at = unixSeconds(clock)
      await rows.connect(
        keyOf(server),
        {
          connection_id: `mcpc_${randomAlphanumerics(16)}`,
          sealed: seal(tokens, boundTo(server, 'tokens')),
          connected_at,
        },
        {
          ...by,
          ...EVENT,
          action: 'mcp_connection.create',
          object_id: server.name,
          at_ms: clock.now(),
          after: { person },
        },
      )
      onChange?.(server.name, person)
      const old = tokensIn(before, server)
      if (old && !isSameGrant(old, tokens)) await oauth.revoke(server, old)
      return server.name
    },

    // Tools that a server has changed are not approved by connecting anew.
    end: (server, by) => end(server, by),
    list: (limit, after) => rows.list(limit, after),
    async endNamed(connection_id, find, by) {
      const row = await rows.named(connection_id)
      if (!row) return undefined
      const { person, server: name } = row
      return await end({ ...(find(name) ?? { name }), person }, by, pinnedAs(name, person))
    },
  }
}

/** Undefined: it is none to which people connect. */
export function personalServer({ servers }: Config['mcp'], name: string): OAuthServer | undefined {
  const { url, oauth_user } = (Object.hasOwn(servers, name) && servers[name]) || {}
  return oauth_user && { name, url, oauth_user }
}

/** Some issuers have one grant for a person and client: with old tokens of it, the new ones would be revoked. */
const isSameGrant = (old: UserTokens, next: UserTokens): boolean =>
  old.client_id === next.client_id && old.issuer.issuer === next.issuer.issuer

const EVENT = { object_type: 'mcp_connection' }

/** Another session of the same person cannot use the state either. */
const hashOf = (state: string, session_id: string): string => sha256(JSON.stringify([state, session_id]))

const refused = (why: string) =>
  new GatewayError('invalid_value', `The connection was not made: ${why}. Connect again.`)
