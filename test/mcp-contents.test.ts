/** Resources, prompts, completions and subscriptions of MCP servers: guarded, limited, charged and recorded as calls. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { DEFAULT_MCP } from '../src/config/config.ts'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import type { McpServerConfig } from '../src/config/schema/mcp-schema.ts'
import { OWNER } from './kit/admin.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { CURRENT, type McpClient, mcpClient } from './kit/mcp.ts'
import { type McpVendor, say, startMcpVendor } from './kit/mcp-vendor.ts'

let vendor: McpVendor
let gateway: TestGateway
beforeEach(() => {
  vendor = startMcpVendor()
  vendor.capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} }
})
afterEach(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await vendor.stop()
})

async function start(server: McpServerConfig = {}, guard?: Partial<GuardConfig>): Promise<McpClient> {
  gateway = await startGateway({
    sandbox: false,
    admin_token: OWNER,
    mcp: { ...DEFAULT_MCP, servers: { v: { url: vendor.url, ...server } } },
    ...(guard && { guards: { g: { kind: 'patterns', when: {}, ...guard } } }),
  })
  return mcpClient(gateway)
}

const SECRET = 'falcon-4711'
const URI = 'v+test://a'
const BLOCK: Partial<GuardConfig> = { patterns: ['falcon-[0-9]+'], action: 'block' }
const REPLACE: Partial<GuardConfig> = { ...BLOCK, action: 'replace', replacement: '[gone]' }
const blocked = { data: { code: 'content_blocked' } }

const ref = { type: 'ref/prompt' as const, name: 'v__review' }
const REQUESTS: Record<string, (client: McpClient, text?: string) => Promise<unknown>> = {
  'resources/read': (client, text = '') => client.readResource({ uri: `${URI}${text}` }),
  'prompts/get': (client, text = '') => client.getPrompt({ name: 'v__review', arguments: { text } }),
  'completion/complete': (client, text = '') => client.complete({ ref, argument: { name: 'text', value: text } }),
}
const read = (client: McpClient) => client.readResource({ uri: URI })
const get = (client: McpClient) => client.getPrompt({ name: 'v__review' })

/** Each part of a result in which a text can be. */
const PLACES: [string, 'read' | 'prompt' | 'complete', (text: string) => object][] = [
  ['the text of a resource', 'read', (text) => ({ contents: [{ uri: 'test://a', text }] })],
  ['the address of a resource', 'read', (text) => ({ contents: [{ uri: `test://${text}`, text: '' }] })],
  [
    'a text resource in base64',
    'read',
    (text) => ({ contents: [{ uri: 'test://a', mimeType: 'text/plain', blob: btoa(text) }] }),
  ],
  ...[undefined, 'application/octet-stream', 'application/x-sh', 'image/svg+xml'].map(
    (mimeType) =>
      [
        `a blob of type ${mimeType}`,
        'read',
        (text: string) => ({ contents: [{ uri: 'test://a', ...(mimeType && { mimeType }), blob: btoa(text) }] }),
      ] as [string, 'read', (text: string) => object],
  ),
  ['the type of a resource', 'read', (text) => ({ contents: [{ uri: 'test://a', mimeType: text, text: '' }] })],
  ['metadata of a resource', 'read', (text) => ({ contents: [{ uri: 'test://a', text: '', _meta: { note: text } }] })],
  ['a message of a prompt', 'prompt', (text) => ({ messages: [{ role: 'user', content: { type: 'text', text } }] })],
  ['the description of a prompt', 'prompt', (text) => ({ description: text, messages: [] })],
  [
    'a resource in a prompt',
    'prompt',
    (text) => ({
      messages: [{ role: 'user', content: { type: 'resource', resource: { uri: 'test://a', text } } }],
    }),
  ],
  [
    'the name of a link in a prompt',
    'prompt',
    (text) => ({ messages: [{ role: 'user', content: { type: 'resource_link', uri: 'test://a', name: text } }] }),
  ],
  ['the values of a completion', 'complete', (text) => ({ completion: { values: [text] } })],
]
const METHODS = { read: 'resources/read', prompt: 'prompts/get', complete: 'completion/complete' }

describe('a guard of answers', () => {
  it.each(PLACES)('blocks a secret in %s', async (_, part, result) => {
    await using client = await start({}, { ...BLOCK, on: ['output'] })
    vendor[part] = () => result(`It is ${SECRET}.`)
    await expect(REQUESTS[METHODS[part]]?.(client)).rejects.toMatchObject(blocked)
    vendor[part] = () => result('It is fine.')
    expect(JSON.stringify(await REQUESTS[METHODS[part]]?.(client))).not.toContain('content_blocked')
  })

  it.each(PLACES)('replaces a secret in %s', async (_, part, result) => {
    await using client = await start({}, { ...REPLACE, on: ['output'] })
    vendor[part] = () => result(`It is ${SECRET}.`)
    const answer = JSON.stringify(await REQUESTS[METHODS[part]]?.(client))
    for (const hidden of [SECRET, btoa(SECRET), btoa(`It is ${SECRET}.`)]) expect(answer).not.toContain(hidden)
    expect(answer.includes('[gone]') || answer.includes(btoa('It is [gone].'))).toBe(true)
  })

  it('redacts personal data in resources and prompts', async () => {
    await using client = await start({}, { kind: 'redact', on: ['output'] })
    vendor.read = () => ({ contents: [{ uri: 'test://a', text: 'Write to ada@example.org.' }] })
    vendor.prompt = () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Ask ada@example.org.' } }] })
    for (const answer of [await read(client), await get(client)])
      expect(JSON.stringify(answer)).not.toContain('ada@example.org')
  })

  it('checks the errors of a server', async () => {
    await using client = await start({}, { ...BLOCK, on: ['output'] })
    vendor.intercept = (_, body) => {
      const { id, method } = body as { id?: number; method?: string }
      if (method !== 'resources/read' && method !== 'tools/call') return undefined
      return Response.json({ jsonrpc: '2.0', id, error: { code: -32050, message: 'No.', data: { note: SECRET } } })
    }
    await expect(read(client)).rejects.toMatchObject(blocked)
    await expect(client.callTool({ name: 'v__act', arguments: {} })).rejects.toMatchObject(blocked)
    expect(gateway.logged()).not.toContain(SECRET)
  })

  it.each([true, false])('lets the text of progress pass only where it is not there', async (isThere) => {
    await using client = await start({}, { ...BLOCK, on: [isThere ? 'output' : 'input'] })
    vendor.intercept = (_, body) => {
      const { id, method, params } = body as { id?: number; method?: string; params: { _meta: object } }
      if (method !== 'tools/call') return undefined
      const { progressToken } = params._meta as { progressToken: number }
      const progress = { progressToken, progress: 1, total: 1, message: SECRET }
      const messages = [
        { jsonrpc: '2.0', method: 'notifications/progress', params: progress },
        { jsonrpc: '2.0', id, result: say('done') },
      ]
      const events = messages.map((message) => `data: ${JSON.stringify(message)}\n\n`).join('')
      return new Response(events, { headers: { 'content-type': 'text/event-stream' } })
    }
    const seen: unknown[] = []
    await client.callTool({ name: 'v__act', arguments: {} }, { onprogress: ({ message }) => seen.push(message) })
    expect(seen).toEqual([isThere ? undefined : SECRET])
  })

  it('lets media pass', async () => {
    await using client = await start({}, { ...BLOCK, on: ['output'] })
    const blob = btoa(`${SECRET}\u0000\u0001`)
    vendor.read = () => ({ contents: [{ uri: 'test://a', mimeType: 'image/png', blob }] })
    expect(await read(client)).toMatchObject({ contents: [{ blob }] })
  })

  it('changes no blob that is no text', async () => {
    await using client = await start({}, { ...REPLACE, on: ['output'] })
    const blob = Buffer.from([0xff, 0xfe, ...Buffer.from(SECRET)]).toString('base64')
    vendor.read = () => ({ contents: [{ uri: 'test://a', blob }] })
    expect(await read(client)).toMatchObject({ contents: [{ blob }] })
  })
})

describe.each(Object.keys(REQUESTS))('%s', (method) => {
  const request = (client: McpClient, text?: string) => REQUESTS[method]?.(client, text)

  it('is not sent where a guard blocks its arguments', async () => {
    await using client = await start({}, { ...BLOCK, on: ['input'] })
    await expect(request(client, SECRET)).rejects.toMatchObject(blocked)
    expect(vendor.asked).toEqual([])
    await request(client)
    expect(vendor.asked).toHaveLength(1)
  })

  it('is sent without what a guard replaces', async () => {
    await using client = await start({}, { ...REPLACE, on: ['input'] })
    await request(client, SECRET)
    const sent = JSON.stringify(vendor.asked)
    expect([sent.includes(SECRET), sent.includes('[gone]')]).toEqual([false, true])
  })

  it('counts towards the requests per minute of the token, on both sides of the limit', async () => {
    await using _ = await start()
    const { secret } = await gateway.instance.tokens.issue({ name: 'few', rate_limits: { requests_per_minute: 2 } })
    await using client = await mcpClient(gateway, { token: secret })
    for (let count = 0; count < 2; count++) await request(client)
    await expect(request(client)).rejects.toMatchObject({ data: { code: 'rate_limit_exceeded' } })
    expect(vendor.asked).toHaveLength(2)
    gateway.clock.advance(61_000)
    await request(client)
    expect(vendor.asked).toHaveLength(3)
  })

  it('has one entry in the ledger and one row in the request log', async () => {
    await using client = await start()
    await request(client)
    const model = `mcp/v/${method === 'resources/read' ? 'resources/read' : 'prompts/review'}`
    expect(await usageOf(1)).toMatchObject([{ model, requests: 1, errors: 0 }])
    expect(await rowsOf(model)).toMatchObject([{ status: 200 }])
  })
})

type UsageRow = { model: string; requests: number; errors: number; cost: number }

/** The rows of usage, once they have so many requests. */
async function usageOf(requests: number, token = gateway.token): Promise<UsageRow[]> {
  const headers = { authorization: `Bearer ${token}` }
  for (;;) {
    const answer = await gateway.call('/v1/usage?by=model', { headers })
    const rows = ((await answer.json()) as { data: UsageRow[] }).data
    if (rows.reduce((sum, row) => sum + row.requests, 0) >= requests) return rows
    gateway.clock.advance(60) // the ledger appends in batches
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function rowsOf(model: string): Promise<{ status: number; cost: number }[]> {
  const headers = { authorization: `Bearer ${OWNER}` }
  for (;;) {
    gateway.instance.flushRequests()
    gateway.clock.advance(2000)
    const answer = await gateway.call(`/admin/v1/requests?model=${encodeURIComponent(model)}`, { headers })
    const { data } = (await answer.json()) as { data: { status: number; cost: number }[] }
    if (data.length > 0) return data
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('a token', () => {
  const withModels = async (models: string[]) => {
    const { secret } = await gateway.instance.tokens.issue({ name: models.join(), models })
    return mcpClient(gateway, { token: secret })
  }

  it('has only the prompts and resources that its models name', async () => {
    await using _ = await start()
    await using none = await withModels(['mcp/v/act'])
    expect((await none.listResources()).resources).toEqual([])
    expect((await none.listPrompts()).prompts).toEqual([])
    for (const request of Object.values(REQUESTS)) await expect(request(none)).rejects.toMatchObject({ code: -32602 })
    await expect(none.subscribeResource({ uri: URI })).rejects.toMatchObject({ code: -32602 })
    expect(vendor.asked).toEqual([])
    await using prompts = await withModels(['mcp/v/prompts/rev*'])
    await get(prompts)
    await expect(read(prompts)).rejects.toMatchObject({ code: -32602 })
    await using resources = await withModels(['mcp/v/resources/*'])
    await read(resources)
    await expect(get(resources)).rejects.toMatchObject({ code: -32602 })
    expect(vendor.asked.map(([method]) => method)).toEqual(['prompts/get', 'resources/read'])
  })

  it('has nothing of a server that is of others', async () => {
    await using client = await start({ tokens: ['tok_of_somebody'] })
    for (const request of Object.values(REQUESTS)) await expect(request(client)).rejects.toMatchObject({ code: -32602 })
    expect(vendor.asked).toEqual([])
  })

  it('has what allow and deny of a server leave, by the same names', async () => {
    await using client = await start({ allow: ['act', 'prompts/*', 'resources/read'], deny: ['prompts/review'] })
    expect((await client.listPrompts()).prompts).toEqual([])
    await expect(get(client)).rejects.toMatchObject({ code: -32602 })
    expect((await client.listResources()).resources).toHaveLength(1)
    await read(client)
    await client.close()
    await gateway[Symbol.asyncDispose]()
    await using tools = await start({ allow: ['act'] })
    for (const request of Object.values(REQUESTS)) await expect(request(tools)).rejects.toMatchObject({ code: -32602 })
  })

  it('gets no tool whose name is that of prompts or resources', async () => {
    const [own] = vendor.tools
    vendor.tools = ['prompts/review', 'resources/read', 'act'].map((name) => ({ ...own, name }) as typeof own & object)
    await using client = await start()
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['v__act'])
  })
})

describe('prices and limits', () => {
  it('are those of the name, and those of tools are not of others', async () => {
    const price = { 'resources/read': { price: 0.25 }, 'prompts/*': { price: 0.5 }, '*': { price: 4 } }
    await using client = await start({ tools: price })
    await read(client)
    await get(client)
    await REQUESTS['completion/complete']?.(client)
    const costs = (await usageOf(3)).map(({ model, requests, cost }) => [model, requests, cost]).toSorted()
    expect(costs).toEqual([
      ['mcp/v/prompts/review', 2, 0.5],
      ['mcp/v/resources/read', 1, 0.25],
    ])
  })

  it('end at the rate limit of the resources of a server', async () => {
    await using client = await start({ tools: { 'resources/read': { rate_limits: { requests_per_hour: 1 } } } })
    await read(client)
    await expect(read(client)).rejects.toMatchObject({ data: { code: 'rate_limit_exceeded' } })
    await get(client)
    expect(vendor.asked).toHaveLength(2)
  })
})

describe('a resource of 50 MB', () => {
  it('is cut off, one below the limit passes', async () => {
    await using client = await start({ max_result_bytes: 100_000 })
    vendor.read = () => ({ contents: [{ uri: 'test://a', mimeType: 'image/png', blob: 'A'.repeat(50_000_000) }] })
    await expect(read(client)).rejects.toThrow('100000')
    vendor.read = () => ({ contents: [{ uri: 'test://a', mimeType: 'image/png', blob: 'A'.repeat(90_000) }] })
    expect((await read(client)).contents).toHaveLength(1)
  })
})

describe('a subscription', () => {
  it('is a call that is limited and recorded, in a session and without one', async () => {
    await using _ = await start()
    const { secret } = await gateway.instance.tokens.issue({ name: 'few', rate_limits: { requests_per_minute: 2 } })
    await using client = await mcpClient(gateway, { token: secret, version: CURRENT })
    const resourceSubscriptions = ['a', 'b', 'c'].map((name) => `v+test://${name}`)
    const stream = await client.listen({ resourceSubscriptions })
    expect(stream.honoredFilter.resourceSubscriptions).toHaveLength(2)
    await stream.close()
    expect(await usageOf(2, secret)).toMatchObject([{ model: 'mcp/v/resources/read', requests: 2, cost: 0 }])
    await using session = await mcpClient(gateway, { token: secret })
    await expect(session.subscribeResource({ uri: URI })).rejects.toMatchObject({
      data: { code: 'rate_limit_exceeded' },
    })
    expect((await rowsOf('mcp/v/resources/read')).length).toBeGreaterThanOrEqual(2)
  })
})
