/**
 * Four gateways (`gatehouse serve`) on one store, 64 clients and a provider on loopback that counts what it generates. The
 * gateways are killed and the store is halted at random times. The result is what each side saw of every call.
 */
import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lapseTaskLeases, type SentTask, sendTask, startFilmVendor, taskModels } from './kill-tasks.ts'
import { setClock } from './stepped-clock.ts'
import { chunk, completion, failure, startVendor, stream, usageChunk, type Wire, whole } from './vendor.ts'
import type { PaidOrder } from './video-vendor.ts'

const MAIN = join(import.meta.dir, '../../src/main.ts')
const STEPPED_CLOCK = join(import.meta.dir, 'stepped-clock.ts')
const GATEWAYS = 4
const CLIENTS = 64
const MAX_TOKENS = 16
/** Of the token `parallel`. */
export const CONCURRENT_REQUESTS = 4
const KINDS = ['whole', 'whole', 'whole', 'stream', 'stream', 'aborted', 'cut', 500, 429] as const
/** Of calls, that are submissions of tasks. */
const [VIDEOS, MODELS] = [0.04, 0.01]
/**
 * Every so many kills the clock of each gateway is set, by at most two hours.
 */
const KILLS_PER_STEP = 4
const MAX_STEP_MS = 7_200_000
/** Running gateways notice within a second that the clock was set, and move what they have stored; a new one does not know. */
const FOLLOW_MS = 3_000
/** After which the leases of a killed process on rate limits have lapsed, with some margin. */
const LEASES_LAPSE_MS = 6_000
type Kind = (typeof KINDS)[number]

export type KillRun = {
  directory: string
  /** Absent: SQLite in the directory. */
  database_url?: string
  durable: boolean
  kills: number
  seed: number
  /** Halts the store; the result continues it. */
  halt(): () => void
}

/** One call, as its client and the provider saw it. */
export type SentCall = {
  request_id: string
  token: string
  kind: Kind
  /** The process that it was sent to. */
  process: Process
  status: number | 'failed'
  is_complete: boolean
  /** Unix milliseconds at which the client was done. */
  ended_ms: number
  /** Output tokens that the provider generated. */
  generated: number
  /** Unix milliseconds at which the provider received it, first. */
  received_ms: number | undefined
}

export type KillResult = {
  calls: SentCall[]
  tasks: SentTask[]
  /** What the provider of videos has accepted. */
  orders: PaidOrder[]
  /** How many calls were admitted at once at the end, of a token with a limit of concurrent requests. */
  admitted: number
  environment: Record<string, string>
}

type Process = {
  /** Unix milliseconds. */
  killed_ms: number | undefined
  /** Ids of the chat calls that its clients wait for. */
  open: Set<string>
}
type Slot = { environment: Record<string, string>; clock: string; running: (Process & Running) | undefined }
type Running = { url: string; child: Bun.Subprocess<'ignore', 'pipe', 'inherit'> }

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** The command line as a process of its own. Throws what it prints if it fails. */
export async function gatehouse(args: string[], environment: Record<string, string>): Promise<Record<string, unknown>> {
  const child = Bun.spawn([process.execPath, MAIN, ...args, '--json'], {
    env: { ...process.env, ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) > 1 || out === '') throw new Error(`gatehouse ${args.join(' ')}: ${out}${err}`)
  return JSON.parse(out) as Record<string, unknown>
}

/** SQLite: another process that writes for long. */
export function lockDatabase(path: string): () => void {
  const database = new Database(path)
  database.run('pragma busy_timeout = 5000')
  database.run('begin immediate')
  return () => {
    database.run('rollback')
    database.close()
  }
}

type Provider = {
  url: string
  calls: Map<string, { received_ms: number; generated: number }>
  /** Whether it has received this call, and has not sent all of its response. */
  isAnswering(request_id: string): boolean
  stop(): Promise<void>
}

/** The first message says what happens: the kind of the call, and how many tokens its response has. */
function startProvider(): Provider {
  const vendor = startVendor()
  const calls: Provider['calls'] = new Map()
  const answering = new Set<string>()
  vendor.otherwise(async (wire: Wire) => {
    const request_id = wire.request.headers['x-request-id'] ?? ''
    answering.add(request_id)
    await answer(wire, request_id).finally(() => answering.delete(request_id))
  })
  async function answer(wire: Wire, request_id: string) {
    const body = wire.request.json() as { stream?: boolean; messages: [{ content: string }] }
    const [kind = '', tokens = ''] = body.messages[0].content.split(' ')
    const count = Number(tokens)
    const call = calls.get(request_id) ?? { received_ms: Date.now(), generated: 0 }
    calls.set(request_id, call)
    // A slow one lasts until all calls that are made with it have arrived, also on a busy machine.
    await pause(kind === 'slow' ? 6_000 : 5 + count)
    if (kind === '500' || kind === '429') return failure(Number(kind))(wire)
    const usage = { prompt_tokens: 1, completion_tokens: count, total_tokens: 1 + count }
    if (!body.stream) {
      call.generated += count
      return whole(completion('word '.repeat(count), { usage }))(wire)
    }
    async function* generate() {
      yield chunk({ role: 'assistant', content: '' })
      for (let at = 0; at < count; at++) {
        if (wire.isClosed()) return
        await pause(4)
        call.generated++
        yield chunk({ content: 'word ' })
      }
      yield chunk({}, 'stop')
      yield usageChunk(usage)
    }
    await stream(generate(), kind === 'cut' ? { cutAfter: 1 + Math.floor(count / 2) } : {})(wire)
  }
  return { url: vendor.url, calls, isAnswering: (id) => answering.has(id), stop: vendor.stop }
}

/** Runs until so many gateways were killed, and returns once all have stopped and nothing is left in a spool. */
export async function killRun(
  { directory, database_url, durable, kills, seed, halt }: KillRun,
  createTokens: (environment: Record<string, string>) => Promise<Record<string, string>>,
): Promise<KillResult> {
  const random = randomFrom(seed)
  const provider = startProvider()
  const film = startFilmVendor()
  const file = join(directory, 'gatehouse.yaml')
  writeFileSync(
    file,
    JSON.stringify({
      server: { drain_seconds: 0 },
      ledger: { durable },
      // By default a process that cannot reach the store goes on with its share, whatever others have used before.
      limits: { when_store_fails: 'refuse' },
      providers: {
        v: { base_url: provider.url, key: 'vendor-key' },
        film: { kind: 'chatcompat-video', base_url: film.url, key: 'film-key' },
      },
      // One unit of the currency for one token of output.
      models: { 'v/m': { prices: { input: 0, output: 1_000_000 } }, ...taskModels },
    }),
  )
  const slots: Slot[] = Array.from({ length: GATEWAYS }, (_, index) => {
    const data_dir = join(directory, database_url === undefined ? 'data' : `data${index}`)
    mkdirSync(data_dir, { recursive: true })
    const database = database_url === undefined ? {} : { GATEHOUSE_DATABASE_URL: database_url }
    const clock = join(data_dir, 'clock')
    setClock(clock, 0)
    const environment = {
      GATEHOUSE_CONFIG: file,
      GATEHOUSE_DATA_DIR: data_dir,
      GATEHOUSE_LOG: 'silent',
      GATEHOUSE_TEST_CLOCK: clock,
      ...database,
    }
    return { environment, clock, running: undefined }
  })
  const environment = slots[0]?.environment ?? {}
  const secrets = Object.entries(await createTokens(environment))

  async function start(slot: Slot): Promise<void> {
    const child = Bun.spawn([process.execPath, '--preload', STEPPED_CLOCK, MAIN, 'serve', '--port', '0', '--json'], {
      env: { ...process.env, ...slot.environment },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const { value } = await child.stdout.getReader().read()
    if (value === undefined) return start(slot) // the store was halted while it started
    const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string }
    slot.running = { url, child, killed_ms: undefined, open: new Set() }
  }

  async function kill(slot: Slot): Promise<void> {
    const { running } = slot
    if (!running) return
    slot.running = undefined
    running.child.kill('SIGKILL')
    running.killed_ms = Date.now()
    await running.child.exited
    await start(slot)
  }

  async function stop(slot: Slot): Promise<void> {
    slot.running?.child.kill('SIGTERM')
    await slot.running?.child.exited
    slot.running = undefined
  }

  const calls: SentCall[] = []
  const tasks: SentTask[] = []
  let isOver = false

  async function send(random: () => number): Promise<void> {
    const { running } = slots[Math.floor(random() * GATEWAYS)] ?? {}
    const [name, secret] = secrets[Math.floor(random() * secrets.length)] ?? ['', '']
    const kind = KINDS[Math.floor(random() * KINDS.length)] ?? 'whole'
    const count = 1 + Math.floor(random() * MAX_TOKENS)
    const leaves_ms = random() * 80
    if (!running) return
    const request_id = `call-${seed}-${calls.length + tasks.length}`
    const share = random()
    if (share < VIDEOS + MODELS) {
      const task: SentTask = { request_id, token: name, kind: share < VIDEOS ? 'video' : 'model' }
      tasks.push(task)
      return sendTask(task, { url: running.url, secret }).catch(() => {}) // the gateway was killed
    }
    const call: SentCall = {
      request_id,
      token: name,
      kind,
      process: running,
      status: 'failed',
      is_complete: false,
      ended_ms: 0,
      generated: 0,
      received_ms: undefined,
    }
    calls.push(call)
    running.open.add(request_id)
    const is_stream = kind === 'stream' || kind === 'cut' || (kind === 'aborted' && count % 2 === 0)
    try {
      const response = await fetch(`${running.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${secret}`,
          'content-type': 'application/json',
          'x-request-id': request_id,
        },
        body: JSON.stringify({
          model: 'v/m',
          stream: is_stream,
          max_tokens: MAX_TOKENS,
          messages: [{ role: 'user', content: `${kind} ${count}` }],
        }),
        signal: AbortSignal.timeout(kind === 'aborted' ? Math.ceil(leaves_ms) : 30_000),
      })
      call.status = response.status
      const text = await response.text()
      call.is_complete = response.ok && (!is_stream || text.includes('[DONE]'))
    } catch {
      // The gateway was killed, or the client has left.
    }
    running.open.delete(request_id)
    call.ended_ms = Date.now()
  }

  async function client(random: () => number): Promise<void> {
    while (!isOver) {
      await send(random)
      await pause(50 + random() * 200)
    }
  }

  /** On PostgreSQL as on machines of their own; on SQLite they share one. */
  function setClocks(): void {
    for (const clock of new Set(slots.map((slot) => slot.clock)))
      setClock(clock, Math.round((random() * 2 - 1) * MAX_STEP_MS))
  }

  /** How many of more calls than the limit of concurrent requests allows one gateway admits, after all others have ended. */
  async function callsAdmittedAtOnce(): Promise<number> {
    const [{ running } = {}] = slots
    const secret = secrets.find(([name]) => name === 'parallel')?.[1]
    const responses = await Promise.all(
      Array.from({ length: 2 * CONCURRENT_REQUESTS }, (_, index) =>
        fetch(`${running?.url}/v1/chat/completions`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${secret}`,
            'content-type': 'application/json',
            'x-request-id': `at-once-${index}`,
          },
          body: JSON.stringify({ model: 'v/m', max_tokens: 1, messages: [{ role: 'user', content: 'slow 1' }] }),
        }),
      ),
    )
    return responses.filter(({ status }) => status === 200).length
  }

  async function tasksEnded(): Promise<void> {
    const isUnfinished = async () => {
      const { tasks } = await gatehouse(['task', 'list', '--status', 'unfinished'], environment)
      return (tasks as unknown[]).length > 0
    }
    for (let attempt = 0; (await isUnfinished()) && attempt < 60; attempt++) await pause(1_000)
  }

  try {
    await start(slots[0] as Slot) // it migrates the store
    await Promise.all(slots.slice(1).map(start))
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(randomFrom(seed * 1_000 + index)))
    for (let count = 1; count <= kills; count++) {
      await pause(100 + random() * 500)
      if (count % KILLS_PER_STEP === 2) {
        setClocks()
        await pause(FOLLOW_MS)
      }
      const resume = count % 6 === 3 ? halt() : undefined
      if (resume) await pause(200 + random() * 1_000)
      const victim = slots[Math.floor(random() * GATEWAYS)]
      // A kill between calls shows nothing. While the store is halted, no call gets as far as the provider.
      const isOpen = (id: string) => resume !== undefined || provider.isAnswering(id)
      while (victim?.running && ![...victim.running.open].some(isOpen)) await pause(1)
      const restarted = victim && kill(victim)
      resume?.()
      await restarted
    }
    isOver = true
    await Promise.all(clients)
    await pause(LEASES_LAPSE_MS)
    const admitted = await callsAdmittedAtOnce()
    await Promise.all(slots.map(stop))
    await lapseTaskLeases({ path: join(directory, 'data', 'gatehouse.db'), url: database_url })
    for (let attempt = 0; attempt < 5 && (releaseSpools(slots) || attempt === 0); attempt++) {
      await Promise.all(slots.map(start))
      await pause(2_500) // a process replays them a second after its start
      if (attempt === 0) await tasksEnded()
      await Promise.all(slots.map(stop))
    }
    for (const call of calls) Object.assign(call, provider.calls.get(call.request_id))
    return { calls, tasks, orders: film.orders, admitted, environment }
  } finally {
    isOver = true
    await Promise.all(slots.map(stop))
    await provider.stop()
    await film.stop()
  }
}

/** Makes the spools of ended processes old enough for others to replay; whether there are any. */
function releaseSpools(slots: readonly Slot[]): boolean {
  const files = slots.flatMap(({ environment }) => {
    const directory = join(environment.GATEHOUSE_DATA_DIR ?? '', 'spool')
    return existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name)) : []
  })
  for (const file of files) if (existsSync(file)) utimesSync(file, 0, 0)
  return files.length > 0
}
