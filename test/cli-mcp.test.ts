/** `gatehouse mcp` on a running gateway: lists tools with what has changed, and approves them. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/commands/mcp.ts'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { openStore } from '../src/store/open-store.ts'
import { OWNER } from './kit/admin.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { mcpClient } from './kit/mcp.ts'
import { type McpVendor, startMcpVendor, tool } from './kit/mcp-vendor.ts'
import { collectingTerminal } from './kit/terminal.ts'

let vendor: McpVendor
let gateway: TestGateway
let store_url: string
let server: ReturnType<typeof Bun.serve>
beforeEach(async () => {
  vendor = startMcpVendor()
  vendor.tools = [tool('act'), tool('odd\u001b[2J')]
  const mcp = {
    ...DEFAULT_MCP,
    approve: 'manual' as const,
    servers: { v: { url: vendor.url }, free: { command: 'x', sandbox: 'off' as const }, kept: { command: 'x' } },
  }
  store_url = `sqlite:${join(tmpdir(), `gatehouse-cli-mcp-${process.pid}-${crypto.randomUUID()}.db`)}`
  gateway = await startGateway({ admin_token: OWNER, mcp }, { clock: systemClock, store_url })
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => gateway.instance.fetch(request) })
})
afterEach(async () => {
  await server.stop(true)
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

async function mcp(line: string) {
  const environment = { GATEHOUSE_URL: `http://127.0.0.1:${server.port}`, GATEHOUSE_ADMIN_TOKEN: OWNER }
  const { terminal, printed } = collectingTerminal({ cwd: '/', environment })
  const code = await run(line.split(' '), terminal).catch((error: Error) => error.message)
  return { code, out: printed.out }
}

describe('gatehouse mcp', () => {
  it('lists what was seen, and approves one tool, then all of a server', async () => {
    const first = (await mcp('list')).out
    expect(first).toMatch(/sandbox +calculator +approved +built in/)
    expect(first).toMatch(/PROGRAM +SANDBOX\nfree +off *\nkept +(on: network any|not possible here)/)
    await using client = await mcpClient(gateway)
    await client.listTools()
    const { out } = await mcp('list')
    expect(out).toMatch(/v +act +pending/)
    expect(out).not.toContain('\u001b[2J')
    expect((await mcp('approve v/act')).out).toBe('v/act is approved.\n')
    expect((await mcp('list')).out).toMatch(/v +act +approved +environment/)
    expect((await mcp('approve v')).out).toBe('v/odd?[2J is approved.\n')
    expect((await mcp('approve v')).out).toBe('Everything is approved as it is.\n')
    expect((await mcp('approve v/none')).code).toBe('No tool "none" of "v" was seen. See: gatehouse mcp list')
  })
  it('approves a tool for all people who have accounts of their own at the server', async () => {
    const store = await openStore({ url: store_url })
    const seen = { tool: 'act', definition: '{}', seen_at: 1 }
    const rows = ['v:ada', 'v:bob', 'v2:ada'].map((server) => ({ ...seen, server, hash: server }))
    await store.mcpTools.see(rows, undefined)
    expect((await mcp('approve v:bob/act')).out).toBe('v:bob/act is approved.\n')
    expect((await mcp('approve v/act')).out).toBe('v:ada/act is approved.\n')
    expect((await mcp('list')).out).toMatch(/v2:ada +act +pending/)
    await store.close()
  })

  it('lists people who have accounts of their own at servers, and disconnects one', async () => {
    expect((await mcp('people')).out).toBe('Nobody has connected an account.\n')
    const store = await openStore({ url: store_url })
    const audit = { actor: 'gateway', action: 'test', object_type: 'test', object_id: 'v', at_ms: 1 }
    const made = { connection_id: 'mcpc_1', sealed: 'x.y', connected_at: 1_700_000_000 }
    const key = { person: 'ada https://login.example.com', server: 'v' }
    await store.mcpConnections.connect(key, made, audit)
    expect((await mcp('people')).out).toMatch(/mcpc_1 +v +ada +connected +2023-11-14T22:13:20.000Z +-/)
    expect((await mcp('disconnect mcpc_2')).code).toContain('mcpc_2')
    expect((await mcp('disconnect mcpc_1')).out).toBe(
      'mcpc_1 has ended: its tokens are deleted here; they were not revoked.\n',
    )
    expect(await store.mcpConnections.find(key)).toBeUndefined()
    await store.close()
  })
})
