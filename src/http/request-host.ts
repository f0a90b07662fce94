/** Checks the `Host` header of a request: one host, and where it matters one of the gateway's own. */
import type { ServerSettings } from '../config/config.ts'
import { isLoopbackHost, readAddress } from '../kit/address.ts'
import { GatewayError } from '../spec/error.ts'

type HostSettings = Pick<ServerSettings, 'hosts' | 'base_url' | 'files_base_url'>

/** The runtime joins repeated headers with commas, which no host contains. */
export const hasSeveralHosts = ({ headers }: Request): boolean => headers.get('host')?.includes(',') === true

/** RFC 9112, section 3.2: the gateway and a proxy before it could each take another one. */
export const severalHosts = () =>
  new GatewayError('invalid_value', 'The request has several Host headers, or one with a comma; send one host.')

/**
 * Whether no name of a foreign page can be in `Host`: with DNS rebinding a page of any public name can lead a browser to
 * an address that only the browser's machine reaches, and read the answer. Safe are addresses, the names of this
 * machine, names of one label and of the private zone `internal`, which no public DNS server answers for, and the names
 * that the settings list. A request without the header is from no browser.
 */
export function isOwnHost({ headers }: Request, { hosts, base_url, files_base_url }: HostSettings): boolean {
  const host = headers.get('host')
  if (host === null) return true
  const url = URL.parse(`http://${host}`)
  if (url === null) return false
  const name = nameOf(url)
  if (isAddress(name) || isLoopbackHost(url) || !name.includes('.') || name.endsWith('.internal')) return true
  return (
    hosts.some((one) => one.toLowerCase() === name) ||
    [base_url, files_base_url].some((address) => address !== undefined && nameOf(new URL(address)) === name)
  )
}

/** Pages that need no token: checked only where the operator lists names, since a proxy may pass on any name. */
export function assertKnownHost(request: Request, settings: HostSettings): void {
  if (settings.hosts.length === 0 || isOwnHost(request, settings)) return
  throw new GatewayError('unknown_url', 'Nothing is served at the host of this request: it is not one of server.hosts.')
}

const isAddress = (name: string): boolean => readAddress(name.replace(/^\[|\]$/g, '')) !== undefined

/** A trailing dot names the same host. */
export const nameOf = ({ hostname }: URL): string => hostname.replace(/\.$/, '')
