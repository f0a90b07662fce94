/** The MCP gateway as clients of the official SDK see it, with the built-in server. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { BEFORE, CURRENT, mcpClient } from './kit/mcp.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({}, { clock: systemClock })
})
afterAll(() => gateway[Symbol.asyncDispose]())

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text

describe.each([CURRENT, BEFORE] as const)('/mcp with protocol %s', (version) => {
  it('negotiates the version', async () => {
    await using client = await mcpClient(gateway, { version })
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect(client.transportOf.sessionId === undefined).toBe(version === CURRENT)
  })

  it('lists the tools of all servers with the name of the server before theirs', async () => {
    await using client = await mcpClient(gateway, { version })
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(['clock', 'calculator', 'wait', 'add_note', 'list_notes'].map((name) => `sandbox__${name}`))
  })

  it('calls a tool, also at the path of its server', async () => {
    await using joined = await mcpClient(gateway, { version })
    await using alone = await mcpClient(gateway, { version, path: '/mcp/sandbox' })
    const given = { arguments: { expression: '2 * (3 + 4) ^ 2' } }
    expect(textOf(await joined.callTool({ name: 'sandbox__calculator', ...given }))).toBe('98')
    expect(await alone.callTool({ name: 'calculator', ...given })).toMatchObject({ structuredContent: { result: 98 } })
  })

  it('returns the error of a tool as a result', async () => {
    await using client = await mcpClient(gateway, { version })
    const result = await client.callTool({ name: 'sandbox__calculator', arguments: { expression: '2 +' } })
    expect(result).toMatchObject({ isError: true, content: [{ text: 'The expression has no number.' }] })
  })

  it('returns an error of the protocol for an unknown tool', async () => {
    await using client = await mcpClient(gateway, { version })
    const calling = client.callTool({ name: 'sandbox__nothing', arguments: {} })
    await expect(calling).rejects.toMatchObject({ code: -32602, message: expect.stringContaining('sandbox__nothing') })
  })

  it('passes progress on', async () => {
    await using client = await mcpClient(gateway, { version })
    const seen: number[] = []
    const call = { name: 'sandbox__wait', arguments: { seconds: 1 } }
    const result = await client.callTool(call, { onprogress: ({ progress }) => seen.push(progress) })
    expect(textOf(result)).toBe('Waited 1 s.')
    expect(seen.length).toBeGreaterThan(2)
    expect(seen.at(-1)).toBe(1)
  })

  it('cancels a call', async () => {
    await using client = await mcpClient(gateway, { version })
    const leaving = new AbortController()
    const seen: number[] = []
    const calling = client.callTool(
      { name: 'sandbox__wait', arguments: { seconds: 30 } },
      {
        signal: leaving.signal,
        onprogress({ progress }) {
          seen.push(progress)
          leaving.abort('enough')
        },
      },
    )
    await expect(calling).rejects.toBeDefined()
    expect(seen).toEqual([0.1])
  }, 120_000)

  it('reads resources and prompts, and completes arguments', async () => {
    await using client = await mcpClient(gateway, { version })
    await client.callTool({ name: 'sandbox__add_note', arguments: { text: 'milk' } })
    const [resource] = (await client.listResources()).resources
    expect(resource?.uri).toBe('sandbox+notes:all')
    const { contents } = await client.readResource({ uri: 'sandbox+notes:all' })
    expect(contents).toMatchObject([{ uri: 'sandbox+notes:all', text: expect.stringContaining('milk') }])
    const [prompt] = (await client.listPrompts()).prompts
    expect(prompt?.name).toBe('sandbox__time_in')
    const { messages } = await client.getPrompt({ name: 'sandbox__time_in', arguments: { time_zone: 'UTC' } })
    expect(messages).toMatchObject([{ content: { text: 'What time is it in UTC?' } }])
    const ref = { type: 'ref/prompt' as const, name: 'sandbox__time_in' }
    const { completion } = await client.complete({ ref, argument: { name: 'time_zone', value: 'ber' } })
    expect(completion.values).toEqual(['Europe/Berlin'])
  })
})

describe('/mcp over HTTP', () => {
  const rpc = (body: object, path = '/mcp', headers: Record<string, string> = {}) =>
    gateway.call(path, {
      json: { jsonrpc: '2.0', id: 1, ...body },
      headers: { accept: 'application/json, text/event-stream', ...headers },
    })

  it('answers a request without a session', async () => {
    const answer = await rpc({ method: 'tools/list' })
    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('sandbox__clock')
  })

  it('refuses a missing or wrong token with 401 in the form of JSON-RPC', async () => {
    const answer = await rpc({ method: 'tools/list' }, '/mcp', { authorization: 'Bearer wrong' })
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(await answer.json()).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { data: { code: 'invalid_api_key' } },
    })
  })

  it('refuses pages of other origins, and serves those of its own', async () => {
    const foreign = await rpc({ method: 'tools/list' }, '/mcp', { origin: 'https://evil.example' })
    expect([foreign.status, ((await foreign.json()) as { error: { data: unknown } }).error.data]).toEqual([
      403,
      { code: 'origin_not_allowed' },
    ])
    const own = await rpc({ method: 'tools/list' }, '/mcp', { origin: 'http://localhost:8787', host: 'localhost:8787' })
    expect(own.status).toBe(200)
    await own.text()
    // A name that an attacker lets lead to this machine.
    const rebound = { origin: 'http://evil.example', host: 'evil.example' }
    expect((await rpc({ method: 'tools/list' }, '/mcp', rebound)).status).toBe(403)
  })

  it('opens a session for a page of an origin in server.cors_origins, which can read its id', async () => {
    const origin = 'https://app.example'
    await using open = await startGateway({ server: { cors_origins: [origin] } })
    const params = { protocolVersion: BEFORE, capabilities: {}, clientInfo: { name: 'page', version: '1' } }
    const json = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
    const opened = await open.call('/mcp', { json, headers: { origin } })
    const { status, headers } = opened
    await opened.text()
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, origin])
    const readable = headers.get('access-control-expose-headers')?.split(', ') ?? []
    expect([headers.has('mcp-session-id'), readable.includes('mcp-session-id')]).toEqual([true, true])
    expect((await open.call('/mcp', { json, headers: { origin: 'https://other.example' } })).status).toBe(403)
  })

  it('keeps no more sessions of a token than it may have, also where they are opened at once', async () => {
    await using few = await startGateway({ mcp: { ...DEFAULT_MCP, max_token_sessions: 2 } })
    const params = { protocolVersion: BEFORE, capabilities: {}, clientInfo: { name: 'many', version: '1' } }
    const json = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
    const ids = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const opened = await few.call('/mcp', { json })
        await opened.text()
        return opened.headers.get('mcp-session-id') ?? ''
      }),
    )
    const statuses: number[] = []
    for (const id of ids) {
      const headers = { 'mcp-session-id': id, 'mcp-protocol-version': BEFORE }
      const answer = await few.call('/mcp', { json: { jsonrpc: '2.0', id: 2, method: 'ping' }, headers })
      await answer.text()
      statuses.push(answer.status)
    }
    expect(statuses.toSorted()).toEqual([200, 200, 404, 404, 404, 404])
  })

  it.each([10, 100])('opens %i sessions where that many may be open, of 100 opened at once', async (max_sessions) => {
    await using few = await startGateway({ mcp: { ...DEFAULT_MCP, max_sessions } })
    const params = { protocolVersion: BEFORE, capabilities: {}, clientInfo: { name: 'many', version: '1' } }
    const open = async (headers = {}) => {
      const opened = await few.call('/mcp', { json: { jsonrpc: '2.0', id: 1, method: 'initialize', params }, headers })
      await opened.text()
      return { status: opened.status, id: opened.headers.get('mcp-session-id') ?? '' }
    }
    const opened = await Promise.all(Array.from({ length: 100 }, () => open()))
    const ids = opened.flatMap(({ status, id }) => (status === 200 ? [id] : []))
    expect([ids.length, opened.filter(({ status }) => status === 503).length]).toEqual([
      max_sessions,
      100 - max_sessions,
    ])
    const request = async (id: string, method: string) => {
      const headers = { 'mcp-session-id': id, 'mcp-protocol-version': BEFORE }
      const json = { jsonrpc: '2.0', id: 2, method: 'ping' }
      const answer = await few.call('/mcp', { method, headers, ...(method === 'POST' && { json }) })
      await answer.text()
      return answer.status
    }
    expect(new Set(await Promise.all(ids.map((id) => request(id, 'POST'))))).toEqual(new Set([200]))
    expect((await open()).status).toBe(503)
    expect(await request(ids[0] ?? '', 'DELETE')).toBe(200)
    // One that fails takes no place.
    expect((await open({ accept: 'text/plain' })).status).toBe(406)
    expect([(await open()).status, (await open()).status]).toEqual([200, 503])
  })

  it('returns 404 for an unknown server, 400 for a batch and for what is no JSON', async () => {
    expect((await rpc({ method: 'tools/list' }, '/mcp/nothing')).status).toBe(404)
    expect((await gateway.call('/mcp', { json: [{ jsonrpc: '2.0', id: 1, method: 'ping' }] })).status).toBe(400)
    expect((await gateway.call('/mcp', { json: '{' })).status).toBe(400)
  })

  it('knows a session only for the token that opened it, and until it is deleted', async () => {
    await using client = await mcpClient(gateway)
    const id = client.transportOf.sessionId ?? ''
    const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
    const session = { 'mcp-session-id': id }
    expect(
      (await rpc({ method: 'tools/list' }, '/mcp', { ...session, authorization: `Bearer ${secret}` })).status,
    ).toBe(404)
    expect((await rpc({ method: 'tools/list' }, '/mcp/sandbox', session)).status).toBe(404)
    const own = await rpc({ method: 'tools/list' }, '/mcp', session)
    expect(own.status).toBe(200)
    await own.text()
    expect((await gateway.call('/mcp', { method: 'DELETE', headers: session })).status).toBe(200)
    expect((await rpc({ method: 'tools/list' }, '/mcp', session)).status).toBe(404)
  })

  it('keeps the notes of tokens apart', async () => {
    const { secret } = await gateway.instance.tokens.issue({ name: 'third' })
    await using own = await mcpClient(gateway)
    await using other = await mcpClient(gateway, { token: secret })
    await own.callTool({ name: 'sandbox__add_note', arguments: { text: 'of the first' } })
    expect(textOf(await other.callTool({ name: 'sandbox__list_notes', arguments: {} }))).toBe('There is no note.')
  })

  it('serves 100 sessions at a time', async () => {
    const clients = await Promise.all(Array.from({ length: 100 }, () => mcpClient(gateway)))
    const results = await Promise.all(
      clients.map((client, index) =>
        client.callTool({ name: 'sandbox__calculator', arguments: { expression: `${index} + 1` } }),
      ),
    )
    expect(results.map(textOf)).toEqual(clients.map((_, index) => String(index + 1)))
    expect(new Set(clients.map(({ transportOf }) => transportOf.sessionId)).size).toBe(100)
    await Promise.all(clients.map((client) => client.close()))
  })
})

describe('a call of a tool', () => {
  it('is recorded in the ledger and in the access log', async () => {
    await using client = await mcpClient(gateway)
    await client.callTool({ name: 'sandbox__clock', arguments: {} })
    await client.close()
    await untilHolds(async () =>
      (await (await gateway.call('/v1/usage?by=model')).text()).includes('mcp/sandbox/clock'),
    )
    // Its line follows the end of the request, which may be later than the entry of the call.
    await untilHolds(() => /"path":"\/mcp","status":200.*"model":"mcp\/sandbox\/clock"/.test(gateway.logged()))
  })
})

/** The ledger appends in batches. */
async function untilHolds(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20))
}
