/** The single-file executable and the package for npx, in empty directories: what they hold, serve, render and upgrade. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hostTarget, TARGETS } from '../scripts/build-binary.ts'
import { buildPackages } from '../scripts/build-package.ts'
import { OWNER } from './kit/admin.ts'
import { UNCONFINED_WITHOUT_LANDLOCK } from './kit/confined.ts'
import { SERVE_TOKEN, type ServeProcess, startServe } from './kit/serve-process.ts'
import { LAST, UNDO_LAST } from './kit/undo-migrations.ts'

const ROOT = join(import.meta.dir, '..')
const MAX_INSTALLED_BYTES = 200_000_000
const root = mkdtempSync(join(tmpdir(), 'gatehouse-executable-'))
/** Where any user may run it. */
const executable = join(root, 'gatehouse')
/** Another executable to test, such as one for another system that this one can run: CONTRIBUTING.md. */
const given = process.env.GATEHOUSE_TEST_EXECUTABLE
let installed: string

/** An empty directory below a path that holds no package. */
function empty(name: string): string {
  const directory = join(root, name)
  mkdirSync(directory)
  return directory
}

const call = (served: ServeProcess, path: string, json?: object) =>
  fetch(served.url + path, {
    method: json ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${SERVE_TOKEN}`, 'content-type': 'application/json' },
    ...(json && { body: JSON.stringify(json) }),
  })

async function ended(served: ServeProcess): Promise<number> {
  served.child.kill('SIGTERM')
  return served.child.exited
}

/** Whether this user may mount: the image's file system is then tried without a container engine. */
const canIsolate = process.platform === 'linux' && spawnSync('unshare', ['--mount', 'true']).status === 0

/** What deploy/Dockerfile makes: the executable, the libraries of a minimal Debian, and an empty volume. */
function imageTree(): string {
  const image = empty('image')
  for (const directory of ['usr/local/bin', 'data', 'dev', 'proc', 'tmp'])
    mkdirSync(join(image, directory), { recursive: true })
  cpSync(executable, join(image, 'usr/local/bin/gatehouse'))
  const drawing = fileURLToPath(import.meta.resolve(TARGETS[hostTarget()]?.canvas ?? ''))
  const needed = execFileSync('ldd', [executable, drawing], { encoding: 'utf8' })
  const libraries = [...needed.matchAll(/(?:=> |^\t)(\/\S+)/gm)].map(([, path = '']) => path)
  for (const library of libraries) cpSync(realpathSync(library), join(image, library))
  chownSync(join(image, 'data'), 65532, 65532)
  return image
}

/** A command that becomes the gateway in the image, as its user: it reads only, but for the volume and a /tmp like Docker's. */
const inImage = (image: string) => `#!/bin/sh
exec unshare --mount sh -euc '
  mount --bind "$0" "$0"; mount -o remount,ro,bind "$0"
  mount --bind "$0/data" "$0/data"; mount -o remount,rw,bind "$0/data"
  mount -t tmpfs -o noexec,nosuid,nodev tmpfs "$0/tmp"; mount --bind /proc "$0/proc"; mount --bind /dev "$0/dev"
  exec /usr/sbin/chroot --userspec=65532:65532 "$0" /usr/local/bin/gatehouse "$@"' '${image}' "$@"
`

beforeAll(async () => {
  const archives = await buildPackages([])
  chmodSync(root, 0o755)
  cpSync(given ?? join(ROOT, `dist/gatehouse-${hostTarget()}`), executable)
  const project = empty('project')
  writeFileSync(join(project, 'package.json'), '{"private":true}')
  // The packages for other systems are in no registry here.
  const options = ['--no-audit', '--no-fund', '--omit=optional', '--loglevel=error']
  execFileSync('npm', ['install', ...options, ...archives], { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] })
  installed = join(project, 'node_modules/.bin/gatehouse')
}, 600_000)
afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('the package', () => {
  it('takes at most 200 MB where it is installed, and runs from there', () => {
    const [kilobytes = ''] = execFileSync('du', ['-sk', join(root, 'project')], { encoding: 'utf8' }).split('\t')
    expect(Number(kilobytes) * 1024).toBeLessThan(MAX_INSTALLED_BYTES)
    expect(statSync(executable).size).toBeLessThan(MAX_INSTALLED_BYTES)
    const version = execFileSync(installed, ['version', '--json'], { cwd: empty('version'), encoding: 'utf8' })
    expect(JSON.parse(version)).toMatchObject({ gatehouse: '0.1.0', bun: Bun.version })
  })

  it('says what is missing where npm left out the executable', () => {
    const alone = empty('alone')
    mkdirSync(join(alone, 'bin'))
    execFileSync('cp', [join(ROOT, 'scripts/packaging/launcher.sh'), join(alone, 'bin/gatehouse')])
    const { exitCode, stderr } = Bun.spawnSync(['sh', join(alone, 'bin/gatehouse'), 'version'])
    expect(exitCode).toBe(1)
    expect(stderr.toString()).toContain('install without --omit=optional')
  })
})

describe('the executable', () => {
  let served: ServeProcess
  beforeAll(async () => {
    const directory = empty('served')
    // What lies where the command is typed is no part of the program.
    writeFileSync(join(directory, 'bunfig.toml'), 'preload = ["./missing.ts"]')
    served = await startServe({ directory, command: executable, environment: { GATEHOUSE_ADMIN_TOKEN: OWNER } })
  }, 300_000)
  afterAll(() => ended(served))

  it('answers the calls of the README, whole and streamed', async () => {
    const body = { model: 'sandbox/general', messages: [{ role: 'user', content: 'What is Gatehouse?' }] }
    const whole = (await (await call(served, '/v1/chat/completions', body)).json()) as {
      choices: { message: { content: string } }[]
    }
    // The sandbox quotes the manual, which is inside.
    expect(whole.choices[0]?.message.content).toContain('Gatehouse')
    const stream = await (await call(served, '/v1/chat/completions', { ...body, stream: true })).text()
    expect(stream).toEndWith('data: [DONE]\n\n')
  })

  it('holds the manual, the API reference, and the console in each coding', async () => {
    for (const path of ['/manual/tokens', '/docs', '/docs/scalar.js', '/manual/images/console-home.png'])
      expect([path, (await fetch(served.url + path, { headers: { accept: 'text/html' } })).status]).toEqual([path, 200])
    const page = await (await fetch(`${served.url}/console`, { headers: { 'accept-encoding': 'identity' } })).text()
    const names = [...page.matchAll(/\/console\/assets\/[\w.-]+/g)].map(([name]) => name)
    expect(names.length).toBeGreaterThan(1)
    for (const name of names)
      for (const coding of ['identity', 'gzip', 'br']) {
        const response = await fetch(served.url + name, { headers: { 'accept-encoding': coding } })
        expect([name, response.status, response.headers.get('content-encoding')]).toEqual([
          name,
          200,
          coding === 'identity' ? null : coding,
        ])
      }
  })

  it('counts tokens and embeds long texts in its worker threads', async () => {
    const input = 'a gatehouse stands before the town '.repeat(600)
    const { data } = (await (await call(served, '/v1/embeddings', { model: 'sandbox/embedding', input })).json()) as {
      data: { embedding: number[] }[]
    }
    expect(data[0]?.embedding.some((value) => value !== 0)).toBe(true)
    const contents = [{ role: 'user', parts: [{ text: 'internationalization' }] }]
    const counted = await call(served, '/v1beta/models/sandbox/general:countTokens', { contents })
    // Characters / 4, without the worker, would be 5.
    expect(await counted.json()).toMatchObject({ totalTokens: expect.any(Number) })
  })

  it('renders a video and an image of the sandbox', async () => {
    const order = { model: 'sandbox/text-to-video', prompt: 'a boat', duration: 4 }
    const { data } = (await (await call(served, '/v1/video/generations', order)).json()) as {
      data: { task_id: string }
    }
    const [task] = await until(async () => {
      const found = (await (await call(served, `/v1/video/generations/${data.task_id}`)).json()) as {
        data: { status: string; outputs: string[] }
      }
      return found.data.status === 'SUCCESS' || found.data.status === 'FAILURE' ? [found.data] : []
    })
    expect(task?.status).toBe('SUCCESS')
    const video = await fetch(task?.outputs[0] ?? '')
    expect([video.status, video.headers.get('content-type')]).toEqual([200, 'video/mp4'])
    const image = await call(served, '/v1/images/generations', { model: 'sandbox/image', prompt: 'a gate' })
    expect(image.status).toBe(200)
  }, 300_000)

  it('calls tools of MCP servers, in chats too, and guards texts with patterns of RE2', async () => {
    const directory = empty('tools')
    const notes = {
      command: process.execPath,
      args: [join(ROOT, 'test/kit/notes-server.ts')],
      ...UNCONFINED_WITHOUT_LANDLOCK,
    }
    const guards = {
      names: { kind: 'patterns', patterns: ['project (orion|lyra)'], when: {}, on: ['input'] },
      personal: { kind: 'redact', restore: true, when: {} },
    }
    writeFileSync(join(directory, 'gatehouse.yaml'), JSON.stringify({ mcp: { servers: { notes } }, guards }))
    const tools = await startServe({ directory, command: executable })
    const run = (name: string, args: object) =>
      call(tools, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })
    expect(await (await run('sandbox__calculator', { expression: '6 * 7' })).text()).toContain('42')
    expect(await (await run('notes__read_note', { id: '7' })).text()).toContain('Note 7 says: blue.')
    const tool = { type: 'mcp', server_label: 'sandbox', require_approval: 'never' }
    const input = 'Hello'
    const inChat = await call(tools, '/v1/responses', { model: 'sandbox/general', input, tools: [tool] })
    expect([inChat.status, await inChat.text()]).toEqual([200, expect.stringContaining('mcp_list_tools')])
    const chat = (content: string) =>
      call(tools, '/v1/chat/completions', { model: 'sandbox/general', messages: [{ role: 'user', content }] })
    expect((await chat('All of Project Orion')).status).toBe(400)
    expect((await chat('Write to ada@example.com')).status).toBe(200)
    expect(await ended(tools)).toBe(0)
  }, 120_000)

  it('checks a large configuration in a worker thread', async () => {
    const text = `providers: {}\n${'# a comment\n'.repeat(2_000)}`
    const checked = await fetch(`${served.url}/admin/v1/config/validate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OWNER}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
    })
    expect([checked.status, await checked.json()]).toMatchObject([200, {}])
  })

  it('serves by several worker processes', async () => {
    const directory = empty('workers')
    writeFileSync(join(directory, 'gatehouse.yaml'), 'server: { workers: 2 }\n')
    const several = await startServe({ directory, command: executable })
    expect((await several.chat('sandbox/general')).status).toBe(200)
    expect(await ended(several)).toBe(0)
  }, 300_000)

  it('says whose its directory is where it may not write there', () => {
    const directory = empty('of-another')
    const isRoot = process.getuid?.() === 0
    chmodSync(directory, 0o555)
    const { status, stderr } = spawnSync(executable, ['serve', '--port', '0'], {
      cwd: directory,
      env: { GATEHOUSE_DATA_DIR: directory },
      encoding: 'utf8',
      ...(isRoot && { uid: 65532, gid: 65532 }),
    })
    expect(status).toBe(1)
    expect(stderr).toContain(
      isRoot
        ? `The directory ${directory} belongs to user 0 and group 0, and the gateway runs as user 65532: chown 65532 ${directory}.`
        : `may not be written by its owner: chmod u+rwx ${directory}.`,
    )
  })

  it('asks a gateway whether it is ready, as a health check does', () => {
    const health = (...args: string[]) => spawnSync(executable, ['health', ...args], { cwd: root, encoding: 'utf8' })
    const ready = health('--url', served.url)
    expect([ready.status, ready.stdout]).toEqual([0, 'ready\n'])
    const away = health('--url', 'http://127.0.0.1:9', '--json')
    expect([away.status, JSON.parse(away.stdout)]).toEqual([1, { error: expect.stringContaining('127.0.0.1:9') }])
  })

  it.skipIf(!canIsolate)(
    'runs as the user of the image, on a file system that holds no more than the image',
    async () => {
      const image = imageTree()
      const command = join(root, 'in-image')
      writeFileSync(command, inImage(image), { mode: 0o755 })
      const environment = { GATEHOUSE_HOST: '0.0.0.0', GATEHOUSE_DATA_DIR: '/data' }
      const isolated = await startServe({ directory: root, command, environment })
      const url = `http://127.0.0.1:${isolated.port}`
      expect(spawnSync(executable, ['health', '--url', url], { encoding: 'utf8' }).stdout).toBe('ready\n')
      const drawn = { model: 'sandbox/image', prompt: 'a gate' }
      expect((await call(isolated, '/v1/images/generations', drawn)).status).toBe(200)
      expect(await ended(isolated)).toBe(0)
      expect(statSync(join(image, 'data/gatehouse.db')).uid).toBe(65532)
    },
    300_000,
  )

  it('upgrades a database of an older version, and its commands read it', async () => {
    const directory = empty('upgraded')
    const first = await startServe({ directory })
    expect((await first.chat('sandbox/general')).status).toBe(200)
    await ended(first)
    using database = new Database(join(directory, 'data/gatehouse.db'))
    database.run(UNDO_LAST)
    const second = await startServe({ directory, command: executable })
    expect((await second.chat('sandbox/general')).status).toBe(200)
    await ended(second)
    expect(database.query('select max(name) as name from kysely_migration').get()).toEqual({ name: LAST })
    const listed = execFileSync(executable, ['token', 'list', '--json'], { cwd: directory, encoding: 'utf8' })
    expect(listed).toContain('tok_')
  }, 300_000)
})

async function until<Value>(look: () => Promise<Value[]>): Promise<Value[]> {
  for (;;) {
    const found = await look()
    if (found.length > 0) return found
    await Bun.sleep(100)
  }
}
