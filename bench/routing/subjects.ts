/** Lists the routers compared: that of the gateway, and others as their documentation describes them. */
import { boundsOf } from '../../src/calls/routing/bounds.ts'
import { createRouter } from '../../src/calls/routing/router.ts'
import type { RoutingConfig } from '../../src/config/schema/routing-schema.ts'
import { createLog } from '../../src/kit/log.ts'
import type { Target } from '../../src/providers/provider.ts'
import { GatewayError } from '../../src/spec/error.ts'
import type { CreateSubject } from './simulate.ts'

/** The router of the gateway. With the strategy `priority` the targets are tried in order, else they share the calls. */
export const gatehouse =
  (settings: RoutingConfig): CreateSubject =>
  ({ clock, world, random }) => {
    const log = createLog({ clock, level: 'error', pretty: false, write() {} })
    const router = createRouter({ clock, log, random })
    const isOrdered = (settings.strategy ?? 'priority') === 'priority'
    const indexes = new Map<Target, number>()
    const targets = world.prices.map((_, index): Target => {
      const priority = isOrdered ? index : 0
      const target = { provider: { id: `p${index}`, kind: 'simulated' }, model: 'm', priority }
      indexes.set(target, index)
      return target
    })
    const indexOf = (target: Target) => indexes.get(target) ?? 0
    return {
      async call(send, signal) {
        let end: ((error?: unknown) => void) | undefined
        await router.attempt(
          targets,
          {
            settings,
            bounds: boundsOf(settings, clock.steady()),
            token_id: 't',
            signal,
            is_stream: true,
            policy: 'until_answered',
            is_observed: true,
            is_hedged: true,
            has_fallback: false,
            costOf: (target) => world.prices[indexOf(target)],
            attemptStarted() {},
            attemptFailed() {},
            serving(given) {
              end = (error) => given.end(error)
            },
          },
          { sendTo: (target, own) => send(indexOf(target), own ?? signal) },
        )
        return () => end?.()
      },
    }
  }

const NOTHING = () => {}

/** One target after the other, without memory. */
export const roundRobin: CreateSubject = ({ world }) => {
  let next = 0
  return {
    async call(send, signal) {
      await send(next++ % world.prices.length, signal)
      return NOTHING
    },
  }
}

/**
 * `routing_strategy: simple-shuffle` with the defaults: a random deployment; at most two retries, each at a deployment that
 * has not failed the request; a 429, or errors in half of the calls of a minute (at least five), take a deployment out for
 * 5 s. Its time limit of 600 s is longer than a client waits.
 * https://docs.litellm.ai/docs/router/learn/reliability, https://docs.litellm.ai/docs/router/api_reference/configuration
 */
export const simpleShuffle: CreateSubject = ({ clock, world, random }) => {
  const RETRIES = 2
  const COOLDOWN_MS = 5_000
  const [FAILED_SHARE, LEAST_CALLS] = [0.5, 5]
  const all = world.prices.map((_, index) => ({ index, minute: 0, calls: 0, failed: 0, cooling_until: 0 }))
  type Deployment = (typeof all)[number]

  function count(deployment: Deployment, error?: unknown): void {
    const minute = Math.floor(clock.steady() / 60_000)
    if (deployment.minute !== minute) Object.assign(deployment, { minute, calls: 0, failed: 0 })
    deployment.calls++
    if (error === undefined) return
    deployment.failed++
    const isLimited = error instanceof GatewayError && error.code === 'rate_limit_exceeded'
    const isFailing = deployment.calls >= LEAST_CALLS && deployment.failed > deployment.calls * FAILED_SHARE
    if (isLimited || isFailing) deployment.cooling_until = clock.steady() + COOLDOWN_MS
  }

  return {
    async call(send, signal) {
      const tried = new Set<Deployment>()
      for (let retries = 0; ; retries++) {
        const now = clock.steady()
        const healthy = all.filter(({ cooling_until }) => cooling_until <= now)
        const fresh = healthy.filter((one) => !tried.has(one))
        const among = fresh.length > 0 ? fresh : healthy
        const deployment = among[Math.floor(random() * among.length)]
        if (!deployment) throw new GatewayError('no_available_channel', 'Every deployment cools down.')
        tried.add(deployment)
        try {
          await send(deployment.index, signal)
          count(deployment)
          return NOTHING
        } catch (error) {
          if (signal.aborted) throw error
          count(deployment, error)
          if (retries >= RETRIES) throw error
        }
      }
    },
  }
}

/**
 * LEAST_REQUEST with equal weights: of two random hosts the one with fewer active requests (with equal weights, the bias
 * has no effect). Outlier detection with its defaults: five consecutive 5xx, or a success rate below the average by 1.9
 * standard deviations (at least 5 hosts with 100 requests in 10 s), for 30 s times the number of ejections; at most 10 % of
 * the hosts, but always one. `retry_on: 5xx,retriable-status-codes` (429) with its default of one retry, on another host
 * (`previous_hosts`); the route's default time limit of 15 s, retries included.
 * https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/load_balancing/load_balancers
 * https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/cluster/v3/outlier_detection.proto
 * https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/route/v3/route_components.proto
 */
export const leastRequest: CreateSubject = ({ clock, world, random }) => {
  const ROUTE_MS = 15_000
  const hosts = world.prices.map((_, index) => ({
    index,
    active: 0,
    consecutive: 0,
    ejected_until: 0,
    ejections: 0,
    calls: 0,
    ok: 0,
  }))
  type Host = (typeof hosts)[number]
  const mostEjected = Math.max(1, Math.floor(hosts.length * 0.1))

  function eject(host: Host): void {
    const now = clock.steady()
    if (host.ejected_until > now || hosts.filter((one) => one.ejected_until > now).length >= mostEjected) return
    host.ejections++
    host.ejected_until = now + Math.min(30_000 * host.ejections, 300_000)
    host.consecutive = 0
  }

  function sweep(): void {
    const counted = hosts.filter(({ calls }) => calls >= 100).map((host) => ({ host, rate: host.ok / host.calls }))
    if (counted.length >= 5) {
      const mean = counted.reduce((sum, { rate }) => sum + rate, 0) / counted.length
      const variance = counted.reduce((sum, { rate }) => sum + (rate - mean) ** 2, 0) / counted.length
      for (const { host, rate } of counted) if (rate < mean - 1.9 * Math.sqrt(variance)) eject(host)
    }
    for (const host of hosts) {
      host.calls = host.ok = 0
      if (host.ejected_until <= clock.steady() && host.ejections > 0) host.ejections -= host.ejected_until === 0 ? 1 : 0
      if (host.ejected_until <= clock.steady()) host.ejected_until = 0
    }
    if (clock.steady() < world.seconds * 1000) clock.after(10_000, sweep)
  }
  clock.after(10_000, sweep)

  function choose(last: Host | undefined): Host | undefined {
    const now = clock.steady()
    const healthy = hosts.filter((host) => host.ejected_until <= now && host !== last)
    const [one, other] = [0, 1].map(() => healthy[Math.floor(random() * healthy.length)])
    return one && other && other.active < one.active ? other : one
  }

  async function sendTo(host: Host, send: () => Promise<void>): Promise<void> {
    host.active++
    host.calls++
    try {
      await send()
      host.ok++
      host.consecutive = 0
    } catch (error) {
      // A 429 is no 5xx: it does not count as an error of the host.
      const isLimited = error instanceof GatewayError && error.code === 'rate_limit_exceeded'
      if (isLimited) host.consecutive = 0
      else if (++host.consecutive >= 5) eject(host)
      host.active--
      throw error
    }
  }

  return {
    async call(send, signal) {
      const route = new AbortController()
      const end = () => route.abort(new GatewayError('upstream_timeout', 'upstream request timeout'))
      const stop = clock.after(ROUTE_MS, end)
      let last: Host | undefined
      try {
        for (let retries = 0; ; retries++) {
          const host = choose(last)
          if (!host) throw new GatewayError('no_available_channel', 'no healthy upstream')
          last = host
          try {
            await sendTo(host, () => send(host.index, AbortSignal.any([signal, route.signal])))
            return () => {
              host.active--
            }
          } catch (error) {
            if (retries >= 1 || signal.aborted || route.signal.aborted) throw error
          }
        }
      } finally {
        stop()
      }
    },
  }
}
