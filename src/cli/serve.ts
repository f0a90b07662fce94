/** `gatehouse serve`: starts the gateway, prints its address, and stops it gracefully. */
import { resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import type { Flags } from '../config/environment.ts'
import { DEFAULT_FILE, loadConfig } from '../config/load.ts'
import { loadManual } from '../config/manual.ts'
import { watchConfig } from '../config/watch.ts'
import { createGateway, type Gateway } from '../gateway.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import { createLog, type Log } from '../kit/log.ts'
import { type Listener, listen } from '../listen.ts'
import { type Arguments, readArguments } from './arguments.ts'
import { bannerJson, bannerText, firstRequestText, isFirstRequestKnown, type Started } from './banner.ts'
import { terminalFormat } from './log-format.ts'
import type { Terminal } from './terminal.ts'
import { knownVendors } from './vendors.ts'
import { VERSION } from './version.ts'

const HELP = `Usage: gatehouse serve [options]

Starts the gateway. Everything is optional: without a configuration file it discovers providers.
Ctrl-C lets open requests finish within a deadline and exits with 0; a second Ctrl-C aborts them. A changed
configuration file is reloaded once it is no longer being written; SIGHUP reloads it at once.

Options:
  --host <address>        address to listen on (default: GATEHOUSE_HOST, then the file, then 127.0.0.1)
  --port <number>         port to listen on, 0 for a free one (default: GATEHOUSE_PORT, then the file, then 8787)
  --config <file>         the configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --data-dir <directory>  the data directory (default: GATEHOUSE_DATA_DIR, then ./data)
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
  const given = readArguments({ command: 'serve', args, flags })
  if (given.has('help')) {
    terminal.out(HELP)
    return 0
  }
  return serve({ given, terminal, clock: systemClock })
}

async function serve({ given, terminal, clock }: { given: Arguments; terminal: Terminal; clock: Clock }) {
  const { environment, cwd, interactive, err } = terminal
  const flags = flagsOf(given)
  const load = (readFile?: () => string | undefined): Config =>
    loadConfig({ environment, cwd, flags, vendors: knownVendors(environment), ...(readFile && { readFile }) })
  const config = load()
  const log = createLog({ clock, level: config.log_level, pretty: interactive && terminalFormat(terminal), write: err })
  const stopped = stopSignal()
  const { server, admin_url, gateway } = await open(config, log, () =>
    createGateway({ config, environment, log, clock, manual: loadManual, version: VERSION }),
  )
  const path = config.file ?? resolve(cwd, DEFAULT_FILE)
  const watched = watchConfig({ path, current: config, load, apply: gateway.reload, log, clock })
  process.on('SIGHUP', () => void watched.reload())
  keepRunning(log)
  announce({ gateway, config, url: server.url, admin_url, given, terminal, log })

  const signal = await stopped.first
  watched.close()
  const deadline_ms = config.server.shutdown_seconds * 1000
  log.info('stopping', { signal, deadline_seconds: config.server.shutdown_seconds })
  const closed = server.stop({ deadline_ms }).then(() => gateway.close({ deadline_ms }))
  const cut = stopped.second.then(() => Promise.race([cutShort(server, gateway), after(clock, CUT_MILLISECONDS)]))
  await Promise.race([closed, cut])
  log.info('stopped', {})
  log.flush()
  return 0
}

type Front = Parameters<typeof listen>[0]['gateway']

/**
 * Binds the port before anything else: a start that fails because the port is in use must not create the first token.
 * Requests that arrive while the gateway is being created wait for it.
 */
async function open(config: Config, log: Log, build: () => Promise<Gateway>) {
  const built = Promise.withResolvers<Gateway>()
  let gateway: Gateway | undefined
  const front: Front = {
    fetch: (request, peer) =>
      gateway?.fetch(request, peer) ?? built.promise.then((whole) => whole.fetch(request, peer)),
    drain: async (options) => gateway?.drain(options),
  }
  const main = await listen({ gateway: front, server: config.server, log }).catch((error: unknown) => {
    throw explainListenError(error, config)
  })
  const { metrics } = config
  const own =
    metrics.enabled && metrics.port !== undefined
      ? { host: metrics.host ?? config.server.host, port: metrics.port }
      : undefined
  let server: Pick<Listener, 'url' | 'stop'> = main
  try {
    if (own) server = withMetrics(main, await listenForMetrics(own, front, log))
    const admin = await listenForAdmin(config, { front, log })
    if (admin) server = both(server, admin)
    gateway = await build()
    built.resolve(gateway)
    return { server, admin_url: admin?.url ?? server.url, gateway }
  } catch (error) {
    await server.stop({ deadline_ms: 0 })
    throw error
  }
}

/** The listener that serves nothing but the metrics. */
async function listenForMetrics(server: { host: string; port: number }, { fetch }: Front, log: Log): Promise<Listener> {
  const front: Front = {
    fetch: (request, { address, isCrowded = false, ended = () => {} }) =>
      fetch(request, { address, isCrowded, ended, isMetrics: true }),
    drain: async () => {},
  }
  try {
    const listener = await listen({ gateway: front, server, log })
    log.info('metrics are served', { url: `${listener.url}/metrics` })
    return listener
  } catch (error) {
    const { message = '' } = error as { message?: string }
    throw new Error(
      `cannot listen on ${server.host}:${server.port} for metrics: ${message}; check metrics.host and metrics.port.`,
    )
  }
}

/** The metrics are served until the last request has ended. */
const withMetrics = ({ url, stop }: Listener, metrics: Listener): Pick<Listener, 'url' | 'stop'> => ({
  url,
  async stop(options) {
    await stop(options)
    await metrics.stop({ deadline_ms: 0 })
  },
})

/** The admin API's own listener, where one is configured. */
async function listenForAdmin(
  config: Config,
  { front, log }: { front: Front; log: Log },
): Promise<Listener | undefined> {
  const { enabled, port, host = config.server.host } = config.admin
  if (!enabled || port === undefined) return undefined
  const fetch: Front['fetch'] = (request, peer) =>
    front.fetch(request, {
      get address() {
        return peer.address
      },
      isAdmin: true,
      ...(peer.ended && { ended: () => peer.ended?.() }),
    })
  const server = { ...config.server, host, port }
  // The main listener drains the gateway.
  return listen({ gateway: { fetch, drain: async () => {} }, server, log }).catch((error: unknown) => {
    throw explainListenError(error, { ...config, server })
  })
}

const both = ({ url, stop }: Pick<Listener, 'url' | 'stop'>, other: Listener): Pick<Listener, 'url' | 'stop'> => ({
  url,
  async stop(options) {
    await Promise.all([stop(options), other.stop(options)])
  },
})

/** After a second signal, buffered usage is still written if that is fast. */
const CUT_MILLISECONDS = 2000

async function cutShort(server: Pick<Listener, 'stop'>, gateway: Gateway): Promise<void> {
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

function explainListenError(error: unknown, { server: { host, port } }: Config): unknown {
  const { code, message = '' } = error as { code?: string; message?: string }
  const where = `${host}:${port}`
  if (code === 'EADDRINUSE') {
    return new Error(`${where} is in use by another process; choose another port with --port or GATEHOUSE_PORT.`)
  }
  if (code === 'EACCES') return new Error(`listening on ${where} is not permitted; ports below 1024 need privileges.`)
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new Error(`${host} is not an address of this machine; check --host, GATEHOUSE_HOST or server.host.`)
  }
  return message.includes('Failed to listen') ? new Error(`cannot listen on ${where}: ${message}`) : error
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
    login: gateway.first_login && `${admin_url}/admin/login#${gateway.first_login}`,
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
