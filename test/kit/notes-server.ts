/** An MCP server on standard input and output with one tool, which reads a note. */
import { createInterface } from 'node:readline'

const TOOLS = [
  {
    name: 'read_note',
    description: 'Reads a note.',
    inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
  },
]

type Call = { id?: number; method: string; params?: { protocolVersion?: string; arguments?: { id?: string } } }

function answerTo({ method, params }: Call): object {
  if (method === 'initialize') {
    const serverInfo = { name: 'notes', version: '1.0.0' }
    return { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo }
  }
  if (method === 'tools/list') return { tools: TOOLS }
  if (method === 'tools/call') {
    return { content: [{ type: 'text', text: `Note ${params?.arguments?.id} says: blue.` }] }
  }
  return {}
}

for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line) as Call
  if (call.id === undefined) continue
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: call.id, result: answerTo(call) })}\n`)
}
