/** The settings of the sandbox of programs: how they are checked and shown, and what they never open. */
import { afterAll, describe, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as runCheck } from '../src/cli/commands/check.ts'
import { checkProposedPrograms } from '../src/config/check/mcp-checks.ts'
import { violationsOf } from '../src/config/check/problem.ts'
import { DEFAULT_REQUEST_LOG } from '../src/config/config.ts'
import { sandboxText } from '../src/config/schema/mcp-schema.ts'
import type { FileConfig } from '../src/config/schema/schema.ts'
import { programPlaces } from '../src/gateway/program-places.ts'
import { HAS_LANDLOCK } from './kit/confined.ts'
import { configOf } from './kit/gateway.ts'
import { collectingTerminal } from './kit/terminal.ts'

const root = mkdtempSync(join(tmpdir(), 'gatehouse-sandbox-'))
const config = join(root, 'app/gatehouse.yaml')
mkdirSync(join(root, 'app'))
writeFileSync(join(root, 'app/.env'), '')
afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('the sandbox of a configuration', () => {
  async function check(servers: object) {
    const directory = mkdtempSync(join(root, 'check-'))
    writeFileSync(join(directory, 'gatehouse.yaml'), JSON.stringify({ mcp: { servers } }))
    const { terminal, printed } = collectingTerminal({ cwd: directory })
    return { code: await runCheck([], terminal), ...printed }
  }

  it('is shown by `gatehouse check`', async () => {
    const sandbox = { read: ['/srv/a'], write: ['/srv/b'], network: 'none', unix_sockets: true }
    const { out } = await check({
      x: { command: 'x', sandbox },
      y: { command: 'y', sandbox: 'off' },
      z: { command: 'z' },
    })
    const here = (text: string) => (HAS_LANDLOCK ? text : 'not possible here (no Landlock): it does not start')
    const x = here('on: network none, Unix sockets, reads /srv/a, writes /srv/b')
    expect(out).toContain(`mcp.servers.x is a program; sandbox: ${x}\n`)
    expect(out).toContain('mcp.servers.y is a program; sandbox: off\n')
    expect(out).toContain(`mcp.servers.z is a program; sandbox: ${here('on: network any')}\n`)
    expect(sandboxText({ command: 'x' }, false)).toStartWith('not possible here')
  })

  it('names absolute paths, at a program only', async () => {
    const { code, err } = await check({
      x: { command: 'x', sandbox: { read: ['srv'] } },
      y: { url: 'https://mcp.example.com/mcp', sandbox: 'off' },
    })
    expect(code).toBe(1)
    expect(err).toContain('mcp.servers.x.sandbox: has "srv", which is no absolute path')
    expect(err).toContain('mcp.servers.y.sandbox: does not belong to a server with url')
  })

  it('opens neither all of the system nor files of the gateway, by links either', async () => {
    const link = join(root, 'link')
    symlinkSync('/proc/self', link)
    const paths = ['/', '/proc', '/proc/1', '/proc/self/root', '/dev', '/etc/ssl', link]
    for (const path of paths) {
      const { code, err } = await check({ x: { command: 'x', sandbox: { write: [path] } } })
      expect([path, code, err]).toEqual([path, 1, expect.stringContaining('mcp.servers.x.sandbox.write: ')])
      expect(err).toContain(`${path} `)
    }
    const own = mkdtempSync(join(root, 'own-'))
    for (const name of ['srv', 'data']) mkdirSync(join(own, name))
    writeFileSync(join(own, 'secret'), 'falcon-4711')
    symlinkSync(join(own, 'data'), join(own, 'srv/data'))
    const written = (path: string) => ({
      admin_tokens: {},
      mcp: {
        servers: {
          y: { url: 'https://mcp.example.com/', key: '${file:secret}' },
          x: { command: 'x', sandbox: { read: [path] } },
        },
      },
    })
    for (const name of ['', 'data', 'data/sub', 'srv/data', 'srv', 'gatehouse.yaml', 'secret']) {
      const path = join(own, name)
      writeFileSync(join(own, 'gatehouse.yaml'), JSON.stringify(written(path)))
      const { terminal, printed } = collectingTerminal({ cwd: own })
      // A directory may have a link that leads out: it opens nothing behind it.
      const isOpen = name === 'srv'
      expect([name, await runCheck([], terminal)]).toEqual([name, isOpen ? 0 : 1])
      if (!isOpen)
        expect(printed.err).toMatch(
          /gatehouse\.yaml:1:\d+ {2}mcp\.servers\.x\.sandbox\.read: .* which no program may reach/,
        )
      expect(printed.err).not.toContain('falcon-4711')
    }
  })

  it('never names files of the gateway', () => {
    const sinks = [{ file: { path: 'log/requests.ndjson' } }]
    const settings = {
      file: config,
      data_dir: join(root, 'data'),
      store_url: `sqlite:${root}/other.db`,
      outputs: { directory: `${root}/out` },
    }
    const { hidden } = programPlaces(
      configOf({ ...settings, request_log: { ...DEFAULT_REQUEST_LOG, sinks } } as never),
      { GATEHOUSE_ENV_FILE: `${root}/variables` },
    )
    const names = [
      'data',
      'out',
      'data/log/requests.ndjson',
      'app/gatehouse.yaml',
      'app/.env',
      'variables',
      'other.db',
      'other.db-wal',
    ]
    expect(hidden).toEqual(expect.arrayContaining(names.map((name) => join(root, name))))
  })

  it('is not changed by the admin API', () => {
    const before = { mcp: { servers: { x: { command: 'x' } } } }
    const proposed = { mcp: { servers: { x: { command: 'x', sandbox: 'off' as const } } } }
    const problemsOf = (file: FileConfig) => violationsOf((report) => checkProposedPrograms(file, before, report))
    expect(problemsOf(proposed)).toMatchObject([{ path: ['mcp', 'servers', 'x', 'command'] }])
    expect(problemsOf(before)).toEqual([])
  })
})
