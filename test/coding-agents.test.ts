/**
 * The manual's page about coding agents: its configurations and commands, run by the agents themselves. Most are large, so
 * they are installed apart, which CONTRIBUTING.md describes and .ci/run does first.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { manualPage } from './kit/manual.ts'
import { openPort, type Port } from './kit/served.ts'
import { type ReceivedRequest, respond, type ScriptedResponse } from './matrix/model-script.ts'
import { chatcompatWire } from './matrix/vendors/chatcompat.ts'
import { startWireVendor, type WireVendor } from './matrix/vendors/wire-vendor.ts'

const AGENTS = join(import.meta.dir, 'agents')
const NPM = join(AGENTS, 'node_modules')
const AIDER = join(AGENTS, '.venv/bin')
/** Starting a program of 380 MB on a busy machine, and several requests. */
const PATIENCE = 180_000
const ADDRESS = 'http://127.0.0.1:8787'
/** Nothing listens there: what an agent sends to any other host than loopback goes nowhere. */
const NOWHERE = 'http://127.0.0.1:9'
const page = manualPage('coding-agents.md')

type Block = { language: string; text: string; file: string | undefined }
/** The code blocks of one section, each with the file that the line before it names. */
function blocksOf(section: string): Block[] {
  const [, text = ''] = new RegExp(`^## ${section}\n(.*?)(?=^## |(?![^]))`, 'ms').exec(page) ?? []
  return [...text.matchAll(/^(?:(.*)\n\n)?```(\w+)\n([\s\S]*?)^```/gm)].map(
    ([, before = '', language = '', block = '']) => ({
      language,
      text: block,
      file: /`~\/([^`]+)`/.exec(before)?.[1],
    }),
  )
}

type Agent = {
  name: string
  package: string
  /** What must be installed. */
  program: string
  /** The tool that the model calls first, and its arguments. */
  tool?: [name: string, args: (project: string) => object]
}
const MARK = 'printed-by-main'
const LIST: Agent[] = [
  {
    name: 'Claude Code',
    package: '@anthropic-ai/claude-code',
    program: join(NPM, '@anthropic-ai/claude-code/package.json'),
    tool: ['Read', (project) => ({ file_path: join(project, 'main.ts') })],
  },
  {
    name: 'Codex',
    package: '@openai/codex',
    program: join(NPM, '@openai/codex/package.json'),
  },
  {
    name: 'Gemini CLI',
    package: '@google/gemini-cli',
    program: join(NPM, '@google/gemini-cli/package.json'),
    tool: ['read_file', (project) => ({ file_path: join(project, 'main.ts') })],
  },
  {
    name: 'opencode',
    package: 'opencode-ai',
    program: join(NPM, 'opencode-ai/package.json'),
    tool: ['read', (project) => ({ filePath: join(project, 'main.ts') })],
  },
  {
    name: 'Cline',
    package: 'cline',
    program: join(NPM, 'cline/package.json'),
    tool: ['read_files', (project) => ({ files: [{ path: join(project, 'main.ts') }] })],
  },
  {
    name: 'Continue',
    package: '@continuedev/cli',
    program: join(NPM, '@continuedev/cli/package.json'),
    tool: ['Read', (project) => ({ filepath: join(project, 'main.ts') })],
  },
  { name: 'aider', package: 'aider-chat', program: join(AIDER, 'aider') },
]

let running: Agent
let project: string
let home: string
/** A model that calls the agent's tool, and then repeats the result; for aider, one that writes the file anew. */
function follow(received: ReceivedRequest): ScriptedResponse {
  const plain = { ...respond({ ...received, tools: [], demanded: undefined, question: 'x' }), calls: [] }
  const { tool } = running
  if (running.name === 'aider') return { ...plain, text: ['main.ts\n```\nconsole.log(2)\n```\n'], finish: 'stop' }
  const results = received.history.flatMap((line) => (line.role === 'results' ? line.results : []))
  if (results.length > 0)
    return { ...plain, text: [`It says ${results.map(({ text }) => text).join(' ')}`], finish: 'stop' }
  if (tool === undefined || received.tools.length === 0) return { ...plain, text: [`I say ${MARK}.`], finish: 'stop' }
  const [name, args] = tool
  if (!received.tools.some((one) => one.name === name)) {
    return { ...plain, text: [`There is no ${name} among ${received.tools.map((one) => one.name).join(', ')}.`] }
  }
  const call = { id: 'call_1', name, pieces: [JSON.stringify(args(project))] }
  return { ...plain, text: [], calls: [call], finish: 'tool_calls' }
}

/** The aliases of the page, for two models of the vendor. */
const aliases = (): Record<string, { alias_of: string }> => {
  const [{ text = '' } = {}] = blocksOf('Names for your models')
  const { models } = Bun.YAML.parse(text) as { models: Record<string, { alias_of: string }> }
  const targets: Record<string, string> = { 'sandbox/general': 'v/large', 'sandbox/compact': 'v/fast' }
  return Object.fromEntries(
    Object.entries(models).map(([name, { alias_of }]) => [name, { alias_of: targets[alias_of] ?? '' }]),
  )
}

let vendor: WireVendor
let port: Port
let token: string
beforeAll(async () => {
  vendor = startWireVendor(chatcompatWire, { respond: follow })
  port = await openPort({
    providers: { v: { base_url: vendor.url, key: 'vendor-key' } },
    models: { 'v/large': { limits: { max_tokens: { maximum: 32_768 } } }, 'v/fast': {}, ...aliases() },
  })
  token = await port.tokenFor(Object.keys(aliases()))
})
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gatehouse-agents-'))
  project = join(home, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'main.ts'), `console.log('${MARK}')\n`)
  Bun.spawnSync(['git', 'init', '-q', project])
  vendor.requests.length = 0
  port.requests.length = 0
})
afterEach(() => {
  stopDaemons()
  rmSync(home, { recursive: true, force: true })
})
afterAll(async () => {
  await port.close()
  await vendor.stop()
})

/** Some agents leave a process behind that outlives their shell: it has our home directory. */
function stopDaemons(): void {
  for (const id of existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : []) {
    try {
      if (readFileSync(`/proc/${id}/environ`, 'utf8').includes(`HOME=${home}\0`)) process.kill(Number(id), 'SIGKILL')
    } catch {
      // It has ended, or belongs to somebody else.
    }
  }
}

function freePort(): number {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const { port: free = 0 } = server
  server.stop(true)
  return free
}

/** Writes the files of a section, runs its commands in a shell, and returns what they print. */
async function run(section: string): Promise<{ code: number; output: string }> {
  const blocks = blocksOf(section)
  const ours = (text: string) => text.replaceAll(ADDRESS, port.url.replace(/\/v1$/, ''))
  for (const { file, text } of blocks) {
    if (file === undefined) continue
    mkdirSync(dirname(join(home, file)), { recursive: true })
    writeFileSync(join(home, file), ours(text))
  }
  const commands = blocks.filter(({ language }) => language === 'sh').map(({ text }) => ours(text))
  const child = Bun.spawn(['sh', '-e', '-c', commands.join('\n')], {
    cwd: project,
    env: {
      PATH: [join(NPM, '.bin'), AIDER, process.env.PATH ?? ''].join(':'),
      HOME: home,
      TERM: 'dumb',
      NO_COLOR: '1',
      LANG: 'C.UTF-8',
      GATEHOUSE_TOKEN: token,
      // Its daemon's port, which is fixed otherwise, may be in use.
      CLINE_HUB_PORT: String(freePort()),
      ...Object.fromEntries(['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => [name, NOWHERE])),
      NO_PROXY: '127.0.0.1,localhost',
      no_proxy: '127.0.0.1,localhost',
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, output: `${out}\n${err}` }
}

test('the page has a section with commands and a tested version for each agent', () => {
  const { dependencies } = JSON.parse(readFileSync(join(AGENTS, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const aider = /^aider-chat==(\S+)/m.exec(readFileSync(join(AGENTS, 'requirements.txt'), 'utf8'))?.[1] ?? ''
  for (const { name, package: one } of LIST) {
    expect(blocksOf(name).some(({ language }) => language === 'sh')).toBe(true)
    const version = one === 'aider-chat' ? aider : dependencies[one]
    expect(page.replaceAll('\n', ' ')).toContain(`\`${one}\` ${version}`)
  }
})

describe.each(LIST)('$name', (agent) => {
  test.skipIf(!existsSync(agent.program))(
    'works as configured on the page, with a limited token',
    async () => {
      running = agent
      const { code, output } = await run(agent.name)
      expect({ code, output }).toMatchObject({ code: 0 })
      if (agent.name === 'aider') expect(readFileSync(join(project, 'main.ts'), 'utf8')).toBe('console.log(2)\n')
      else expect(output).toContain(MARK)
      expect(vendor.requests.length).toBeGreaterThan(agent.tool ? 1 : 0)
    },
    PATIENCE,
  )
})
