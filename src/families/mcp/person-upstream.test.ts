import { expect, it } from 'bun:test'
import { systemClock } from '../../kit/clock.ts'
import type { McpConnections } from './connections.ts'
import { createPersonUpstream } from './person-upstream.ts'

it('a server that is closed while a connection is looked for opens none', async () => {
  const found = Promise.withResolvers<string>()
  let tokens = 0
  const connections = {
    require: () => found.promise,
    token: () => {
      tokens++
      return { current: async () => 'token', drop() {} }
    },
  } as unknown as McpConnections
  const config = { url: 'http://127.0.0.1:1/mcp', oauth_user: {} }
  const idle_ms = () => 60_000
  const parts = { name: 'v', config, version: '1', clock: systemClock, idle_ms, log: {}, transport: {}, onChanged() {} }
  const upstream = createPersonUpstream(parts as never, 'ada', connections)
  const asking = upstream.offer()
  await upstream.close()
  found.resolve('mcpc_1')
  await expect(asking).rejects.toMatchObject({ code: 'shutting_down' })
  expect(tokens).toBe(0)
})
