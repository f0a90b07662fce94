/** What MCP servers ask and tell a client within a call, and what the client answers: guards check each part of it. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { inputRequired, ProtocolError, type ServerContext } from '@modelcontextprotocol/server'
import { DEFAULT_MCP } from '../src/config/config.ts'
import type { GuardConfig } from '../src/config/schema/guard-schema.ts'
import { OWNER } from './kit/admin.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type McpClient, mcpClient } from './kit/mcp.ts'
import { type AskingServer, startAskingServer } from './kit/mcp-asking-server.ts'
import { say, startMcpVendor } from './kit/mcp-vendor.ts'

type Asking = ServerContext['mcpReq']
type Guards = Record<string, Partial<GuardConfig>>

const SECRET = 'falcon-4711'
const BLOCK: Partial<GuardConfig> = { patterns: ['falcon-[0-9]+'], action: 'block' }
const REPLACE: Partial<GuardConfig> = { ...BLOCK, action: 'replace', replacement: '[gone]' }
const blocked = { code: -32000, data: { code: 'content_blocked' } }
const FORM = { type: 'object' as const, properties: {} }
const sample = { role: 'assistant' as const, model: 'm', content: { type: 'text' as const, text: 'Paris' } }

let server: AskingServer
let gateway: TestGateway
/** What came to the client, and what it answers. */
let seen: unknown[]
let sampled: () => object
let elicited: () => object
const closing: (() => unknown)[] = []

beforeEach(() => {
  server = startAskingServer()
  seen = []
  sampled = () => sample
  elicited = () => ({ action: 'accept', content: {} })
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  await gateway?.[Symbol.asyncDispose]()
  await server.stop()
})

async function start(guards: Guards, url = server.url): Promise<McpClient> {
  const named = Object.entries(guards).map(([name, guard]) => [name, { kind: 'patterns', when: {}, ...guard }])
  gateway = await startGateway({
    sandbox: false,
    admin_token: OWNER,
    mcp: { ...DEFAULT_MCP, servers: { v: { url, per_session: true } } },
    guards: Object.fromEntries(named),
  })
  const client = await mcpClient(gateway, {
    capabilities: { sampling: { tools: {} }, elicitation: { form: {}, url: {} } },
  })
  closing.push(() => client.close())
  client.setRequestHandler('sampling/createMessage', ({ params }) => {
    seen.push(params)
    return sampled() as never
  })
  client.setRequestHandler('elicitation/create', ({ params }) => {
    seen.push(params)
    return elicited() as never
  })
  client.setNotificationHandler('notifications/message', ({ params }) => void seen.push(params))
  return client
}

const onprogress = ({ message }: { message?: string | undefined }) => void seen.push({ message })
const act = (client: McpClient, text = '', name = 'act') =>
  client.callTool({ name: `v__${name}`, arguments: { text } }, { onprogress })

/** Does it at the server within a call, and returns what the server gets, or the error that it gets. */
async function within(client: McpClient, work: (asking: Asking) => Promise<unknown>): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  server.act = async (asking) => {
    resolve(await work(asking).catch(({ code, message, data }) => ({ code, message, data })))
    return say('done')
  }
  expect(await act(client)).toMatchObject(say('done'))
  return promise
}

const turn = (content: object) => ({ maxTokens: 9, messages: [{ role: 'user', content }] }) as never
const afterCall = (result: object) => {
  const messages = [
    { role: 'assistant', content: { type: 'tool_use', id: 'a', name: 'a', input: {} } },
    { role: 'user', content: [{ type: 'tool_result', toolUseId: 'a', content: [], ...result }] },
  ]
  return { maxTokens: 9, messages, tools: [{ name: 'a', inputSchema: FORM }] } as never
}

/** Each part of what a server asks in which a text can be. */
const ASKED: [string, (asking: Asking, text: string) => Promise<unknown>][] = [
  ['the prompt of a sampling', (asking, text) => asking.requestSampling(turn({ type: 'text', text }))],
  ['one of several parts of it', (asking, text) => asking.requestSampling(turn([{ type: 'text', text }]))],
  ['its system prompt', (asking, text) => asking.requestSampling({ maxTokens: 9, messages: [], systemPrompt: text })],
  ['its metadata', (asking, text) => asking.requestSampling({ maxTokens: 9, messages: [], metadata: { [text]: 1 } })],
  [
    'its tools',
    (asking, text) =>
      asking.requestSampling({
        ...(turn({ type: 'text', text: '' }) as object),
        tools: [{ name: 'a', description: text, inputSchema: FORM }],
      } as never),
  ],
  ['the result of a tool', (asking, text) => asking.requestSampling(afterCall({ content: [{ type: 'text', text }] }))],
  [
    'the structured result of a tool',
    (asking, text) => asking.requestSampling(afterCall({ structuredContent: { note: text } })),
  ],
  ['the message of an elicitation', (asking, text) => asking.elicitInput({ message: text, requestedSchema: FORM })],
  [
    'its form',
    (asking, text) =>
      asking.elicitInput({
        message: 'Name?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string', description: text } } },
      }),
  ],
  [
    'the name of a field',
    (asking, text) =>
      asking.elicitInput({
        message: '?',
        requestedSchema: { type: 'object', properties: { [text]: { type: 'string' } } },
      }),
  ],
  [
    'the address of an elicitation',
    (asking, text) =>
      asking.elicitInput({ mode: 'url', message: '?', elicitationId: 'a', url: `https://example.com/?q=${text}` }),
  ],
]

/** The same of what the client answers. */
const ANSWERED: [string, (text: string) => object][] = [
  ['the answer of a sampling', (text) => ({ ...sample, content: { type: 'text', text } })],
  ['the name of its model', (text) => ({ ...sample, model: text })],
  ['one of several parts of it', (text) => ({ ...sample, content: [{ type: 'text', text }] })],
  [
    'the arguments of a tool',
    (text) => ({ ...sample, content: [{ type: 'tool_use', id: 'a', name: 'a', input: { note: text } }] }),
  ],
  ['a field of an elicitation', (text) => ({ action: 'accept', content: { note: text } })],
  ['a member that answers do not have', (text) => ({ action: 'accept', content: {}, mode: text })],
  ['one of a sampling that only questions have', (text) => ({ ...sample, includeContext: text })],
  ['a field beside one that is called type', (text) => ({ action: 'accept', content: { type: 'text', role: text } })],
]

const askFor = (answer: object) => (asking: Asking) =>
  'action' in answer
    ? asking.elicitInput({ message: '?', requestedSchema: FORM })
    : asking.requestSampling({
        ...(turn({ type: 'text', text: '?' }) as object),
        tools: [{ name: 'a', inputSchema: FORM }],
      } as never)

async function answering(client: McpClient, answer: object) {
  sampled = () => answer
  elicited = () => answer
  return within(client, askFor(answer))
}

describe('a guard of answers', () => {
  it.each(ASKED)('blocks a secret in %s, with an error for the server', async (_, ask) => {
    const client = await start({ g: { ...BLOCK, on: ['output'] } })
    expect(await within(client, (asking) => ask(asking, SECRET))).toMatchObject(blocked)
    expect(seen).toEqual([])
    expect(gateway.logged()).toContain('"guards":"g output blocked"')
    expect(gateway.logged()).not.toContain(SECRET)
    expect(await within(client, (asking) => ask(asking, 'nothing'))).not.toMatchObject(blocked)
    expect(seen).toHaveLength(1)
  })

  it.each(ASKED)('replaces a secret in %s', async (_, ask) => {
    const client = await start({ g: { ...REPLACE, on: ['output'] } })
    await within(client, (asking) => ask(asking, SECRET))
    const text = JSON.stringify(seen)
    expect([text.includes(SECRET), text.includes('[gone]')]).toEqual([false, true])
  })

  it('checks log messages, each part, and passes the others in their order', async () => {
    const client = await start({ g: { ...BLOCK, on: ['output'] } })
    await within(client, async ({ log }) => {
      for (const data of ['one', SECRET, { note: SECRET }, [SECRET], { [SECRET]: 1 }, 'two']) await log('info', data)
      await log('info', 'three', SECRET)
      await log('info', 'four', 'logger')
    })
    expect(seen.map((one) => (one as { data: unknown }).data)).toEqual(['one', 'two', 'four'])
    expect(gateway.logged()).toContain('"guards":"g output blocked"')
  })

  it('checks messages of progress, and passes the progress without one that it blocks', async () => {
    const client = await start({ g: { ...BLOCK, on: ['output'] } })
    await within(client, async ({ notify, _meta: { progressToken } = {} }) => {
      const messages = ['one', SECRET, 'two']
      for (const [at, message] of messages.entries()) {
        const params = { progressToken: progressToken as number, progress: at + 1, total: at + 1, message }
        await notify({ method: 'notifications/progress', params })
      }
    })
    expect(seen).toEqual([{ message: 'one' }, { message: undefined }, { message: 'two' }])
    expect(gateway.logged()).toContain('"guards":"g output blocked"')
  })

  it('passes on the progress of a second at once, and none of a flood', async () => {
    const client = await start({})
    await within(client, async ({ notify, _meta: { progressToken } = {} }) => {
      for (let progress = 1; progress <= 200; progress++) {
        const params = { progressToken: progressToken as number, progress, total: 100, message: String(progress) }
        await notify({ method: 'notifications/progress', params })
      }
    })
    expect(seen).toEqual(Array.from({ length: 50 }, (_, at) => ({ message: String(at + 1) })))
  })

  it('does not read media', async () => {
    const client = await start({ g: { patterns: ['QUJD'], action: 'block', on: ['output', 'input'] } })
    const image = { type: 'image', mimeType: 'image/png', data: btoa('ABC') }
    sampled = () => ({ ...sample, content: image })
    expect(await within(client, ({ requestSampling }) => requestSampling(turn(image)))).toMatchObject({
      content: image,
    })
  })

  it('records in mode observe what it would have done', async () => {
    const client = await start({ g: { ...BLOCK, on: ['output'], mode: 'observe' } })
    await within(client, (asking) => asking.elicitInput({ message: SECRET, requestedSchema: FORM }))
    expect(seen).toMatchObject([{ message: SECRET }])
    expect(gateway.logged()).toContain('"guards":"g output would_block"')
  })

  it('of another tool checks too where calls of both are open: nobody knows for which of them a server asks', async () => {
    const client = await start({ g: { ...BLOCK, on: ['output'], when: { models: ['mcp/v/act'] } } })
    const [asked, isOpen] = [Promise.withResolvers<unknown>(), Promise.withResolvers<void>()]
    server.act = async (asking, _, name) => {
      if (name === 'other') {
        isOpen.resolve()
        await asked.promise
      } else {
        await isOpen.promise
        const asking_for = asking.elicitInput({ message: SECRET, requestedSchema: FORM })
        asked.resolve(await asking_for.catch(({ data }) => data))
      }
      return say('done')
    }
    const first = act(client)
    await Promise.all([first, act(client, '', 'other')])
    expect(await asked.promise).toMatchObject({ code: 'content_blocked' })
    expect(seen).toEqual([])
  })
})

describe('a guard of requests', () => {
  it.each(ANSWERED)('blocks a secret in %s, with an error for the server', async (_, answer) => {
    const client = await start({ g: { ...BLOCK, on: ['input'] } })
    const got = await answering(client, answer(SECRET))
    expect(got).toMatchObject(blocked)
    expect(JSON.stringify(got)).not.toContain(SECRET)
    expect(gateway.logged()).toContain('"guards":"g input blocked"')
    expect(await answering(client, answer('a'))).toMatchObject(answer('a'))
  })

  it.each(ANSWERED)('replaces a secret in %s', async (_, answer) => {
    const client = await start({ g: { ...REPLACE, on: ['input'] } })
    expect(await answering(client, answer(SECRET))).toMatchObject(answer('[gone]'))
  })

  it('checks errors of the client', async () => {
    const client = await start({ g: { ...BLOCK, on: ['input'] } })
    for (const [message, data] of [
      [SECRET, {}],
      ['No.', { note: SECRET }],
    ] as const) {
      elicited = () => {
        throw new ProtocolError(-1, message, data)
      }
      const got = await within(client, askFor({ action: 'decline' }))
      expect(got).toMatchObject(blocked)
      expect(JSON.stringify(got)).not.toContain(SECRET)
    }
    elicited = () => {
      throw new ProtocolError(-1, 'The user says no.')
    }
    expect(await within(client, askFor({ action: 'decline' }))).toMatchObject({
      code: -1,
      message: 'The user says no.',
    })
  })

  it('finds a card that is a number of a form', async () => {
    const client = await start({ g: { kind: 'redact', on: ['input'] } })
    const got = await answering(client, { action: 'accept', content: { card: 4111111111111111 } })
    expect(got).toMatchObject({ content: { card: '[CARD_1]' } })
  })
})

describe('a guard that redacts and restores', () => {
  it('keeps values from the server in all that a call has, and puts them back into all that the client gets', async () => {
    const client = await start({ g: { kind: 'redact', restore: true } })
    const got: unknown[] = []
    server.act = async (asking, given) => {
      got.push(given)
      elicited = () => ({ action: 'accept', content: { first: 'ada@example.org', second: 'bob@example.org' } })
      got.push(await asking.elicitInput({ message: 'Is it [EMAIL_1]?', requestedSchema: FORM }))
      sampled = () => ({ ...sample, content: { type: 'text', text: 'Ask eve@example.org, not bob@example.org.' } })
      got.push(await asking.requestSampling(turn({ type: 'text', text: 'Write to [EMAIL_2].' })))
      await asking.log('info', { sent: '[EMAIL_3]' })
      const { progressToken } = asking._meta ?? {}
      const params = { progressToken: progressToken as number, progress: 1, total: 1, message: 'To [EMAIL_1]' }
      await asking.notify({ method: 'notifications/progress', params })
      return say('Sent to [EMAIL_3] and [EMAIL_2].')
    }
    expect(await act(client, 'Write to ada@example.org')).toMatchObject(
      say('Sent to eve@example.org and bob@example.org.'),
    )
    expect(got).toMatchObject([
      { text: 'Write to [EMAIL_1]' },
      { content: { first: '[EMAIL_1]', second: '[EMAIL_2]' } },
      { content: { text: 'Ask [EMAIL_3], not [EMAIL_2].' } },
    ])
    expect(seen).toMatchObject([
      { message: 'Is it ada@example.org?' },
      { messages: [{ content: { text: 'Write to bob@example.org.' } }] },
      { data: { sent: 'eve@example.org' } },
      { message: 'To ada@example.org' },
    ])
    expect(gateway.logged()).toContain('"guards":"g input replaced"')
  })
})

describe('a server of the current protocol, whose result asks for more', () => {
  it('gets no answer to a question that is blocked, and none that is blocked itself', async () => {
    const vendor = startMcpVendor()
    closing.push(() => vendor.stop())
    const client = await start({ out: { ...BLOCK, on: ['output'] }, in: { ...REPLACE, on: ['input'] } }, vendor.url)
    let message = SECRET
    vendor.answer = (_, __, { inputResponses }) =>
      inputResponses
        ? say(JSON.stringify(inputResponses))
        : inputRequired({ inputRequests: { a: inputRequired.elicit({ message, requestedSchema: FORM }) } })
    elicited = () => ({ action: 'accept', content: { note: `I am ${SECRET}` } })
    const call = () => client.callTool({ name: 'v__act', arguments: {} })
    await expect(call()).rejects.toMatchObject(blocked)
    expect(seen).toEqual([])
    message = 'Who?'
    const text = JSON.stringify(await call())
    expect([text.includes('I am [gone]'), text.includes(SECRET)]).toEqual([true, false])
    expect(seen).toMatchObject([{ message }])
  })
})

describe('a guard that asks a service', () => {
  const questions: string[][] = []
  function startService(decide: (texts: string[]) => Promise<object> | object) {
    questions.length = 0
    const service = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const { texts } = (await request.json()) as { texts: string[] }
        questions.push(texts)
        return Response.json(await decide(texts))
      },
    })
    closing.push(() => service.stop(true))
    return `http://127.0.0.1:${service.port}/check`
  }

  it('decides of log messages before the result is sent, in their order, and of no more than 20 of a call', async () => {
    const url = startService((texts) => ({ action: texts.includes('3') ? 'block' : 'pass' }))
    const client = await start({ g: { kind: 'webhook', on: ['output'], url } })
    await within(client, async ({ log }) => {
      for (let count = 1; count <= 40; count++) await log('info', String(count))
    })
    const passed = Array.from({ length: 20 }, (_, at) => String(at + 1)).filter((text) => text !== '3')
    expect(seen.map((one) => (one as { data: string }).data)).toEqual(passed)
    // The first one is about the tool, the last one about the result.
    expect(questions).toHaveLength(22)
    expect(gateway.logged()).toContain('"guards":"g output blocked"')
  })

  it('decides of what a server asks and of what the client answers, and is closed where it fails', async () => {
    const url = startService((texts) => ({ action: texts.includes('Does something.') ? 'pass' : 'perhaps' }))
    const client = await start({ g: { kind: 'webhook', on: ['output'], url, when: { models: ['mcp/v/act'] } } })
    server.act = async (asking) => {
      await asking.elicitInput({ message: 'Who?', requestedSchema: FORM })
      return say('done')
    }
    await expect(act(client)).rejects.toMatchObject({ data: { code: 'content_blocked' } })
    expect([questions[1], seen]).toEqual([['Who?', '{"type":"object","properties":{}}'], []])
  })
})

it('the request log has the outcomes of a call, and none of its contents', async () => {
  const client = await start({ out: { ...BLOCK, on: ['output'] }, in: { ...REPLACE, on: ['input'] } })
  await within(client, async (asking) => {
    elicited = () => ({ action: 'accept', content: { note: SECRET } })
    await asking.elicitInput({ message: '?', requestedSchema: FORM })
    await asking.elicitInput({ message: SECRET, requestedSchema: FORM })
  })
  for (;;) {
    gateway.instance.flushRequests()
    gateway.clock.advance(2000)
    const headers = { authorization: `Bearer ${OWNER}` }
    const answer = await gateway.call('/admin/v1/requests?model=mcp%2Fv%2Fact', { headers })
    const { data } = (await answer.json()) as { data: { guards: unknown; status: number }[] }
    if (data.length === 0) {
      await new Promise((resolve) => setImmediate(resolve))
      continue
    }
    expect(data[0]?.status).toBe(200)
    expect(data[0]?.guards).toEqual(
      expect.arrayContaining([
        { name: 'out', on: 'output', outcome: 'blocked' },
        { name: 'in', on: 'input', outcome: 'replaced' },
      ]),
    )
    expect(JSON.stringify(data)).not.toContain(SECRET)
    return
  }
})
