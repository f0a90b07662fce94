/** Coding agents without a screen, with the gateway as their MCP server: a scripted model calls the calculator of the sandbox. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { type McpVendor, startMcpVendor } from './kit/mcp-vendor.ts'
import { openPort, type Port } from './kit/served.ts'
import { type ReceivedRequest, respond, type ScriptedResponse } from './matrix/model-script.ts'
import { chatcompatWire } from './matrix/vendors/chatcompat.ts'
import { startWireVendor, type WireVendor } from './matrix/vendors/wire-vendor.ts'

const NPM = join(import.meta.dir, 'agents/node_modules')
const PATIENCE = 180_000
/** Nothing listens there. */
const NOWHERE = 'http://127.0.0.1:9'

/** Calls the tool that the question names where it is offered, or else the calculator, and repeats its result. */
function follow(received: ReceivedRequest): ScriptedResponse {
  const plain = { ...respond({ ...received, tools: [], demanded: undefined, question: 'x' }), calls: [] }
  const results = received.history.flatMap((line) => (line.role === 'results' ? line.results : []))
  const answer = (text: string) => ({ ...plain, text: [text], finish: 'stop' as const })
  if (results.length > 0) return answer(`It is ${results.map(({ text }) => text).join(' ')}`)
  const [, asked = 'Calculate.'] = /(Calculate|Fail|Wait|Hang)\./.exec(JSON.stringify(received.history)) ?? []
  const { tool, given } = TOOLS[asked] ?? CALCULATE
  const found = received.tools.find(({ name }) => name.endsWith(tool))
  if (!found) return answer(`Offered: ${received.tools.map(({ name }) => name).join(' ')}`)
  const call = { id: 'call_1', name: found.name, pieces: [given] }
  return { ...plain, text: [], calls: [call], finish: 'tool_calls' }
}

const CALCULATE = { tool: 'sandbox__calculator', given: '{"expression":"6 * 7 * 1000"}' }
const TOOLS: Record<string, typeof CALCULATE> = {
  Fail: { tool: 'sandbox__calculator', given: '{"expression":"2 +"}' },
  Wait: { tool: 'sandbox__wait', given: '{"seconds":1}' },
  Hang: { tool: 'slow__act', given: '{}' },
}

let vendor: WireVendor
let slow: McpVendor
let port: Port
let home: string
beforeAll(async () => {
  vendor = startWireVendor(chatcompatWire, { respond: follow })
  slow = startMcpVendor()
  port = await openPort({
    mcp: { ...DEFAULT_MCP, servers: { slow: { url: slow.url } } },
    providers: { v: { base_url: vendor.url, key: 'vendor-key' } },
    models: { 'v/large': { limits: { max_tokens: { maximum: 32_768 } } } },
  })
})
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gatehouse-mcp-agents-'))
  mkdirSync(join(home, 'project'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))
afterAll(async () => {
  await port.close()
  await vendor.stop()
  await slow.stop()
})

async function run(command: string[], environment: Record<string, string>): Promise<string> {
  const child = Bun.spawn(command, {
    cwd: join(home, 'project'),
    env: {
      PATH: [join(NPM, '.bin'), process.env.PATH ?? ''].join(':'),
      HOME: home,
      TERM: 'dumb',
      ...Object.fromEntries(['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => [name, NOWHERE])),
      NO_PROXY: '127.0.0.1,localhost',
      no_proxy: '127.0.0.1,localhost',
      ...environment,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  await child.exited
  return `${out}\n${err}`
}

const address = () => port.url.replace(/\/v1$/, '')
const isInstalled = (name: string) => existsSync(join(NPM, name, 'package.json'))

/** How long the agents wait for a tool. */
const TOOL_SECONDS = 5

async function claude(prompt: string): Promise<string> {
  const file = join(home, 'mcp.json')
  const headers = { Authorization: `Bearer ${port.token}` }
  writeFileSync(file, JSON.stringify({ mcpServers: { gatehouse: { type: 'http', url: `${address()}/mcp`, headers } } }))
  const allowed = ['sandbox__calculator', 'sandbox__wait', 'slow__act'].map((name) => `mcp__gatehouse__${name}`).join()
  return await run(['claude', '-p', prompt, '--mcp-config', file, '--strict-mcp-config', '--allowedTools', allowed], {
    ANTHROPIC_BASE_URL: address(),
    ANTHROPIC_AUTH_TOKEN: port.token,
    ANTHROPIC_MODEL: 'v/large',
    ANTHROPIC_SMALL_FAST_MODEL: 'v/large',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    MCP_TOOL_TIMEOUT: String(TOOL_SECONDS * 1000),
    // With it, tools of MCP servers are not offered to the model, but found by a tool that only its vendor's models know.
    ENABLE_TOOL_SEARCH: 'false',
  })
}

async function codex(prompt: string): Promise<string> {
  mkdirSync(join(home, '.codex'))
  writeFileSync(
    join(home, '.codex/config.toml'),
    `model = "v/large"
model_provider = "gatehouse"
[model_providers.gatehouse]
name = "Gatehouse"
base_url = "${port.url}"
env_key = "GATEHOUSE_TOKEN"
wire_api = "responses"
[mcp_servers.gatehouse]
url = "${address()}/mcp"
bearer_token_env_var = "GATEHOUSE_TOKEN"
tool_timeout_sec = ${TOOL_SECONDS}
`,
  )
  return await run(['codex', 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt], {
    GATEHOUSE_TOKEN: port.token,
  })
}

describe.each([
  ['Claude Code', '@anthropic-ai/claude-code', claude],
  ['Codex', '@openai/codex', codex],
] as const)('%s with the gateway as its MCP server', (_, name, ask) => {
  const agentTest = test.skipIf(!isInstalled(name))

  agentTest(
    'offers the tools to its model and calls them',
    async () => {
      const output = await ask('Calculate.')
      expect(output).toContain('It is')
      expect(output).toContain('42000')
    },
    PATIENCE,
  )

  agentTest(
    'gives the error of a tool to its model',
    async () => expect(await ask('Fail.')).toContain('no number'),
    PATIENCE,
  )

  agentTest(
    'waits for a tool that reports progress',
    async () => expect(await ask('Wait.')).toContain('Waited 1 s.'),
    PATIENCE,
  )

  agentTest(
    'cancels a call that takes too long, which ends it at the server',
    async () => {
      const ended = Promise.withResolvers<void>()
      slow.answer = (_given, signal) => {
        signal.addEventListener('abort', () => ended.resolve())
        return new Promise(() => {})
      }
      await Promise.all([ask('Hang.'), ended.promise])
      expect(slow.calls).toBeGreaterThan(0)
    },
    PATIENCE,
  )
})
