/** Subscriptions to resources of servers, which several clients share. */
import { afterEach, describe, expect, it } from 'bun:test'
import { join } from 'node:path'
import { DEFAULT_MCP } from '../src/config/config.ts'
import type { McpServerConfig } from '../src/config/schema/mcp-schema.ts'
import { systemClock } from '../src/kit/clock.ts'
import { UNCONFINED_WITHOUT_LANDLOCK } from './kit/confined.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { BEFORE, CURRENT, type McpClient, mcpClient } from './kit/mcp.ts'
import { type McpVendor, startMcpVendor } from './kit/mcp-vendor.ts'

let gateway: TestGateway | undefined
let vendor: McpVendor | undefined
const clients: McpClient[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
  await gateway?.[Symbol.asyncDispose]()
  gateway = undefined
  await vendor?.stop()
  vendor = undefined
})

const program: McpServerConfig = {
  command: process.execPath,
  args: [join(import.meta.dir, 'kit/mcp-program.ts')],
  ...UNCONFINED_WITHOUT_LANDLOCK,
}

async function open(server: McpServerConfig, parts: Parameters<typeof startGateway>[1] = { clock: systemClock }) {
  const mcp = { ...DEFAULT_MCP, servers: { p: server } }
  gateway = await startGateway({ sandbox: false, mcp }, parts)
  return gateway
}

async function connect(opened: TestGateway, token?: string, version: typeof BEFORE | typeof CURRENT = BEFORE) {
  const client = await mcpClient(opened, { version, ...(token !== undefined && { token }) })
  clients.push(client)
  const seen: string[] = []
  let next = Promise.withResolvers<void>()
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    seen.push(params.uri)
    next.resolve()
  })
  const waited = async () => {
    await next.promise
    next = Promise.withResolvers()
  }
  return { client, seen, waited }
}

const URI = 'p+test://a'
const call = (client: McpClient, name: string) => client.callTool({ name: `p__${name}`, arguments: {} })
const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text

describe('a subscription of a session', () => {
  it('is passed to the server once, and its changes to all who have it', async () => {
    const opened = await open(program)
    const [one, two] = [await connect(opened), await connect(opened)]
    await Promise.all([one.client.subscribeResource({ uri: URI }), two.client.subscribeResource({ uri: URI })])
    await one.client.subscribeResource({ uri: URI })
    expect(textOf(await call(one.client, 'subscribed'))).toBe('test://a')
    await call(one.client, 'touch')
    await Promise.all([one.waited(), two.waited()])
    expect([one.seen, two.seen]).toEqual([[URI], [URI]])
    await one.client.unsubscribeResource({ uri: URI })
    expect(textOf(await call(one.client, 'subscribed'))).toBe('test://a')
    await call(one.client, 'touch')
    await two.waited()
    expect([one.seen.length, two.seen.length]).toEqual([1, 2])
    await two.client.unsubscribeResource({ uri: URI })
    expect(textOf(await call(one.client, 'subscribed'))).toBe('')
  })

  it('ends with its session', async () => {
    const opened = await open(program)
    const [one, two] = [await connect(opened), await connect(opened)]
    await one.client.subscribeResource({ uri: URI })
    await one.client.transportOf.terminateSession()
    expect(textOf(await call(two.client, 'subscribed'))).toBe('')
  })

  it('is announced once for many changes at a time', async () => {
    const opened = await open(program, {})
    const { client, seen, waited } = await connect(opened)
    await client.subscribeResource({ uri: URI })
    for (const name of ['touch_often', 'touch']) {
      await call(client, name) // its result comes after its changes
      opened.clock.advance(100)
      await waited()
    }
    expect(seen).toEqual([URI, URI])
  })

  it('that the client has ended while the server was away is not made again, nor is the server connected to', async () => {
    vendor = startMcpVendor()
    vendor.capabilities = { tools: {}, resources: { subscribe: true } }
    const opened = await open({ url: vendor.url }, {})
    const { client } = await connect(opened)
    for (const ends of [false, true]) {
      const { url } = vendor
      vendor.intercept = undefined
      if (ends) opened.clock.advance(31_000)
      await client.subscribeResource({ uri: URI })
      const isCut = Promise.withResolvers<void>()
      vendor.intercept = (request) => {
        isCut.resolve()
        return request.url === url ? new Response('gone', { status: 404 }) : undefined
      }
      await client.callTool({ name: 'p__act', arguments: {} }).catch(() => {})
      await isCut.promise
      // No attempt waits any more after the last failure.
      opened.clock.advance(10_000)
      const before = vendor.headers.length
      if (ends) await client.unsubscribeResource({ uri: URI })
      opened.clock.advance(31_000)
      for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
      if (ends) expect(vendor.headers.length).toBe(before)
      else expect(vendor.headers.length).toBeGreaterThan(before)
    }
  })

  it('is refused for a resource that the server or the caller has not, and for more than 100', async () => {
    const opened = await open({ ...program, tokens: ['tok_0000000000000000'] })
    const { client } = await connect(opened)
    await expect(client.subscribeResource({ uri: URI })).rejects.toMatchObject({ code: -32602 })
    await gateway?.[Symbol.asyncDispose]()
    const { client: allowed } = await connect(await open(program))
    await expect(allowed.subscribeResource({ uri: 'p+test://none' })).rejects.toThrow('no such resource')
    for (let count = 0; count < 100; count++) await allowed.subscribeResource({ uri: `p+test://a/${count}` })
    await expect(allowed.subscribeResource({ uri: URI })).rejects.toThrow('100')
  })

  it('is refused without a session', async () => {
    const opened = await open(program)
    const json = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: URI } }
    expect(await (await opened.call('/mcp', { json })).text()).toContain('need a session')
  })
})

describe('a subscription without a session', () => {
  it('is that of a stream of notifications, for who may use the server', async () => {
    vendor = startMcpVendor()
    vendor.capabilities = { tools: {}, resources: { subscribe: true } }
    const opened = await open({ url: vendor.url })
    const { client, seen, waited } = await connect(opened, undefined, CURRENT)
    const filter = { resourceSubscriptions: [URI, 'other+test://b'] }
    const stream = await client.listen(filter)
    expect(stream.honoredFilter.resourceSubscriptions).toEqual([URI])
    vendor.notify.resourceUpdated('test://a')
    await waited()
    expect(seen).toEqual([URI])
    await stream.close()
  })
})
