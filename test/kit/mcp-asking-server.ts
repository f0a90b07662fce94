/** An MCP server with sessions on loopback, whose tool, prompt and resource do what a test says: ask the client, log, report. */
import { Server, type ServerContext, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { say, tool } from './mcp-vendor.ts'

type Act = (mcpReq: ServerContext['mcpReq'], given: Record<string, unknown>, name: string) => object | Promise<object>

export type AskingServer = { url: string; act: Act; sessions(): number; stop(): Promise<void> }

const URI = 'test://a'
/** What a tool would say, as a prompt or a resource; a question as it is. */
export const promptOf = (said: object) =>
  ('content' in said ? { messages: [{ role: 'user', content: (said.content as object[])[0] }] } : said) as never
export const contentsOf = (said: object) =>
  ('content' in said ? { contents: (said.content as object[]).map((one) => ({ ...one, uri: URI })) } : said) as never

export function startAskingServer(): AskingServer {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const create = () => {
    const capabilities = { tools: {}, logging: {}, prompts: {}, resources: {} }
    const made = new Server({ name: 'asking', version: '1' }, { capabilities })
    made.setRequestHandler('tools/list', () => ({ tools: [tool('act'), tool('other')] }))
    made.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      return (await server.act(mcpReq, params.arguments ?? {}, params.name)) as never
    })
    made.setRequestHandler('prompts/list', () => ({ prompts: [{ name: 'act' }] }))
    made.setRequestHandler('prompts/get', async (_, { mcpReq }) => promptOf(await server.act(mcpReq, {}, 'act')))
    made.setRequestHandler('resources/list', () => ({ resources: [{ uri: URI, name: 'act' }] }))
    made.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }))
    made.setRequestHandler('resources/read', async (_, { mcpReq }) => contentsOf(await server.act(mcpReq, {}, 'act')))
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
