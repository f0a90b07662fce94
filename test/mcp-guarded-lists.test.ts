/** What MCP servers offer and announce passes the guards of answers: names, titles, descriptions, schemas and addresses. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { join } from 'node:path'
import OpenAI from 'openai'
import { DEFAULT_MCP } from '../src/config/config.ts'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import type { McpServerConfig } from '../src/config/schema/mcp-schema.ts'
import { systemClock } from '../src/kit/clock.ts'
import { OWNER } from './kit/admin.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { BEFORE, CURRENT, type McpClient, mcpClient } from './kit/mcp.ts'
import { type McpVendor, startMcpVendor } from './kit/mcp-vendor.ts'

let vendor: McpVendor
let gateway: TestGateway
beforeEach(() => {
  vendor = startMcpVendor()
  vendor.capabilities = { tools: {}, prompts: {}, resources: { subscribe: true } }
})
afterEach(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await vendor.stop()
})

type Parts = { guards: Record<string, GuardConfig>; version?: typeof BEFORE | typeof CURRENT }

async function start({ guards, version = BEFORE }: Parts, parts: Parameters<typeof startGateway>[1] = {}) {
  const mcp = { ...DEFAULT_MCP, servers: { v: { url: vendor.url } } }
  gateway = await startGateway({ sandbox: false, admin_token: OWNER, mcp, guards }, parts)
  return mcpClient(gateway, { version })
}

const SECRET = 'falcon-4711'
const BLOCK: GuardConfig = { kind: 'patterns', when: {}, patterns: ['falcon-[0-9]+'], action: 'block', on: ['output'] }
const REPLACE: GuardConfig = { ...BLOCK, action: 'replace', replacement: '[gone]' }

type Row = { guards?: object[]; model: string }
/** Of lists, once there is one. */
async function rows(model: string): Promise<Row[]> {
  const headers = { authorization: `Bearer ${OWNER}` }
  for (;;) {
    gateway.instance.flushRequests()
    gateway.clock.advance(2000)
    const answer = await gateway.call(`/admin/v1/requests?model=${encodeURIComponent(model)}`, { headers })
    const { data } = (await answer.json()) as { data: Row[] }
    if (data.length > 0) return data
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const schema = (description: string) => ({
  inputSchema: { type: 'object', properties: { q: { type: 'string', description } } },
})
const plain = schema('The query.')
/** Each place of an entry in which a text can be; a name is of no use once it is changed. */
const PLACES: [string, Method, 'text' | 'name', (text: string) => object][] = [
  ['the name of a tool', 'tools/list', 'name', (text) => ({ name: text, ...plain })],
  ['the title of a tool', 'tools/list', 'text', (text) => ({ name: 'x', title: text, ...plain })],
  ['the description of a tool', 'tools/list', 'text', (text) => ({ name: 'x', description: text, ...plain })],
  ['the schema of a tool', 'tools/list', 'text', (text) => ({ name: 'x', ...schema(text) })],
  ['annotations of a tool', 'tools/list', 'text', (text) => ({ name: 'x', annotations: { title: text }, ...plain })],
  ['metadata of a tool', 'tools/list', 'text', (text) => ({ name: 'x', _meta: { note: text }, ...plain })],
  ['the name of a resource', 'resources/list', 'name', (text) => ({ uri: 'test://x', name: text })],
  ['the address of a resource', 'resources/list', 'name', (text) => ({ uri: `test://${text}`, name: 'x' })],
  ['the title of a resource', 'resources/list', 'text', (text) => ({ uri: 'test://x', name: 'x', title: text })],
  [
    'the description of a resource',
    'resources/list',
    'text',
    (text) => ({ uri: 'test://x', name: 'x', description: text }),
  ],
  ['a template', 'resources/templates/list', 'name', (text) => ({ uriTemplate: `test://${text}/{id}`, name: 'x' })],
  [
    'the description of a template',
    'resources/templates/list',
    'text',
    (text) => ({ uriTemplate: 'test://{id}', name: 'x', description: text }),
  ],
  ['the name of a prompt', 'prompts/list', 'name', (text) => ({ name: text })],
  ['the description of a prompt', 'prompts/list', 'text', (text) => ({ name: 'x', description: text })],
  [
    'an argument of a prompt',
    'prompts/list',
    'text',
    (text) => ({ name: 'x', arguments: [{ name: 'q', description: text }] }),
  ],
]
const MEMBERS = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'templates',
  'prompts/list': 'prompts',
} as const
type Method = keyof typeof MEMBERS
const OTHER = { name: 'other', uri: 'test://other', uriTemplate: 'test://other/{id}', ...plain }
const entriesOf = async (client: McpClient, method: Method) => {
  const of = {
    'tools/list': async () => (await client.listTools()).tools,
    'resources/list': async () => (await client.listResources()).resources,
    'resources/templates/list': async () => (await client.listResourceTemplates()).resourceTemplates,
    'prompts/list': async () => (await client.listPrompts()).prompts,
  }[method]
  return ((await of?.()) ?? []) as { name: string }[]
}
const offer = (method: Method, ...entries: object[]) => {
  vendor[MEMBERS[method]] = entries as typeof vendor.tools
}

describe('a guard of answers', () => {
  it.each(PLACES)(
    'that blocks leaves out the entry with a secret in %s, and records it',
    async (_, method, __, entry) => {
      offer(method, entry(`a-${SECRET}`), OTHER)
      await using client = await start({ guards: { g: BLOCK } })
      expect((await entriesOf(client, method)).map(({ name }) => name)).toEqual([
        expect.stringMatching(/^(v__)?other$/),
      ])
      expect(await rows(`mcp/*/${method}`)).toMatchObject([
        { guards: [{ name: 'g', on: 'output', outcome: 'blocked' }] },
      ])
      expect(gateway.logged()).not.toContain(SECRET)
    },
  )

  it.each(PLACES)('that replaces does so in %s, or leaves out what it would rename', async (_, method, kind, entry) => {
    offer(method, entry(`a-${SECRET}`), OTHER)
    await using client = await start({ guards: { g: REPLACE } })
    const found = await entriesOf(client, method)
    expect([found.length, JSON.stringify(found).includes(SECRET)]).toEqual([kind === 'name' ? 1 : 2, false])
    expect(JSON.stringify(found).includes('a-[gone]')).toBe(kind === 'text')
    expect(await rows(`mcp/*/${method}`)).toMatchObject([{ guards: [{ outcome: 'replaced' }] }])
  })

  it('checks the lists of one server as well, and leaves its tools approved and callable', async () => {
    offer('tools/list', { name: 'x', description: SECRET, ...plain })
    await using _ = await start({ guards: { g: REPLACE } })
    await using client = await mcpClient(gateway, { path: '/mcp/v' })
    expect((await client.listTools()).tools).toMatchObject([{ name: 'x', description: '[gone]' }])
    expect(await client.callTool({ name: 'x', arguments: {} })).toMatchObject({ content: [{ text: 'done' }] })
    expect(await rows('mcp/v/tools/list')).toHaveLength(1)
  })

  it('that is of other names, of requests, or only observes changes nothing', async () => {
    offer('tools/list', { name: 'x', description: SECRET, ...plain }, { name: 'y', description: SECRET, ...plain })
    await using client = await start({
      guards: {
        one: { ...BLOCK, when: { models: ['mcp/v/x'] } },
        requests: { ...BLOCK, on: ['input'] },
        watching: { ...BLOCK, mode: 'observe' },
      },
    })
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['v__y'])
    const [row] = await rows('mcp/*/tools/list')
    expect(row?.guards).toEqual([
      { name: 'one', on: 'output', outcome: 'blocked' },
      { name: 'watching', on: 'output', outcome: 'would_block' },
    ])
  })

  it('is not forgotten where it has left the configuration', async () => {
    await using _ = await start({ guards: { g: BLOCK } })
    const { secret } = await gateway.instance.tokens.issue({ name: 'guarded', guards: ['gone'] })
    await using client = await mcpClient(gateway, { token: secret, path: '/mcp/v' })
    await expect(client.listTools()).rejects.toMatchObject({ data: { code: 'content_blocked' } })
  })

  it('checks the tools that a chat model gets', async () => {
    offer('tools/list', { name: 'x', description: `a-${SECRET}`, ...plain })
    const mcp = { ...DEFAULT_MCP, servers: { v: { url: vendor.url } } }
    gateway = await startGateway(
      { mcp, guards: { g: { ...REPLACE, when: { models: ['mcp/*'] } } } },
      { clock: systemClock },
    )
    const client = new OpenAI({
      apiKey: gateway.token,
      baseURL: 'http://gatehouse.test/v1',
      fetch: (url, init) => gateway.instance.fetch(new Request(url as string, init as RequestInit)),
    })
    const tools = [{ type: 'mcp' as const, server_label: 'v', require_approval: 'never' as const }]
    const { output } = await client.responses.create({ model: 'sandbox/general', input: 'Hello', tools })
    expect(output[0]).toMatchObject({ type: 'mcp_list_tools', tools: [{ name: 'x', description: 'a-[gone]' }] })
  })
})

const unknownTool = (name: string) => ({
  code: -32602,
  message: `There is no tool "${name}" for this token.`,
})
const callOf = (client: McpClient, name: string) => client.callTool({ name, arguments: {} })

describe.each([BEFORE, CURRENT] as const)('a tool that a list leaves out, protocol %s', (version) => {
  it.each([BLOCK, REPLACE])('for a guard is as unknown as one that there is not (%#)', async (guard) => {
    const named = guard === REPLACE ? { name: SECRET } : { name: 'x', description: SECRET }
    offer('tools/list', { ...named, ...plain }, OTHER)
    await using client = await start({ guards: { g: guard }, version })
    for (const name of [`v__${named.name}`, 'v__none'])
      await expect(callOf(client, name)).rejects.toMatchObject(unknownTool(name))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['v__other'])
    await expect(callOf(client, `v__${named.name}`)).rejects.toMatchObject(unknownTool(`v__${named.name}`))
    expect(vendor.calls).toBe(0)
    await callOf(client, 'v__other')
  })

  it('for the configuration or its token is as unknown', async () => {
    offer('tools/list', { name: 'hidden', ...plain }, { name: 'x', ...plain }, OTHER)
    const mcp = { ...DEFAULT_MCP, servers: { v: { url: vendor.url, allow: ['x', 'other', 'hidden'], deny: ['hid*'] } } }
    gateway = await startGateway({ sandbox: false, mcp })
    const { secret } = await gateway.instance.tokens.issue({ name: 'narrow', models: ['mcp/v/other'] })
    for (const [token, hidden] of [
      [gateway.token, ['v__hidden']],
      [secret, ['v__hidden', 'v__x']],
    ] as const) {
      await using client = await mcpClient(gateway, { version, token })
      for (const name of hidden) await expect(callOf(client, name)).rejects.toMatchObject(unknownTool(name))
      await callOf(client, 'v__other')
    }
    expect(vendor.calls).toBe(2)
  })
})

describe.each([BEFORE, CURRENT] as const)('a prompt or resource that a list leaves out, protocol %s', (version) => {
  it.each([BLOCK, REPLACE])('for a guard is as unknown as one that there is not (%#)', async (guard) => {
    vendor.capabilities = { ...vendor.capabilities, completions: {} }
    const text = guard === REPLACE ? { name: SECRET } : { name: 'x', description: SECRET }
    const { name } = text
    offer('prompts/list', text, OTHER)
    offer('resources/list', { uri: `test://${name}`, ...text }, OTHER)
    offer('resources/templates/list', { uriTemplate: `test://${name}/{id}`, ...text }, OTHER)
    await using client = await start({ guards: { g: guard }, version })
    const unknown = (what: string, named: string) => ({
      code: -32602,
      message: `There is no ${what} ${JSON.stringify(named)} for this token.`,
    })
    const [prompt, uri, template] = [`v__${name}`, `v+test://${name}`, `v+test://${name}/{id}`]
    const argument = { name: 'id', value: '' }
    await expect(client.getPrompt({ name: prompt })).rejects.toMatchObject(unknown('prompt', prompt))
    await expect(client.readResource({ uri })).rejects.toMatchObject(unknown('resource', uri))
    const complete = (ref: Parameters<typeof client.complete>[0]['ref']) => client.complete({ ref, argument })
    await expect(complete({ type: 'ref/prompt', name: prompt })).rejects.toMatchObject(unknown('prompt', prompt))
    await expect(complete({ type: 'ref/resource', uri: template })).rejects.toMatchObject(unknown('resource', template))
    if (version === BEFORE) {
      await expect(client.subscribeResource({ uri })).rejects.toMatchObject(unknown('resource', uri))
      await client.subscribeResource({ uri: 'v+test://other' })
    } else {
      const stream = await client.listen({ resourceSubscriptions: [uri, 'v+test://other'] })
      expect(stream.honoredFilter.resourceSubscriptions).toEqual(['v+test://other'])
    }
    expect(vendor.asked).toEqual([])
    await client.getPrompt({ name: 'v__other' })
    for (const own of ['other', 'in-no-list']) await client.readResource({ uri: `v+test://${own}` })
    await complete({ type: 'ref/resource', uri: 'v+test://other/{id}' })
    expect(vendor.asked).toHaveLength(4)
  })
})

describe('a guard that asks a service', () => {
  let service: ReturnType<typeof Bun.serve>
  let asked: string[][]
  let isAway: boolean
  beforeEach(() => {
    ;[asked, isAway] = [[], false]
    service = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const { texts } = (await request.json()) as { texts: string[] }
        asked.push(texts)
        if (isAway) return new Response('down', { status: 503 })
        return Response.json({ action: texts.join().includes(SECRET) ? 'block' : 'pass' })
      },
    })
  })
  afterEach(() => service.stop(true))
  const house = (rest: Partial<GuardConfig> = {}): Parts => ({
    guards: { g: { kind: 'webhook', when: {}, on: ['output'], url: `http://127.0.0.1:${service.port}/`, ...rest } },
  })
  const many = (count: number, ...bad: number[]) =>
    Array.from({ length: count }, (_, at) => ({
      name: `t${at}`,
      description: bad.includes(at) ? SECRET : 'Fine.',
      ...plain,
    }))

  it('is asked once about a list that passes', async () => {
    offer('tools/list', ...many(16))
    await using client = await start(house())
    expect((await client.listTools()).tools).toHaveLength(16)
    expect(asked).toHaveLength(1)
  })

  it('is asked about halves of a list that does not pass, until it is known why', async () => {
    offer('tools/list', ...many(16, 5))
    await using client = await start(house())
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect([names.length, names.includes('v__t5'), asked.length]).toEqual([15, false, 9])
  })

  it('is asked at most 20 times, and what is not decided is left out', async () => {
    offer('tools/list', ...many(64, ...Array.from({ length: 32 }, (_, at) => at * 2)))
    await using client = await start(house())
    const { tools } = await client.listTools()
    expect(asked).toHaveLength(20)
    expect(tools.every(({ name }) => Number(name.slice(4)) % 2 === 1)).toBe(true)
  })

  it('is asked once a minute about a tool that is called, for each token', async () => {
    offer('tools/list', ...many(2, 1))
    await using client = await start(house())
    const about = (text: string) => asked.filter((texts) => texts.includes(text)).length
    for (let count = 0; count < 3; count++) await callOf(client, 'v__t0')
    await expect(callOf(client, 'v__t1')).rejects.toMatchObject(unknownTool('v__t1'))
    expect([about('Fine.'), about(SECRET), vendor.calls]).toEqual([1, 1, 3])
    gateway.clock.advance(60_000)
    await callOf(client, 'v__t0')
    const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
    await using other = await mcpClient(gateway, { token: secret })
    await callOf(other, 'v__t0')
    expect(about('Fine.')).toBe(3)
  })

  it.each([
    ['closed', 0],
    ['open', 8],
  ] as const)('that is away and %s lets %d of 8 pass, after one question', async (on_error, count) => {
    offer('tools/list', ...many(8))
    isAway = true
    await using client = await start(house({ on_error }))
    expect([(await client.listTools()).tools.length, asked.length]).toEqual([count, 1])
  })
})

describe.each([BEFORE, CURRENT] as const)('the address of a changed resource, protocol %s', (version) => {
  const program: McpServerConfig = { command: process.execPath, args: [join(import.meta.dir, 'kit/mcp-program.ts')] }

  async function announced(guard: GuardConfig): Promise<string> {
    const mcp = { ...DEFAULT_MCP, servers: { p: program } }
    gateway = await startGateway({ sandbox: false, mcp, guards: { g: guard } }, { clock: systemClock })
    await using client = await mcpClient(gateway, { version })
    // It is connected before, so that nothing is announced for a new connection.
    await client.callTool({ name: 'p__subscribed', arguments: {} })
    const seen = Promise.withResolvers<string>()
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => seen.resolve(params.uri))
    if (version === CURRENT) await client.listen({ resourceSubscriptions: ['p+test://a'] })
    else await client.subscribeResource({ uri: 'p+test://a' })
    await client.callTool({ name: 'p__touch_below', arguments: {} })
    return await seen.promise
  }

  it.each([BLOCK, REPLACE])(
    'is that of the subscription where a guard does not let it pass as it is: %j',
    async (guard) => {
      expect(await announced(guard)).toBe('p+test://a')
    },
  )

  // Clients of the current protocol are told of addresses that they have named.
  const itBefore = version === BEFORE ? it : () => {}
  itBefore('is that of the server where it passes', async () => {
    expect(await announced({ ...BLOCK, on: ['input'] })).toBe(`p+test://a/${SECRET}`)
    await gateway[Symbol.asyncDispose]()
    expect(await announced({ ...BLOCK, patterns: ['eagle'] })).toBe(`p+test://a/${SECRET}`)
  })

  it('is that of the subscription where a guard would ask', async () => {
    const url = 'http://127.0.0.1:9/'
    expect(
      await announced({
        kind: 'webhook',
        when: { models: ['mcp/p/resources/*'] },
        on: ['output'],
        on_error: 'open',
        url,
      }),
    ).toBe('p+test://a')
  })
})
