/**
 * The Codex command line as its users run it, with its own defaults: before the sandbox and vendors of every protocol.
 * It is 167 MB to download, so it is installed apart: `npm install --no-save --prefix test/agents`, which .ci/run does first.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualPage } from './kit/manual.ts'
import { openPort, type Port } from './kit/served.ts'
import type { ReceivedRequest, ScriptedResponse } from './matrix/model-script.ts'
import { chatcompatWire } from './matrix/vendors/chatcompat.ts'
import { contentgenWire } from './matrix/vendors/contentgen-compat.ts'
import { messagesWire } from './matrix/vendors/messages-compat.ts'
import { responsesWire } from './matrix/vendors/responses-compat.ts'
import { startWireVendor, type Wire, type WireVendor } from './matrix/vendors/wire-vendor.ts'

const CODEX = join(import.meta.dir, 'agents/node_modules/@openai/codex/bin/codex.js')
const NOTES_SERVER = join(import.meta.dir, 'kit/notes-server.ts')
/** A run starts a program of 290 MB, a shell and a server of tools. */
const PATIENCE = 120_000

/** The calls of one answer: the end of a tool's name, since each vendor knows it by another, and its arguments. */
type Step = { tool: string; args: object }

/** A model that makes these calls, one an answer, and then repeats what came of them; of a subtask it says that it is done. */
let steps: Step[] = []
const SUBTASK = 'Do the subtask.'
function follow({ history, tools, question }: ReceivedRequest): ScriptedResponse {
  if (question.includes(SUBTASK)) return said({ text: ['The subtask is done.'] })
  const results = history.flatMap((line) => (line.role === 'results' ? line.results : []))
  const step = steps[results.length]
  const known = step && tools.find(({ name }) => name.endsWith(step.tool))
  if (step && !known)
    throw new Error(`There is no tool ${step.tool} among ${tools.map(({ name }) => name).join(', ')}.`)
  if (!step || !known) return said({ text: [`It is done: ${results.map(({ text }) => text).join(' / ')}`] })
  const call = { id: `call_${results.length}`, name: known.name, pieces: [JSON.stringify(step.args)] }
  return said({ calls: [call], finish: 'tool_calls' })
}

const said = (more: Partial<ScriptedResponse>): ScriptedResponse => ({
  reasoning: [],
  text: [],
  calls: [],
  finish: 'stop',
  stop: undefined,
  usage: { input: 40, cached: 12, output: 10, reasoning: 0 },
  faults: {},
  ...more,
})

type Kind = {
  kind: 'chatcompat' | 'messages-compat' | 'contentgen-compat' | 'responses-compat'
  wire: Wire
  path: string
  model: string
}
const KINDS: Kind[] = [
  { kind: 'chatcompat', wire: chatcompatWire, path: '/v1', model: 'm' },
  { kind: 'messages-compat', wire: messagesWire, path: '/v1', model: 'claude-sonnet-4-6' },
  { kind: 'contentgen-compat', wire: contentgenWire, path: '/v1beta', model: 'gemini-3.5-flash' },
]

/** It gets what Codex sends as it is, namespaces and all. */
const ownWire: Wire = {
  ...responsesWire,
  decode: ({ client_metadata: _, ...body }, path) => responsesWire.decode(body, path), // a field of Codex alone
}
const OWN: Kind = { kind: 'responses-compat', wire: ownWire, path: '/v1', model: 'gpt-5.5' }
const ALL = [...KINDS, OWN]

/** Models whose names Codex knows get other tools from it than those that it does not know. */
const KNOWN = ['gpt-5.5', 'gpt-6.1-sol']

const vendors = new Map<string, WireVendor>()
let port: Port
let place: string
beforeAll(async () => {
  for (const { kind, wire } of ALL) vendors.set(kind, startWireVendor(wire, { respond: follow }))
  const target = ({ kind, model }: Kind) => ({ targets: [{ provider: kind, model }] })
  port = await openPort({
    providers: Object.fromEntries(
      ALL.map(({ kind, path }) => [kind, { kind, base_url: `${vendorOf(kind).origin}${path}`, key: 'vendor-key' }]),
    ),
    models: {
      ...Object.fromEntries(ALL.map((kind) => [`${kind.kind}/m`, target(kind)])),
      ...Object.fromEntries(KNOWN.map((name) => [`chatcompat/${name}`, target(KINDS[0] as Kind)])),
    },
  })
})
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'gatehouse-codex-'))
  for (const vendor of vendors.values()) vendor.requests.length = 0
  port.requests.length = 0
})
afterEach(() => rmSync(place, { recursive: true, force: true }))
afterAll(async () => {
  await port.close()
  for (const vendor of vendors.values()) await vendor.stop()
})
const vendorOf = (kind: string): WireVendor => {
  const vendor = vendors.get(kind)
  if (!vendor) throw new Error(`There is no vendor ${kind}.`)
  return vendor
}

type ToolName = { function?: { name: string }; name?: string; functionDeclarations?: { name: string }[] }
/** The names of the tools in a vendor's request, whatever it speaks. */
const toolNames = (body: Record<string, unknown>): string[] =>
  ((body.tools ?? []) as ToolName[]).flatMap(({ function: one, name, functionDeclarations = [] }) =>
    one ? [one.name] : name === undefined ? functionDeclarations.map((declared) => declared.name) : [name],
  )

const MCP = `
[mcp_servers.notes]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(NOTES_SERVER)}]
`
/** The manual's own configuration, for this gateway. */
function manualConfig(model: string): string {
  const manual = manualPage('coding-agents.md')
  const [, config = ''] = /```toml\n(.*?)```/s.exec(manual) ?? []
  return config.replace('coder', model).replace('http://127.0.0.1:8787/v1', port.url)
}

type Item = { type: string } & Record<string, unknown>
type Ran = { code: number; items: Item[]; said: string; errors: string }

/** Runs `codex exec` in an empty project; nothing but loopback can be reached. */
async function run(prompt: string, config: string, environment: Record<string, string> = {}): Promise<Ran> {
  const home = join(place, 'home')
  mkdirSync(join(place, 'project'), { recursive: true })
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'config.toml'), config)
  const child = Bun.spawn(
    [
      'node',
      CODEX,
      ...['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
      prompt,
    ],
    {
      cwd: join(place, 'project'),
      env: {
        PATH: process.env.PATH ?? '',
        HOME: place,
        CODEX_HOME: home,
        GATEHOUSE_TOKEN: port.token,
        HTTPS_PROXY: 'http://127.0.0.1:9',
        NO_PROXY: '127.0.0.1',
        ...environment,
      },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  const lines = out
    .split('\n')
    .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as { type: string; item?: Item }] : []))
  const items = lines.flatMap(({ type, item }) => (type === 'item.completed' && item ? [item] : []))
  const said = items.findLast(({ type }) => type === 'agent_message')?.text
  return { code, items, said: String(said), errors: `${out}\n${errors}` }
}

describe.skipIf(!existsSync(CODEX))('Codex with its defaults', () => {
  test(
    'works with the sandbox, configured as the manual says',
    async () => {
      const ran = await run('Please call update_goal', manualConfig('sandbox/general'))
      expect(ran).toMatchObject({ code: 0, said: expect.stringContaining('simulated text') })
    },
    PATIENCE,
  )

  test.each(KINDS)(
    'calls a tool of an MCP server, runs a command and answers, with a vendor of the kind $kind',
    async ({ kind }) => {
      steps = [
        { tool: 'read_note', args: { id: '7' } },
        { tool: 'exec_command', args: { cmd: 'echo made > made.txt; echo ran it' } },
      ]
      const ran = await run('Read the note, then run it.', manualConfig(`${kind}/m`) + MCP)
      expect(ran).toMatchObject({ code: 0 })
      expect(ran.said).toMatch(/It is done: .*Note 7 says: blue\..* \/ .*ran it/s)
      expect(readFileSync(join(place, 'project/made.txt'), 'utf8')).toBe('made\n')
      expect(ran.items).toContainEqual(
        expect.objectContaining({ type: 'mcp_tool_call', server: 'notes', tool: 'read_note', status: 'completed' }),
      )
      const { requests } = vendorOf(kind)
      expect(requests.length).toBe(3)
      for (const request of requests) {
        const names = toolNames(request.json())
        expect(names).toEqual(
          expect.arrayContaining(['exec_command', 'mcp__notes__read_note', 'multi_agent_v1__spawn_agent']),
        )
        for (const name of names) expect(name).toMatch(/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/)
        expect(new Set(names).size).toBe(names.length)
      }
    },
    PATIENCE,
  )

  test(
    'passes to a vendor of its own protocol as it is, through three turns, with a limited token too',
    async () => {
      steps = [
        { tool: 'exec_command', args: { cmd: 'echo one' } },
        { tool: 'exec_command', args: { cmd: 'echo two' } },
      ]
      const limited = await port.tokenFor(['responses-compat/m'])
      const ran = await run('Run both.', manualConfig('responses-compat/m') + MCP, { GATEHOUSE_TOKEN: limited })
      expect(ran).toMatchObject({ code: 0, said: expect.stringMatching(/one.*two/s) })
      const { requests } = vendorOf('responses-compat')
      expect(requests.length).toBe(3)
      for (const request of requests) {
        expect(request.json().tools).toContainEqual(expect.objectContaining({ type: 'namespace', name: 'mcp__notes' }))
      }
    },
    PATIENCE,
  )

  test(
    'searches its deferred tools, calls what it found and edits a file by a patch',
    async () => {
      const patch = '*** Begin Patch\n*** Add File: b.txt\n+patched\n*** End Patch\n'
      steps = [
        { tool: 'tool_search', args: { query: 'note' } },
        { tool: 'read_note', args: { id: '7' } },
        { tool: 'apply_patch', args: { input: patch } },
      ]
      const ran = await run('Find the note and write it down.', manualConfig('gpt-5.5') + MCP)
      expect(ran).toMatchObject({ code: 0, said: expect.stringContaining('Note 7 says: blue.') })
      expect(readFileSync(join(place, 'project/b.txt'), 'utf8')).toBe('patched\n')
      const names = vendorOf('chatcompat').requests.map((request) => toolNames(request.json()))
      expect(names.map((one) => one.includes('mcp__notes__read_note'))).toEqual([false, true, true, true])
    },
    PATIENCE,
  )

  test(
    'gives a subtask to another agent, which answers it',
    async () => {
      steps = [
        { tool: 'collaboration__spawn_agent', args: { task_name: 'one', message: SUBTASK } },
        { tool: 'collaboration__wait_agent', args: { timeout_ms: 60_000 } },
      ]
      const ran = await run('Give it away.', manualConfig('gpt-6.1-sol'))
      expect(ran).toMatchObject({ code: 0 })
      const bodies = vendorOf('chatcompat').requests.map(({ body }) => body)
      const last = bodies.find((body) => body.includes('Message Type: FINAL_ANSWER')) ?? ''
      expect(last).toContain('The subtask is done.')
    },
    PATIENCE,
  )

  test(
    'as its own vendor`s model: over one WebSocket, with tools that its input adds',
    async () => {
      steps = [
        { tool: 'functions__exec', args: { input: 'text("made by a script")' } },
        { tool: 'functions__exec', args: { input: 'text("and once more")' } },
      ]
      const config = `model = "gpt-6.1-sol"\nopenai_base_url = "${port.url}"\n`
      const ran = await run('Run a script, twice.', config, { OPENAI_API_KEY: port.token, CODEX_API_KEY: port.token })
      expect(ran).toMatchObject({ code: 0 })
      expect(ran.said).toMatch(/made by a script.*and once more/s)
      const calls = port.requests.filter(({ path }) => path === '/v1/responses')
      expect(calls.map(({ method, headers }) => [method, headers.get('upgrade')])).toEqual([['GET', 'websocket']])
    },
    PATIENCE,
  )

  test.each(['chatcompat/m', 'responses-compat/m'])(
    'over one WebSocket with %s, through three turns',
    async (model) => {
      steps = [
        { tool: 'exec_command', args: { cmd: 'echo one' } },
        { tool: 'exec_command', args: { cmd: 'echo two' } },
      ]
      const config = `${manualConfig(model)}supports_websockets = true\n`
      const ran = await run('Run both.', config)
      expect(ran).toMatchObject({ code: 0, said: expect.stringMatching(/one.*two/s) })
      const calls = port.requests.filter(({ path }) => path === '/v1/responses')
      expect(calls.map(({ method, headers }) => [method, headers.get('upgrade')])).toEqual([['GET', 'websocket']])
      const { requests } = vendorOf(model.replace('/m', ''))
      expect(requests.length).toBe(3)
      const id = calls[0]?.headers.get('x-request-id')
      expect(port.gateway.logged()).toContain(id === null ? '"websocket":"req_' : `"websocket":"${id}"`)
    },
    PATIENCE,
  )
})
