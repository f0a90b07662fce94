/** `gatehouse serve`: starts the gateway, prints its address, and stops it gracefully. */
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { type Config, drainSeconds } from '../../config/config.ts'
import type { Flags } from '../../config/load/environment.ts'
import { withEnvironmentFile } from '../../config/load/environment-file.ts'
import { DEFAULT_FILE, loadConfig } from '../../config/load/load.ts'
import { createSecretFiles } from '../../config/load/secret-files.ts'
import { watchConfig } from '../../config/load/watch.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { knownVendors } from '../../gateway/known-vendors.ts'
import { thisBuild } from '../../kit/build-info.ts'
import { type Clock, systemClock } from '../../kit/clock.ts'
import { batchHttpThread } from '../../kit/http-thread.ts'
import { createLog, type Log } from '../../kit/log.ts'
import { loadManual } from '../../site/manual/load-manual.ts'
import { type Arguments, readCommand } from '../arguments.ts'
import { VERSION } from '../commands/version.ts'
import { terminalFormat } from '../log-format.ts'
import type { Terminal } from '../terminal.ts'
import { awaitSchema, StoppedEarly } from './await-schema.ts'
import { bannerJson, bannerText, firstRequestText, isFirstRequestKnown, type Started } from './banner.ts'
import { releaseIdleMemory, shrinkHeap } from './idle-memory.ts'
import { freePortsOf, openListeners, type Server } from './listeners.ts'
import { configOfWorker, type Worker, workerOf } from './worker-process.ts'

const HELP = `Usage: gatehouse serve [options]

Starts the gateway; without a configuration file it discovers providers. Ctrl-C lets open requests finish and exits with
0; a second one aborts them. A changed configuration file is reloaded; SIGHUP reloads it at once. With server.workers,
SIGUSR2 replaces one worker after the other.

Options:
  --host <address>        address to listen on (default: GATEHOUSE_HOST, then the file, then 127.0.0.1)
  --port <number>         port to listen on, 0 for a free one (default: GATEHOUSE_PORT, then the file, then 8787)
  --config <file>         the configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --data-dir <directory>  the data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data)
  --json                  print the start message as one line of JSON

Environment: GATEHOUSE_BOOTSTRAP_TOKEN, GATEHOUSE_ADMIN_TOKEN, GATEHOUSE_LOG (debug, info, warn, error, silent),
GATEHOUSE_DISCOVER (on, off), and the keys of providers, such as OPENAI_API_KEY. The start message goes to standard
output, the log to standard error.

Examples:
  gatehouse serve
  gatehouse serve --port 9000 --data-dir /var/lib/gatehouse
  GATEHOUSE_CONFIG=/etc/gatehouse/gatehouse.yaml gatehouse serve --host 0.0.0.0
`

export async function run(args: string[], terminal: Terminal): Promise<number> {
  const flags = { host: 'text', port: 'text', config: 'text', 'data-dir': 'text' } as const
  const given = readCommand({ help: HELP, terminal, command: 'serve', args, flags })
  if (!given) return 0
  return serve({ given, terminal, clock: systemClock })
}

async function serve({ given, terminal, clock }: { given: Arguments; terminal: Terminal; clock: Clock }) {
  const { environment, process_environment = environment, cwd, interactive, err } = terminal
  const worker = workerOf(environment, clock)
  const flags = flagsOf(given)
  const secrets = createSecretFiles()
  const load = (readFile?: () => string | undefined): Config => {
    secrets.begin()
    const variables = withEnvironmentFile(process_environment, cwd)
    const whole = loadConfig({
      environment: variables,
      cwd,
      flags,
      readSecret: secrets.read,
      vendors: knownVendors(variables),
      ...(readFile && { readFile }),
    })
    return worker ? configOfWorker(whole, worker) : whole
  }
  const config = load()
  const log = createLog({
    clock,
    level: config.log_level,
    pretty: interactive && terminalFormat(terminal),
    write: err,
    worker: worker?.number,
  })
  keepRunning(log)
  const stopped = stopSignal()
  const count = worker ? 1 : workersOf(config)
  if (count > 1) {
    assertShareable(config)
    const args = argumentsOfWorkers(given, config)
    const { runWorkers } = await import('./supervisor.ts')
    return runWorkers({ count, args, load, config, terminal, clock, log, stopped })
  }
  void batchHttpThread()
  const opened = await openListeners(config, { log, isShared: worker !== undefined }, async (onWait) => {
    await awaitSchema({ config, clock, log, stopped: stopped.first, onWait })
    const [{ createGateway }, build] = await Promise.all([import('../../gateway/gateway.ts'), thisBuild()])
    const siblings = worker?.siblings
    return createGateway({ config, environment, log, clock, manual: loadManual, version: VERSION, build, siblings })
  }).catch((error: unknown) => {
    if (error instanceof StoppedEarly) return undefined
    throw error
  })
  if (!opened) return 0
  const { server, admin_url, gateway, requests } = opened
  const path = config.file ?? resolve(cwd, DEFAULT_FILE)
  let current = config
  const apply = async (next: Config) => {
    await gateway.reload(next)
    current = next
  }
  const watched = watchConfig({ path, current: config, load, apply, secrets, log, clock })
  const release = (drops_code: boolean) => {
    gateway.releaseMemory()
    shrinkHeap(drops_code)
  }
  const endRelease = releaseIdleMemory({ requests, release, clock })
  process.on('SIGHUP', () => void watched.reload())
  announce({ gateway, config, url: server.url, admin_url, given, terminal: terminalOf(worker, terminal), log })
  let isReplaced = false
  worker?.onRetire(() => {
    isReplaced = true
    server.retire()
  })
  worker?.ready()
  if (worker) log.info('worker ready', { pid: process.pid })

  const signal = await (worker ? Promise.race([stopped.first, worker.orphaned]) : stopped.first)
  watched.close()
  endRelease()
  const { shutdown_seconds } = current.server
  // The other workers serve the clients of one that is replaced, and nobody waits for an answer of /readyz after Ctrl-C.
  const drain_seconds = signal === 'SIGTERM' && !isReplaced ? drainSeconds(current) : 0
  if (drain_seconds > 0) {
    log.info('draining', { signal, seconds: drain_seconds })
    gateway.announceStop()
    server.retire()
    await Promise.race([after(clock, drain_seconds * 1000), stopped.second])
  }
  const deadline_ms = (shutdown_seconds - drain_seconds) * 1000
  log.info('stopping', { signal, deadline_seconds: deadline_ms / 1000 })
  const closed = server.stop({ deadline_ms }).then(() => gateway.close({ deadline_ms }))
  const cut = stopped.second.then(() => Promise.race([cutShort(server, gateway), after(clock, CUT_MILLISECONDS)]))
  await Promise.race([closed, cut])
  await worker?.close()
  log.info('stopped', {})
  log.flush()
  return 0
}

const workersOf = ({ server: { workers } }: Config): number => (workers === 'auto' ? availableParallelism() : workers)

/** Workers share the store, and nothing else. */
function assertShareable({ store_url, limits }: Config): void {
  if (store_url.includes(':memory:')) {
    throw new Error('server.workers needs a database that several processes can open: it cannot be in memory.')
  }
  if (limits.store === 'memory') {
    throw new Error('limits.store is memory, which each worker would count in for itself: use database or valkey.')
  }
}

/** As they were given, with a port that is known: it is free, and the same for all. */
function argumentsOfWorkers(given: Arguments, config: Config): string[] {
  const port = freePortsOf(config)
  const flags: [string, string | undefined][] = ['config', 'host', 'data-dir'].map((name) => [name, given.text(name)])
  flags.push(['port', config.server.port === 0 ? String(port) : given.text('port')])
  const args = flags.flatMap(([name, text]) => (text === undefined ? [] : [`--${name}`, text]))
  return given.has('json') ? [...args, '--json'] : args
}

/** What all have to say, the first one says. */
function terminalOf(worker: Worker | undefined, terminal: Terminal): Terminal {
  if (!worker) return terminal
  return { ...terminal, out: worker.number === 1 ? worker.output : () => {} }
}

/** After a second signal, buffered usage is still written if that is fast. */
const CUT_MILLISECONDS = 2000

async function cutShort(server: Pick<Server, 'stop'>, gateway: Gateway): Promise<void> {
  await server.stop({ deadline_ms: 0 })
  await gateway.close({ deadline_ms: 0 })
}

const after = (clock: Clock, ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))

function flagsOf(given: Arguments): Flags {
  const [config, host, port, data_dir] = ['config', 'host', 'port', 'data-dir'].map(given.text)
  return {
    ...(config === undefined ? {} : { config }),
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(data_dir === undefined ? {} : { data_dir }),
  }
}

/** npm forwards a Ctrl-C to a process that already received it from the terminal; the duplicate does not count. */
const DUPLICATE_SIGNAL_MILLISECONDS = 500

/** The first SIGINT or SIGTERM, and the next one that is not its duplicate. */
function stopSignal(): { first: Promise<string>; second: Promise<void> } {
  const first = Promise.withResolvers<string>()
  const second = Promise.withResolvers<void>()
  let first_at: number | undefined
  const onSignal = (signal: string) => {
    const now = performance.now()
    if (first_at === undefined) first.resolve(signal)
    else if (now - first_at > DUPLICATE_SIGNAL_MILLISECONDS) second.resolve()
    first_at ??= now
  }
  process.on('SIGINT', () => onSignal('SIGINT'))
  process.on('SIGTERM', () => onSignal('SIGTERM'))
  return { first: first.promise, second: second.promise }
}

/** A bug in one request must not end the streams of others: it is logged, and the gateway continues. */
function keepRunning(log: Log): void {
  process.on('unhandledRejection', (cause) => log.error('unhandled rejection', {}, cause))
  process.on('uncaughtException', (cause) => log.error('uncaught exception', {}, cause))
}

type Announced = {
  gateway: Gateway
  config: Config
  url: string
  admin_url: string
  given: Arguments
  terminal: Terminal
  log: Log
}

function announce({ gateway, config, url, admin_url, given, terminal, log }: Announced): void {
  const { providers, models } = gateway.summary()
  const isOwnSecret = config.bootstrap_token !== undefined
  const started: Started = {
    version: VERSION,
    url,
    config,
    providers,
    models,
    first_token: gateway.first_token,
    login: gateway.first_login && `${admin_url}/console#${gateway.first_login}`,
    isOwnSecret,
  }
  const isKnown = isFirstRequestKnown(started)
  if (given.has('json')) terminal.out(bannerJson(started))
  else terminal.out(bannerText(started, terminal) + (isKnown ? firstRequestText(started) : ''))
  void gateway.discovery.then((found) => {
    if (!given.has('json') && !isKnown) terminal.out(firstRequestText({ ...started, ...gateway.summary() }))
    const known = new Set(providers.map(({ id, models }) => `${id} ${models}`))
    for (const { id, found_by, models } of found) {
      if (!known.has(`${id} ${models}`)) log.info('provider discovered', { provider: id, found_by, models })
    }
  })
}
