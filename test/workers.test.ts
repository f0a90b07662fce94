/** `server.workers`: several processes behave as one gateway. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readScrape } from './kit/metrics.ts'
import { chunks, completion, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const COMMAND = join(import.meta.dir, '../bin/gatehouse')
const TOKEN = 'sk-0123456789012345678901234567890123456789'
const OWNER = 'owner-token-0123456789abcdef'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Line = { event: string; worker?: number; pid?: number; request_id?: string; [field: string]: unknown }

/** The log of a process: lines as they come. */
function readLines(stream: ReadableStream<Uint8Array>) {
  const lines: Line[] = []
  const waiting = new Set<() => void>()
  const read = async () => {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const bytes of stream) {
      const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = parts.pop() ?? ''
      for (const line of parts) lines.push(JSON.parse(line) as Line)
      for (const look of waiting) look()
    }
  }
  void read()
  return {
    lines,
    /** Resolves once so many lines meet the condition. */
    until: (isMet: (line: Line) => boolean, count = 1): Promise<Line[]> =>
      new Promise((resolve) => {
        const look = () => {
          const found = lines.filter(isMet)
          if (found.length < count) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
  }
}

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-workers-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Replaced as a whole, as a reload expects it. */
function writeConfig(directory: string, config: object): void {
  const path = join(directory, 'gatehouse.yaml')
  writeFileSync(`${path}.new`, JSON.stringify(config))
  renameSync(`${path}.new`, path)
}

function spawnGateway(directory: string, flags: string[], environment: Record<string, string> = {}) {
  const child = Bun.spawn([COMMAND, 'serve', '--json', ...flags], {
    cwd: directory,
    env: {
      PATH: process.env.PATH ?? '',
      GATEHOUSE_BOOTSTRAP_TOKEN: TOKEN,
      GATEHOUSE_ADMIN_TOKEN: OWNER,
      ...environment,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  closing.push(async () => {
    child.kill('SIGKILL')
    await child.exited
  })
  return child
}

async function start(vendor: Vendor, settings: { server?: object; tokens?: object } = {}) {
  const directory = newDirectory()
  const config = (server: object = {}) => ({
    ...settings,
    sandbox: false,
    server: { workers: 2, drain_seconds: 0, ...settings.server, ...server },
    providers: { v: { kind: 'chatcompat', base_url: vendor.url, key: 'v-key' } },
    models: { 'v/m': {} },
  })
  writeConfig(directory, config())
  const child = spawnGateway(directory, ['--port', '0'])
  const log = readLines(child.stderr)
  let out = ''
  const printed = (async () => {
    for await (const bytes of child.stdout) out += new TextDecoder().decode(bytes)
  })()
  await log.until(({ event }) => event === 'workers started')
  while (!out.includes('\n')) await new Promise((resolve) => setImmediate(resolve))
  const { url } = JSON.parse(out.split('\n', 1)[0] ?? '') as { url: string }
  let sent = 0
  /** Each on a connection of its own, so that both workers get some. */
  const send = (body: object = {}, path = '/v1/chat/completions'): Promise<Response> =>
    fetch(url + path, {
      method: 'POST',
      keepalive: false,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        'x-request-id': `call-${++sent}`,
      },
      body: JSON.stringify({ model: 'v/m', messages: [{ role: 'user', content: 'Hello' }], ...body }),
    })
  const get = async (path: string) =>
    (await fetch(url + path, { headers: { authorization: `Bearer ${OWNER}` }, keepalive: false })).text()
  /** Calls until each worker has answered one. How many were sent. */
  async function callBoth(): Promise<number> {
    for (let calls = 1; ; calls++) {
      const response = await send()
      expect(response.status).toBe(200)
      const request_id = response.headers.get('x-request-id')
      await response.text()
      await log.until((line) => line.event === 'request' && line.request_id === request_id)
      if (new Set(requests().map(({ worker }) => worker)).size === 2) return calls
    }
  }
  const requests = () => log.lines.filter(({ event, path }) => event === 'request' && path === '/v1/chat/completions')
  const pidOf = async (worker: number): Promise<number> => {
    const { stdout } = Bun.spawnSync(['ps', '-o', 'pid=', '--ppid', String(child.pid)])
    for (const pid of String(stdout).trim().split(/\s+/)) {
      const environment = await Bun.file(`/proc/${pid}/environ`)
        .text()
        .catch(() => '') // it has ended
      if (environment.includes(`GATEHOUSE_WORKER=${worker}/`)) return Number(pid)
    }
    throw new Error(`there is no worker ${worker}`)
  }
  return {
    child,
    log,
    url,
    config,
    directory,
    output: async () => {
      await printed
      return out
    },
    send,
    get,
    callBoth,
    requests,
    pidOf,
  }
}

function newVendor(): Vendor {
  const vendor = startVendor()
  vendor.otherwise(whole(completion('Hello')))
  closing.push(vendor.stop)
  return vendor
}

/** So many that both workers get some. */
const STREAMS = 20
const REPLACED = 'a worker has ended; another one is started'
const GIVEN_UP = 'rolling restart given up: a new worker'

const heldUntil = (released: Promise<unknown>) =>
  stream([...chunks('Hel').slice(0, 2), released, ...chunks('lo').slice(1)])

const callsIn = (text: string) => readScrape(text).sum('gen_ai_server_request_duration_seconds_count')

describe('a gateway with two workers', () => {
  it('answers on one port with both, prints one start message, and shows the metrics of both', async () => {
    const gateway = await start(newVendor())
    const calls = (await gateway.callBoth()) + (await gateway.callBoth())
    for (let times = 0; times < 4; times++) expect(callsIn(await gateway.get('/metrics'))).toBe(calls)
    gateway.child.kill('SIGTERM')
    expect(await gateway.child.exited).toBe(0)
    expect((await gateway.output()).trim().split('\n')).toHaveLength(1)
  })

  it('loses only the connections of a worker that is killed, replaces it, and keeps what it has counted', async () => {
    const vendor = newVendor()
    const gateway = await start(vendor)
    const calls = await gateway.callBoth()
    expect(callsIn(await gateway.get('/metrics'))).toBe(calls)
    const released = Promise.withResolvers<void>()
    for (let held = 0; held < STREAMS; held++) vendor.answer(heldUntil(released.promise))
    const streams = await Promise.all(Array.from({ length: STREAMS }, () => gateway.send({ stream: true })))
    process.kill(await gateway.pidOf(1), 'SIGKILL')
    await gateway.log.until(({ event, number }) => event === REPLACED && number === 1)
    released.resolve()
    let complete = 0
    for (const response of streams) {
      const text = await response.text().catch(() => '')
      if (!text.includes('[DONE]')) continue
      complete++
      const request_id = response.headers.get('x-request-id')
      const [line] = await gateway.log.until((one) => one.event === 'request' && one.request_id === request_id)
      expect(line?.worker).toBe(2)
    }
    expect(complete).toBeGreaterThan(0)
    expect(complete).toBeLessThan(STREAMS)
    await gateway.log.until(({ event, worker }) => event === 'worker ready' && worker === 1, 2)
    const earlier = gateway.requests().length
    let after = 0
    while (
      !gateway
        .requests()
        .slice(earlier)
        .some(({ worker }) => worker === 1)
    )
      after += await gateway.callBoth()
    expect(callsIn(await gateway.get('/metrics'))).toBe(calls + complete + after)
  })

  it('applies a changed file in both', async () => {
    const gateway = await start(newVendor())
    const model = { model: 'v/other' }
    expect((await gateway.send(model)).status).toBe(404)
    const { models } = gateway.config()
    writeConfig(gateway.directory, { ...gateway.config(), models: { ...models, 'v/other': {} } })
    await gateway.log.until(({ event }) => event === 'configuration applied', 2)
    for (let calls = 0; calls < 8; calls++) expect((await gateway.send(model)).status).toBe(200)
  })

  it('replaces one worker after the other at SIGUSR2, and refuses no call meanwhile', async () => {
    const gateway = await start(newVendor(), { server: { drain_seconds: 1 } })
    const before = [await gateway.pidOf(1), await gateway.pidOf(2)]
    let isOver = false
    let answered = 0
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'v/m', messages: [{ role: 'user', content: 'Hello' }] })
    const client = async () => {
      while (!isOver) {
        const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })
        expect(response.status).toBe(200)
        await response.text()
        answered++
      }
    }
    const clients = Array.from({ length: 4 }, client)
    gateway.child.kill('SIGUSR2')
    await gateway.log.until(({ event }) => event === 'rolling restart done')
    isOver = true
    await Promise.all(clients)
    expect(answered).toBeGreaterThan(100)
    const after = [await gateway.pidOf(1), await gateway.pidOf(2)]
    expect(after.filter((pid) => before.includes(pid))).toEqual([])
    // What the old ones have counted is kept.
    expect(callsIn(await gateway.get('/metrics'))).toBe(answered)
  }, 120_000)

  it('goes on with the old worker where a new one does not start', async () => {
    const gateway = await start(newVendor())
    const before = await gateway.pidOf(1)
    writeConfig(gateway.directory, { ...gateway.config(), models: { 'v/m': { targets: 'none' } } })
    gateway.child.kill('SIGUSR2')
    await gateway.log.until(({ event }) => event === `${GIVEN_UP} did not start; the old one goes on`)
    expect(await gateway.pidOf(1)).toBe(before)
    await gateway.callBoth()
  })

  it('admits what a limit allows over both, and adds up their usage', async () => {
    const gateway = await start(newVendor(), { tokens: { rate_limits: { requests_per_minute: 10 } } })
    const statuses: number[] = []
    for (let calls = 0; calls < 30; calls++) statuses.push((await gateway.send()).status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(10)
    gateway.child.kill('SIGTERM')
    await gateway.child.exited
    const usage = Bun.spawn([COMMAND, 'usage', '--json'], { cwd: gateway.directory, stdout: 'pipe', stderr: 'inherit' })
    const text = await new Response(usage.stdout).text()
    expect(JSON.parse(text).usage.map(({ requests }: { requests: number }) => requests)).toEqual([10])
  })

  it('lets open streams end when it is stopped', async () => {
    const vendor = newVendor()
    const gateway = await start(vendor)
    const released = Promise.withResolvers<void>()
    for (let streams = 0; streams < 4; streams++) vendor.answer(heldUntil(released.promise))
    const streams = await Promise.all(Array.from({ length: 4 }, () => gateway.send({ stream: true })))
    gateway.child.kill('SIGTERM')
    await gateway.log.until(({ event, worker }) => event === 'stopping' && worker !== undefined, 2)
    released.resolve()
    for (const response of streams) expect(await response.text()).toContain('[DONE]')
    expect(await gateway.child.exited).toBe(0)
  })

  it('starts all of them again, with growing delays, where they end at the same time', async () => {
    const gateway = await start(newVendor())
    for (let times = 1; times <= 2; times++) {
      const pids = [await gateway.pidOf(1), await gateway.pidOf(2)]
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      await gateway.log.until(({ event }) => event === 'worker ready', 2 + 2 * times)
    }
    const delays = gateway.log.lines.filter(({ event }) => event === REPLACED).map(({ delay_ms }) => delay_ms)
    expect(delays).toEqual([0, 0, 200, 200])
    expect((await gateway.send()).status).toBe(200)
  })

  it('ends with the process that has started it, however that ends', async () => {
    const gateway = await start(newVendor())
    const pids = [await gateway.pidOf(1), await gateway.pidOf(2)]
    gateway.child.kill('SIGKILL')
    await gateway.child.exited
    while (pids.some(isAlive)) await new Promise((resolve) => setTimeout(resolve, 10))
  })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('several workers', () => {
  async function failure(config: object, flags: string[] = ['--port', '0'], environment: Record<string, string> = {}) {
    const directory = newDirectory()
    writeConfig(directory, config)
    const child = spawnGateway(directory, flags, environment)
    const text = await new Response(child.stderr).text()
    return { code: await child.exited, text }
  }

  it('are refused a port that another process has, also one that would share it', async () => {
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', reusePort: true, fetch: () => new Response() })
    closing.push(() => other.stop(true))
    const { code, text } = await failure({ server: { workers: 2 } }, ['--port', String(other.port)])
    expect([code, text]).toEqual([1, expect.stringContaining('is in use by another process')])
  })

  it('need a configuration that is valid, and print its problem once', async () => {
    const { code, text } = await failure({ server: { workers: 0 } })
    expect([code, text.trim().split('\n')]).toEqual([1, [expect.stringContaining('server.workers')]])
  })

  it('are refused ports of the admin API and the metrics that are in use, or that each would choose for itself', async () => {
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', reusePort: true, fetch: () => new Response() })
    closing.push(() => other.stop(true))
    const taken = await failure({ server: { workers: 2 }, admin: { port: other.port } })
    expect([taken.code, taken.text]).toEqual([1, expect.stringContaining(`127.0.0.1:${other.port} is in use`)])
    const chosen = await failure({ server: { workers: 2 }, metrics: { port: 0 } })
    expect([chosen.code, chosen.text]).toEqual([1, expect.stringContaining('metrics.port must not be 0')])
  })

  it('are refused limits that each would count for itself', async () => {
    const { code, text } = await failure({ server: { workers: 2 }, limits: { store: 'memory' } })
    expect([code, text]).toEqual([1, expect.stringContaining('limits.store')])
  })
})

describe('a supervisor', () => {
  const SUPERVISOR = join(import.meta.dir, 'kit/supervised-worker.ts')

  async function supervise(env: Record<string, string> = {}) {
    const flag = join(newDirectory(), 'hang')
    const child = Bun.spawn([process.execPath, SUPERVISOR, flag], {
      env: { ...process.env, ...env },
      stdin: 'pipe',
      stderr: 'pipe',
    })
    closing.push(async () => {
      child.kill('SIGKILL')
      await child.exited
    })
    const log = readLines(child.stderr)
    let advanced = 0
    async function advance(ms: number): Promise<void> {
      child.stdin.write(`${ms}\n`)
      child.stdin.flush()
      await log.until(({ event }) => event === 'the time has advanced', ++advanced)
    }
    const seen = (expected: string, count = 1) => log.until(({ event }) => event === expected, count)
    await seen('workers started')
    return {
      child,
      seen,
      advance,
      hang: () => writeFileSync(flag, ''),
      linesOf: (name: string) => log.lines.filter(({ event }) => event === name),
      errors: () => log.lines.filter(({ level }) => level === 'error').map(({ event }) => event),
    }
  }

  const LATE = `${GIVEN_UP} was not ready in time and is ended; the old one goes on`
  const UNREADABLE = 'the configuration cannot be read any more: requests of workers get the time to end that they had'

  it('gives up a rolling restart whose new worker is not ready within five minutes, and may begin another one', async () => {
    const { child, seen, advance, hang, errors, linesOf } = await supervise()
    hang()
    for (const count of [1, 2]) {
      child.kill('SIGUSR2')
      await seen('a worker hangs', count)
      await advance(299_999)
      expect(errors()).toHaveLength(count - 1)
      await advance(1)
      await seen(LATE, count)
    }
    const pids = linesOf('a worker hangs').map(({ pid }) => pid)
    expect(linesOf(LATE).map(({ number, pid, seconds }) => [number, pid, seconds])).toEqual(
      pids.map((pid) => [1, pid, 300]),
    )
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    expect(errors()).toEqual([LATE, LATE])
    // The worker that was to be replaced is the only one that is left.
    expect(linesOf('a worker is asked to stop')).toHaveLength(1)
  })

  it('replaces a worker by one that is ready just within five minutes', async () => {
    const { child, seen, advance, hang, errors } = await supervise()
    hang()
    child.kill('SIGUSR2')
    const [slow] = await seen('a worker hangs')
    await advance(299_999)
    process.kill(slow?.pid ?? 0, 'SIGHUP')
    const [old] = await seen('a worker is replaced')
    expect(old?.pid).not.toBe(slow?.pid)
    await advance(2_000)
    await seen('rolling restart done')
    await seen(UNREADABLE)
    await advance(300_000)
    expect(errors()).toEqual([UNREADABLE])
  })

  it('reports no failed start where it is stopped during a rolling restart', async () => {
    const { child, seen, hang, errors } = await supervise()
    hang()
    child.kill('SIGUSR2')
    await seen('a worker hangs')
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    expect(errors()).toEqual([])
  })

  it('asks a worker once to stop, also where it is stopped itself while the worker is replaced', async () => {
    const { child, seen, advance, linesOf } = await supervise({ BUSY: '1' })
    child.kill('SIGUSR2')
    const [old] = await seen('a worker is replaced')
    await advance(2_000)
    await seen('a worker is asked to stop')
    child.kill('SIGTERM')
    const asked = await seen('a worker is asked to stop', 2)
    for (const { pid } of asked) process.kill(pid ?? 0, 'SIGINT')
    expect(await child.exited).toBe(0)
    expect(linesOf('a worker is asked to stop').filter(({ pid }) => pid === old?.pid)).toHaveLength(1)
  })

  it('ends a rolling restart also where the configuration cannot be read after it', async () => {
    const { child, seen, advance, errors } = await supervise()
    child.kill('SIGUSR2')
    await seen('a worker is replaced')
    await advance(2_000)
    await seen('rolling restart done')
    await seen(UNREADABLE)
    expect(errors()).toEqual([UNREADABLE])
  })
})
