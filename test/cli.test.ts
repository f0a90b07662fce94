/** The command line, run as its users run it: as child processes, on a data directory of their own. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import package_ from '../package.json' with { type: 'json' }
import { readBuild } from '../src/kit/build-info.ts'

const ROOT = join(import.meta.dir, '..')
const COMMAND = join(ROOT, 'bin/gatehouse')
const NODE = Bun.which('node') ?? 'node'

let directory: string
const started: Bun.Subprocess[] = []

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-cli-'))
})
afterEach(async () => {
  for (const child of started.splice(0)) {
    child.kill('SIGKILL')
    await child.exited
  }
  rmSync(directory, { recursive: true })
})

/** Nothing of the environment in which the tests run gets through: no keys, no settings. */
const BASE = { PATH: process.env.PATH ?? '', GATEHOUSE_DISCOVER: 'off' }

const textOf = (stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> => new Response(stream).text()

type Options = { env?: Record<string, string>; command?: string }

function spawn(args: string[], { env = {}, command = COMMAND }: Options = {}) {
  // A token is created without a gateway only where the data directory is named.
  const named: Record<string, string> =
    args[0] === 'token' || args[0] === 'project' ? { GATEHOUSE_DATA_DIR: join(directory, 'data') } : {}
  const child = Bun.spawn([command, ...args], {
    cwd: directory,
    env: { ...BASE, ...named, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  started.push(child)
  return child
}

async function gatehouse(args: string[], options?: Options) {
  const child = spawn(args, options)
  const [out, err, code] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited])
  return { out, err, code }
}

/** Runs a command with `--json`, which must succeed, and gives what it printed. */
async function answer(args: string[], options?: Options) {
  const { out, err, code } = await gatehouse([...args, '--json'], options)
  expect({ err, code }).toEqual({ err: '', code: 0 })
  expect(out).toEndWith('\n')
  expect(out.trim()).not.toContain('\n')
  return JSON.parse(out)
}

type Running = Awaited<ReturnType<typeof serve>>

/** Starts a gateway on a free port and waits until it says that it listens. */
async function serve(args: string[] = [], options: Options = {}) {
  const child = spawn(['serve', '--port', '0', ...args], options)
  let out = ''
  let err = ''
  const reader = child.stdout.getReader()
  const decoder = new TextDecoder()
  const readOn = async (): Promise<boolean> => {
    const { value, done } = await reader.read()
    if (value) out += decoder.decode(value, { stream: true })
    return !done
  }
  const watchers: (() => void)[] = []
  const log = (async () => {
    for await (const chunk of child.stderr) {
      err += new TextDecoder().decode(chunk)
      for (const look of watchers) look()
    }
  })()
  const url = () => /https?:\/\/[^\s"/]+/.exec(out)?.[0]
  while (!(url() && (out.includes('models') || out.includes('}\n')))) {
    if (!(await readOn())) throw new Error(`serve ended: ${out}${await log.then(() => err)}`)
  }
  const rest = (async () => {
    while (await readOn());
  })()
  return {
    child,
    url: url() ?? '',
    out: () => out,
    err: () => err,
    /** Resolves once the log holds the text. */
    logs: (text: string) =>
      new Promise<void>((resolve) => {
        const look = () => err.includes(text) && resolve()
        watchers.push(() => void look())
        look()
      }),
    async stop(signal: NodeJS.Signals = 'SIGINT') {
      child.kill(signal)
      const code = await child.exited
      await Promise.all([rest, log])
      return code
    },
  }
}

const models = (running: Running, token: string) =>
  fetch(`${running.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })

/** A streamed chat answer that has begun. */
async function chat(running: Running, { token, content }: { token: string; content: string }): Promise<Response> {
  const response = await fetch(`${running.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/general', stream: true, messages: [{ role: 'user', content }] }),
  })
  expect(response.status).toBe(200)
  return response
}

describe('help and invalid arguments', () => {
  const COMMANDS = [
    [],
    ['serve'],
    ['token'],
    ['token', 'create'],
    ['project'],
    ['project', 'create'],
    ['task'],
    ['task', 'list'],
    ['requests'],
    ['usage'],
    ['budget'],
    ['budget', 'list'],
    ['admin', 'login'],
    ['admin', 'create'],
    ['admin', 'list'],
    ['admin', 'revoke'],
    ['data'],
    ['data', 'export'],
    ['data', 'erase'],
    ['audit', 'list'],
    ['audit', 'verify'],
    ['cache'],
    ['cache', 'purge'],
    ['diagnostics'],
    ['ledger'],
    ['ledger', 'reconcile'],
    ['store'],
    ['store', 'check'],
    ['models'],
    ['prices'],
    ['prices', 'diff'],
    ['check'],
    ['config'],
    ['config', 'diff'],
    ['completion'],
    ['version'],
  ]

  test.each(COMMANDS.map((words) => [words.join(' '), words] as const))(
    '`%s --help` explains it with examples',
    async (_, words) => {
      const { out, err, code } = await gatehouse([...words, '--help'])
      expect({ err, code }).toEqual({ err: '', code: 0 })
      expect(out).toStartWith('Usage: gatehouse')
      if (words[0] !== 'version') expect(out).toContain('Example')
      expect(await gatehouse([...words, '-h'])).toEqual({ out, err, code })
      expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120)
    },
  )

  test('`help <command>` is `<command> --help`', async () => {
    expect(await gatehouse(['help', 'check'])).toEqual(await gatehouse(['check', '--help']))
    expect((await gatehouse(['help'])).out).toBe((await gatehouse(['--help'])).out)
  })

  test.each([
    [
      ['chek'],
      'gatehouse: unknown command "chek"; did you mean "check"? (commands: serve, token, project, admin, data, audit, task, requests, usage, budget, batch, file, cache, ledger, store, backup, restore, migrate, models, prices, target, mcp, route, health, check, import, config, diagnostics, completion, version)\nSee: gatehouse --help\n',
    ],
    [
      ['help', 'zzz'],
      'gatehouse: unknown command "zzz" (commands: serve, token, project, admin, data, audit, task, requests, usage, budget, batch, file, cache, ledger, store, backup, restore, migrate, models, prices, target, mcp, route, health, check, import, config, diagnostics, completion, version)\nSee: gatehouse --help\n',
    ],
    [
      ['check', '--shema'],
      'gatehouse check: has no option --shema; did you mean --schema?\nSee: gatehouse check --help\n',
    ],
    [['check', '-x'], 'gatehouse check: has no option -x\nSee: gatehouse check --help\n'],
    [['check', 'file.yaml'], 'gatehouse check: does not take "file.yaml"\nSee: gatehouse check --help\n'],
    [['check', '--schema=yes'], 'gatehouse check: --schema takes no value\nSee: gatehouse check --help\n'],
    [
      ['check', '--config'],
      'gatehouse check: --config needs a value, as in --config <value>\nSee: gatehouse check --help\n',
    ],
    [
      ['serve', '--port', '--host'],
      'gatehouse serve: --port needs a value, as in --port <value>\nSee: gatehouse serve --help\n',
    ],
    [['--prot', '1'], 'gatehouse serve: has no option --prot; did you mean --port?\nSee: gatehouse serve --help\n'],
    [
      ['token'],
      'gatehouse token: needs a command: create, update, list, show, revoke, rotate, webhook-secret\nSee: gatehouse token --help\n',
    ],
    [
      ['token', 'crate'],
      'gatehouse token: unknown command "crate"; did you mean "create"? (commands: create, update, list, show, revoke, rotate, webhook-secret)\nSee: gatehouse token --help\n',
    ],
    [
      ['token', 'revoke'],
      'gatehouse token revoke: needs a token: its id or its name, as gatehouse token list shows them\nSee: gatehouse token revoke --help\n',
    ],
    [
      ['token', 'create'],
      'gatehouse token create: needs a name, as in --name laptop\nSee: gatehouse token create --help\n',
    ],
  ])('%p exits with 2 and says what is valid', async (args, err) => {
    expect(await gatehouse(args)).toEqual({ out: '', err, code: 2 })
  })

  test('without a command prints the help and starts nothing', async () => {
    const { out, err, code } = await gatehouse([])
    expect({ out, err, code }).toEqual({ out: (await gatehouse(['help'])).out, err: '', code: 0 })
    expect(readdirSync(directory)).toEqual([])
  })

  test('--json reports an error as JSON', async () => {
    const { err, out, code } = await gatehouse(['models', '--json', '--nope'])
    expect({ out, code, told: JSON.parse(err) }).toEqual({
      out: '',
      code: 2,
      told: { error: { message: 'has no option --nope' } },
    })
  })
})

describe('version', () => {
  test('is the version of the package, with the commit where it lies in a repository', async () => {
    const build = await readBuild(join(import.meta.dir, '..'))
    const commit = build ? `commit ${build.commit}, ${build.date}, ` : ''
    expect((await gatehouse(['version'])).out).toStartWith(
      `gatehouse ${package_.version} (${commit}bun ${Bun.version}, `,
    )
    expect(await gatehouse(['--version'])).toEqual(await gatehouse(['version']))
    expect(await answer(['version'])).toEqual({
      gatehouse: package_.version,
      ...build,
      bun: Bun.version,
      platform: `${process.platform}-${process.arch}`,
    })
  })
})

describe('check', () => {
  test('a command that starts no gateway does not speak of a start where the configuration is not valid', async () => {
    const { err, code } = await gatehouse(['models'], { env: { GATEHOUSE_PORT: 'many' } })
    expect(code).toBe(1)
    expect(err).toEndWith('gatehouse: the configuration is not valid; nothing was done.\n')
  })

  test('warns of a variable whose name is mistyped, not of others', async () => {
    const env = {
      GATEHOUSE_PROT: '1',
      GATEHOUSE_TOKEN: 'sk-1',
      GATEHOUSE_TAG: '1',
      GATEHOUSE_ADMIN_TOKEN_2: 'x'.repeat(40),
    }
    write('admin_tokens: { ops: { role: owner, secret: "${GATEHOUSE_ADMIN_TOKEN_2}" } }')
    const { err, code } = await gatehouse(['check'], { env })
    expect({ err, code }).toEqual({
      err: 'warning: GATEHOUSE_PROT has no effect; did you mean GATEHOUSE_PORT?\n',
      code: 0,
    })
  })

  test('a token is revoked also where the file is not UTF-8, which a check reports', async () => {
    await gatehouse(['token', 'create', '--name', 'lost'])
    writeFileSync(join(directory, 'gatehouse.yaml'), Buffer.from('# f\u00fcr alle', 'latin1'))
    expect((await gatehouse(['check'])).err).toContain('gatehouse.yaml  cannot be read: it is not UTF-8')
    expect((await gatehouse(['token', 'revoke', 'lost'])).code).toBe(0)
  })

  const write = (text: string, name = 'gatehouse.yaml') => writeFileSync(join(directory, name), text)

  test('reports that there is no file, or that it is valid', async () => {
    expect((await gatehouse(['check'])).out).toBe('There is no configuration file; all settings have their defaults.\n')
    write('models:\n  sandbox/x:\n')
    expect(await gatehouse(['check'])).toEqual({
      out: 'gatehouse.yaml is valid: 0 providers, 1 model.\n',
      err: '',
      code: 0,
    })
    expect(await answer(['check'])).toEqual({
      valid: true,
      file: join(directory, 'gatehouse.yaml'),
      problems: [],
      warnings: [],
    })
  })

  test('warns about a provider key that looks like an ordinary word, and exits with 0', async () => {
    write('providers:\n  acme:\n    base_url: http://127.0.0.1:9/v1\n    key: sunflower\nmodels:\n  acme/x:\n')
    const warning = expect.stringContaining('providers.acme.key looks like an ordinary word')
    const { out, err, code } = await gatehouse(['check'])
    expect([out, code]).toEqual(['gatehouse.yaml is valid: 1 provider, 1 model.\n', 0])
    expect(err).toEqual(warning)
    expect(err).not.toContain('sunflower')
    expect(await answer(['check'])).toMatchObject({ valid: true, problems: [], warnings: [warning] })
  })

  test('prints every problem with its position and exits with 1', async () => {
    write('sandbox: 1\nserver:\n  port: many\n', 'other.yaml')
    const told = await gatehouse(['check', '--config', 'other.yaml'], { env: { GATEHOUSE_LOG: 'loud' } })
    expect(told).toEqual({
      out: '',
      err: `GATEHOUSE_LOG: found "loud", must be one of debug, info, warn, error, silent
other.yaml:1:10  sandbox: found 1 (number), must be true or false
other.yaml:3:9  server.port: found "many" (string), must be an integer

The configuration is not valid: 3 problems.
`,
      code: 1,
    })
    const { out, code } = await gatehouse(['check', '--json'], { env: { GATEHOUSE_CONFIG: 'other.yaml' } })
    expect({ told: JSON.parse(out), code }).toEqual({
      told: {
        valid: false,
        problems: [
          {
            file: 'other.yaml',
            line: 1,
            column: 10,
            path: 'sandbox',
            message: 'found 1 (number), must be true or false',
          },
          {
            file: 'other.yaml',
            line: 3,
            column: 9,
            path: 'server.port',
            message: 'found "many" (string), must be an integer',
          },
        ],
      },
      code: 1,
    })
  })

  test('prints the schema of the repository', async () => {
    const kept = readFileSync(join(ROOT, 'gatehouse.schema.json'), 'utf8')
    expect(await gatehouse(['check', '--schema'])).toEqual({ out: kept, err: '', code: 0 })
  })

  test('an invalid file stops every other command that reads it', async () => {
    write('sandbox: 1\n')
    for (const args of [['serve'], ['models'], ['token', 'create', '--name', 'a']]) {
      const { out, err, code } = await gatehouse(args)
      expect({ out, code }).toEqual({ out: '', code: 1 })
      expect(err).toStartWith('gatehouse.yaml:1:10  sandbox: found 1 (number), must be true or false\n')
    }
    expect(existsSync(join(directory, 'data'))).toBe(false)
  })
})

describe('token', () => {
  test('create prints only the secret on standard output; list shows everything else', async () => {
    const made = await gatehouse([
      'token',
      'create',
      '--name',
      'build server',
      '--models',
      'sandbox/*, a/b',
      '--families',
      'chatcompat,embeddings',
    ])
    expect(made.out).toMatch(/^sk-[A-Za-z0-9]{48}\n$/)
    expect(made.err).toMatch(
      /^warning: --models: "a\/b" matches no model of this gateway\nToken tok_\w+ \(build server\) is created\. It may use sandbox\/\*, a\/b, by chatcompat, embeddings; it never expires\.\n/,
    )
    const { tokens } = await answer(['token', 'list'])
    expect(tokens).toHaveLength(1)
    expect(tokens[0]).toMatchObject({
      name: 'build server',
      models: ['sandbox/*', 'a/b'],
      families: ['chatcompat', 'embeddings'],
      status: 'active',
      expires_at: null,
      last_used_at: null,
    })
    const { out } = await gatehouse(['token', 'list'])
    expect(out.split('\n')[0]).toMatch(/^ID +NAME +SECRET +STATUS +MODELS +FAMILIES +CREATED +LAST USED +EXPIRES$/)
    expect(out).toContain('build server')
    expect(out).not.toContain(made.out.trim())
    expect(JSON.stringify(tokens)).not.toContain(made.out.trim())
    for (const name of readdirSync(join(directory, 'data'))) {
      expect(readFileSync(join(directory, 'data', name)).includes(made.out.trim())).toBe(false)
    }
  })

  test('--quiet prints only the secret, --json one line with it', async () => {
    const quiet = await gatehouse(['token', 'create', '--name', 'a', '--quiet'])
    expect(quiet).toEqual({ out: expect.stringMatching(/^sk-[A-Za-z0-9]{48}\n$/), err: '', code: 0 })
    const { token, secret } = await answer(['token', 'create', '--name', 'b'])
    expect(secret).toMatch(/^sk-[A-Za-z0-9]{48}$/)
    expect(secret).toStartWith(token.prefix)
    expect(token).toMatchObject({ name: 'b', models: ['*'], families: null })
    expect(token).not.toHaveProperty('hash')
  })

  test('uses the defaults of the configuration; flags win', async () => {
    writeFileSync(
      join(directory, 'gatehouse.yaml'),
      'tokens: { models: ["team/*"], families: [chatcompat], expires_after_days: 2 }',
    )
    const byDefault = await answer(['token', 'create', '--name', 'a'])
    expect(byDefault.token).toMatchObject({ models: ['team/*'], families: ['chatcompat'] })
    expect(byDefault.token.expires_at - byDefault.token.created_at).toBe(2 * 86_400)
    const asSaid = await answer(['token', 'create', '--name', 'b', '--models', '*', '--expires', '2126-12-31'])
    expect(asSaid.token).toMatchObject({ models: ['*'], expires_at: Date.UTC(2127, 0, 1) / 1000 })
    const forever = await answer(['token', 'create', '--name', 'c', '--expires', 'never'])
    expect(forever.token.expires_at).toBe(null)
  })

  test.each([
    [['--models', 'a/*,'], '--models: found an empty pattern'],
    [['--models', 'a b'], '--models: found "a b" with white space;'],
    [['--families', 'chatcompt'], '--families: found "chatcompt", must be one of chatcompat, '],
    [['--expires', 'soon'], '--expires: found "soon", must be like 30d'],
    [['--expires', '2020-01-01'], '--expires: found "2020-01-01", which has already passed'],
  ])('create rejects %p', async (args, message) => {
    const { out, err, code } = await gatehouse(['token', 'create', '--name', 'a', ...args])
    expect({ out, code }).toEqual({ out: '', code: 2 })
    expect(err).toStartWith(`gatehouse token create: ${message}`)
    expect((await answer(['token', 'list'])).tokens).toEqual([])
  })

  test('revoke and rotate change the token, also with an invalid configuration', async () => {
    const { token } = await answer(['token', 'create', '--name', 'a'])
    writeFileSync(join(directory, 'gatehouse.yaml'), 'broken: [')
    const rotated = await answer(['token', 'rotate', token.token_id])
    expect(rotated.token).toMatchObject({ token_id: token.token_id, name: 'a' })
    expect(rotated.secret).toMatch(/^sk-[A-Za-z0-9]{48}$/)
    const revoked = await gatehouse(['token', 'revoke', token.token_id])
    expect(revoked).toEqual({ out: `Token ${token.token_id} (a) is revoked.\n`, err: '', code: 0 })
    expect((await answer(['token', 'list'])).tokens[0].status).toBe('revoked')
  })

  test.each(['revoke', 'rotate'])('%s of an unknown token exits with 1 and reports it', async (action) => {
    const { out, err, code } = await gatehouse(['token', action, 'tok_nobody'])
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(err).toContain('tok_nobody')
  })
})

describe('the data directory of a command', () => {
  const unnamed = { env: { GATEHOUSE_DATA_DIR: '' } }

  test('is the one of the configuration file, relative to the file, for serve and for the commands', async () => {
    mkdirSync(join(directory, 'etc'))
    writeFileSync(join(directory, 'etc/gate.yaml'), 'data_dir: ../store\n')
    const { secret } = await answer(['token', 'create', '--name', 'a', '--config', 'etc/gate.yaml'], unnamed)
    expect(existsSync(join(directory, 'store/gatehouse.db'))).toBe(true)
    const gateway = await serve(['--config', 'etc/gate.yaml'])
    const headers = { authorization: `Bearer ${secret}` }
    expect((await fetch(`${gateway.url}/v1/models`, { headers })).status).toBe(200)
    const { tokens } = await answer(['token', 'list', '--config', 'etc/gate.yaml'], unnamed)
    expect(tokens.map(({ name }: { name: string }) => name)).toContain('a')
    expect(existsSync(join(directory, 'data'))).toBe(false)
  })

  test('is read from a file that is invalid elsewhere, so that a token can be revoked', async () => {
    writeFileSync(join(directory, 'gatehouse.yaml'), 'data_dir: store\n')
    const { token } = await answer(['token', 'create', '--name', 'a'], unnamed)
    writeFileSync(join(directory, 'gatehouse.yaml'), 'data_dir: store\nsandbox: 1\n')
    expect((await answer(['token', 'revoke', token.token_id], unnamed)).token.disabled).toBe(true)
  })

  test('is not created by token create unless it is named', async () => {
    const { out, err, code } = await gatehouse(['token', 'create', '--name', 'a'], unnamed)
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(err).toContain(`There is no store in ${join(directory, 'data')}. Start the gateway there first.`)
    expect(existsSync(join(directory, 'data'))).toBe(false)
    expect((await gatehouse(['token', 'create', '--name', 'a', '--data-dir', 'data'], unnamed)).code).toBe(0)
    expect((await gatehouse(['token', 'create', '--name', 'b'], unnamed)).code).toBe(0)
  })

  test('is named in a note when it has no store', async () => {
    for (const args of [
      ['token', 'list'],
      ['task', 'list'],
    ]) {
      const { err, code } = await gatehouse(args, unnamed)
      expect({ err, code }).toMatchObject({ code: 0 })
      expect(err).toStartWith(`There is no store in ${join(directory, 'data')}. Name the data directory`)
    }
    expect(existsSync(join(directory, 'data'))).toBe(false)
  })
})

describe('models', () => {
  test('lists the catalogue and creates no files', async () => {
    const { out, err, code } = await gatehouse(['models'])
    expect({ err, code }).toEqual({ err: '', code: 0 })
    expect(out.split('\n')[0]).toMatch(/^MODEL +STATUS +FAMILIES +CONTEXT +TARGETS +REPLACED BY$/)
    expect(out).toMatch(
      /^sandbox\/general +active +chatcompat chatcompat-response messages-compat contentgen-compat +- +sandbox\/general$/m,
    )
    expect(readdirSync(directory)).toEqual([])
  })

  test('lists configured models with their targets in order', async () => {
    writeFileSync(
      join(directory, 'gatehouse.yaml'),
      'models: { house/x: { targets: [{ provider: sandbox, model: general }, { provider: sandbox, model: compact }] } }',
    )
    const { models: rows } = await answer(['models'])
    expect(rows.find(({ id }: { id: string }) => id === 'house/x')).toMatchObject({
      object: 'model',
      status: 'active',
      targets: ['sandbox/general', 'sandbox/compact'],
    })
  })

  test('reports when there are none', async () => {
    writeFileSync(join(directory, 'gatehouse.yaml'), 'sandbox: false')
    expect((await gatehouse(['models'])).out).toStartWith('There are no models')
  })
})

describe('serve', () => {
  test('prints its address once, and the printed curl command works', async () => {
    const running = await serve()
    const said = running.out()
    expect(said).toContain(`address    ${running.url}\n`)
    expect(said).toContain(`docs       ${running.url}/docs\n`)
    expect(said).toContain(`data       ${join(directory, 'data')}\n`)
    expect(said).toContain('providers  sandbox (built in, simulated)\n')
    expect(said).toMatch(/models {5}\d+: sandbox\/compact, sandbox\/embedding, /)
    expect(said).not.toContain('\x1b[')
    const [secret = ''] = /sk-[A-Za-z0-9]{48}/.exec(said) ?? []
    const line = said.slice(said.indexOf('curl '))
    const fake = join(directory, 'curl')
    // A curl of our own, so that the machine need not have one: it prints its arguments, one a line.
    writeFileSync(fake, '#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done\n', { mode: 0o755 })
    const pasted = Bun.spawn(['sh', '-c', line], { env: { PATH: `${directory}:${process.env.PATH}` }, stdout: 'pipe' })
    const [url = '', , authorization = '', , type = '', , body = ''] = (await textOf(pasted.stdout)).split('\n')
    const [header = '', value = ''] = authorization.split(': ')
    const response = await fetch(url, {
      method: 'POST',
      headers: { [header]: value, 'content-type': type.split(': ')[1] ?? '' },
      body,
    })
    expect(response.status).toBe(200)
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
    expect(choices[0]?.message.content.length).toBeGreaterThan(0)
    expect(await running.stop()).toBe(0)
    expect(running.out()).toBe(said)
    expect(running.err()).not.toContain(secret)
  })

  test('prints the first token only at the first start, and it keeps working', async () => {
    const first = await serve(['--json'])
    const announced = JSON.parse(first.out())
    expect(announced).toMatchObject({ event: 'listening', url: first.url, docs: `${first.url}/docs`, config: null })
    expect(await first.stop('SIGTERM')).toBe(0)
    const second = await serve(['--json'])
    expect(JSON.parse(second.out()).first_token).toBe(null)
    expect((await models(second, announced.first_token.secret)).status).toBe(200)
  })

  test('takes the first token from GATEHOUSE_BOOTSTRAP_TOKEN and does not print it', async () => {
    const token = 'my-own-first-token-0123456789'
    const running = await serve([], { env: { GATEHOUSE_BOOTSTRAP_TOKEN: token } })
    expect(running.out()).toContain('The first token is the value of GATEHOUSE_BOOTSTRAP_TOKEN.')
    expect(running.out()).toContain('-H "Authorization: Bearer $GATEHOUSE_BOOTSTRAP_TOKEN"')
    expect((await models(running, token)).status).toBe(200)
    await running.stop()
    expect(running.out() + running.err()).not.toContain(token)
  })

  test('writes structured log lines to standard error, at the level of GATEHOUSE_LOG', async () => {
    const running = await serve([], { env: { GATEHOUSE_LOG: 'info' } })
    await models(running, 'sk-nonsense')
    await running.stop()
    const lines = running
      .err()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines.some((line) => line.status === 401)).toBe(true)
    const silent = await serve([], { env: { GATEHOUSE_LOG: 'silent' } })
    await models(silent, 'sk-nonsense')
    await silent.stop()
    expect(silent.err()).toBe('')
  })

  test('on a used port exits with 1 and creates neither store nor token', async () => {
    await using taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const { out, err, code } = await gatehouse(['serve', '--port', String(taken.port)])
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(err).toBe(
      `gatehouse: 127.0.0.1:${taken.port} is in use by another process; choose another port with --port or GATEHOUSE_PORT.\n`,
    )
    expect(existsSync(join(directory, 'data'))).toBe(false)
  })

  test.each(['192.0.2.1', '300.1.1.1'])('reports an address that is not of this machine: %s', async (host) => {
    const { err, code } = await gatehouse(['serve', '--host', host, '--port', '0'])
    expect(code).toBe(1)
    expect(err).toContain(`${host} is not an address of this machine`)
  })

  test('lets open streams finish at the first signal', async () => {
    const running = await serve(['--json'])
    const token = JSON.parse(running.out()).first_token.secret
    const response = await chat(running, { token, content: '@sandbox tokens=30 interval_ms=10' })
    running.child.kill('SIGINT')
    const body = await response.text()
    expect(body).toEndWith('data: [DONE]\n\n')
    expect(await running.child.exited).toBe(0)
  })

  test('ignores the duplicate of a signal', async () => {
    const running = await serve(['--json'])
    const token = JSON.parse(running.out()).first_token.secret
    const response = await chat(running, { token, content: '@sandbox tokens=30 interval_ms=10' })
    running.child.kill('SIGINT')
    running.child.kill('SIGINT')
    expect(await response.text()).toEndWith('data: [DONE]\n\n')
    expect(await running.child.exited).toBe(0)
  })

  test('aborts open streams at a second signal and exits with 0', async () => {
    const running = await serve(['--json'])
    const token = JSON.parse(running.out()).first_token.secret
    const response = await chat(running, { token, content: '@sandbox tokens=100000 interval_ms=20' })
    const reader = response.body?.getReader()
    await reader?.read()
    running.child.kill('SIGINT')
    await running.logs('stopping')
    const began = performance.now()
    // The echo of the first signal lasts half a second; a signal after it is a second one.
    const again = setInterval(() => running.child.kill('SIGTERM'), 100)
    expect(await running.child.exited).toBe(0)
    clearInterval(again)
    expect(performance.now() - began).toBeLessThan(10_000)
    await reader?.cancel().catch(() => {})
  })

  test('aborts open requests at the deadline', async () => {
    writeFileSync(join(directory, 'gatehouse.yaml'), 'server: { shutdown_seconds: 0.2 }')
    const running = await serve(['--json'])
    const token = JSON.parse(running.out()).first_token.secret
    const response = await chat(running, { token, content: '@sandbox tokens=100000 interval_ms=20' })
    running.child.kill('SIGTERM')
    const body = await response.text().catch((error: Error) => error.message)
    expect(body).not.toContain('[DONE]')
    expect(await running.child.exited).toBe(0)
  })

  test('applies a changed file, and keeps the last good one when it is invalid', async () => {
    const path = join(directory, 'gatehouse.yaml')
    writeFileSync(path, 'when_retired: refuse\n')
    const running = await serve(['--json'])
    const token = JSON.parse(running.out()).first_token.secret
    const ids = async () =>
      ((await (await models(running, token)).json()) as { data: { id: string }[] }).data.map(({ id }) => id)
    expect(await ids()).not.toContain('sandbox/mine')
    writeFileSync(path, 'models: { sandbox/mine: {} }\n')
    await running.logs('configuration applied')
    expect(running.err()).toContain('models +sandbox/mine')
    expect(await ids()).toContain('sandbox/mine')
    writeFileSync(path, 'models: { sandbox/mine: { statu: active } }\n')
    await running.logs('configuration not applied')
    expect(running.err()).toContain('did you mean')
    expect(await ids()).toContain('sandbox/mine')
    writeFileSync(path, 'models: { sandbox/other: {} }\n')
    running.child.kill('SIGHUP')
    await running.logs('+sandbox/other')
    expect(await ids()).not.toContain('sandbox/mine')
    expect(await running.stop()).toBe(0)
  })

  test('applies the token commands while it runs', async () => {
    const running = await serve(['--json'])
    const { token, secret } = await answer(['token', 'create', '--name', 'late', '--models', 'sandbox/general'])
    const response = await models(running, secret)
    expect(((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual([
      'sandbox/general',
    ])
    await gatehouse(['token', 'revoke', token.token_id])
    const end = performance.now() + 20_000
    let status = 200
    while (status === 200 && performance.now() < end) {
      status = (await models(running, secret)).status
      if (status === 200) await Bun.sleep(50)
    }
    expect(status).toBe(401)
  })
})

describe('bin/gatehouse', () => {
  test('finds its package through links from any directory', async () => {
    mkdirSync(join(directory, 'node_modules/.bin'), { recursive: true })
    symlinkSync(COMMAND, join(directory, 'node_modules/real'))
    symlinkSync('../real', join(directory, 'node_modules/.bin/gatehouse'))
    const { out } = await gatehouse(['version'], { command: join(directory, 'node_modules/.bin/gatehouse') })
    expect(out).toStartWith(`gatehouse ${package_.version}`)
  })

  test('ignores a .env file of the working directory', async () => {
    writeFileSync(join(directory, '.env'), 'GATEHOUSE_LOG=nonsense\n')
    expect((await gatehouse(['check'])).code).toBe(0)
  })

  /** A package without its dependencies. */
  function bare(): string {
    const root = join(directory, 'bare')
    for (const name of [
      'bin/gatehouse',
      'scripts/find-bun.sh',
      'scripts/find-executable.sh',
      'package.json',
      'package-lock.json',
      'scripts/ensure-installed.mjs',
      'src',
    ]) {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      cpSync(join(ROOT, name), join(root, name), { recursive: true })
    }
    return root
  }
  const TOOLS = '/usr/bin:/bin'

  test('explains what to do when the runtime is missing or has another version', async () => {
    const root = bare()
    const wanted = package_.dependencies.bun
    const command = join(root, 'bin/gatehouse')
    const without = await gatehouse(['version'], { command, env: { PATH: TOOLS } })
    expect(without).toEqual({
      out: '',
      err: `gatehouse: the runtime, Bun ${wanted}, is not installed.\nRun this once:  cd '${root}' && npm ci\n`,
      code: 1,
    })
    mkdirSync(join(directory, 'tools'))
    const other = join(directory, 'tools/bun')
    writeFileSync(other, '#!/bin/sh\necho 1.0.0\n', { mode: 0o755 })
    const wrong = await gatehouse(['version'], { command, env: { PATH: `${directory}/tools:${TOOLS}` } })
    expect(wrong.err).toStartWith(
      `gatehouse: the runtime, Bun ${wanted}, is not installed (bun on the PATH is 1.0.0).\n`,
    )
    writeFileSync(other, `#!/bin/sh\n[ "$1" = --version ] && exec echo ${wanted}\necho "ran $*"\n`, { mode: 0o755 })
    const right = await gatehouse(['version'], { command, env: { PATH: `${directory}/tools:${TOOLS}` } })
    expect(right.out).toEndWith('src/main.ts version\n')
  })

  test('uses the platform package when install scripts were off', async () => {
    const root = bare()
    mkdirSync(join(root, 'node_modules/bun/bin'), { recursive: true })
    writeFileSync(join(root, 'node_modules/bun/bin/bun.exe'), '#!/bin/sh\necho stub\nexit 1\n', { mode: 0o755 })
    mkdirSync(join(root, 'node_modules/@oven/bun-any/bin'), { recursive: true })
    symlinkSync(process.execPath, join(root, 'node_modules/@oven/bun-any/bin/bun'))
    const { out } = await gatehouse(['version'], { command: join(root, 'bin/gatehouse'), env: { PATH: TOOLS } })
    expect(out).toStartWith(`gatehouse ${package_.version} (bun ${Bun.version}`)
  })

  describe('ensure-installed', () => {
    /** Runs it with an npm that writes down how it was called and "installs" what the lock file says. */
    async function ensure(root: string, ...args: string[]) {
      const npm = join(directory, 'npm.js')
      writeFileSync(
        npm,
        `const fs = require('node:fs'); fs.appendFileSync(${JSON.stringify(join(directory, 'calls'))}, process.argv.slice(2).join(' ') + '\\n')
         fs.mkdirSync('node_modules', { recursive: true })
         if (fs.existsSync('interrupted')) {
           fs.copyFileSync('interrupted', 'node_modules/.package-lock.json')
           process.kill(process.ppid, 'SIGKILL')
         }
         process.exit(fs.existsSync('broken') ? 1 : 0)`,
      )
      const child = Bun.spawn([NODE, join(root, 'scripts/ensure-installed.mjs'), ...args], {
        cwd: directory,
        env: { PATH: process.env.PATH ?? '', npm_execpath: npm },
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const [out, err, code] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited])
      const calls = existsSync(join(directory, 'calls')) ? readFileSync(join(directory, 'calls'), 'utf8') : ''
      return { out, err, code, calls: calls.split('\n').filter(Boolean) }
    }

    test('installs once with a message, then is silent', async () => {
      const root = bare()
      const first = await ensure(root)
      expect(first).toMatchObject({ out: '', code: 0, calls: [expect.stringMatching(/^ci --omit=dev /)] })
      expect(first.err).toStartWith(
        'gatehouse: installing what is missing (npm ci --omit=dev); this happens once ...\n',
      )
      expect(await ensure(root)).toMatchObject({ out: '', err: '', code: 0, calls: first.calls })
    })

    test('leaves only the executable that the installation made, until a source is newer', async () => {
      const root = bare()
      // As the end of an installation, for the stand-in of npm does not run it.
      mkdirSync(join(root, 'dist'))
      const make = () => {
        writeFileSync(join(root, 'dist/gatehouse'), '#!/bin/sh\n', { mode: 0o755 })
        cpSync(join(root, 'package.json'), join(root, 'dist/package.json'))
        const later = new Date(Date.now() + 60_000)
        utimesSync(join(root, 'dist/gatehouse'), later, later)
      }
      make()
      mkdirSync(join(root, 'node_modules/bun'), { recursive: true })
      mkdirSync(join(root, 'dist/.123'))
      expect((await ensure(root)).calls).toHaveLength(1)
      expect(readdirSync(join(root, 'dist')).toSorted()).toEqual(['gatehouse', 'package.json'])
      expect(readdirSync(join(root, 'node_modules'))).toEqual(['.gatehouse-installed'])
      expect(await ensure(root)).toMatchObject({ err: '', calls: [expect.any(String)] })
      const newer = new Date(Date.now() + 120_000)
      utimesSync(join(root, 'src/main.ts'), newer, newer)
      expect((await ensure(root)).calls).toHaveLength(2)
      expect((await ensure(root, '--with-dev')).calls[2]).toStartWith('ci --include=dev ')
    })

    test('adds the dependencies of the tests, and does not remove them again', async () => {
      const root = bare()
      await ensure(root)
      const { calls } = await ensure(root, '--with-dev')
      expect(calls[1]).toStartWith('ci --include=dev ')
      expect((await ensure(root)).calls).toHaveLength(2)
      expect((await ensure(root, '--with-dev')).calls).toHaveLength(2)
    })

    test('installs again when the lock file has changed', async () => {
      const root = bare()
      await ensure(root)
      writeFileSync(join(root, 'package-lock.json'), `${readFileSync(join(root, 'package-lock.json'), 'utf8')}\n`)
      expect((await ensure(root)).calls).toHaveLength(2)
    })

    test('completes a partial manual install', async () => {
      const root = bare()
      const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
        packages: Record<string, { dev?: boolean }>
      }
      const hand = (packages: object) => {
        mkdirSync(join(root, 'node_modules'), { recursive: true })
        writeFileSync(join(root, 'node_modules/.package-lock.json'), JSON.stringify({ packages }))
      }
      hand(Object.fromEntries(Object.entries(lock.packages).filter(([, { dev }]) => !dev)))
      expect(await ensure(root)).toMatchObject({ err: '', calls: [] })
      expect((await ensure(root, '--with-dev')).calls).toHaveLength(1)
    })

    test('repeats an installation that was interrupted, which would have removed packages, and not one by hand', async () => {
      const root = bare()
      const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
      const production = Object.fromEntries(Object.entries<{ dev?: boolean }>(packages).filter(([, { dev }]) => !dev))
      writeFileSync(join(root, 'interrupted'), JSON.stringify({ packages: production }))
      expect((await ensure(root)).code).not.toBe(0)
      rmSync(join(root, 'interrupted'))
      expect((await ensure(root)).calls).toHaveLength(2)
      writeFileSync(join(root, 'interrupted'), JSON.stringify({ packages }))
      rmSync(join(root, 'node_modules'), { recursive: true })
      await ensure(root)
      expect((await ensure(root)).calls).toHaveLength(3)
    })

    test('fails when npm fails', async () => {
      const root = bare()
      writeFileSync(join(root, 'broken'), '')
      const { code, err } = await ensure(root)
      expect(code).toBe(1)
      expect(err).toContain('npm ci failed; run it by hand to see why.')
      expect(existsSync(join(root, 'node_modules/.gatehouse-installed'))).toBe(false)
    })
  })
})
