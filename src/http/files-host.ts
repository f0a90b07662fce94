/** The host at which nothing but stored files is served, where the operator has set one aside. */
import type { ServerSettings } from '../config/config.ts'

type HostSettings = Pick<ServerSettings, 'files_base_url' | 'trust_proxy'>

/** Whether the request came by that host; never where there is none. */
export function isFilesHost(request: Request, { files_base_url, trust_proxy }: HostSettings): boolean {
  if (files_base_url === undefined) return false
  const forwarded = trust_proxy ? request.headers.get('x-forwarded-host')?.split(',')[0]?.trim() : undefined
  // By name: a port may be another one behind a proxy.
  const asked = URL.parse(forwarded ? `http://${forwarded}` : request.url)
  return asked !== null && nameOf(asked) === nameOf(new URL(files_base_url))
}

/** A dot at the end names the same host. */
const nameOf = ({ hostname }: URL): string => hostname.replace(/\.$/, '')
