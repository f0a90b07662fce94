/** The connections of one session to servers with `per_session`, by which these reach its client while one of its calls is open. */
import type { Server, ServerContext } from '@modelcontextprotocol/server'
import type { Call } from '../../calls/call.ts'
import type { ServedClient } from '../../providers/mcp/connect.ts'
import type { McpUpstream } from '../../providers/mcp/upstream.ts'
import { askThroughGuards, type Notices } from './guarded-messages.ts'
import { protocolError } from './rpc-errors.ts'

type Served = { context: ServerContext; call: Call; notices: Notices }
type Own = { base: McpUpstream; upstream: McpUpstream; open: Served[] }
type Used = { upstream: McpUpstream; [Symbol.dispose](): void }

/** Requests of a server to the client at a time: a server could ask a person without end. */
const MAX_ASKED = 4

export function createOwnConnections(server: Server) {
  const known = new Map<string, Own>()

  function clientFor(open: Served[]): ServedClient {
    const { sampling, elicitation } = server.getClientCapabilities() ?? {}
    let asked = 0
    /** The protocol does not say for which of them a server asks: the guards of each check it. */
    const calls = () => open.map(({ call }) => call)
    return {
      capabilities: { ...(sampling && { sampling }), ...(elicitation && { elicitation }) },
      async request(method, params) {
        const { mcpReq } = open.at(-1)?.context ?? {}
        if (!mcpReq) throw new Error('No call of the client is open.')
        if (asked >= MAX_ASKED) throw new Error('Too many requests to the client are open.')
        asked++
        const options = { signal: mcpReq.signal }
        const ask = () =>
          method === 'elicitation/create'
            ? mcpReq.elicitInput(params as never, options)
            : mcpReq.requestSampling(params as never, options)
        try {
          return await askThroughGuards({ method, params, calls: calls() }, ask)
        } catch (thrown) {
          throw protocolError(thrown)
        } finally {
          asked--
        }
      },
      log(params) {
        const { context, notices } = open.at(-1) ?? {}
        const { level, logger } = params
        notices?.log(params, calls(), () => context?.mcpReq.log(level as never, params.data, logger).catch(() => {}))
      },
    }
  }

  return {
    close() {
      for (const { upstream } of known.values()) void upstream.close()
      known.clear()
    },
    /** For one call. The connection of all clients where the server is configured so, or the client has no session. */
    of(base: McpUpstream, served: Served): Used {
      if (!base.config?.per_session || served.context.sessionId === undefined)
        return { upstream: base, [Symbol.dispose]() {} }
      let own = known.get(base.name)
      if (own?.base !== base) {
        void own?.upstream.close()
        const open: Served[] = []
        own = { base, open, upstream: base.for(clientFor(open)) }
        known.set(base.name, own)
      }
      const { open, upstream } = own
      open.push(served)
      return { upstream, [Symbol.dispose]: () => void open.splice(open.indexOf(served), 1) }
    },
  }
}
