/** Sessions of MCP clients: bounded in number and time, and known only to the token that opened them. */
import { type Server, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import type { McpSettings } from '../../../config/config.ts'
import type { Clock } from '../../../kit/clock.ts'
import { randomAlphanumerics } from '../../../kit/secret.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Caller } from '../../../spec/token.ts'
import { createEventStores, type SentEvents } from './sent-events.ts'

export type Session = {
  id: string
  token_id: string
  /** Who has opened it. */
  caller: Caller
  /** Of one server; undefined: of all. */
  scope: string | undefined
  server: Server
  transport: WebStandardStreamableHTTPServerTransport
  events: SentEvents
  /** By the steady clock. */
  used_at: number
  /** Requests and streams that are open. */
  open: number
}

type SessionsParts = {
  settings(): McpSettings
  create(scope: string | undefined): Server
  clock: Clock
}

type Owner = { token_id: string; scope: string | undefined }
type Opening = Owner & { caller: Caller }

type Handle = (transport: WebStandardStreamableHTTPServerTransport) => Promise<Response>

const SWEEP_MILLISECONDS = 60_000
/** The comments of the gateway's own streams keep connections alive. */
const TRANSPORT = { keepAliveMs: 0 }

export function createSessions({ settings, create, clock }: SessionsParts) {
  const sessions = new Map<string, Session>()
  const createEvents = createEventStores()
  let isSweeping = false
  /** Places of those that are about to be sessions. */
  let opening = 0

  function remove(session: Session): void {
    if (!sessions.delete(session.id)) return
    session.events.forget()
    void session.server.close()
  }

  function sweep(): void {
    isSweeping = false
    const least = clock.steady() - settings().idle_minutes * 60_000
    for (const session of [...sessions.values()]) if (session.open === 0 && session.used_at < least) remove(session)
    watch()
  }

  function watch(): void {
    if (isSweeping || sessions.size === 0) return
    isSweeping = true
    clock.after(SWEEP_MILLISECONDS, sweep)
  }

  /** Closes the oldest ones of a token, so that it has no more than `most`. */
  function limitOwn(token_id: string, most: number): void {
    const own = [...sessions.values()].filter((one) => one.token_id === token_id)
    const oldest = own.toSorted((a, b) => a.used_at - b.used_at)
    for (const session of oldest.slice(0, Math.max(0, own.length - most))) remove(session)
  }

  function makePlace(token_id: string): void {
    const { max_sessions, max_token_sessions } = settings()
    limitOwn(token_id, max_token_sessions - 1)
    if (sessions.size + opening < max_sessions) return
    throw new GatewayError('server_is_overloaded', 'The gateway has too many MCP sessions open; try again later.', {
      retry_after: 60,
    })
  }

  return {
    /** The session of this id; undefined: the token has none such at this path. */
    find(id: string, { token_id, scope }: Owner): Session | undefined {
      const session = sessions.get(id)
      if (session?.token_id !== token_id || session.scope !== scope) return undefined
      session.used_at = clock.steady()
      return session
    },
    /** `handle` gets a transport that becomes a session when its client is initialized. Rejects with server_is_overloaded. */
    async open({ token_id, scope, caller }: Opening, handle: Handle): Promise<Response> {
      makePlace(token_id)
      opening++
      let isOpening = true
      const opened = () => {
        if (isOpening) opening--
        isOpening = false
      }
      const server = create(scope)
      const events = createEvents()
      const transport = new WebStandardStreamableHTTPServerTransport({
        ...TRANSPORT,
        eventStore: events,
        sessionIdGenerator: () => `mcp_${randomAlphanumerics(32)}`,
        onsessioninitialized(id) {
          opened()
          sessions.set(id, { id, token_id, caller, scope, server, transport, events, used_at: clock.steady(), open: 0 })
          // Others may have been opened at the same time.
          limitOwn(token_id, settings().max_token_sessions)
          watch()
        },
        onsessionclosed(id) {
          events.forget()
          sessions.delete(id)
        },
      })
      try {
        await server.connect(transport)
        return await handle(transport)
      } finally {
        opened()
      }
    },
    /** A transport for one request. */
    async single(scope: string | undefined, asJson: boolean): Promise<WebStandardStreamableHTTPServerTransport> {
      const transport = new WebStandardStreamableHTTPServerTransport({ ...TRANSPORT, enableJsonResponse: asJson })
      await create(scope).connect(transport)
      return transport
    },
    /** Tells those sessions that see this server, and that `isFor` names, that its lists may have changed. */
    notify(name: string, isFor: (caller: Caller) => boolean): void {
      for (const { scope, server, caller } of sessions.values()) {
        if ((scope !== undefined && scope !== name) || !isFor(caller)) continue
        for (const send of [server.sendToolListChanged, server.sendPromptListChanged, server.sendResourceListChanged]) {
          send.call(server).catch(() => {}) // its client has no open stream
        }
      }
    },
    async close() {
      const open = [...sessions.values()]
      sessions.clear()
      await Promise.all(open.map(({ server }) => server.close()))
    },
  }
}
