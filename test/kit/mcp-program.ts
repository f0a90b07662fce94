/** An MCP server as a program, which tests start: it says its environment, waits, dies, or floods. */
import { ProtocolError, Server } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'

const NAMES = [
  'environment',
  'process',
  'wait',
  'die',
  'flood',
  'large',
  'at_once',
  'ask',
  'sample',
  'log',
  'touch',
  'touch_often',
  'touch_below',
  'subscribed',
]
const server = new Server(
  { name: 'program', version: '1' },
  { capabilities: { tools: {}, logging: {}, resources: { subscribe: true } } },
)
const subscribed = new Set<string>()
const say = (text: string) => ({ content: [{ type: 'text' as const, text }] })

server.setRequestHandler('tools/list', () => ({
  tools: NAMES.map((name) => ({ name, description: name, inputSchema: { type: 'object' as const } })),
}))
server.setRequestHandler('tools/call', async ({ params: { name } }, { mcpReq }) => {
  if (name === 'ask') {
    const requestedSchema = { type: 'object' as const, properties: { city: { type: 'string' as const } } }
    return say(JSON.stringify(await mcpReq.elicitInput({ message: 'Which city?', requestedSchema })))
  }
  if (name === 'sample') {
    const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'Name a city.' } }]
    return say(JSON.stringify(await mcpReq.requestSampling({ messages, maxTokens: 10 })))
  }
  if (name === 'log') {
    await mcpReq.log('warning', 'be careful')
    return say('logged')
  }
  if (name === 'touch_below') {
    for (const uri of subscribed) await server.sendResourceUpdated({ uri: `${uri}/falcon-4711` })
    return say('touched')
  }
  if (name.startsWith('touch')) {
    for (let count = 0; count < (name === 'touch' ? 1 : 1_000); count++) {
      for (const uri of subscribed) await server.sendResourceUpdated({ uri })
    }
    return say('touched')
  }
  if (name === 'subscribed') return say([...subscribed].join())
  if (name === 'environment') return say(JSON.stringify(process.env))
  if (name === 'process') return say(String(process.pid))
  if (name === 'die') process.exit(3)
  if (name === 'at_once') {
    const params = { progressToken: mcpReq._meta?.progressToken, progress: 1 }
    const messages = [
      { method: 'notifications/progress', params },
      { id: mcpReq.id, result: say('done') },
    ]
    process.stdout.write(messages.map((one) => `${JSON.stringify({ jsonrpc: '2.0', ...one })}\n`).join(''))
  }
  if (name === 'large') return say('x'.repeat(2_000_000))
  if (name === 'flood') {
    for (;;) {
      process.stdout.write('no JSON at all '.repeat(10_000))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return new Promise(() => {})
})
server.setRequestHandler('resources/list', () => ({ resources: [{ uri: 'test://a', name: 'a' }] }))
server.setRequestHandler('resources/subscribe', ({ params }) => {
  if (!params.uri.startsWith('test://a')) throw new ProtocolError(-32002, 'There is no such resource.')
  subscribed.add(params.uri)
  return {}
})
server.setRequestHandler('resources/unsubscribe', ({ params }) => {
  subscribed.delete(params.uri)
  return {}
})
process.stderr.write(`started with ${process.env.MY_KEY}\n`)
await server.connect(new StdioServerTransport())
