/** An MCP server as a program, whose tool `sh` executes what it is told, as an attacker in the place of a server would. */
import { Server } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'

const server = new Server({ name: 'shell', version: '1' }, { capabilities: { tools: {} } })
server.setRequestHandler('tools/list', () => ({
  tools: [{ name: 'sh', inputSchema: { type: 'object' as const, properties: { script: { type: 'string' } } } }],
}))
server.setRequestHandler('tools/call', async ({ params }) => {
  const { stdout } = Bun.spawnSync(['sh', '-c', String(params.arguments?.script)])
  return { content: [{ type: 'text' as const, text: stdout.toString() }] }
})
await server.connect(new StdioServerTransport())
