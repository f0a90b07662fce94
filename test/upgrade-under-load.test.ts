/** Older builds serve calls while the schema of their database becomes this one: no call fails, no entry is lost. */
import { afterEach, describe, expect, it } from 'bun:test'
import { join } from 'node:path'
import { MIGRATIONS } from '../src/store/migrate.ts'
import { schemaOf } from '../src/store/store-schema.ts'
import type { MigrationPlan } from './kit/migrating-process.ts'
import { checkOut, olderBuilds } from './kit/older-build.ts'
import { startPostgres } from './kit/postgres.ts'
import { SERVE_TOKEN, serveDirectory, startServe, writeConfig } from './kit/serve-process.ts'

const COMMAND = join(import.meta.dir, '../bin/gatehouse')
const BUILD = Object.keys(MIGRATIONS).length
const CLIENTS = 4
/** Calls before the migration, and after it. */
const CALLS = 100

const BUILDS = olderBuilds(3)
if (!BUILDS)
  process.stderr.write('Tests of older builds are skipped: this clone has no history (git fetch --unshallow).\n')

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

function newDirectory(): string {
  const { directory, remove } = serveDirectory()
  closing.push(remove)
  writeConfig(directory, { server: { drain_seconds: 0 } })
  return directory
}

type Place = { directory: string; url: string; environment: Record<string, string> }

const PLACES: [string, () => Promise<Place>][] = [
  [
    'SQLite',
    async () => {
      const directory = newDirectory()
      return { directory, url: `sqlite:${join(directory, 'data/gatehouse.db')}`, environment: {} }
    },
  ],
  [
    'PostgreSQL',
    async () => {
      const directory = newDirectory()
      const server = await startPostgres()
      const url = await server.createDatabase()
      closing.push(() => server.dropDatabase(url))
      return { directory, url, environment: { GATEHOUSE_DATABASE_URL: url } }
    },
  ],
]

async function run(command: string[], { directory, environment }: Place) {
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

async function serve(command: string, { directory, environment }: Place) {
  const gateway = await startServe({ directory, command, environment: { GATEHOUSE_LOG: 'warn', ...environment } })
  closing.push(async () => {
    gateway.child.kill('SIGKILL')
    await gateway.child.exited
  })
  return gateway
}

/** Calls until `migrate` has ended, and `CALLS` before and after it. */
async function callDuring(url: string, migrate: () => Promise<unknown>) {
  const failures: string[] = []
  let calls = 0
  let target = Number.POSITIVE_INFINITY
  const halfway = Promise.withResolvers<void>()
  const headers = { authorization: `Bearer ${SERVE_TOKEN}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] })
  async function client(): Promise<void> {
    while (calls < target) {
      if (++calls === CALLS) halfway.resolve()
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
      const text = await response.text()
      if (response.status !== 200) failures.push(`${response.status} ${text}`)
    }
  }
  const clients = Array.from({ length: CLIENTS }, client)
  const isOver = Promise.all(clients)
  await Promise.race([halfway.promise, isOver])
  try {
    await migrate()
  } finally {
    target = calls + CALLS
  }
  await isOver
  return { calls, failures }
}

async function expectEntries(calls: number, place: Place): Promise<void> {
  const { out, err } = await run([COMMAND, 'ledger', 'reconcile', '--json'], place)
  expect(err).toBe('')
  expect(JSON.parse(out)).toMatchObject({ difference: 0, requests: calls })
}

async function stop(gateway: Awaited<ReturnType<typeof serve>>): Promise<void> {
  gateway.child.kill('SIGTERM')
  expect(await gateway.child.exited).toBe(0)
}

it.skipIf(!BUILDS)('the older builds are those of the last three schemas', () => {
  expect(BUILDS?.map(({ schema }) => schema)).toEqual([BUILD - 1, BUILD - 2, BUILD - 3])
})

for (const [engine, locate] of PLACES) {
  describe(`on ${engine}`, () => {
    for (const build of BUILDS ?? []) {
      it(`a build with schema ${build.schema} serves while its database is migrated to ${BUILD}`, async () => {
        const place = await locate()
        const { command, remove } = checkOut(build)
        closing.push(remove)
        const older = await serve(command, place)
        expect((await schemaOf(place.url)).database).toBe(build.schema)
        const migrated = async () => {
          const { err, code } = await run([COMMAND, 'migrate', 'apply'], place)
          expect({ err, code }).toEqual({ err: '', code: 0 })
        }
        const { calls, failures } = await callDuring(older.url, migrated)
        expect(failures).toEqual([])
        expect((await schemaOf(place.url)).database).toBe(BUILD)
        const newer = await serve(COMMAND, place)
        expect((await newer.chat('sandbox/general')).status).toBe(200)
        await stop(older)
        await stop(newer)
        await expectEntries(calls + 1, place)
      }, 120_000)
    }

    it('this build serves while its database is migrated to the next schema, and again after a return to it', async () => {
      const place = await locate()
      const plan: MigrationPlan = {
        url: place.url,
        end: 'well',
        index: { name: 'later_index', on: 'ledger_entries (model, at_ms)' },
      }
      const first = await serve(COMMAND, place)
      const migrated = async () => {
        const script = join(import.meta.dir, 'kit/migrating-process.ts')
        const { err, code } = await run([process.execPath, script, JSON.stringify(plan)], place)
        expect({ err, code }).toEqual({ err: '', code: 0 })
      }
      const { calls, failures } = await callDuring(first.url, migrated)
      expect(failures).toEqual([])
      expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
      await stop(first)
      const again = await serve(COMMAND, place)
      await again.until('a newer build has migrated the database')
      expect((await again.chat('sandbox/general')).status).toBe(200)
      await stop(again)
      await expectEntries(calls + 1, place)
    }, 120_000)
  })
}
