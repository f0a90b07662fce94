/** The executable that is made at installation: it is made, used while it is fresh, and serves what reads files. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import package_ from '../package.json' with { type: 'json' }

const ROOT = join(import.meta.dir, '..')
const TOKEN = 'sk-0123456789012345678901234567890123456789'
/** What a first request does not need. */
const LOADED_LATER =
  /node_modules\/(@ai-sdk|@modelcontextprotocol|@napi-rs|@opentelemetry|eld|gpt-tokenizer|jose|minisearch|nodemailer|openid-client|pg|prom-client|re2js|stemmer|yaml|zod)\/|typebox\/build\/(compile|schema)\/|src\/site\/manual\/(manual|manual-page|search)\.ts|src\/providers\/(ai-sdk|video|three-d)\/|packages\/sandbox\/src\/(sandbox|render\/(canvas|mux|renderer|workers))\.ts/

let home: string
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'gatehouse-checkout-'))
  for (const name of ['bin', 'console', 'docs', 'packages', 'scripts', 'src', 'package.json', 'package-lock.json']) {
    const filter = (path: string) => !path.includes('node_modules')
    cpSync(join(ROOT, name), join(home, name), { recursive: true, filter })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'))
  commit()
  // The command that npm runs at the end of an installation.
  const [command = '', ...args] = package_.scripts.postinstall.split(' ')
  const { exitCode, stderr } = Bun.spawnSync([command, ...args], { cwd: home })
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: '' })
  // An executable names the commit that it was made of, also where the repository is not.
  rmSync(join(home, '.git'), { recursive: true })
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** A repository whose only commit is empty. */
function commit(): void {
  const env = { PATH: process.env.PATH, GIT_COMMITTER_DATE: '2026-11-24T12:00:00Z' }
  const author = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false']
  for (const args of [
    ['init', '--quiet'],
    [...author, 'commit', '--quiet', '--allow-empty', '-m', 'one'],
  ])
    expect(Bun.spawnSync(['git', '-C', home, ...args], { env }).exitCode).toBe(0)
}

/** What `bin/gatehouse` starts. */
function started(): string | undefined {
  const { stderr, stdout } = Bun.spawnSync(['sh', '-x', join(home, 'bin/gatehouse'), 'version'], { cwd: tmpdir() })
  expect(stdout.toString()).toStartWith(`gatehouse ${package_.version} `)
  return /^\+ exec .*\/\.\.\/(\S+) version$/m.exec(stderr.toString())?.[1]
}

describe('bin/gatehouse', () => {
  it('starts the executable that the installation made', () => {
    expect(started()).toBe('dist/gatehouse')
  })

  it.each(['src/kit/log.ts', 'packages/sandbox/src/models.ts', 'src/site', 'console/src/main.tsx', 'docs/manual'])(
    'starts the sources when %s is newer than the executable',
    (path) => {
      const later = new Date(Date.now() + 60_000)
      utimesSync(join(home, path), later, later)
      expect(started()).toBe('src/main.ts')
      const earlier = new Date(0)
      utimesSync(join(home, path), earlier, earlier)
      expect(started()).toBe('dist/gatehouse')
    },
  )

  it('starts the sources when the executable is that of another package.json', () => {
    const file = join(home, 'package.json')
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace('"private": true', '"private":  true'))
    expect(started()).toBe('src/main.ts')
    writeFileSync(file, text)
    expect(started()).toBe('dist/gatehouse')
  })
})

/** On disk; 0: it was deleted. */
const sizeOf = (path: string): number => (lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512

describe('the executable', () => {
  it('names the commit that it was made of', () => {
    const { stdout } = Bun.spawnSync([join(home, 'bin/gatehouse'), '--version'])
    expect(stdout.toString()).toMatch(/^gatehouse \S+ \(commit [0-9a-f]{7,}, 2026-11-24, bun /)
  })

  // With its history, which grows by some MB a year, a clone takes 8 MB more.
  it.skipIf(!existsSync(join(ROOT, '.git')))('and a clone as the README makes it take at most 195 MB', () => {
    const [, options = ''] = /`git clone (--depth 1)`/.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? []
    const clone = join(home, 'clone')
    const { exitCode } = Bun.spawnSync(['git', 'clone', '--quiet', ...options.split(' '), `file://${ROOT}`, clone])
    expect({ options, exitCode }).toEqual({ options: '--depth 1', exitCode: 0 })
    const files = readdirSync(clone, { recursive: true, encoding: 'utf8' })
    expect(files.length).toBeGreaterThan(1_000)
    const bytes = files.reduce((sum, name) => sum + sizeOf(join(clone, name)), 0)
    expect(bytes + sizeOf(join(home, 'dist/gatehouse'))).toBeLessThan(195_000_000)
  })

  it('answers chat, counts tokens, calls tools, draws the pictures of the sandbox and serves the manual', async () => {
    const child = Bun.spawn([join(home, 'bin/gatehouse'), 'serve', '--port', '0', '--json'], {
      cwd: home,
      env: { PATH: process.env.PATH ?? '', GATEHOUSE_BOOTSTRAP_TOKEN: TOKEN, GATEHOUSE_DISCOVER: 'off' },
      stdout: 'pipe',
      stderr: 'ignore',
    })
    try {
      let line = ''
      for await (const bytes of child.stdout) {
        line += new TextDecoder().decode(bytes)
        if (line.includes('\n')) break
      }
      const { url } = JSON.parse(line) as { url: string }
      const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
      const post = async (path: string, body: object) => {
        const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
        return { status: response.status, ...((await response.json()) as object) }
      }
      const messages = [{ role: 'user', content: 'What is Gatehouse?' }]
      const chat = await post('/v1/chat/completions', { model: 'sandbox/general', messages })
      expect(chat).toMatchObject({
        status: 200,
        choices: [{ message: { content: expect.stringContaining('quoted from the Gatehouse manual') } }],
      })
      const counted = await post('/v1/messages/count_tokens', { model: 'sandbox/general', messages })
      expect(counted).toMatchObject({ status: 200, input_tokens: expect.any(Number) })
      const image = { model: 'sandbox/image', prompt: 'a gate', response_format: 'b64_json' }
      const pictures = await post('/v1/images/generations', image)
      expect(pictures).toMatchObject({ status: 200, data: [{ b64_json: expect.stringMatching(/^[\w+/=]{1000,}$/) }] })
      const params = { name: 'sandbox__calculator', arguments: { expression: '6 * 7' } }
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      const sent = { method: 'POST', headers, body: JSON.stringify(call) }
      expect(await (await fetch(`${url}/mcp`, sent)).text()).toContain('"text":"42"')
      const manual = await fetch(`${url}/manual/getting-started`, { headers: { accept: 'text/html' } })
      expect([manual.status, await manual.text()]).toEqual([200, expect.stringContaining('<h1')])
      const health = await fetch(`${url}/healthz`)
      const built = { commit: expect.stringMatching(/^[0-9a-f]{7,}$/), date: '2026-11-24' }
      expect(await health.json()).toEqual({ status: 'ok', version: package_.version, ...built })
      const search = await fetch(`${url}/manual/search?q=monthly%20budgets`)
      expect(await search.text()).toContain('href="/manual/budgets"')
      const script = await fetch(`${url}/docs/scalar.js`)
      expect(script.status).toBe(200)
      await script.arrayBuffer()
    } finally {
      child.kill('SIGKILL')
      await child.exited
    }
  })

  it('begins with a database as the migrations leave it, unless the operator migrates', async () => {
    const since_ms = Date.now()
    const iso = (seconds: string) => new Date(Number(seconds) * 1000).toISOString()
    const migrated = ['dist/gatehouse', 'src/main.ts'].map((name) => {
      const directory = mkdtempSync(join(home, 'data-'))
      const command = name.endsWith('.ts') ? [process.execPath, join(home, name)] : [join(home, name)]
      const apply = [...command, 'migrate', 'apply', '--json', '--data-dir', directory]
      const { applied } = JSON.parse(Bun.spawnSync(apply, { cwd: home }).stdout.toString())
      using database = new Database(join(directory, 'gatehouse.db'))
      const read = (sql: string) => database.query<Record<string, string>, []>(sql).all()
      const schema = read('select type, name, sql from sqlite_master order by type, name')
      const tables = schema
        .filter(({ type }) => type === 'table')
        .map(({ name: table }) => [table, read(`select * from ${table}`)])
      const times = read(
        `select cast(start as text) as time from ledger_starts union select timestamp from kysely_migration`,
      )
      expect(times.filter(({ time = '' }) => !(Date.parse(time.replace(/^\d+$/, iso)) >= since_ms))).toEqual([])
      const rows = { ...Object.fromEntries(tables), kysely_migration: [], ledger_starts: [] }
      return { applied, mode: read('pragma journal_mode'), schema, ...rows }
    })
    expect(migrated[0]).toEqual(migrated[1])
    const manual = join(home, 'manual.yaml')
    writeFileSync(manual, 'store: { migrate: manual }\n')
    const serve = ['serve', '--port', '0', '--config', manual, '--data-dir', mkdtempSync(join(home, 'data-'))]
    const waiting = Bun.spawn([join(home, 'bin/gatehouse'), ...serve], { cwd: home, stdout: 'ignore', stderr: 'pipe' })
    let log = ''
    for await (const bytes of waiting.stderr) {
      log += new TextDecoder().decode(bytes)
      if (log.includes('\n')) break
    }
    waiting.kill('SIGKILL')
    await waiting.exited
    expect(log).toContain('the database has 0, this build needs')
  })

  it('has stacks that name the places in the sources', () => {
    const env = { PATH: process.env.PATH, GATEHOUSE_LOG: 'debug', GATEHOUSE_DATA_DIR: join(home, 'package.json/data') }
    const { stderr } = Bun.spawnSync([join(home, 'bin/gatehouse'), 'serve', '--port', '0'], { cwd: home, env })
    const [, line] = /at openFile \(src\/store\/engines\/sqlite\.ts:(\d+):\d+\)/.exec(stderr.toString()) ?? []
    const source = readFileSync(join(home, 'src/store/engines/sqlite.ts'), 'utf8').split('\n')
    expect(source[Number(line) - 1]).toContain('throw')
  })
})

describe('a start', () => {
  it('loads none of the modules that a first request does not need', async () => {
    const { metafile } = await Bun.build({
      entrypoints: ['src/main.ts', 'src/cli/serve/serve.ts', 'src/gateway/gateway.ts'].map((name) => join(ROOT, name)),
      target: 'bun',
      metafile: true,
      external: ['@napi-rs/canvas'],
    })
    const inputs = metafile?.inputs ?? {}
    const loaded = new Set<string>()
    const load = (path: string): void => {
      if (loaded.has(path)) return
      loaded.add(path)
      for (const { path: next, kind } of inputs[path]?.imports ?? []) {
        if (kind === 'import-statement' || (kind === 'require-call' && path.includes('node_modules'))) load(next)
      }
    }
    for (const path of Object.keys(inputs))
      if (/(^|\/)src\/(main|gateway\/gateway|cli\/serve\/serve)\.ts$/.test(path)) load(path)
    expect(loaded.size).toBeGreaterThan(500)
    expect([...loaded].filter((path) => LOADED_LATER.test(path))).toEqual([])
  })
})
