/** An MCP client of the official SDK at a gateway in memory. */
import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { TestGateway } from './gateway.ts'

export const CURRENT = '2026-07-28'
export const BEFORE = '2025-11-25'

type ClientParts = {
  path?: string
  token?: string
  /** Default: the version before the current one, with a session. */
  version?: typeof CURRENT | typeof BEFORE
  onToolsChanged?: () => void
  capabilities?: ClientCapabilities
}

export type McpClient = Client & {
  readonly transportOf: StreamableHTTPClientTransport
  [Symbol.asyncDispose](): Promise<void>
}

export async function mcpClient(gateway: TestGateway, parts: ClientParts = {}): Promise<McpClient> {
  const { path = '/mcp', token = gateway.token, version = BEFORE, onToolsChanged, capabilities = {} } = parts
  const client = new Client(
    { name: 'test', version: '1' },
    {
      capabilities,
      ...(version === CURRENT && { versionNegotiation: { mode: { pin: CURRENT } } }),
      ...(onToolsChanged && { listChanged: { tools: { autoRefresh: false, onChanged: onToolsChanged } } }),
    },
  )
  const transport = new StreamableHTTPClientTransport(new URL(`http://gatehouse.test${path}`), {
    fetch: (url, init) => gateway.instance.fetch(new Request(url, init)),
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  })
  await client.connect(transport)
  return Object.assign(client, { transportOf: transport, [Symbol.asyncDispose]: () => client.close() })
}
