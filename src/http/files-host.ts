/** The host that serves stored files only, if the operator has configured one. */
import type { ServerSettings } from '../config/config.ts'
import { nameOf } from './request-parts.ts'

type HostSettings = Pick<ServerSettings, 'files_base_url' | 'trust_proxy'>

/** Whether the request was sent to that host; false if none is configured. */
export function isFilesHost(request: Request, { files_base_url, trust_proxy }: HostSettings): boolean {
  if (files_base_url === undefined) return false
  const forwarded = trust_proxy ? request.headers.get('x-forwarded-host')?.split(',')[0]?.trim() : undefined
  // Compared by name: behind a proxy the port may differ.
  const requested = URL.parse(forwarded ? `http://${forwarded}` : request.url)
  return requested !== null && nameOf(requested) === nameOf(new URL(files_base_url))
}
