/** Coding agents without a screen, with the gateway as their MCP server: a scripted model calls the calculator of the sandbox. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPort, type Port } from './kit/served.ts'
import { type ReceivedRequest, respond, type ScriptedResponse } from './matrix/model-script.ts'
import { chatcompatWire } from './matrix/vendors/chatcompat.ts'
import { startWireVendor, type WireVendor } from './matrix/vendors/wire-vendor.ts'

const NPM = join(import.meta.dir, 'agents/node_modules')
const PATIENCE = 180_000
/** Nothing listens there. */
const NOWHERE = 'http://127.0.0.1:9'

/** Calls the calculator where it is offered, and repeats its result. */
function follow(received: ReceivedRequest): ScriptedResponse {
  const plain = { ...respond({ ...received, tools: [], demanded: undefined, question: 'x' }), calls: [] }
  const results = received.history.flatMap((line) => (line.role === 'results' ? line.results : []))
  const answer = (text: string) => ({ ...plain, text: [text], finish: 'stop' as const })
  if (results.length > 0) return answer(`It is ${results.map(({ text }) => text).join(' ')}`)
  const calculator = received.tools.find(({ name }) => /sandbox__calculator$/.test(name))
  if (!calculator) return answer(`Offered: ${received.tools.map(({ name }) => name).join(' ')}`)
  const call = { id: 'call_1', name: calculator.name, pieces: ['{"expression":"6 * 7 * 1000"}'] }
  return { ...plain, text: [], calls: [call], finish: 'tool_calls' }
}

let vendor: WireVendor
let port: Port
let home: string
beforeAll(async () => {
  vendor = startWireVendor(chatcompatWire, { respond: follow })
  port = await openPort({
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

describe('an agent with the gateway as its MCP server', () => {
  test.skipIf(!isInstalled('@anthropic-ai/claude-code'))(
    'Claude Code offers the tools to its model and calls them',
    async () => {
      const file = join(home, 'mcp.json')
      const headers = { Authorization: `Bearer ${port.token}` }
      writeFileSync(
        file,
        JSON.stringify({ mcpServers: { gatehouse: { type: 'http', url: `${address()}/mcp`, headers } } }),
      )
      const allowed = 'mcp__gatehouse__sandbox__calculator'
      const output = await run(
        ['claude', '-p', 'Calculate.', '--mcp-config', file, '--strict-mcp-config', '--allowedTools', allowed],
        {
          ANTHROPIC_BASE_URL: address(),
          ANTHROPIC_AUTH_TOKEN: port.token,
          ANTHROPIC_MODEL: 'v/large',
          ANTHROPIC_SMALL_FAST_MODEL: 'v/large',
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          // With it, tools of MCP servers are not offered to the model, but found by a tool that only its vendor's models know.
          ENABLE_TOOL_SEARCH: 'false',
        },
      )
      expect(output).toMatch(/It is .*42000/)
    },
    PATIENCE,
  )

  test.skipIf(!isInstalled('@openai/codex'))(
    'Codex offers the tools to its model and calls them',
    async () => {
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
`,
      )
      const output = await run(
        ['codex', 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', 'Calculate.'],
        { GATEHOUSE_TOKEN: port.token },
      )
      expect(output).toContain('It is')
      expect(output).toContain('42000')
    },
    PATIENCE,
  )
})
