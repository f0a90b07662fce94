/** Which providers are probed, and how. A reload that leaves the settings of a provider alone leaves its probes alone. */
import type { HealthConfig } from '../config/schema/routing-schema.ts'
import type { ProviderConfig, Timeouts } from '../config/schema/schema.ts'
import type { Clock } from '../kit/clock.ts'
import { canonicalJson } from '../kit/json.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import { type HealthMonitor, type HealthProbe, type ProviderHealth, startHealthMonitor } from './health.ts'
import type { Provider } from './provider.ts'
import { resolveProvider } from './settings.ts'
import { createTransport, type Transport } from './upstream/transport.ts'

export type Probed = { id: string; config: ProviderConfig; timeouts: Required<Timeouts> }

/** What a probed provider is created with, besides what calls have. */
export type ProbeParts = { transport: Transport; log: Log }

type MonitorsParts = {
  /** The provider as calls have it, with these parts. */
  create(probed: Probed, parts: ProbeParts): Provider
  environment: Record<string, string | undefined>
  clock: Clock
  log: Log
  onRecovered?: ((health: ProviderHealth) => void) | undefined
}

export function createHealthMonitors(parts: MonitorsParts) {
  const { create, environment, clock, log, onRecovered } = parts
  /** By the same rules as for calls. */
  const transport = createTransport({ clock, log: QUIET, environment })
  const running = new Map<string, { monitor: HealthMonitor; close(): void; settings: string }>()

  function start(probed: Probed, health: HealthConfig): { monitor: HealthMonitor; close(): void } {
    const { id } = probed
    const provider = health.path === undefined ? create(probed, { transport, log: QUIET }) : undefined
    const probe = health.path === undefined ? listProbe(provider) : pathProbe(probed, health.path, transport)
    const monitor = startHealthMonitor({ provider: id, config: health, probe, clock, log, onRecovered })
    return { monitor, close: () => void provider?.close?.().catch(() => {}) }
  }

  function stop(id: string): void {
    const found = running.get(id)
    running.delete(id)
    found?.monitor.stop()
    found?.close()
  }

  return {
    /** Throws an Error that names the setting where a provider has nothing that could be probed. */
    check(id: string, config: ProviderConfig, { listModels }: Provider): void {
      if (!config.health) return
      if (config.health.path !== undefined) originOf(id, config)
      else if (!listModels) throw new Error(`providers.${id}.health needs \`path\`: its API has no list of models`)
    },
    /** Starts and stops probes, so that those of these providers run that are configured for it. */
    apply(providers: readonly Probed[]): void {
      const missing = new Map(providers.filter(({ config }) => config.health).map((one) => [one.id, one]))
      for (const [id, { settings }] of running) {
        const next = missing.get(id)
        if (next && canonicalJson(next) === settings) missing.delete(id)
        else stop(id)
      }
      for (const [id, one] of missing) {
        if (one.config.health) running.set(id, { ...start(one, one.config.health), settings: canonicalJson(one) })
      }
    },
    of: (id: string) => running.get(id)?.monitor.health,
    stop() {
      for (const id of [...running.keys()]) stop(id)
    },
  }
}

/** A failed probe is no event: the monitor logs what changes. */
const QUIET: Log = { debug() {}, info() {}, warn() {}, error() {}, flush() {} }

const listProbe =
  (provider: Provider | undefined): HealthProbe =>
  async (signal) =>
    provider?.listModels?.(signal)

function pathProbe({ id, config, timeouts }: Probed, path: string, transport: Transport): HealthProbe {
  const url = originOf(id, config) + path
  return async (signal) => {
    const response = await transport.send({
      provider: id,
      url,
      method: 'GET',
      headers: { accept: '*/*', 'user-agent': 'gatehouse' },
      signal,
      timeouts,
      stream: false,
    })
    response.release()
    if (response.status >= 200 && response.status < 300) return
    throw new GatewayError('bad_upstream_response', `${path} answered ${response.status}`)
  }
}

function originOf(id: string, config: ProviderConfig): string {
  const { base_url } = resolveProvider(id, config)
  if (base_url !== undefined) return new URL(base_url).origin
  throw new Error(`providers.${id}.health.path needs base_url: the path is requested at its host`)
}
