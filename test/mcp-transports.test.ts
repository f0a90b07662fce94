/** MCP servers that are programs, and those of the older transport HTTP+SSE: real processes and streams. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { join } from 'node:path'
import { DEFAULT_MCP } from '../src/config/config.ts'
import type { McpServerConfig } from '../src/config/schema/mcp-schema.ts'
import { systemClock } from '../src/kit/clock.ts'
import { UNCONFINED_WITHOUT_LANDLOCK } from './kit/confined.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { type McpClient, mcpClient } from './kit/mcp.ts'
import { type SseServer, startSseServer } from './kit/mcp-sse-server.ts'

let gateway: TestGateway | undefined
let client: McpClient | undefined
afterEach(async () => {
  await client?.close()
  await gateway?.[Symbol.asyncDispose]()
  gateway = undefined
})

async function open(server: McpServerConfig): Promise<McpClient> {
  gateway = await startGateway(
    { sandbox: false, mcp: { ...DEFAULT_MCP, servers: { p: server } } },
    { clock: systemClock },
  )
  client = await mcpClient(gateway)
  return client
}

const call = async (opened: McpClient, name: string) => {
  const result = await opened.callTool({ name: `p__${name}`, arguments: {} })
  const { content, isError = false } = result as { content: { text: string }[]; isError?: boolean }
  return { text: content[0]?.text ?? '', isError }
}

async function progressOf(opened: McpClient, name: string): Promise<number[]> {
  const seen: number[] = []
  await opened.callTool(
    { name: `p__${name}`, arguments: {} },
    { onprogress: ({ progress }) => void seen.push(progress) },
  )
  return seen
}

async function untilDead(id: number): Promise<void> {
  const isAlive = () => {
    try {
      return process.kill(id, 0)
    } catch {
      return false
    }
  }
  while (isAlive()) await new Promise((resolve) => setTimeout(resolve, 10))
}

describe('a program', () => {
  const program: McpServerConfig = {
    command: process.execPath,
    args: [join(import.meta.dir, 'kit/mcp-program.ts')],
    env: { MY_KEY: 'a-secret-of-the-program', MODE: 'production' },
    call_seconds: 5,
    max_result_bytes: 1_000_000,
    ...UNCONFINED_WITHOUT_LANDLOCK,
  }

  it('gets its own variables and a few of the system, and none of the gateway', async () => {
    process.env.GATEHOUSE_TEST_SECRET = 'secret-of-the-gateway'
    const opened = await open(program)
    const { text } = await call(opened, 'environment')
    delete process.env.GATEHOUSE_TEST_SECRET
    const names = Object.keys(JSON.parse(text) as object)
    expect(names).toContain('MY_KEY')
    expect(text).not.toContain('secret-of-the-gateway')
    expect(text).toContain('"MODE":"production"')
    expect(text).not.toContain('a-secret-of-the-program')
    const known = ['MY_KEY', 'MODE', 'HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'USER']
    expect(names.filter((name) => !known.includes(name) && !/^(BUN|_|PWD|OLDPWD|SHLVL)/.test(name))).toEqual([])
  })

  it('has its lines logged without its secrets', async () => {
    await call(await open(program), 'process')
    expect(gateway?.logged()).toContain('started with [redacted]')
    expect(gateway?.logged()).not.toContain('a-secret-of-the-program')
  })

  it('reports progress together with the result', async () => {
    expect(await progressOf(await open(program), 'at_once')).toEqual([1])
  })

  it('that dies ends the call at once, and is started again for the next one', async () => {
    const opened = await open(program)
    const first = await call(opened, 'process')
    expect(await call(opened, 'die')).toMatchObject({ isError: true })
    const second = await call(opened, 'process')
    expect(second.isError).toBe(false)
    expect(second.text).not.toBe(first.text)
  })

  it('that hangs ends the call after call_seconds, and others go on', async () => {
    const opened = await open({ ...program, call_seconds: 1 })
    const hanging = call(opened, 'wait')
    expect((await call(opened, 'process')).isError).toBe(false)
    expect((await hanging).isError).toBe(true)
    expect((await call(opened, 'process')).isError).toBe(false)
  })

  it('that sends more than max_result_bytes, or what is no message, ends the call', async () => {
    const opened = await open(program)
    expect(await call(opened, 'large')).toMatchObject({ isError: true })
    expect((await call(opened, 'process')).isError).toBe(false)
    expect(await call(opened, 'flood')).toMatchObject({ isError: true })
    expect((await call(opened, 'process')).isError).toBe(false)
  })

  it('that cannot be started is reported', async () => {
    const opened = await open({ command: '/does/not/exist' })
    await expect(opened.listTools()).resolves.toMatchObject({ tools: [] })
  })

  it('with per_session asks the client of the call, and nobody else', async () => {
    await open({ ...program, per_session: true })
    const clients = await Promise.all(
      ['Paris', 'Rome'].map(async (city) => {
        const logged: unknown[] = []
        const asking = await mcpClient(gateway as TestGateway, { capabilities: { elicitation: {}, sampling: {} } })
        asking.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { city } }))
        asking.setRequestHandler('sampling/createMessage', () => ({
          model: 'm',
          role: 'assistant',
          content: { type: 'text', text: `I say ${city}` },
        }))
        asking.setNotificationHandler('notifications/message', ({ params }) => void logged.push(params.data))
        return { city, asking, logged }
      }),
    )
    await Promise.all(
      clients.map(async ({ city, asking, logged }) => {
        expect((await call(asking, 'ask')).text).toContain(city)
        expect((await call(asking, 'sample')).text).toContain(`I say ${city}`)
        await call(asking, 'log')
        expect(logged).toEqual(['be careful'])
      }),
    )
    const ids = await Promise.all(clients.map(async ({ asking }) => (await call(asking, 'process')).text))
    expect(new Set(ids).size).toBe(2)
    await clients[0]?.asking.transportOf.terminateSession()
    await untilDead(Number(ids[0]))
    expect((await call(clients[1]?.asking as McpClient, 'process')).text).toBe(ids[1] ?? '')
    for (const { asking } of clients) await asking.close()
  })

  it('without it cannot ask clients', async () => {
    const opened = await open(program)
    const calling = opened.callTool({ name: 'p__ask', arguments: {} })
    await expect(calling).rejects.toBeDefined()
  })

  it('ends with the gateway', async () => {
    const opened = await open(program)
    const id = Number((await call(opened, 'process')).text)
    await gateway?.[Symbol.asyncDispose]()
    gateway = undefined
    await untilDead(id)
  })
})

describe('a server of HTTP+SSE', () => {
  let server: SseServer
  beforeEach(() => {
    server = startSseServer()
  })
  afterEach(() => server.stop())

  it('is listed and called', async () => {
    const opened = await open({ sse: server.url })
    expect(await call(opened, 'act')).toEqual({ text: 'done', isError: false })
  })

  it('reports progress together with the result', async () => {
    server.progress = [1, 2]
    expect(await progressOf(await open({ sse: server.url }), 'act')).toEqual([1, 2])
  })

  it('that hangs ends the call after call_seconds', async () => {
    const opened = await open({ sse: server.url, call_seconds: 1 })
    await call(opened, 'act')
    server.answer = undefined
    expect(await call(opened, 'act')).toMatchObject({ isError: true })
  })

  it('whose stream was cut is connected to again', async () => {
    const opened = await open({ sse: server.url, call_seconds: 5 })
    await call(opened, 'act')
    server.answer = () => {
      server.cut()
      return {}
    }
    expect(await call(opened, 'act')).toEqual({ text: 'The MCP server "p" closed its connection.', isError: true })
    server.answer = () => ({ content: [{ type: 'text', text: 'again' }] })
    expect(await call(opened, 'act')).toEqual({ text: 'again', isError: false })
    expect(server.opened).toBe(2)
  })

  it('that sends too much ends the call', async () => {
    const opened = await open({ sse: server.url, call_seconds: 5, max_result_bytes: 100_000 })
    server.answer = () => ({ content: [{ type: 'text', text: 'x'.repeat(1_000_000) }] })
    expect(await call(opened, 'act')).toMatchObject({ isError: true })
    server.answer = () => ({ content: [{ type: 'text', text: 'small' }] })
    expect(await call(opened, 'act')).toMatchObject({ text: 'small' })
  })
})
