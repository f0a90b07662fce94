/** The listeners of a gateway: the main one, and those of the metrics and of the admin API where they have their own. */
import type { Config } from '../../config/config.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Log } from '../../kit/log.ts'
import { type Listener, listen } from '../../listen.ts'
import { GatewayError } from '../../spec/error.ts'
import { VERSION } from '../commands/version.ts'

/** All listeners of the gateway; the address is that of the main one. */
export type Server = Pick<Listener, 'url' | 'retire' | 'stop'>

type Front = Parameters<typeof listen>[0]['gateway']

/**
 * Binds the port before anything else: a start that fails because the port is in use must not create the first token.
 * Requests that arrive while the gateway is being created wait for it.
 */
export async function openListeners(
  config: Config,
  { log, isShared }: { log: Log; isShared: boolean },
  build: (setWaiting: (reason: string) => void) => Promise<Gateway>,
) {
  const built = Promise.withResolvers<Gateway>()
  let gateway: Gateway | undefined
  let waiting: string | undefined
  const front: Front = {
    fetch: (request, peer) =>
      gateway?.fetch(request, peer) ??
      (waiting === undefined
        ? built.promise.then((whole) => whole.fetch(request, peer))
        : Promise.resolve(waitingResponse(request, waiting))),
    drain: async (options) => gateway?.drain(options),
  }
  const main = await listen({ gateway: front, server: config.server, isShared, log }).catch((error: unknown) => {
    throw explainListenError(error, config.server)
  })
  const { metrics } = config
  const own =
    metrics.enabled && metrics.port !== undefined
      ? { host: metrics.host ?? config.server.host, port: metrics.port }
      : undefined
  let server: Server = main
  try {
    if (own) server = withMetrics(main, await listenForMetrics(own, front, { log, isShared }))
    const admin = await listenForAdmin(config, { front, log, isShared })
    if (admin) server = both(server, admin)
    gateway = await build((reason) => {
      waiting = reason
    })
    built.resolve(gateway)
    return { server, admin_url: admin?.url ?? server.url, gateway, requests: main.requests }
  } catch (error) {
    await server.stop({ deadline_ms: 0 })
    throw error
  }
}

/** While the gateway waits for something outside of it: alive, not ready, and nothing else. */
function waitingResponse(request: Request, reason: string): Response {
  const { pathname } = new URL(request.url)
  if (pathname === '/healthz') return Response.json({ status: 'ok', version: VERSION })
  const { code, type } = new GatewayError('storage_unavailable', reason)
  const body =
    pathname === '/readyz' ? { status: 'not ready', reason } : { error: { message: reason, type, param: null, code } }
  return Response.json(body, { status: 503, headers: { 'retry-after': '5' } })
}

/** The listener that serves nothing but the metrics. */
async function listenForMetrics(
  server: { host: string; port: number },
  { fetch }: Front,
  { log, isShared }: { log: Log; isShared: boolean },
): Promise<Listener> {
  const front: Front = {
    // The peer itself: its methods need their own object.
    fetch: (request, peer) => fetch(request, Object.assign(peer, { isMetrics: true as const })),
    drain: async () => {},
  }
  try {
    const listener = await listen({ gateway: front, server, isShared, log })
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
const withMetrics = ({ url, retire, stop }: Listener, metrics: Listener): Server => ({
  url,
  retire,
  async stop(options) {
    await stop(options)
    await metrics.stop({ deadline_ms: 0 })
  },
})

/** The admin API's own listener, where one is configured. */
async function listenForAdmin(
  config: Config,
  { front, log, isShared }: { front: Front; log: Log; isShared: boolean },
): Promise<Listener | undefined> {
  const { enabled, port, host = config.server.host } = config.admin
  if (!enabled || port === undefined) return undefined
  const fetch: Front['fetch'] = (request, peer) =>
    front.fetch(request, {
      get address() {
        return peer.address
      },
      isAdmin: true,
      ...(peer.isRetiring && { isRetiring: true }),
      ...(peer.ended && { ended: (outcome) => peer.ended?.(outcome) }),
    })
  const server = { ...config.server, host, port }
  // The main listener drains the gateway.
  return listen({ gateway: { fetch, drain: async () => {} }, server, isShared, log }).catch((error: unknown) => {
    throw explainListenError(error, server)
  })
}

const both = ({ url, retire, stop }: Server, other: Listener): Server => ({
  url,
  retire() {
    retire()
    other.retire()
  },
  async stop(options) {
    await Promise.all([stop(options), other.stop(options)])
  },
})

/**
 * Workers would share their ports with any other process of the same user: throws where one of them is in use. The result: the main port,
 * where the system chooses one as well.
 */
export function freePortsOf({ server, metrics, admin }: Config): number {
  const others = [
    ...(metrics.enabled ? [{ name: 'metrics.port', port: metrics.port, host: metrics.host ?? server.host }] : []),
    ...(admin.enabled ? [{ name: 'admin.port', port: admin.port, host: admin.host ?? server.host }] : []),
  ]
  for (const { name, port, host } of others) {
    if (port === 0) throw new Error(`${name} must not be 0 with several workers, which would all choose another one.`)
    if (port !== undefined) freePortOf({ host, port })
  }
  return freePortOf(server)
}

function freePortOf(address: Pick<Config['server'], 'host' | 'port'>): number {
  const { host: hostname, port } = address
  try {
    const probe = Bun.listen({ hostname, port, exclusive: true, socket: { data() {} } })
    const { port: free } = probe
    probe.stop(true)
    return free
  } catch (error) {
    throw explainListenError(error, address)
  }
}

function explainListenError(error: unknown, { host, port }: Pick<Config['server'], 'host' | 'port'>): unknown {
  const { code, message = '' } = error as { code?: string; message?: string }
  const where = `${host}:${port}`
  if (code === 'EADDRINUSE') {
    return new Error(`${where} is in use by another process; choose another port with --port or GATEHOUSE_PORT.`)
  }
  if (code === 'EACCES') return new Error(`listening on ${where} is not permitted; ports below 1024 need privileges.`)
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EINVAL') {
    return new Error(`${host} is not an address of this machine; check --host, GATEHOUSE_HOST or server.host.`)
  }
  return message.includes('Failed to listen') ? new Error(`cannot listen on ${where}: ${message}`) : error
}
