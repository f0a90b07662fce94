/** MCP servers in the admin API: whether each is connected, since when one fails and why, and the first connection. */
import { expect, test } from 'bun:test'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { startAdminGateway } from './kit/admin.ts'
import { say, startMcpVendor } from './kit/mcp-vendor.ts'

const KEY = 'a-secret-key-of-the-server'
type Server = {
  server: string
  state: string
  tools: number | null
  failing_since: number | null
  error: string | null
}

test('lists servers with their state, connects to one, and says since when it fails', async () => {
  const vendor = startMcpVendor()
  let status = 503
  vendor.intercept = () => (status === 200 ? undefined : new Response(`your key is ${KEY}`, { status }))
  await using gateway = await startAdminGateway({
    sandbox: true,
    mcp: {
      ...DEFAULT_MCP,
      approve: 'manual',
      servers: { v: { url: `${vendor.url}?token=in-the-address`, key: KEY, headers: { 'x-team': 'a' } } },
    },
  })
  const list = async () => (await gateway.read<{ data: Server[] }>('/mcp/servers')).data
  const connect = async (server: string) => {
    const response = await gateway.admin(`/mcp/servers/${server}/connect`, { json: {} })
    return { status: response.status, body: (await response.json()) as Server }
  }
  const origin = new URL(vendor.url).origin
  expect(await list()).toMatchObject([
    { server: 'sandbox', kind: 'built in', address: null, state: 'idle' },
    { server: 'v', kind: 'http', address: origin, state: 'idle', failing_since: null, error: null, tools: null },
  ])

  const failed = await connect('v')
  const since = Math.floor(gateway.clock.now() / 1000)
  expect(failed).toMatchObject({ status: 200, body: { state: 'failing', failing_since: since } })
  expect(failed.body.error).toContain('"v"')
  gateway.clock.advance(60_000)
  expect((await connect('v')).body).toMatchObject({ state: 'failing', failing_since: since })
  expect(JSON.stringify(await list())).not.toMatch(new RegExp(`${KEY}|in-the-address`))

  status = 200
  vendor.answer = () => say('done')
  gateway.clock.advance(60_000)
  const up = { state: 'connected', failing_since: null, error: null, tools: vendor.tools.length }
  expect((await connect('v')).body).toMatchObject(up)
  // Its tools can be approved before a client has come.
  const { data: tools } = await gateway.read<{ data: { server: string; state: string }[] }>('/mcp/tools')
  expect(tools.filter(({ server }) => server === 'v').map(({ state }) => state)).toEqual(['pending'])
  expect(await list()).toMatchObject([{ server: 'sandbox' }, up])
  expect((await connect('other')).status).toBe(404)
  await vendor.stop()
})
