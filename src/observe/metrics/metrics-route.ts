/** `GET /metrics`: what Prometheus scrapes. */
import type { ServerSettings } from '../../config/config.ts'
import type { MetricsConfig } from '../../config/schema/telemetry-schema.ts'
import type { Context, Route } from '../../http/context.ts'
import { isOwnHost } from '../../http/request-parts.ts'
import { isLoopbackHost, networkMatcher } from '../../kit/address.ts'
import type { MetricsFormat } from './exposition.ts'

type MetricsRouteParts = {
  settings: Pick<Required<MetricsConfig>, 'require_token'> & Pick<MetricsConfig, 'host' | 'port'>
  server: Pick<ServerSettings, 'host' | 'hosts' | 'base_url' | 'files_base_url'>
  scrape(format: MetricsFormat): Promise<{ content_type: string; body: string }>
}

export const metricsRoute = ({ settings, server, scrape }: MetricsRouteParts): Route => ({
  method: 'GET',
  path: '/metrics',
  answers_under_load: true,
  ...(settings.port === undefined ? {} : { only_at_metrics: true }),
  public: (context) => {
    if (settings.require_token !== 'remote') return settings.require_token === 'never'
    return isLocal(context) && (!isLoopbackName(settings.host ?? server.host) || isOwnHost(context.request, server))
  },
  admin: { right: 'read' },
  operation: {
    tag: 'Gateway',
    summary: 'Metrics for Prometheus',
    description:
      'In the text format of Prometheus, or OpenMetrics where `accept` prefers it. Clients on the same machine need no token by default, others an admin token (`metrics.require_token`).',
    media: ['text/plain', 'application/openmetrics-text'],
  },
  async handle(context) {
    const { content_type, body } = await scrape(preferredFormat(context.header('accept')))
    return new Response(body, {
      headers: { 'content-type': content_type, 'cache-control': 'no-store', vary: 'accept' },
    })
  },
})

/** Set by proxies: the client is then somebody else, and `trust_proxy` may be off. */
const FORWARDING = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via']

const isLoopback = networkMatcher(['127.0.0.0/8', '::1/128'])

/** Only there a scrape by another name is unusual: elsewhere the names of this machine lead to the listener as well. */
function isLoopbackName(host: string): boolean {
  const url = URL.parse(`http://${host.includes(':') ? `[${host}]` : host}`)
  return url !== null && isLoopbackHost(url)
}

const isLocal = (context: Context): boolean =>
  isLoopback(context.address) && FORWARDING.every((name) => context.header(name) === null)

/** Prometheus sends both types with a quality; browsers and curl get text. */
function preferredFormat(accept: string | null): MetricsFormat {
  let [text, openmetrics] = [0, 0]
  for (const one of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase())
    const given = parameters.find((parameter) => parameter.startsWith('q='))
    const quality = given === undefined ? 1 : Number(given.slice(2)) || 0
    if (type === 'application/openmetrics-text') openmetrics = Math.max(openmetrics, quality)
    if (type === 'text/plain') text = Math.max(text, quality)
  }
  return openmetrics > 0 && openmetrics >= text ? 'openmetrics' : 'text'
}
