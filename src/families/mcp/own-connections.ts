/** The connections of one session to servers with `per_session`, by which these reach its client while one of its calls is open. */
import type { Server, ServerContext } from '@modelcontextprotocol/server'
import type { ServedClient } from '../../providers/mcp/connect.ts'
import type { McpUpstream } from '../../providers/mcp/upstream.ts'

type Own = { base: McpUpstream; upstream: McpUpstream; open: ServerContext[] }
type Used = { upstream: McpUpstream; [Symbol.dispose](): void }

/** Requests of a server to the client at a time: a server could ask a person without end. */
const MAX_ASKED = 4

export function createOwnConnections(server: Server) {
  const known = new Map<string, Own>()

  function clientFor(open: ServerContext[]): ServedClient {
    const { sampling, elicitation } = server.getClientCapabilities() ?? {}
    let asked = 0
    return {
      capabilities: { ...(sampling && { sampling }), ...(elicitation && { elicitation }) },
      async request(method, params) {
        // Of several calls, the last one: the protocol does not say for which of them a server asks.
        const { mcpReq } = open.at(-1) ?? {}
        if (!mcpReq) throw new Error('No call of the client is open.')
        if (asked >= MAX_ASKED) throw new Error('Too many requests to the client are open.')
        asked++
        try {
          return (await (method === 'elicitation/create'
            ? mcpReq.elicitInput(params as never, { signal: mcpReq.signal })
            : mcpReq.requestSampling(params as never, { signal: mcpReq.signal }))) as Record<string, unknown>
        } finally {
          asked--
        }
      },
      log: ({ level, data, logger }) =>
        void open
          .at(-1)
          ?.mcpReq.log(level as never, data, logger)
          .catch(() => {}),
    }
  }

  return {
    close() {
      for (const { upstream } of known.values()) void upstream.close()
      known.clear()
    },
    /** For one call. The connection of all clients where the server is configured so, or the client has no session. */
    of(base: McpUpstream, context: ServerContext): Used {
      if (!base.config?.per_session || context.sessionId === undefined) return { upstream: base, [Symbol.dispose]() {} }
      let own = known.get(base.name)
      if (own?.base !== base) {
        void own?.upstream.close()
        const open: ServerContext[] = []
        own = { base, open, upstream: base.for(clientFor(open)) }
        known.set(base.name, own)
      }
      const { open, upstream } = own
      open.push(context)
      return { upstream, [Symbol.dispose]: () => void open.splice(open.indexOf(context), 1) }
    },
  }
}
