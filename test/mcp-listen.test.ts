/** Streams of notifications without a session, whose clients leave at the worst time. */
import { expect, it } from 'bun:test'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { CURRENT, mcpClient } from './kit/mcp.ts'
import { startMcpVendor } from './kit/mcp-vendor.ts'

const URI = 'p+test://a'

it('a stream of notifications leaves its place where the client leaves before it has read, or while it is set up', async () => {
  const vendor = startMcpVendor()
  vendor.capabilities = { tools: {}, resources: { subscribe: true } }
  await using opened = await startGateway(
    { sandbox: false, mcp: { ...DEFAULT_MCP, max_token_sessions: 1, servers: { p: { url: vendor.url } } } },
    { clock: systemClock },
  )
  const sent: Request[] = []
  const fetch = (request: Request) => {
    sent.push(request.clone())
    return opened.instance.fetch(request)
  }
  const seen = { ...opened, instance: { ...opened.instance, fetch } } as TestGateway
  await using client = await mcpClient(seen, { version: CURRENT })
  const stream = await client.listen({ resourceSubscriptions: [URI] })
  await stream.close()
  const { url, headers, text } = await (async () => {
    for (const request of sent.toReversed()) {
      const body = await request.text()
      if (body.includes('subscriptions/listen')) return { url: request.url, headers: request.headers, text: body }
    }
    throw new Error('Nothing was listened to.')
  })()
  const listen = (signal?: AbortSignal) =>
    opened.instance.fetch(new Request(url, { method: 'POST', headers, body: text, ...(signal && { signal }) }))

  const unread = await listen()
  expect(unread.status).toBe(200)
  await unread.body?.cancel()

  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()]
  vendor.intercept = (_, body) => {
    if (!JSON.stringify(body ?? {}).includes('test://a')) return undefined
    asked.resolve()
    return answer.promise as never
  }
  const leaving = new AbortController()
  const left = listen(leaving.signal).catch(() => undefined)
  await asked.promise
  leaving.abort()
  answer.resolve(undefined)
  await left
  vendor.intercept = undefined

  const last = await listen()
  expect(last.status).toBe(200)
  expect((await listen()).status).toBe(429)
  await last.body?.cancel()
  await vendor.stop()
})
