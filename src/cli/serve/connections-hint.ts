/** Says at start where Linux resets connections that a worker was to accept when it stops. */
import { readFileSync } from 'node:fs'

/** Linux 5.14 and newer: 1 passes such connections on to the other processes that listen on the port. */
const MIGRATE = '/proc/sys/net/ipv4/tcp_migrate_req'

/** Undefined: it is on, or the system does not have it. */
export function connectionsHint(path = MIGRATE): { what: string; fields: Record<string, string> } | undefined {
  let value: string
  try {
    value = readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
  if (value !== '0') return undefined
  return {
    what: 'net.ipv4.tcp_migrate_req is off: a worker that is replaced may reset a connection that is being opened',
    fields: { set: 'sysctl -w net.ipv4.tcp_migrate_req=1' },
  }
}
