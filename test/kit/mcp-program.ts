/** An MCP server as a program, which tests start: it says its environment, waits, dies, or floods. */
import { Server } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'

const NAMES = ['environment', 'process', 'wait', 'die', 'flood', 'large']
const server = new Server({ name: 'program', version: '1' }, { capabilities: { tools: {} } })
const say = (text: string) => ({ content: [{ type: 'text' as const, text }] })

server.setRequestHandler('tools/list', () => ({
  tools: NAMES.map((name) => ({ name, description: name, inputSchema: { type: 'object' as const } })),
}))
server.setRequestHandler('tools/call', async ({ params: { name } }) => {
  if (name === 'environment') return say(JSON.stringify(process.env))
  if (name === 'process') return say(String(process.pid))
  if (name === 'die') process.exit(3)
  if (name === 'large') return say('x'.repeat(2_000_000))
  if (name === 'flood') {
    for (;;) {
      process.stdout.write('no JSON at all '.repeat(10_000))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return new Promise(() => {})
})
process.stderr.write(`started with ${process.env.MY_KEY}\n`)
await server.connect(new StdioServerTransport())
