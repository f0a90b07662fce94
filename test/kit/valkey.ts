/** Valkey for the tests: a real server where one is installed, and one that misbehaves as a test says. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'

const BINARY = Bun.which('valkey-server') ?? Bun.which('redis-server')
/** Debian: `apt-get install redis-server`. */
export const hasValkey = BINARY !== null
if (!hasValkey)
  process.stderr.write('Tests that need Valkey are skipped: neither valkey-server nor redis-server is installed.\n')

export type ValkeyServer = {
  port: number
  /** With the password. */
  url: string
  password: string
  /** Stops the process (SIGSTOP), as a frozen machine would; the result continues it. */
  freeze(): () => void
  stop(): Promise<void>
}

/** Ends the server when its standard input closes, which happens even if the test process is killed. */
const GUARD = `
  trap '' INT HUP TERM
  "$@" <&- & pid=$!
  echo "pid $pid"
  cat >/dev/null
  kill -KILL $pid`

/** `port`: default a free one. */
export async function startValkey(port?: number): Promise<ValkeyServer> {
  if (BINARY === null) throw new Error('Neither valkey-server nor redis-server is installed.')
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-valkey-'))
  const password = 'p/w@ canary'
  const at = port ?? (await freePort())
  const settings = { port: at, bind: '127.0.0.1', dir: directory, requirepass: password, appendonly: 'no' }
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  const guard = spawn('sh', ['-c', GUARD, 'guard', BINARY, ...flags, '--save', ''], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  guard.unref()
  const exited = new Promise<void>((resolve) => guard.once('exit', () => resolve()))
  const pid = await new Promise<number>((resolve, reject) => {
    let output = ''
    guard.stdout.on('data', (bytes: Buffer) => {
      if (output.length < 100_000) output += bytes
      const found = /^pid (\d+)$/m.exec(output)?.[1]
      if (found && /ready to accept connections/i.test(output)) resolve(Number(found))
    })
    guard.once('exit', () => reject(new Error(`Valkey did not start: ${output}`)))
  })
  return {
    port: at,
    password,
    url: `redis://:${encodeURIComponent(password)}@127.0.0.1:${at}/0`,
    freeze() {
      process.kill(pid, 'SIGSTOP')
      return () => process.kill(pid, 'SIGCONT')
    },
    async stop() {
      guard.stdin.end()
      await exited
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The reply to `HELLO 3` of a server without a password. */
export const HELLO = '%1\r\n+server\r\n+valkey\r\n'

export type FakeValkey = {
  url: string
  /** What clients have sent, one string for each chunk. */
  received: string[]
  stop(): void
}

/** A server that answers the n-th chunk of a connection (from 0) as `answer` says. */
export async function fakeValkey(answer: (socket: Socket, n: number) => void): Promise<FakeValkey> {
  const received: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    let chunks = 0
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (bytes) => {
      received.push(bytes.toString())
      answer(socket, chunks++)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `redis://127.0.0.1:${port}`,
    received,
    stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
