/** Programs of MCP servers that attack the gateway and its host: each attack runs as a real process. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'bun:test'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_MCP } from '../src/config/config.ts'
import type { McpServerConfig } from '../src/config/schema/mcp-schema.ts'
import { systemClock } from '../src/kit/clock.ts'
import { launched } from '../src/providers/mcp/program-sandbox.ts'
import { confinedShell, HAS_LANDLOCK } from './kit/confined.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { mcpClient } from './kit/mcp.ts'

const root = mkdtempSync(join(tmpdir(), 'gatehouse-confined-'))
const data = join(root, 'data')
const SECRET = 'a-secret-of-the-gateway'
const put = (path: string, text = SECRET): string => {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
  return path
}
const database = put(join(data, 'gatehouse.db'))
const config = put(join(root, 'app/gatehouse.yaml'))
const env = put(join(root, 'app/.env'))
const outside = put(join(root, 'other/file'))
const shell = confinedShell(data, [config, env])
afterAll(() => rmSync(root, { recursive: true, force: true }))

describe.skipIf(!HAS_LANDLOCK)('a confined program', () => {
  it('works in a directory of its own, and sees programs and the network', async () => {
    const { out } = await shell.sh(
      'pwd; echo $HOME $TMPDIR; echo text > file; mv file tmp/; cat tmp/file; ls /usr/bin/env',
    )
    expect(out.split('\n')).toEqual([shell.home, `${shell.home} ${shell.home}/tmp`, 'text', '/usr/bin/env'])
  })

  it.each([
    ['the database', database],
    ['the configuration', config],
    ['the environment file', env],
    ['files of nobody in particular', outside],
    ['keys of TLS', '/etc/ssl/private'],
    ['passwords', '/etc/shadow'],
    ['the home directory', homedir()],
    ['variables of the gateway', `/proc/${process.pid}/environ`],
    ['open files of the gateway', `/proc/${process.pid}/fd/0`],
    ['the root of the gateway', `/proc/${process.pid}/root/etc/hosts`],
    ['memory of the gateway', `/proc/${process.pid}/mem`],
  ])('cannot read %s', async (_, path) => {
    const { out, err, code } = await shell.sh(`cat ${path}; test ! -d ${path} || ls ${path}; readlink ${path}`)
    expect([out, code]).toEqual(['', 1])
    expect(err).toMatch(/denied|not permitted|No such file/)
  })

  it('cannot get at them by links, `..`, names that it makes or places that it moves', async () => {
    const { out, err } = await shell.sh(`
      ln -s ${database} soft; cat soft; cat ../../gatehouse.db; cat /usr/../${database}
      ln ${database} hard; ln ${outside} hard; mv ${outside} moved; mv ../shell ../other; mv tmp ../tmp
      cat /proc/self/cwd/../../gatehouse.db; cd ../..; ls; cat gatehouse.db`)
    expect(out).toBe('')
    expect(err.match(/denied|cross-device|not permitted/gi)).toHaveLength(11)
  })

  it('cannot write, cut, delete or rename outside', async () => {
    const { err } = await shell.sh(`
      echo x > ${outside}; echo x >> ${database}; truncate -s 0 ${outside}; rm ${outside}; mkdir ${root}/made
      mv ${outside} ${outside}2; mknod ${shell.home}/null c 1 3; echo x > /dev/tty; ln -s a ${root}/link`)
    expect(readFileSync(outside, 'utf8')).toBe(SECRET)
    expect(readFileSync(database, 'utf8')).toBe(SECRET)
    expect([existsSync(join(root, 'made')), existsSync(join(shell.home, 'null'))]).toEqual([false, false])
    expect(err).not.toBe('')
  })

  it('cannot signal, trace, slow down or limit the gateway', async () => {
    const attacks = [
      'kill -CONT',
      'kill -0',
      'renice -n 19 -p',
      'prlimit --nofile=10:10 --pid',
      'taskset -p 1',
      'ionice -c 3 -p',
      'chrt -i -p 0',
    ]
    for (const attack of attacks) {
      const { err, code } = await shell.sh(`${attack} ${process.pid}`)
      expect([attack, code]).not.toEqual([attack, 0])
      expect(err).toMatch(/denied|not permitted|not found|No such process/i)
    }
  })

  it('gains nothing from a program of another user, and has no capability to change owners or mount', async () => {
    const { out } = await shell.sh('grep -E "NoNewPrivs|CapEff|Seccomp:" /proc/self/status')
    expect(out).toMatch(/CapEff:\s*0{15}[02]\n/)
    expect(out).toMatch(/NoNewPrivs:\s*1\n/)
    expect(out).toMatch(/Seccomp:\s*2/)
    const { err, code } = await shell.sh('mkdir -p m && mount -t tmpfs none m')
    expect([code === 0, err === '']).toEqual([false, false])
  })

  it('inherits no open file, and dumps no core', async () => {
    expect((await shell.sh('ls /proc/self/fd; ulimit -c')).out.split('\n')).toEqual(['0', '1', '2', '3', '0'])
  })

  it('has no keyrings of the user, and no io_uring, whose operations no filter sees', async () => {
    const numbers = process.arch === 'x64' ? [250, 425] : [219, 425]
    const { out } = await shell.script(`
      const { symbols } = require('bun:ffi').dlopen('libc.so.6', { syscall: { args: ['i64', 'i64', 'i64', 'ptr'], returns: 'i64' } })
      console.log(${JSON.stringify(numbers)}.map((number) => symbols.syscall(number, number === 425 ? 1 : 0, -3, new Uint8Array(120))).join())`)
    expect(out).toBe('-1,-1')
  })

  it('ends with the gateway, however that ends', async () => {
    const { command, args, env, cwd } = launched(
      shell.confine({ command: 'sh', args: ['-c', 'echo $$; exec sleep 600'] }),
    )
    const start = `Bun.spawn(${JSON.stringify([command, ...args])}, { env: ${JSON.stringify(env)}, cwd: '${cwd}', stdio: ['ignore', 'inherit', 'inherit'] })`
    const parent = Bun.spawn([process.execPath, '-e', start], { stdout: 'pipe' })
    const reader = parent.stdout.getReader()
    expect(Number(new TextDecoder().decode((await reader.read()).value))).toBeGreaterThan(0)
    parent.kill('SIGKILL')
    // The pipe ends with the last process that holds it.
    expect((await reader.read()).done).toBe(true)
  })

  it('leaves nothing that the next start executes', async () => {
    const evil = `require("fs").writeFileSync(${JSON.stringify(join(root, 'escaped'))}, "")`
    const { sh, home } = confinedShell(join(root, 'later'))
    await sh(`echo '${evil}' > evil.js; echo 'BUN_OPTIONS=--preload=${home}/evil.js' > .env
      for name in bunfig.toml .bunfig.toml; do echo 'preload = ["${home}/evil.js"]' > $name; done`)
    expect((await sh('ls -A; echo started')).out).toBe('.bunfig.toml\n.env\nbunfig.toml\nevil.js\ntmp\nstarted')
    expect(existsSync(join(root, 'escaped'))).toBe(false)
  })

  const connect = (to: string) =>
    `require('node:net').connect(${to}).on('connect', () => { console.log('connected'); process.exit() }).on('error', (e) => { console.log(e.code); process.exit() })`
  const listener = createServer((socket) => socket.resume())
  const local = createServer((socket) => socket.resume())
  let port = 0
  beforeAll(async () => {
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    await new Promise<void>((resolve) => local.listen(join(root, 'socket'), resolve))
    port = (listener.address() as { port: number }).port
  })
  afterAll(() => {
    listener.close()
    local.close()
  })

  it('connects by TCP, and with `network: none` neither by TCP nor by UDP', async () => {
    expect((await shell.script(connect(`${port}, '127.0.0.1'`))).out).toBe('connected')
    expect((await shell.script(connect(`${port}, '127.0.0.1'`), { network: 'none' })).out).toMatch(/^E/)
    const udp = `const s = require('node:dgram').createSocket('udp4'); s.on('error', (e) => { console.log('refused'); process.exit() }); s.send('x', ${port}, '127.0.0.1', (e) => { console.log(e ? 'refused' : 'sent'); process.exit() })`
    expect((await shell.script(udp)).out).toBe('sent')
    expect((await shell.script(udp, { network: 'none' })).out).not.toBe('sent')
  })

  it('connects to Unix sockets only where it may', async () => {
    const code = connect(JSON.stringify(join(root, 'socket')))
    expect((await shell.script(code)).out).toMatch(/^E/)
    expect((await shell.script(code, { unix_sockets: true, network: 'none' })).out).toBe('connected')
  })

  it('reads and writes what its settings name', async () => {
    const [read, write] = [join(root, 'read'), join(root, 'write')]
    put(join(read, 'file'), 'to read')
    put(join(write, 'file'), 'to write')
    const script = `cat ${read}/file; echo x > ${read}/file; echo written > ${write}/file; cat ${write}/file`
    const { out, err } = await shell.sh(script, { read: [read], write: [write] })
    expect(out).toBe('to readwritten')
    expect(err).toContain('denied')
    const replaced = { read: [join(write, 'part')], write: [write] }
    mkdirSync(join(write, 'part'))
    await shell.sh(`rm -r ${write}/part && ln -s ${data} ${write}/part`, replaced)
    expect(() => shell.confine({ command: 'sh', sandbox: replaced })).toThrow(`which no program may reach`)
  })

  it('reads the project of its script, without what is hidden in it', async () => {
    put(join(root, 'app/package.json'), '{}')
    put(join(root, 'app/lib/helper.sh'), 'echo helped')
    const script = put(join(root, 'app/dist/server.sh'), `. ${root}/app/lib/helper.sh; cat ${config} ${env}`)
    const { out, err } = await shell.run({ command: 'sh', args: [script] })
    expect(out).toBe('helped')
    expect(err.match(/denied/g)).toHaveLength(2)
  })

  it('starts once the threads of its launcher sleep: one that asks for memory beyond the limit would end it', async () => {
    const made = join(shell.home, 'made')
    const thread = `
      postMessage('')
      for (const until = Date.now() + 300; Date.now() < until; );
      require('fs').writeFileSync(${JSON.stringify(made)}, 'made')`
    const before = `
      const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(thread)}])))
      worker.onmessage = () => import(process.argv.at(-1))`
    expect(await shell.sh('cat made; rm made', {}, { before })).toEqual({ out: 'made', err: '', code: 0 })
  })

  it('uses no more memory than it may', async () => {
    const { code, err } = await shell.sh('head -c 1G /dev/zero | tail -c 1G > /dev/null', { memory_mb: 64 })
    expect([code, err]).toEqual([1, expect.stringMatching(/memory/)])
  })

  it('writes no file without end', async () => {
    const { err } = await shell.sh('trap "" XFSZ; truncate -s 2G large')
    expect(err).toContain('File too large')
  })

  it('has no more processes than it may', async () => {
    const uid = process.getuid?.() === 0 ? 65534 : undefined
    const bounded = confinedShell(join(root, 'bounded'), [], '/usr/bin:/bin')
    await bounded.sh('true')
    if (uid !== undefined) for (const path of [bounded.home, join(bounded.home, 'tmp')]) chownSync(path, uid, uid)
    for (const path of [root, join(root, 'bounded'), join(root, 'bounded/mcp')]) chmodSync(path, 0o755)
    const { err, code } = await bounded.sh(
      'for i in $(seq 2000); do sleep 600 >/dev/null 2>&1 & done',
      {},
      uid === undefined ? {} : { uid },
    )
    expect([code, err]).toEqual([2, expect.stringContaining('fork')])
  })
})

/** Executes its arguments in a process for which `landlock_create_ruleset` fails, as it does on an older kernel. */
const WITHOUT_LANDLOCK = `
  import { ptr } from 'bun:ffi'
  import { filterProgram, openFunctions } from ${JSON.stringify(join(import.meta.dir, '../src/kit/libc.ts'))}
  const { prctl } = openFunctions({ prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' } })
  const filter = filterProgram([[0x20, 0, 0, 0], [0x15, 0, 1, 444], [6, 0, 0, 0x00050026], [6, 0, 0, 0x7fff0000]])
  prctl(38, 1, 0, 0, 0)
  if (prctl(22, 2, ptr(filter), 0, 0) !== 0) throw new Error('no filter')
  const [, command, ...args] = process.argv
  process.execve(command, [command, ...args], process.env)`

describe('a program that cannot be confined', () => {
  const refused =
    (sandbox: McpServerConfig['sandbox'], command = 'sh') =>
    () =>
      shell.confine({ command, sandbox: sandbox ?? {} })

  it('is not started where a path of its settings is missing or leads to the gateway', () => {
    expect(refused({ read: [join(root, 'missing')] })).toThrow(`sandbox.read: ${root}/missing does not exist`)
    for (const path of [root, data, database, '/']) {
      expect(refused({ write: [path] })).toThrow(`sandbox.write: ${path} leads to `)
    }
    expect(refused({}, 'no-such-program')).toThrow('the program no-such-program was not found')
  })

  it('is not started where the system has no Landlock, or refuses it', async () => {
    const { code, out, err } = await shell.sh('echo started', {}, { before: WITHOUT_LANDLOCK })
    expect([code, out, err]).toEqual([126, '', expect.stringMatching(/no Landlock.*`sandbox: off`/)])
  })
})

describe('a server that is a program', () => {
  let gateway: TestGateway | undefined
  afterEach(async () => {
    await gateway?.[Symbol.asyncDispose]()
    gateway = undefined
  })

  async function call(server: Partial<McpServerConfig>, script: string): Promise<string> {
    const attacker = { command: process.execPath, args: [join(import.meta.dir, 'kit/shell-server.ts')], ...server }
    const directory = mkdtempSync(join(root, 'gateway-'))
    put(join(directory, 'gatehouse.db'))
    gateway = await startGateway(
      { sandbox: false, data_dir: directory, file: config, mcp: { ...DEFAULT_MCP, servers: { p: attacker } } },
      { clock: systemClock },
    )
    await using client = await mcpClient(gateway)
    const result = await client.callTool({ name: 'p__sh', arguments: { script: script.replaceAll('DATA', directory) } })
    return (result as { content: { text: string }[] }).content[0]?.text ?? ''
  }

  const READS = 'cat DATA/gatehouse.db; cat DATA/../app/gatehouse.yaml; cat DATA/../app/.env; echo done'

  it.skipIf(!HAS_LANDLOCK)('reads nothing of the gateway, and keeps what it writes in its directory', async () => {
    const text = await call({}, `${READS}; echo kept > $HOME/kept; cat DATA/mcp/p/kept`)
    expect(text).toBe('done\nkept\n')
  })

  it.skipIf(!HAS_LANDLOCK)('ends with all that it has started', async () => {
    const fifo = join(root, 'fifo')
    Bun.spawnSync(['mkfifo', fifo])
    // A pipe ends with the last process that holds it.
    const held = Bun.file(fifo).text()
    expect(await call({ sandbox: { write: [fifo] } }, `sleep 600 > ${fifo} 2>&1 & echo started`)).toBe('started\n')
    await gateway?.[Symbol.asyncDispose]()
    expect(await held).toBe('')
  })

  it('has all rights of the gateway with `sandbox: off`', async () => {
    expect(await call({ sandbox: 'off' }, READS)).toBe(`${SECRET.repeat(3)}done\n`)
  })

  it('is reported to operators when it cannot be started', async () => {
    const failed = call({ command: join(root, 'other/file'), args: [] }, '')
    await failed.catch(() => {})
    const why = HAS_LANDLOCK ? 'cannot be executed' : 'no Landlock'
    expect(gateway?.logged()).toMatch(new RegExp(`"mcp server failed".*${why}.*.sandbox: off`))
  })
})
