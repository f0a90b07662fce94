/** A place for gateways of several builds: a directory, and its database on PostgreSQL. */
import { expect } from 'bun:test'
import { join } from 'node:path'
import { startPostgres } from './postgres.ts'
import { serveDirectory, startServe, writeConfig } from './serve-process.ts'

/** That of this checkout. */
export const COMMAND = join(import.meta.dir, '../../bin/gatehouse')

type Place = { directory: string; url: string; environment: Record<string, string> }
/** What is to be done when a test ends, the last first. */
export type Closing = (() => unknown)[]

export async function onPostgres(closing: Closing, drain_seconds: number, config: object = {}): Promise<Place> {
  const { directory, remove } = serveDirectory()
  closing.push(remove)
  // Calls on a busy machine are not refused.
  writeConfig(directory, { server: { drain_seconds, max_delay_ms: 0 }, ...config })
  const server = await startPostgres()
  const url = await server.createDatabase()
  closing.push(() => server.dropDatabase(url))
  return { directory, url, environment: { GATEHOUSE_DATABASE_URL: url } }
}

/** Runs a command in the place, to its end. */
async function runIn({ directory, environment }: Place, command: string[]) {
  const child = Bun.spawn(command, {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { out, err, code }
}

type Served = { command: string; closing: Closing; port?: number }

export async function serveIn({ directory, environment }: Place, { command, closing, port = 0 }: Served) {
  const gateway = await startServe({ directory, command, port, environment: { GATEHOUSE_LOG: 'warn', ...environment } })
  closing.push(async () => {
    gateway.child.kill('SIGKILL')
    await gateway.child.exited
  })
  return gateway
}

/** The ledger has an entry of each call, and its sums are theirs. */
export async function expectEntries(place: Place, calls: number): Promise<void> {
  const { out, err } = await runIn(place, [COMMAND, 'ledger', 'reconcile', '--json'])
  expect(err).toBe('')
  expect(JSON.parse(out)).toMatchObject({ difference: 0, requests: calls })
}
