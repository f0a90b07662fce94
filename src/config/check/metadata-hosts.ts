/** Checks that no address of the configuration is that of a cloud metadata service, which returns credentials. */
import { networkMatcher, readAddress } from '../../kit/address.ts'
import type { FileConfig } from '../schema/schema.ts'

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
export function metadataHostProblem(text: string, { server }: FileConfig): string | undefined {
  const host = hostOf(text)
  if (host === undefined || !isMetadataHost(host)) return undefined
  if (server?.metadata_hosts?.some((allowed) => allowed?.toLowerCase() === host)) return undefined
  return `leads to ${host}, a metadata service or link-local address; if that is intended, add it to server.metadata_hosts`
}

/** Of a URL or a host; `URL` turns other notations of an IPv4 address, such as one number, into the usual one. */
function hostOf(text: string): string | undefined {
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
