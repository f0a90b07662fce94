/** Runs the official conformance suite of MCP and the Inspector's command line at a gateway in front of a server with all features. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { UNCONFINED_WITHOUT_LANDLOCK } from './kit/confined.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'

const NPM = join(import.meta.dir, 'mcp-tools/node_modules')
const SUITE = join(NPM, '@modelcontextprotocol/conformance/dist/index.js')
const INSPECTOR = join(NPM, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const PATIENCE = 600_000
const results = mkdtempSync(join(tmpdir(), 'gatehouse-conformance-'))
const SCENARIOS = 32

let gateway: TestGateway
let door: ReturnType<typeof Bun.serve>
beforeAll(async () => {
  const program = join(import.meta.dir, 'kit/mcp-conformance-program.ts')
  const servers = {
    all: {
      command: process.execPath,
      args: [program],
      per_session: true,
      // Each of its sessions starts the program once, on a machine that may be busy.
      connect_seconds: 120,
      ...UNCONFINED_WITHOUT_LANDLOCK,
    },
  }
  gateway = await startGateway({ mcp: { ...DEFAULT_MCP, servers } }, { clock: systemClock })
  door = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    // The suite has no option for a token.
    fetch(request) {
      const headers = new Headers(request.headers)
      if (!headers.has('authorization')) headers.set('authorization', `Bearer ${gateway.token}`)
      return gateway.instance.fetch(new Request(request, { headers }))
    },
  })
})
afterAll(async () => {
  rmSync(results, { recursive: true, force: true })
  await door.stop(true)
  await gateway[Symbol.asyncDispose]()
})

async function run(file: string, args: string[]) {
  const child = Bun.spawn([process.execPath, file, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { out, err, code: await child.exited }
}
const address = (path: string) => `http://127.0.0.1:${door.port}${path}`
/** What the suite has written about them. */
const failedChecks = () =>
  [...new Bun.Glob('**/checks.json').scanSync(results)]
    .flatMap((file): { status: string }[] => JSON.parse(readFileSync(join(results, file), 'utf8')))
    .filter(({ status }) => status === 'FAILURE')
const isInstalled = [SUITE, INSPECTOR].every((file) => existsSync(file))
if (!isInstalled)
  process.stderr.write('Skipped: npm install --no-save --prefix test/mcp-tools installs what these tests run.\n')

test.skipIf(!isInstalled)(
  'the conformance suite passes in all its scenarios for servers',
  async () => {
    const { out, code } = await run(SUITE, ['server', '--url', address('/mcp/all'), '--suite', 'all', '-o', results])
    // Why, if the suite fails.
    const logged = code === 0 ? null : gateway.logged().match(/^.*"event":"mcp .*$/gm)
    expect({ code, failed: failedChecks(), logged }).toEqual({ code: 0, failed: [], logged: null })
    expect(out.match(/^✓ /gm)?.length).toBe(SCENARIOS)
    expect(out).toContain('Total: 44 passed, 0 failed')
  },
  PATIENCE,
)

describe.skipIf(!isInstalled)('the Inspector', () => {
  const inspect = (era: string, ...args: string[]) =>
    run(INSPECTOR, ['--cli', address('/mcp'), '--protocol-era', era, ...args])

  test.each(['legacy', 'modern'])(
    'lists, calls and reads what all servers have, by the %s protocol',
    async (era) => {
      const list = await inspect(era, '--method', 'tools/list')
      const names = (JSON.parse(list.out) as { tools: { name: string }[] }).tools.map(({ name }) => name)
      expect(names).toContain('sandbox__calculator')
      expect(names).toContain('all__json_schema_2020_12_tool')
      const call = (name: string, ...more: string[]) =>
        inspect(era, '--method', 'tools/call', '--tool-name', name, ...more)
      const six = await call('sandbox__calculator', '--tool-arg', 'expression=6 * 7')
      expect(JSON.parse(six.out)).toMatchObject({ content: [{ type: 'text', text: '42' }] })
      const failed = await call('all__test_error_handling')
      expect([failed.code, JSON.parse(failed.out).isError]).toEqual([5, true])
      const uri = 'all+test://static-text'
      const read = await inspect(era, '--method', 'resources/read', '--uri', uri)
      expect(JSON.parse(read.out)).toMatchObject({ contents: [{ uri, text: expect.stringContaining('static text') }] })
      const prompt = await inspect(era, '--method', 'prompts/get', '--prompt-name', 'all__test_simple_prompt')
      expect(JSON.parse(prompt.out)).toMatchObject({ messages: [{ role: 'user' }] })
    },
    PATIENCE,
  )

  test(
    'is refused with a token that is none',
    async () => {
      const { code, err } = await inspect('legacy', '--method', 'tools/list', '--header', 'Authorization: Bearer none')
      expect([code === 0, err]).toEqual([false, expect.stringContaining('auth_required')])
    },
    PATIENCE,
  )
})
