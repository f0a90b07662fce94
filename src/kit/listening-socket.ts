/** Closes the listening socket of a server that goes on serving the connections that it has accepted. Linux only. */
import { dlopen } from 'bun:ffi'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export type ListeningSocket = {
  /** Connections are accepted when they are open, and no longer only with their first bytes. */
  acceptAtOnce(): void
  /** No connection is accepted any more. */
  shutDown(): void
}

/** The columns of /proc/net/tcp, by position, and the state of a listening socket. */
const LOCAL = 1
const STATE = 3
const INODE = 9
const LISTEN = '0A'

/** Of <netinet/tcp.h> and <sys/socket.h>. */
const IPPROTO_TCP = 6
const TCP_DEFER_ACCEPT = 9
const SHUT_RD = 0

/** The C library of most distributions, and that of Alpine. */
const LIBRARIES = ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]

/**
 * The runtime can only stop a server as a whole: it then closes connections that have sent no request yet, and the system
 * resets those that wait to be accepted, which are all that have not sent their first bytes (TCP_DEFER_ACCEPT). Undefined
 * where the socket is not found. `process_files`: replaced by tests.
 */
export function listeningSocket(port: number, process_files = '/proc/self'): ListeningSocket | undefined {
  const descriptor = process.platform === 'linux' ? descriptorOf(port, process_files) : undefined
  const libc = descriptor === undefined ? undefined : openLibc()
  if (descriptor === undefined || libc === undefined) return undefined
  return {
    acceptAtOnce() {
      const off = new Int32Array([0])
      libc.setsockopt(descriptor, IPPROTO_TCP, TCP_DEFER_ACCEPT, off, off.byteLength)
    },
    shutDown: () => void libc.shutdown(descriptor, SHUT_RD),
  }
}

function descriptorOf(port: number, process_files: string): number | undefined {
  const directory = `${process_files}/fd`
  try {
    const links = new Set(inodesOf(port, process_files).map((inode) => `socket:[${inode}]`))
    const name = readdirSync(directory).find((name) => links.has(linkOf(`${directory}/${name}`)))
    return name === undefined ? undefined : Number(name)
  } catch {
    return undefined // without /proc
  }
}

/** Other processes may listen on the port too. */
function inodesOf(port: number, process_files: string): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return ['tcp', 'tcp6']
    .flatMap((name) => linesOf(`${process_files}/net/${name}`))
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[STATE] === LISTEN && columns[LOCAL]?.endsWith(suffix))
    .map((columns) => columns[INODE] ?? '')
}

/** A system without IPv6 has no list of its sockets. */
function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'latin1').split('\n')
  } catch {
    return []
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return '' // closed meanwhile
  }
}

function openLibc() {
  for (const library of LIBRARIES) {
    try {
      return dlopen(library, {
        setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
        shutdown: { args: ['i32', 'i32'], returns: 'i32' },
      }).symbols
    } catch {
      // The other one, or none.
    }
  }
  return undefined
}
