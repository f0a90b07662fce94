/** A fetch for the test of a provider: connects to no metadata service, whatever name its host has. */
import { isMetadataHost } from '../../config/check/metadata-hosts.ts'
import { readAddress } from '../../kit/address.ts'
import { resolveName } from '../../kit/guarded-fetch.ts'
import { GatewayError } from '../../spec/error.ts'
import { originOf } from './connect.ts'

type Init = Omit<BunFetchRequestInit, 'headers'> & { headers?: HeadersInit }
type Resolve = (host: string) => Promise<string[]>

type CheckedParts = {
  /** `server.metadata_hosts`: hosts that are allowed as they are. */
  allowed: readonly string[] | undefined
  /** Of the process, read only for proxy variables. */
  environment: Record<string, string | undefined>
  resolve?: Resolve
}

/**
 * The configuration refuses such an address where it is written. A name that leads to one is refused here, and the address
 * that was checked is the one connected to: another one may be resolved a moment later.
 */
export function createCheckedFetch({ allowed = [], environment, resolve = resolveName }: CheckedParts) {
  return async (address: string, init: Init): Promise<Response> => {
    const url = new URL(address)
    const { host, isProxied } = originOf(url.origin, environment)
    if (isProxied || readAddress(host) || allowed.includes(host)) return fetch(address, init)
    const addresses = await resolve(host)
    const [first] = addresses
    if (first === undefined || addresses.some(isMetadataHost)) {
      const message = `The host "${host}" resolves to a metadata service or link-local address.`
      throw new GatewayError('upstream_unreachable', message)
    }
    const target = new URL(url)
    target.hostname = first.includes(':') ? `[${first}]` : first
    const headers = new Headers(init.headers)
    headers.set('host', url.host)
    return fetch(target, { ...init, headers, ...(url.protocol === 'https:' && { tls: { serverName: host } }) })
  }
}
