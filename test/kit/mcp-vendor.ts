/** An MCP server of the official SDK on loopback, whose tools a test defines, and which can misbehave. */
import {
  createMcpHandler,
  isLegacyRequest,
  Server,
  type ServerCapabilities,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'

type Tool = { name: string; description: string; inputSchema: { type: 'object' } }
type Answer = (
  given: Record<string, unknown>,
  signal: AbortSignal,
  mcpReq: ServerContext['mcpReq'],
) => object | Promise<object>

export type McpVendor = {
  url: string
  capabilities: ServerCapabilities
  /** What `tools/list` returns; assign it to change it. */
  tools: Tool[]
  /** The same of the other lists, where it has the capability. */
  resources: object[]
  templates: object[]
  prompts: object[]
  answer: Answer
  /** Where it has the capability of resources, prompts or completions, one of each: `test://a` and `review`. */
  read: (mcpReq: ServerContext['mcpReq']) => object | Promise<object>
  prompt: (given: Record<string, string>, mcpReq: ServerContext['mcpReq']) => object | Promise<object>
  complete: () => object
  /** What was asked of these: methods with their parameters. */
  asked: [string, object][]
  /** Headers of the requests that came. */
  headers: Headers[]
  /** How many calls of tools came. */
  calls: number
  /** Instead of the server; undefined: the server answers. */
  intercept: ((request: Request, body: unknown) => Response | Promise<Response> | undefined) | undefined
  /** Of clients of the current protocol. */
  notify: ReturnType<typeof createMcpHandler>['notify']
  stop(): Promise<void>
}

export const tool = (name: string, description = 'Does something.'): Tool => ({
  name,
  description,
  inputSchema: { type: 'object' },
})

export const say = (text: string) => ({ content: [{ type: 'text', text }] })

export function startMcpVendor(): McpVendor {
  const create = () => {
    const server = new Server({ name: 'vendor', version: '1' }, { capabilities: vendor.capabilities })
    server.setRequestHandler('tools/list', () => ({ tools: vendor.tools }))
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      vendor.calls++
      return (await vendor.answer(params.arguments ?? {}, mcpReq.signal, mcpReq)) as never
    })
    if (vendor.capabilities.resources) {
      server.setRequestHandler('resources/list', () => ({ resources: vendor.resources }) as never)
      server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: vendor.templates }) as never)
      server.setRequestHandler('resources/read', ({ params }, { mcpReq }) => {
        vendor.asked.push(['resources/read', params])
        return vendor.read(mcpReq) as never
      })
    }
    if (vendor.capabilities.prompts) {
      server.setRequestHandler('prompts/list', () => ({ prompts: vendor.prompts }) as never)
      server.setRequestHandler('prompts/get', ({ params }, { mcpReq }) => {
        vendor.asked.push(['prompts/get', params])
        return vendor.prompt(params.arguments ?? {}, mcpReq) as never
      })
    }
    if (vendor.capabilities.completions) {
      server.setRequestHandler('completion/complete', ({ params }) => {
        vendor.asked.push(['completion/complete', params])
        return vendor.complete() as never
      })
    }
    return server
  }
  const modern = createMcpHandler(create, { legacy: 'reject' })
  const http = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      vendor.headers.push(request.headers)
      const body = request.method === 'POST' ? await request.json() : undefined
      const own = await vendor.intercept?.(request, body)
      if (own) return own
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      if (!(await isLegacyRequest(request, body))) return modern.fetch(request, { parsedBody: body })
      const transport = new WebStandardStreamableHTTPServerTransport({})
      await create().connect(transport)
      return transport.handleRequest(request, { parsedBody: body })
    },
  })
  const vendor: McpVendor = {
    url: `http://127.0.0.1:${http.port}/mcp`,
    capabilities: { tools: {} },
    tools: [tool('act')],
    resources: [{ uri: 'test://a', name: 'a' }],
    templates: [],
    prompts: [{ name: 'review' }],
    answer: () => say('done'),
    read: () => ({ contents: [{ uri: 'test://a', text: 'text' }] }),
    prompt: () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'prompt' } }] }),
    complete: () => ({ completion: { values: ['value'] } }),
    asked: [],
    headers: [],
    calls: 0,
    intercept: undefined,
    notify: modern.notify,
    stop: () => http.stop(true),
  }
  return vendor
}
