/** What MCP servers ask clients of the current protocol: the request ends with the questions, and is repeated with the answers. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { inputRequired, ProtocolError, type ServerContext } from '@modelcontextprotocol/server'
import { DEFAULT_MCP } from '../src/config/config.ts'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { BEFORE, CURRENT, type McpClient, mcpClient } from './kit/mcp.ts'
import { type AskingServer, contentsOf, promptOf, startAskingServer } from './kit/mcp-asking-server.ts'
import { type McpVendor, say, startMcpVendor } from './kit/mcp-vendor.ts'

type Asking = ServerContext['mcpReq']
type Message = Record<string, unknown>

const FORM = { type: 'object' as const, properties: { note: { type: 'string' as const } } }
const sample = { role: 'assistant' as const, model: 'm', content: { type: 'text' as const, text: 'Paris' } }
const question = { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: '?' } }], maxTokens: 9 }
const ALL = { sampling: {}, elicitation: { form: {}, url: {} } }
const NOT_WAITING = { code: -32602, data: { reason: 'invalid_request_state' } }

let old: AskingServer
let vendor: McpVendor
let gateway: TestGateway
/** What came to the client. */
let seen: Message[]
const closing: (() => unknown)[] = []

beforeEach(() => {
  old = startAskingServer()
  vendor = startMcpVendor()
  seen = []
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  await gateway?.[Symbol.asyncDispose]()
  await Promise.all([old.stop(), vendor.stop()])
})

type Start = { mcp?: object; server?: object; guards?: Record<string, Partial<GuardConfig>>; workers?: number }

async function start({ mcp = {}, server = {}, guards = {}, workers }: Start = {}): Promise<void> {
  const named = Object.entries(guards).map(([name, guard]) => [name, { kind: 'patterns', when: {}, ...guard }])
  const servers = {
    old: { url: old.url, per_session: true, ...server },
    now: { url: vendor.url, per_session: true, ...server },
  }
  gateway = await startGateway({
    sandbox: false,
    mcp: { ...DEFAULT_MCP, ...mcp, servers },
    guards: Object.fromEntries(named),
    ...(workers && { server: { workers } }),
  })
}

async function clientOf(
  version: typeof CURRENT | typeof BEFORE = CURRENT,
  { capabilities = ALL as object, token = gateway.token } = {},
): Promise<McpClient> {
  const client = await mcpClient(gateway, { version, token, capabilities })
  closing.push(() => client.close())
  return client
}

/** A client that answers. */
async function answering(version: typeof CURRENT | typeof BEFORE, answer: object | (() => object)): Promise<McpClient> {
  const client = await clientOf(version)
  for (const method of ['elicitation/create', 'sampling/createMessage'] as const) {
    client.setRequestHandler(method, ({ params }) => {
      seen.push(params as Message)
      return (typeof answer === 'function' ? answer() : answer) as never
    })
  }
  return client
}

const elicited = ({ elicitInput }: Asking) => elicitInput({ message: 'Who?', requestedSchema: FORM })
const sampled = ({ requestSampling }: Asking) => requestSampling(question)
const json = (value: unknown) => say(JSON.stringify(value))
const textOf = (content: unknown) => (content as [{ text: string }])[0].text

/** Both servers ask, and answer with what they were answered. */
function ask(method: 'elicit' | 'sample'): void {
  const failed = ({ code, message }: ProtocolError) => ({ code, message })
  old.act = async (asking) => json(await (method === 'elicit' ? elicited : sampled)(asking).catch(failed))
  const request =
    method === 'elicit'
      ? inputRequired.elicit({ message: 'Who?', requestedSchema: FORM })
      : inputRequired.createMessage(question)
  vendor.answer = (_, __, { inputResponses }) =>
    inputResponses ? json(inputResponses.a) : inputRequired({ inputRequests: { a: request } })
}

/** One request, as it is on the wire. */
async function send(
  params: object,
  { capabilities = ALL as object, token = gateway.token, signal = undefined as AbortSignal | undefined } = {},
) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': CURRENT,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  const named = params as { name?: string }
  const answer = await gateway.call('/mcp', {
    json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { arguments: {}, ...params, _meta } },
    headers: {
      'mcp-protocol-version': CURRENT,
      'mcp-method': 'tools/call',
      'mcp-name': named.name ?? '',
      authorization: `Bearer ${token}`,
    },
    ...(signal && { signal }),
  })
  const text = await answer.text()
  const data = text.startsWith('{') ? text : (/^data: (\{.*\})$/m.exec(text)?.[1] ?? '{}')
  return JSON.parse(data) as { result?: Message & { inputRequests: object; requestState: string }; error?: object }
}

/** The first request of a call whose server asks, and what repeats it. */
async function asked(server = 'old', options: Parameters<typeof send>[1] = {}) {
  const name = `${server}__act`
  const { result } = await send({ name }, options)
  if (result?.resultType !== 'input_required') throw new Error(`It is no question: ${JSON.stringify(result)}`)
  const { requestState, inputRequests } = result
  const answers = (answer: object) => Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]))
  const repeat = (answer: object, more: object = {}, from: Parameters<typeof send>[1] = options) =>
    send({ name, requestState, inputResponses: answers(answer), ...more }, from)
  return { requestState, inputRequests, repeat }
}

const accepted = { action: 'accept', content: { note: 'Ada' } }

describe.each([CURRENT, BEFORE] as const)('a client of %s', (version) => {
  it.each(['old', 'now'])('answers an elicitation of the server %s', async (server) => {
    await start()
    ask('elicit')
    const client = await answering(version, accepted)
    expect(await client.callTool({ name: `${server}__act`, arguments: {} })).toMatchObject(json(accepted))
    expect(seen).toMatchObject([{ message: 'Who?' }])
  })

  it.each(['old', 'now'])('declines an elicitation of the server %s', async (server) => {
    await start()
    ask('elicit')
    const client = await answering(version, { action: 'decline' })
    expect(await client.callTool({ name: `${server}__act`, arguments: {} })).toMatchObject(json({ action: 'decline' }))
  })

  it.each(['old', 'now'])('answers a sampling of the server %s', async (server) => {
    await start()
    ask('sample')
    const client = await answering(version, sample)
    const { content } = await client.callTool({ name: `${server}__act`, arguments: {} })
    expect(JSON.parse(textOf(content))).toMatchObject(sample)
  })

  it.each(['old', 'now'])('answers what the server %s asks for a prompt or a resource', async (server) => {
    vendor.capabilities = { tools: {}, prompts: {}, resources: {} }
    vendor.prompts = [{ name: 'act' }]
    vendor.prompt = async (given, asking) => promptOf(await vendor.answer(given, asking.signal, asking))
    vendor.read = async (asking) => contentsOf(await vendor.answer({}, asking.signal, asking))
    await start()
    ask('elicit')
    const client = await answering(version, accepted)
    const { messages } = await client.getPrompt({ name: `${server}__act` })
    expect(messages).toMatchObject([{ content: json(accepted).content[0] }])
    const { contents } = await client.readResource({ uri: `${server}+test://a` })
    expect(contents).toMatchObject(json(accepted).content.map(({ text }) => ({ text, uri: `${server}+test://a` })))
    expect(seen).toHaveLength(2)
  })

  it.each(['old', 'now'])('opens an address that the server %s asks for', async (server) => {
    await start()
    const url = 'https://example.com/login'
    old.act = async ({ elicitInput }) =>
      json(await elicitInput({ mode: 'url', message: 'Log in.', url, elicitationId: 'a' }))
    vendor.answer = (_, __, { inputResponses }) =>
      inputResponses
        ? json(inputResponses.a)
        : inputRequired({ inputRequests: { a: inputRequired.elicitUrl({ message: 'Log in.', url }) } })
    const client = await answering(version, { action: 'accept' })
    expect(await client.callTool({ name: `${server}__act`, arguments: {} })).toMatchObject(json({ action: 'accept' }))
    expect(seen).toMatchObject([{ mode: 'url', url }])
  })

  it('answers several questions of one call, and gets its progress', async () => {
    await start()
    old.act = async (asking, _, __) => {
      const { progressToken } = asking._meta ?? {}
      const report = (progress: number) =>
        asking.notify({
          method: 'notifications/progress',
          params: { progressToken: progressToken as number, progress, total: progress },
        })
      await report(1)
      const first = await Promise.all([elicited(asking), elicited(asking)])
      await report(2)
      return json([...first, await elicited(asking)])
    }
    let answers = 0
    const client = await answering(version, () => ({ action: 'accept', content: { note: String(++answers) } }))
    const steps: number[] = []
    const onprogress = ({ progress, message }: { progress: number; message?: string | undefined }) => {
      if (message === undefined) steps.push(progress)
    }
    const { content } = await client.callTool({ name: 'old__act', arguments: {} }, { onprogress })
    const notes = (JSON.parse(textOf(content)) as { content: { note: string } }[]).map((one) => one.content.note)
    expect([notes.toSorted(), steps]).toEqual([
      ['1', '2', '3'],
      [1, 2],
    ])
  })
})

describe('a request of the current protocol', () => {
  beforeEach(() => ask('elicit'))

  it('ends with what the server asks, and its repetition with the result, once', async () => {
    await start()
    const { inputRequests, repeat } = await asked()
    expect(Object.values(inputRequests)).toEqual([
      { method: 'elicitation/create', params: expect.objectContaining({ message: 'Who?' }) },
    ])
    expect((await repeat(accepted)).result).toMatchObject(json(accepted))
    expect((await repeat(accepted)).error).toMatchObject(NOT_WAITING)
  })

  it('goes on for its own token, name and arguments only', async () => {
    await start()
    const { repeat, requestState } = await asked()
    const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
    expect((await repeat(accepted, {}, { token: secret })).error).toMatchObject(NOT_WAITING)
    expect((await repeat(accepted, { name: 'old__other' })).error).toMatchObject(NOT_WAITING)
    expect((await repeat(accepted, { arguments: { text: 'x' } })).error).toMatchObject(NOT_WAITING)
    expect((await repeat(accepted, { requestState: `${requestState}x` })).error).toMatchObject(NOT_WAITING)
    expect((await repeat(accepted)).result).toMatchObject(json(accepted))
  })

  it('is asked again where an answer is missing', async () => {
    await start()
    const { repeat } = await asked()
    const again = (await repeat(accepted, { inputResponses: { none: accepted } })).result
    expect(again).toMatchObject({ resultType: 'input_required' })
    const key = Object.keys(again?.inputRequests ?? {})[0] ?? ''
    const inputResponses = { [key]: accepted }
    const { requestState } = again ?? {}
    expect((await repeat(accepted, { requestState, inputResponses })).result).toMatchObject(json(accepted))
  })

  it.each(['old', 'now'])('ends where its client does not answer the server %s in time', async (server) => {
    await start({ server: { call_seconds: 5 } })
    const { repeat } = await asked(server)
    gateway.clock.advance(5000)
    expect((await repeat(accepted)).error).toMatchObject(NOT_WAITING)
    await gateway.instance.drain({ deadline_ms: 0 })
    expect(await gateway.instance.usage({ limit: 9 })).toMatchObject([{ model: `mcp/${server}/act`, requests: 1 }])
  })

  it('is recorded where it ends while the gateway drains', async () => {
    await start({ server: { call_seconds: 5 } })
    await Promise.all(Array.from({ length: 50 }, () => asked()))
    gateway.clock.advance(5000)
    await gateway.instance.drain({ deadline_ms: 0 })
    expect(await gateway.instance.usage({ limit: 9 })).toMatchObject([{ requests: 50 }])
  })

  it('gets the result that came while it was asked', async () => {
    await start()
    const over = Promise.withResolvers<void>()
    old.act = async (asking) => {
      elicited(asking).catch(() => {})
      await over.promise
      return say('without you')
    }
    const { repeat } = await asked()
    over.resolve()
    expect((await repeat({ action: 'cancel' })).result).toMatchObject(say('without you'))
  })

  it('gets the error where the server dies while it is asked', async () => {
    await start()
    const { repeat } = await asked()
    await old.stop()
    expect((await repeat(accepted)).result).toMatchObject({ isError: true })
  })

  it('is recorded once, with what it costs', async () => {
    await start({ server: { tools: { act: { price: 2 } } } })
    const { repeat } = await asked()
    await repeat(accepted)
    await gateway.instance.drain({ deadline_ms: 0 })
    const usage = await gateway.instance.usage({ limit: 9 })
    expect(usage).toMatchObject([{ model: 'mcp/old/act', requests: 1, errors: 0 }])
  })

  it('is not asked for what its client has not declared', async () => {
    await start()
    ask('sample')
    for (const capabilities of [{ elicitation: {} }, {}]) {
      const { result } = await send({ name: 'old__act' }, { capabilities })
      expect(JSON.stringify(result)).toContain('Method not found')
    }
    const { error, result } = await send({ name: 'now__act' }, { capabilities: { elicitation: {} } })
    expect(result).toBeUndefined()
    expect(error).toMatchObject({ code: -32021 })
  })

  it('is not asked what is too large', async () => {
    await start({ server: { max_result_bytes: 32 * 2 ** 20 } })
    let size = 9 * 2 ** 20
    old.act = async ({ elicitInput }) =>
      json(
        await elicitInput({ message: 'x'.repeat(size), requestedSchema: FORM }).catch(({ message }) => ({ message })),
      )
    expect(JSON.stringify((await send({ name: 'old__act' })).result)).toContain('it is too much')
    size = 5 * 2 ** 20
    const first = await asked()
    expect(JSON.stringify((await send({ name: 'old__act' })).result)).toContain('it is too much')
    expect((await first.repeat(accepted)).result).toMatchObject(json(accepted))
  })

  it('is refused where a token has too many open calls', async () => {
    await start({ mcp: { max_token_sessions: 2 } })
    const first = await asked()
    await asked()
    expect((await send({ name: 'old__act' })).error).toMatchObject({ data: { code: 'rate_limit_exceeded' } })
    const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
    await asked('old', { token: secret })
    await first.repeat(accepted)
    await asked()
  })

  it('uses the connection of the last call of its token, and of no other', async () => {
    await start()
    const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
    for (const token of [gateway.token, gateway.token, secret]) await (await asked('old', { token })).repeat(accepted)
    // One more is of all tokens, for lists.
    expect(old.sessions()).toBe(3)
  })

  it('keeps 100 open calls of several tokens apart', async () => {
    await start()
    const tokens = await Promise.all(
      Array.from({ length: 5 }, async (_, at) => (await gateway.instance.tokens.issue({ name: `t${at}` })).secret),
    )
    const open = await Promise.all(
      Array.from({ length: 100 }, (_, at) => asked(at % 2 ? 'old' : 'now', { token: tokens[at % 5] as string })),
    )
    const answers = await Promise.all(
      open.map(({ repeat }, at) => repeat({ action: 'accept', content: { note: String(at) } })),
    )
    for (const [at, { result }] of answers.entries())
      expect(result).toMatchObject(json({ action: 'accept', content: { note: String(at) } }))
  })

  it('keeps the connection of a server that has answered with an error, and of no other', async () => {
    await start()
    const fail = async (thrown: Error) => {
      old.act = async (asking) => {
        await elicited(asking)
        throw thrown
      }
      await (await asked()).repeat(accepted)
      return old.sessions()
    }
    const first = await fail(new ProtocolError(-32602, 'No.'))
    expect(await fail(new ProtocolError(-32602, 'No.'))).toBe(first)
    await asked()
    gateway.clock.advance(120_000)
    expect(await fail(new ProtocolError(-32602, 'No.'))).toBe(first + 1)
  })

  it('is not made anew where its repetition lacks the capabilities', async () => {
    await start()
    const { repeat } = await asked()
    expect((await repeat(accepted, {}, { capabilities: {} })).result).toMatchObject(json(accepted))
  })

  it('ends when its token is revoked', async () => {
    await start()
    let isCancelled = false
    old.act = async (asking) => {
      asking.signal.addEventListener('abort', () => {
        isCancelled = true
      })
      return json(await elicited(asking))
    }
    const { secret, token } = await gateway.instance.tokens.issue({ name: 'revoked' })
    await asked('old', { token: secret })
    const open = await asked()
    await gateway.instance.tokens.revoke(token.token_id)
    for (let ms = 0; !isCancelled && ms < 60_000; ms += 100) {
      gateway.clock.advance(100)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(isCancelled).toBe(true)
    expect((await open.repeat(accepted)).result).toMatchObject(json(accepted))
  })

  it('ends when the gateway stops, since no repetition would reach it', async () => {
    await start()
    const cancelled = Promise.withResolvers<void>()
    old.act = (asking) => {
      asking.signal.addEventListener('abort', () => cancelled.resolve())
      return elicited(asking)
    }
    await asked()
    await gateway.instance.drain({ deadline_ms: 0 })
    await cancelled.promise
  })

  it('ends at the server when its client leaves a repetition', async () => {
    await start()
    const [cancelled, isOpen] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    old.act = async (asking) => {
      asking.signal.addEventListener('abort', () => cancelled.resolve())
      await elicited(asking)
      isOpen.resolve()
      await cancelled.promise
      return say('')
    }
    const { repeat } = await asked()
    const leaving = new AbortController()
    const left = repeat(accepted, {}, { signal: leaving.signal }).catch(() => {})
    await isOpen.promise
    leaving.abort()
    await Promise.all([cancelled.promise, left])
  })
})

describe('guards', () => {
  const SECRET = 'falcon-4711'
  const BLOCK: Partial<GuardConfig> = { patterns: ['falcon-[0-9]+'], action: 'block' }

  it.each(['old', 'now'])('check what the server %s asks, and what its client answers', async (server) => {
    await start({ guards: { g: { ...BLOCK, on: ['output', 'input'] } } })
    ask('elicit')
    const { repeat } = await asked(server)
    const answer = await repeat({ action: 'accept', content: { note: SECRET } })
    expect(JSON.stringify(answer)).toContain('A guard blocked what the client has answered')
    expect(JSON.stringify(answer)).not.toContain(SECRET)
    old.act = async ({ elicitInput }) =>
      json(await elicitInput({ message: SECRET, requestedSchema: FORM }).catch(({ message }) => ({ message })))
    vendor.answer = () =>
      inputRequired({ inputRequests: { a: inputRequired.elicit({ message: SECRET, requestedSchema: FORM }) } })
    const blocked = JSON.stringify(await send({ name: `${server}__act` }))
    expect(blocked).toContain('A guard blocked the request to the client')
    expect(blocked).not.toContain(SECRET)
  })

  it('restore what they have redacted in all rounds of a call', async () => {
    await start({ guards: { g: { kind: 'redact', restore: true } } })
    const got: unknown[] = []
    old.act = async (asking, given) => {
      got.push(given.text, await elicited(asking))
      return say('To [EMAIL_1] and [EMAIL_2].')
    }
    const given = { arguments: { text: 'ada@example.org' } }
    const { result } = await send({ name: 'old__act', ...given })
    const answers = {
      [Object.keys(result?.inputRequests ?? {})[0] ?? '']: { ...accepted, content: { note: 'bob@example.org' } },
    }
    const { requestState } = result ?? {}
    const last = await send({ name: 'old__act', ...given, requestState, inputResponses: answers })
    expect(last.result).toMatchObject(say('To ada@example.org and bob@example.org.'))
    expect(got).toMatchObject(['[EMAIL_1]', { content: { note: '[EMAIL_2]' } }])
  })
})

it('with several workers, where a repetition may reach another one, no client is asked', async () => {
  await start({ workers: 2 })
  ask('elicit')
  expect(JSON.stringify(await send({ name: 'old__act' }))).toContain('does not support')
  expect(gateway.logged()).toContain('no server can ask a client')
  vendor.answer = () => say('done')
  expect((await send({ name: 'now__act', requestState: 'x'.repeat(32) })).error).toMatchObject(NOT_WAITING)
  expect(vendor.calls).toBe(0)
})
