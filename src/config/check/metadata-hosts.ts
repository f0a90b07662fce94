/** Checks that no address of the configuration is that of a cloud metadata service, which returns credentials. */
import { networkMatcher, readAddress } from '../../kit/address.ts'
import type { FileConfig } from '../schema/schema.ts'

type Violation = { path: (string | number)[]; part: 'value'; message: string }

/** The network policy of the chart leaves them out too. */
export const METADATA_NETWORKS = [
  '169.254.0.0/16', // link-local; 169.254.169.254 at most clouds
  '168.63.129.16/32', // Azure
  '100.100.100.200/32', // Alibaba Cloud
  '192.0.0.192/32', // Oracle Cloud
  'fe80::/10',
  'fd00:ec2::254/128', // AWS
]
const isMetadataAddress = networkMatcher(METADATA_NETWORKS)
const METADATA_NAMES = ['metadata.google.internal', 'metadata', 'instance-data']

/** `server.metadata_hosts` allows single hosts. Names are not resolved. */
export function metadataHostProblems(config: FileConfig): Violation[] {
  const allowed = new Set(config.server?.metadata_hosts?.map((host) => host?.toLowerCase()))
  return addressesOf(config).flatMap(({ path, text }) => {
    const host = hostOf(text)
    if (host === undefined || allowed.has(host) || !isMetadataHost(host)) return []
    const message = `leads to ${host}, a metadata service or link-local address; if that is intended, add it to server.metadata_hosts`
    return [{ path, part: 'value' as const, message }]
  })
}

type Named = { path: Violation['path']; text: string | undefined }

function addressesOf({ alerts, telemetry, outputs, request_log, admin, providers, mcp }: FileConfig): Named[] {
  return [
    { path: ['alerts', 'webhook', 'url'], text: alerts?.webhook?.url },
    { path: ['alerts', 'slack', 'url'], text: alerts?.slack?.url },
    { path: ['alerts', 'email', 'host'], text: alerts?.email?.host },
    { path: ['telemetry', 'otlp', 'endpoint'], text: telemetry?.otlp?.endpoint },
    { path: ['outputs', 's3', 'endpoint'], text: outputs?.s3?.endpoint },
    { path: ['admin', 'oidc', 'issuer'], text: admin?.oidc?.issuer },
    { path: ['mcp', 'oauth', 'issuer'], text: mcp?.oauth?.issuer },
    ...(request_log?.sinks ?? []).flatMap((sink, index) =>
      (['http', 'clickhouse'] as const).map((kind) => ({
        path: ['request_log', 'sinks', index, kind, 'url'],
        text: sink?.[kind]?.url,
      })),
    ),
    ...Object.entries(providers ?? {}).map(([id, provider]) => ({
      path: ['providers', id, 'base_url'],
      text: provider?.base_url,
    })),
    ...Object.entries(mcp?.servers ?? {}).flatMap(([name, server]) =>
      (['url', 'sse'] as const).map((way) => ({ path: ['mcp', 'servers', name, way], text: server?.[way] })),
    ),
    ...Object.entries(mcp?.servers ?? {}).map(([name, server]) => ({
      path: ['mcp', 'servers', name, 'openapi', 'base_url'],
      text: server?.openapi?.base_url,
    })),
    ...Object.entries(mcp?.servers ?? {}).map(([name, server]) => ({
      path: ['mcp', 'servers', name, 'oauth', 'token_url'],
      text: server?.oauth?.token_url,
    })),
    ...Object.entries(mcp?.servers ?? {}).map(([name, server]) => ({
      path: ['mcp', 'servers', name, 'oauth_user', 'issuer'],
      text: server?.oauth_user?.issuer,
    })),
  ]
}

/** Of a URL or a host; `URL` turns other notations of an IPv4 address, such as one number, into the usual one. */
function hostOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const url = URL.parse(text.includes('://') ? text : `http://${text.includes(':') ? `[${text}]` : text}`)
  return url?.hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase() // IPv6 hosts are in brackets
}

/** Whether a host, by its name or its address, is such a service. */
export function isMetadataHost(host: string): boolean {
  if (METADATA_NAMES.includes(host)) return true
  const bytes = readAddress(host)
  if (!bytes) return false
  // The last four bytes of IPv6 are an IPv4 address where they are mapped (::ffff:0:0/96) or translated (64:ff9b::/96).
  const isCarrier = /^(::ffff:|64:ff9b::)/.test(host)
  return isMetadataAddress(host) || (isCarrier && isMetadataAddress(bytes.slice(12).join('.')))
}
