/** Connections of one client to servers with `per_session`, by which these reach the client while one of its calls is open. */
import { randomUUID } from 'node:crypto'
import type { ServerContext } from '@modelcontextprotocol/server'
import type { Call } from '../../calls/call.ts'
import type { McpSettings } from '../../config/config.ts'
import type { Clock } from '../../kit/clock.ts'
import type { ServedClient } from '../../providers/mcp/connect.ts'
import type { McpUpstream } from '../../providers/mcp/upstream.ts'
import { limitsOf } from '../../providers/mcp/upstream-fetch.ts'
import { GatewayError } from '../../spec/error.ts'
import { askThroughGuards, type Notices } from './guarded-messages.ts'
import { protocolError } from './rpc-errors.ts'

type Message = Record<string, unknown>

/** How a server reaches the client of one call. */
export type ClientChannel = {
  /** Of the request that is open, or was the last one. */
  context: ServerContext
  /** Aborted when the call ends without its result. */
  signal: AbortSignal
  ask(method: string, params: Message): Promise<Message>
}
type Capabilities = ServedClient['capabilities']
type Served = { channel: ClientChannel; call: Call; notices: Notices }
type Own = { base: McpUpstream; upstream: McpUpstream; open: Served[] }
/** `keep`: whether its server may be used again, since it has answered the call. */
type Used = { upstream: McpUpstream; keep: boolean; [Symbol.dispose](): void }

/** Requests of a server to the client at a time: a server could ask a person without end. */
const MAX_ASKED = 4

/** Roots are not passed on: a server would take the paths of a client for its own. */
export const capabilitiesOf = ({ sampling, elicitation }: Capabilities = {}): Capabilities => ({
  ...(sampling && { sampling: { ...(sampling.context && { context: {} }), ...(sampling.tools && { tools: {} }) } }),
  ...(elicitation && {
    elicitation: { ...(elicitation.form && { form: {} }), ...(elicitation.url && { url: {} }) },
  }),
})

function clientFor(open: Served[], capabilities: Capabilities): ServedClient {
  let asked = 0
  /** The protocol does not say for which of them a server asks: the guards of each check it. */
  const calls = () => open.map(({ call }) => call)
  return {
    capabilities,
    async request(method, params) {
      const { channel } = open.at(-1) ?? {}
      if (!channel) throw new Error('No call of the client is open.')
      if (asked >= MAX_ASKED) throw new Error('Too many requests to the client are open.')
      asked++
      try {
        return await askThroughGuards({ method, params, calls: calls() }, () => channel.ask(method, params))
      } catch (thrown) {
        throw protocolError(thrown)
      } finally {
        asked--
      }
    },
    log(params) {
      const { channel, notices } = open.at(-1) ?? {}
      const { level, logger } = params
      const send = () => channel?.context.mcpReq.log(level as never, params.data, logger).catch(() => {})
      notices?.log(params, calls(), send)
    },
  }
}

function ownOf(base: McpUpstream, capabilities: Capabilities): Own {
  const open: Served[] = []
  return { base, open, upstream: base.for(clientFor(open, capabilities)) }
}

/** Of one session. */
export function createOwnConnections(capabilities: () => Capabilities) {
  const known = new Map<string, Own>()
  return {
    close() {
      for (const { upstream } of known.values()) void upstream.close()
      known.clear()
    },
    /** For one call. */
    of(base: McpUpstream, served: Served): Used {
      let own = known.get(base.name)
      if (own?.base !== base) {
        void own?.upstream.close()
        own = ownOf(base, capabilities())
        known.set(base.name, own)
      }
      const { open, upstream } = own
      open.push(served)
      return { upstream, keep: true, [Symbol.dispose]: () => void open.splice(open.indexOf(served), 1) }
    },
  }
}

/** Asks the client of a session: by a request of its own. */
export const askSession = (context: ServerContext, { config }: McpUpstream): ClientChannel => {
  const { mcpReq } = context
  const options = { signal: mcpReq.signal, timeout: limitsOf(config ?? {}).call_ms }
  return {
    context,
    signal: mcpReq.signal,
    ask(method, params) {
      if (method !== 'elicitation/create') return mcpReq.requestSampling(params as never, options)
      // The protocol of the session requires an id, which servers of the current one do not send.
      const named = params.mode === 'url' ? { elicitationId: randomUUID(), ...params } : params
      return mcpReq.elicitInput(named as never, options)
    },
  }
}

/** How long a connection that is used no more may take to tell its server that the call is cancelled. */
const CANCEL_MILLISECONDS = 1_000

type Lease = { base: McpUpstream; token_id: string; capabilities: Capabilities }
type Leased = Own & { token_id: string; key: string; cancel?: (() => void) | undefined }

/** Of clients without sessions: by token, and used by one call at a time, so that it is known which call a server asks for. */
export function createLeasedConnections({ settings, clock }: { settings(): McpSettings; clock: Clock }) {
  const known = new Set<Leased>()

  function end(own: Leased): void {
    own.cancel?.()
    if (known.delete(own)) void own.upstream.close()
  }

  function makePlace(token_id: string): void {
    const { max_sessions, max_token_sessions } = settings()
    const idle = (own: Leased) => own.open.length === 0
    const ofToken = [...known].filter((own) => own.token_id === token_id)
    const crowded = ofToken.length >= max_token_sessions ? ofToken : known.size >= max_sessions ? [...known] : []
    if (crowded.length === 0) return
    const oldest = crowded.find(idle)
    if (oldest) {
      end(oldest)
      return
    }
    const code = crowded === ofToken ? 'rate_limit_exceeded' : 'server_is_overloaded'
    const message = 'Too many calls of MCP servers that may ask their client are open.'
    throw new GatewayError(code, message, { retry_after: 60 })
  }

  return {
    of({ base, token_id, capabilities }: Lease, served: Served): Used {
      const key = JSON.stringify([token_id, base.name, capabilities])
      const idle = [...known].filter((own) => own.key === key && own.open.length === 0)
      for (const own of idle) if (own.base !== base) end(own)
      let own = idle.find((one) => one.base === base)
      if (!own) {
        makePlace(token_id)
        own = { ...ownOf(base, capabilities), token_id, key }
      }
      own.cancel?.()
      // The one that was used last is the last one.
      known.delete(own)
      known.add(own)
      own.open.push(served)
      return {
        upstream: own.upstream,
        keep: false,
        [Symbol.dispose]() {
          own.open.pop()
          if (!this.keep) own.key = ''
          const left_ms = this.keep ? settings().idle_minutes * 60_000 : CANCEL_MILLISECONDS
          own.cancel = clock.after(left_ms, () => end(own))
        },
      }
    },
    close() {
      for (const own of [...known]) end(own)
    },
  }
}
