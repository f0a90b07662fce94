/** Closes the listening socket of a server that goes on serving the connections that it has accepted. Linux only. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { filterProgram, type Libc, openLibc, PROGRAM_BYTES } from './libc.ts'

export type ListeningSocket = {
  /** Connections are accepted when they are open, and no longer only with their first bytes. */
  acceptAtOnce(): void
  /** No connection is accepted any more; those that the system has opened by now are, and none of them is reset. */
  shutDown(): Promise<void>
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
const SOL_SOCKET = 1
const SO_ATTACH_FILTER = 26

const DROP_SYN = [
  [0x30, 0, 0, 13], // load the byte of the TCP header that has the flags
  [0x45, 0, 1, 0x02], // a segment with SYN opens a connection
  [0x06, 0, 0, 0], // it is dropped
  [0x06, 0, 0, 0xffff], // any other passes
] as const
/** Enough to finish handshakes that have begun, in one network, and to accept their connections. */
const HANDSHAKE_MILLISECONDS = 5

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
    async shutDown() {
      // Linux resets the connections that wait to be accepted when their listener closes. A client whose SYN was dropped
      // repeats it after a second: it is then refused, or another process of the port accepts it.
      dropSyn(libc, descriptor)
      await Bun.sleep(HANDSHAKE_MILLISECONDS)
      // The turn after this one accepts what has come.
      await new Promise((resolve) => setImmediate(resolve))
      libc.shutdown(descriptor, SHUT_RD)
    },
  }
}

function dropSyn({ setsockopt }: Libc, descriptor: number): void {
  setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, filterProgram(DROP_SYN), PROGRAM_BYTES)
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
