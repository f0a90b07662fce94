/** Operations of an HTTP API as tools, by its OpenAPI document. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type McpClient, mcpClient } from './kit/mcp.ts'

const KEY = 'a-secret-key-of-the-api'
const documented = () => ({
  openapi: '3.1.0',
  paths: {
    '/orders/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      get: {
        operationId: 'getOrder',
        summary: 'One order.',
        parameters: [
          { name: 'fields', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
          { name: 'X-Region', in: 'header', schema: { type: 'string' } },
          { name: 'Authorization', in: 'header', schema: { type: 'string' } },
        ],
      },
      patch: {
        operationId: 'changeOrder',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } },
        },
      },
      delete: { operationId: 'removeOrder' },
    },
    '/tree': {
      get: {
        operationId: 'getTree',
        parameters: [{ name: 'at', in: 'query', schema: { $ref: '#/components/schemas/Tree' } }],
      },
    },
    '/nameless': { get: { summary: 'It has no id.' } },
  },
  components: {
    schemas: {
      Order: { type: 'object', properties: { note: { type: 'string' } } },
      Tree: {
        type: 'object',
        properties: { left: { $ref: '#/components/schemas/Tree' }, right: { $ref: '#/components/schemas/Tree' } },
      },
    },
  },
})

let received: { method: string; url: URL; headers: Headers; body: string }[]
let answer: (path: string) => Response | Promise<Response>
let document: unknown
let api: ReturnType<typeof Bun.serve>
let gateway: TestGateway
let client: McpClient
beforeEach(async () => {
  received = []
  document = documented()
  answer = () => Response.json({ id: 7 })
  api = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const url = new URL(request.url)
      if (url.pathname === '/openapi.json') return Response.json(document)
      received.push({ method: request.method, url, headers: request.headers, body: await request.text() })
      return answer(url.pathname)
    },
  })
  const base_url = `http://127.0.0.1:${api.port}/v2`
  const openapi = {
    document: `http://127.0.0.1:${api.port}/openapi.json`,
    base_url,
    operations: ['get*', 'changeOrder', 'nameless'],
  }
  const servers = { shop: { openapi, key: KEY, max_result_bytes: 10_000, call_seconds: 2 } }
  gateway = await startGateway({ sandbox: false, mcp: { ...DEFAULT_MCP, servers } }, { clock: systemClock })
  client = await mcpClient(gateway)
})
afterEach(async () => {
  await client.close()
  await gateway[Symbol.asyncDispose]()
  await api.stop(true)
})

const call = (name: string, args: Record<string, unknown>) =>
  client.callTool({ name: `shop__${name}`, arguments: args })

describe('an HTTP API', () => {
  it('has its chosen operations as tools, with their parameters', async () => {
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['shop__getOrder', 'shop__changeOrder', 'shop__getTree'])
    expect(tools[0]).toMatchObject({
      description: 'One order.',
      inputSchema: {
        properties: { id: { type: 'string' }, fields: { type: 'array' }, 'X-Region': {} },
        required: ['id'],
      },
      annotations: { readOnlyHint: true },
    })
    expect(tools[0]?.inputSchema.properties).not.toHaveProperty('Authorization')
    expect(tools[1]).toMatchObject({
      inputSchema: { properties: { body: { properties: { note: { type: 'string' } } } }, required: ['id', 'body'] },
    })
  })

  it('gets the request of the operation, with the key of the operator', async () => {
    const result = await call('getOrder', {
      id: 'a/b?c',
      fields: ['x', 'y'],
      'X-Region': 'eu',
      Authorization: 'Bearer mine',
    })
    expect(result).toMatchObject({ structuredContent: { id: 7 } })
    const [request] = received
    expect(`${request?.method} ${request?.url.pathname}${request?.url.search}`).toBe(
      'GET /v2/orders/a%2Fb%3Fc?fields=x&fields=y',
    )
    expect(request?.headers.get('x-region')).toBe('eu')
    expect(request?.headers.get('authorization')).toBe(`Bearer ${KEY}`)
    await call('changeOrder', { id: 7, body: { note: 'x' } })
    expect(received.at(-1)).toMatchObject({ method: 'PATCH', body: '{"note":"x"}' })
  })

  it('is reached at no other path and by no other operation', async () => {
    for (const id of ['..', '.', '%2e%2e', '7/../8', '', undefined]) {
      expect(await call('getOrder', { id })).toMatchObject({ isError: true })
    }
    await expect(call('removeOrder', { id: 7 })).rejects.toMatchObject({ code: -32602 })
    expect(received).toEqual([])
  })

  it('whose answer is an error, too long, late or has the key is reported', async () => {
    answer = () => Response.json({ why: 'no such order' }, { status: 404 })
    expect(await call('getOrder', { id: 1 })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('404') }],
    })
    answer = () => Response.json({ text: 'x'.repeat(100_000) })
    expect(await call('getOrder', { id: 1 })).toMatchObject({ isError: true })
    answer = () => new Promise(() => {})
    expect(await call('getOrder', { id: 1 })).toMatchObject({ isError: true })
    answer = () => new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/' } })
    expect(await call('getOrder', { id: 1 })).toMatchObject({ isError: true })
    answer = () => Response.json({ key: KEY })
    expect(JSON.stringify(await call('getOrder', { id: 1 }))).not.toContain(KEY)
  })

  it('whose document refers to itself is listed within bounds', async () => {
    const { tools } = await client.listTools()
    expect(JSON.stringify(tools).length).toBeLessThan(200_000)
  })
})
