/** `gatehouse health` beside a gateway that is ready, one that is not, and none. */
import { afterAll, expect, test } from 'bun:test'
import { run } from '../src/cli/commands/health.ts'
import { processTerminal } from '../src/cli/terminal.ts'
import { openPort } from './kit/served.ts'

const closing: (() => unknown)[] = []
afterAll(() => Promise.all(closing.map((close) => close())))

async function health(args: string[], environment: Record<string, string> = {}) {
  let printed = ''
  const out = (text: string) => {
    printed += text
  }
  const terminal = { ...processTerminal(), environment, cwd: '/', out }
  return { code: await run(args, terminal), printed }
}

function answering(body: string, status: number): string {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(body, { status }) })
  closing.push(() => server.stop(true))
  return `http://127.0.0.1:${server.port}`
}

test('a gateway that can serve is ready, at its address and at its port', async () => {
  const port = await openPort({})
  closing.push(() => port.close())
  const { origin, port: number } = new URL(port.url)
  expect(await health(['--url', origin])).toEqual({ code: 0, printed: 'ready\n' })
  expect(await health([], { GATEHOUSE_PORT: number })).toEqual({ code: 0, printed: 'ready\n' })
})

test('one that cannot says why, and so does one that answers something else', async () => {
  const refusing = answering('{"error":{"message":"The gateway is shutting down."}}', 503)
  expect(await health(['--url', refusing])).toEqual({ code: 1, printed: 'not ready: The gateway is shutting down.\n' })
  expect(await health(['--url', answering('not JSON', 502)])).toEqual({
    code: 1,
    printed: 'not ready: {"status":502}\n',
  })
})

test('where nothing listens, the address is named', async () => {
  const { code, printed } = await health(['--url', 'http://127.0.0.1:9', '--json'])
  expect(code).toBe(1)
  expect(JSON.parse(printed).error).toStartWith('http://127.0.0.1:9/readyz: ')
})

test('only an http or https address is asked, and no password is printed', async () => {
  for (const url of ['file:///etc', 'localhost:8787', 'gateway'])
    await expect(health(['--url', url])).rejects.toThrow('--url must be an http or https address')
  expect((await health(['--url', 'http://ops:hidden@127.0.0.1:9'])).printed).not.toContain('hidden')
})

test('a proxy for providers is not asked, and a redirect not followed', async () => {
  const proxy = process.env.HTTP_PROXY
  process.env.HTTP_PROXY = 'http://127.0.0.1:9'
  try {
    expect(await health(['--url', answering('{}', 200)])).toEqual({ code: 0, printed: 'ready\n' })
  } finally {
    if (proxy === undefined) delete process.env.HTTP_PROXY
    else process.env.HTTP_PROXY = proxy
  }
  const elsewhere = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.redirect(answering('{}', 200)) })
  closing.push(() => elsewhere.stop(true))
  expect((await health(['--url', `http://127.0.0.1:${elsewhere.port}`])).code).toBe(1)
})
