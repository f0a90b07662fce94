/** An MCP server that is away for many minutes and returns, by a clock that the test moves. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { CURRENT, type McpClient, mcpClient } from './kit/mcp.ts'
import { type McpVendor, startMcpVendor } from './kit/mcp-vendor.ts'

let vendor: McpVendor
let gateway: TestGateway
beforeEach(async () => {
  vendor = startMcpVendor()
  gateway = await startGateway({ mcp: { ...DEFAULT_MCP, servers: { v: { url: vendor.url } } } })
})
afterEach(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

const act = (client: McpClient) => client.callTool({ name: 'v__act', arguments: {} })
const isOffered = async (client: McpClient) => (await client.listTools()).tools.some(({ name }) => name === 'v__act')
const DONE = { content: [{ text: 'done' }] }

describe('a server that is away for 20 minutes', () => {
  it('is asked once in 30 seconds, beside others that work, and is used again in the same session', async () => {
    await using client = await mcpClient(gateway)
    expect(await act(client)).toMatchObject(DONE)
    expect(vendor.calls).toBe(1)
    vendor.intercept = () => new Response('away', { status: 503 })
    gateway.clock.advance(61_000)
    for (let minute = 0; minute < 20; minute++) {
      const before = vendor.headers.length
      for (let attempt = 0; attempt < 5; attempt++) {
        expect(await act(client)).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('"v"') }] })
        expect(await isOffered(client)).toBe(false)
      }
      expect(vendor.headers.length - before).toBeLessThanOrEqual(3)
      const six = await client.callTool({ name: 'sandbox__calculator', arguments: { expression: '6 * 7' } })
      expect(six).toMatchObject({ structuredContent: { result: 42 } })
      gateway.clock.advance(60_000)
    }
    expect(await act(client)).toMatchObject({ isError: true })
    vendor.intercept = undefined
    expect(await act(client)).toMatchObject({ isError: true })
    gateway.clock.advance(30_000)
    expect(await act(client)).toMatchObject(DONE)
    expect(await isOffered(client)).toBe(true)
    expect(vendor.calls).toBe(2)
    await using current = await mcpClient(gateway, { version: CURRENT })
    expect(await act(current)).toMatchObject(DONE)
    const succeeded = async () => {
      const rows = (await gateway.instance.usage({ limit: 9 })).filter(({ model }) => model === 'mcp/v/act')
      return rows.reduce((sum, { requests, errors }) => sum + requests - errors, 0)
    }
    while ((await succeeded()) < 3) {
      gateway.clock.advance(60) // the ledger appends in batches, by the test's clock
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await succeeded()).toBe(3)
  }, 120_000) // some 450 requests, which take long on a machine that is busy with other work
})
