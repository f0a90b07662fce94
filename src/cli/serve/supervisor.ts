/** The processes of a gateway with several workers: starts them, replaces those that end, and prints what they have to say. */
import type { Subprocess } from 'bun'
import { type Config, drainSeconds } from '../../config/config.ts'
import { type Clock, endsWithin } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { IS_EXECUTABLE } from '../../kit/resources.ts'
import { addCounts, type FamilyValues } from '../../observe/metrics/process-metrics.ts'
import type { Terminal } from '../terminal.ts'
import { connectionsHint } from './connections-hint.ts'
import { type FromWorker, LAST_VALUES, type ToWorker, WORKER_VARIABLE } from './worker-process.ts'

type WorkersParts = {
  count: number
  /** Of `gatehouse serve`, the same for each. */
  args: string[]
  /** The configuration as it is now. Throws where it is not valid. */
  load(): Config
  config: Config
  terminal: Terminal
  clock: Clock
  log: Log
  /** The first signal to stop, and the next one. */
  stopped: { first: Promise<string>; second: Promise<void> }
}

type Running = {
  number: number
  child: Subprocess
  /** False: it has ended before. */
  ready: Promise<boolean>
  /** The code with which it has ended; 128 and more: by a signal. */
  exited: Promise<number>
  started_at: number
  /** Its end is no surprise. */
  isEnding: boolean
  /** Once it was asked to stop: resolves when it has. */
  stopped?: Promise<void>
  /** What it had counted when it was asked last. */
  values: FamilyValues[]
}

/** Why a new worker does not take the place of an old one. */
type StartProblem = { what: string; fields: Record<string, number> }

const FIRST_DELAY_MILLISECONDS = 100
const MAX_DELAY_MILLISECONDS = 30_000
/** A worker that has run for so long is replaced at once. */
const STABLE_MILLISECONDS = 60_000
/** What a worker may take to stop beyond the deadline of its requests. */
const STOP_MILLISECONDS = 10_000
/** It may have to change a large database first. */
const READY_MILLISECONDS = 300_000
/** What a worker that is killed has counted since is lost. */
const READ_MILLISECONDS = 5_000
/** A worker that does not answer in time is shown as it was: Prometheus waits for ten seconds. */
const ANSWER_MILLISECONDS = 2_000

/** Runs until all workers have stopped; the result is the exit code. */
export async function runWorkers(parts: WorkersParts): Promise<number> {
  const { count, args, load, config, terminal, clock, log, stopped } = parts
  const workers = new Map<number, Running>()
  const all = new Set<Running>()
  const ended = new Map<string, FamilyValues>()
  const asked = new Map<number, (values: FamilyValues[]) => void>()
  let last_id = LAST_VALUES
  let isStopping = false
  let isPrinting = false
  let held = ''
  let isRestarting = false
  let { shutdown_seconds } = config.server
  /** For this time a worker that is replaced asks its clients to open other connections. */
  let retire_ms = drainSeconds(config) * 1000

  function print(text: string): void {
    if (isPrinting) terminal.out(text)
    else held += text
  }

  function start(number: number): Running {
    const { promise: ready, resolve } = Promise.withResolvers<boolean>()
    const child = Bun.spawn(
      [process.execPath, ...process.execArgv, ...(IS_EXECUTABLE ? [] : [Bun.main]), 'serve', ...args],
      {
        cwd: terminal.cwd,
        // Each reads the environment file itself, as it is then.
        env: { ...(terminal.process_environment ?? terminal.environment), [WORKER_VARIABLE]: `${number}/${count}` },
        stdin: 'ignore',
        stdout: 'inherit',
        // By one writer, so that lines of several workers are not mixed.
        stderr: terminal.interactive ? 'inherit' : 'pipe',
        serialization: 'json',
        ipc(message: FromWorker) {
          if (message.is === 'ready') resolve(true)
          else if (message.is === 'output') print(message.text)
          else if (message.is === 'counted?') void answer(worker, message)
          else if (message.id === LAST_VALUES) worker.values = message.values
          else asked.get(message.id)?.(message.values)
        },
      },
    )
    const printed = child.stderr ? forwardLines(child.stderr, terminal.err) : Promise.resolve()
    const exited = child.exited.then(async (code) => {
      await printed
      resolve(false)
      all.delete(worker)
      addCounts(ended, worker.values)
      return code
    })
    const worker: Running = { number, child, ready, exited, started_at: clock.steady(), isEnding: false, values: [] }
    all.add(worker)
    return worker
  }

  function sendTo({ child }: Running, message: ToWorker): void {
    try {
      child.send(message)
    } catch {
      // It has ended meanwhile.
    }
  }

  /** What a worker has counted; where it does not answer, what it said last. */
  async function valuesOf(worker: Running): Promise<FamilyValues[]> {
    const id = ++last_id
    const { promise, resolve } = Promise.withResolvers<FamilyValues[]>()
    asked.set(id, resolve)
    const cancel = clock.after(ANSWER_MILLISECONDS, () => resolve(worker.values))
    sendTo(worker, { is: 'values?', id })
    worker.values = await promise
    cancel()
    asked.delete(id)
    return worker.values
  }

  /** For a scrape: what all others have counted, those that have ended included. */
  async function answer(scraped: Running, { id, values: own }: { id: number; values: FamilyValues[] }): Promise<void> {
    scraped.values = own
    const others = [...all].filter((worker) => worker !== scraped)
    await Promise.all(others.map(valuesOf))
    // What one has counted that has ended meanwhile is among the values of the ended already.
    const values = others.filter((worker) => all.has(worker)).map((worker) => worker.values)
    sendTo(scraped, { is: 'counted', id, values: [...values, [...ended.values()]] })
  }

  function readRegularly(): void {
    clock.after(READ_MILLISECONDS, () => {
      if (isStopping) return
      for (const worker of all) void valuesOf(worker)
      readRegularly()
    })
  }

  /** From now on another worker takes its place whenever it ends by itself. */
  function install(worker: Running, failures = 0): void {
    workers.set(worker.number, worker)
    void worker.exited.then((code) => {
      if (isStopping || worker.isEnding) return
      const isStable = clock.steady() - worker.started_at > STABLE_MILLISECONDS
      const earlier = isStable ? 0 : failures
      const delay_ms = earlier === 0 ? 0 : Math.min(FIRST_DELAY_MILLISECONDS * 2 ** earlier, MAX_DELAY_MILLISECONDS)
      const { number, child } = worker
      log.error('a worker has ended; another one is started', { number, pid: child.pid, code, delay_ms })
      clock.after(delay_ms, () => {
        if (!isStopping && workers.get(number) === worker) install(start(number), earlier + 1)
      })
    })
  }

  /** Lets its clients go to the others, then stops it. */
  async function retire(worker: Running): Promise<void> {
    worker.isEnding = true
    sendTo(worker, { is: 'retire' })
    await new Promise<void>((resolve) => clock.after(retire_ms, resolve))
    await end(worker)
  }

  /** Asks it once: a worker that is asked again cuts its requests short. */
  function end(worker: Running, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    worker.stopped ??= endNow(worker, signal)
    return worker.stopped
  }

  async function endNow(worker: Running, signal: NodeJS.Signals): Promise<void> {
    worker.isEnding = true
    worker.child.kill(signal)
    const cancel = clock.after(shutdown_seconds * 1000 + STOP_MILLISECONDS, () => worker.child.kill('SIGKILL'))
    await worker.exited
    cancel()
  }

  /** One worker after the other, each only once its successor accepts requests. */
  async function restart(): Promise<void> {
    log.info('rolling restart', { workers: count })
    for (const [number, old] of workers) {
      old.isEnding = true // if it ends by itself meanwhile, its successor is under way
      const fresh = start(number)
      const problem = await startProblem(fresh)
      if (isStopping) return
      if (problem) {
        old.isEnding = false
        const next = all.has(old) ? 'the old one goes on' : 'another one is started'
        log.error(`rolling restart given up: a new worker ${problem.what}; ${next}`, { number, ...problem.fields })
        if (!all.has(old)) install(start(number))
        return
      }
      install(fresh)
      await retire(old)
      if (isStopping) return
    }
    log.info('rolling restart done', { workers: count })
    try {
      const now = load()
      shutdown_seconds = now.server.shutdown_seconds
      retire_ms = drainSeconds(now) * 1000
    } catch (cause) {
      log.error(
        'the configuration cannot be read any more: requests of workers get the time to end that they had',
        {},
        cause,
      )
    }
  }

  /** A worker that neither starts nor ends must not prevent this restart, and each later one, from ending. */
  async function startProblem({ child, ready, exited }: Running): Promise<StartProblem | undefined> {
    if (await endsWithin(clock, READY_MILLISECONDS, ready))
      return (await ready) ? undefined : { what: 'did not start', fields: { code: await exited } }
    child.kill('SIGKILL')
    return {
      what: 'was not ready in time and is ended',
      fields: { pid: child.pid, seconds: READY_MILLISECONDS / 1000 },
    }
  }

  async function stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    isStopping = true
    await Promise.all([...all].map((worker) => end(worker, signal)))
  }

  process.on('SIGHUP', () => {
    for (const { child } of all) child.kill('SIGHUP')
  })
  process.on('SIGUSR2', () => {
    if (isRestarting || isStopping) return
    isRestarting = true
    void restart().finally(() => {
      isRestarting = false
    })
  })
  const stopping = stopped.first.then(async (signal) => {
    log.info('stopping', { signal, workers: all.size })
    void stopped.second.then(() => {
      for (const { child } of all) child.kill('SIGTERM')
    })
    await stop(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM')
    return 0
  })

  /** The first one creates the database and the first token. */
  async function startAll(): Promise<number | undefined> {
    const first = start(1)
    if (!(await first.ready)) return first.exited
    const others = Array.from({ length: count - 1 }, (_, at) => start(at + 2))
    const areReady = await Promise.all(others.map(({ ready }) => ready))
    const failed = others[areReady.indexOf(false)]
    if (failed) {
      await stop()
      return failed.exited
    }
    for (const worker of [first, ...others]) install(worker)
    isPrinting = true
    terminal.out(held)
    log.info('workers started', { workers: count })
    const hint = connectionsHint()
    if (hint) log.info(hint.what, hint.fields)
    readRegularly()
    return undefined
  }

  // No timer of the clock keeps the process alive, and while all workers have ended, nothing else does.
  const alive = setInterval(() => {}, STABLE_MILLISECONDS)
  const failure = await Promise.race([startAll(), stopping])
  const code = failure ?? (await stopping)
  clearInterval(alive)
  log.info('stopped', {})
  log.flush()
  return code
}

/** Whole lines only: another writer's may come between them. */
async function forwardLines(stream: ReadableStream<Uint8Array>, write: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of stream) {
    const text = rest + decoder.decode(bytes, { stream: true })
    const end = text.lastIndexOf('\n') + 1
    if (end > 0) write(text.slice(0, end))
    rest = text.slice(end)
  }
  if (rest !== '') write(`${rest}\n`)
}
