/** An MCP server with sessions on loopback, whose only tool does what a test says: it may ask the client, log and report. */
import { Server, type ServerContext, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { say, tool } from './mcp-vendor.ts'

type Act = (mcpReq: ServerContext['mcpReq'], given: Record<string, unknown>, name: string) => object | Promise<object>

export type AskingServer = { url: string; act: Act; sessions(): number; stop(): Promise<void> }

export function startAskingServer(): AskingServer {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const create = () => {
    const made = new Server({ name: 'asking', version: '1' }, { capabilities: { tools: {}, logging: {} } })
    made.setRequestHandler('tools/list', () => ({ tools: [tool('act'), tool('other')] }))
    made.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      return (await server.act(mcpReq, params.arguments ?? {}, params.name)) as never
    })
    return made
  }
  const http = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const known = sessions.get(request.headers.get('mcp-session-id') ?? '')
      if (known) return known.handleRequest(request)
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, transport),
      })
      await create().connect(transport)
      return transport.handleRequest(request)
    },
  })
  const server: AskingServer = {
    url: `http://127.0.0.1:${http.port}/mcp`,
    act: () => say('done'),
    sessions: () => sessions.size,
    stop: () => http.stop(true),
  }
  return server
}
