/** `gatehouse backup`, `gatehouse restore` and `gatehouse store copy`, beside a gateway with calls, and killed. */
import { afterEach, describe, expect, it } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../src/store/open-store.ts'
import { schemaOf } from '../src/store/store-schema.ts'
import { storedToken } from './kit/accounts.ts'
import { startPostgres } from './kit/postgres.ts'
import { type ServeProcess, serveDirectory, startServe, writeConfig } from './kit/serve-process.ts'

const COMMAND = join(import.meta.dir, '../bin/gatehouse')
const CLIENTS = 4
const CALLS = 60

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Place = { directory: string; environment: Record<string, string> }

function newPlace(environment: Record<string, string> = {}): Place {
  const { directory, remove } = serveDirectory()
  closing.push(remove)
  writeConfig(directory, { server: { drain_seconds: 0 } })
  return { directory, environment }
}

async function emptyPostgres(): Promise<{ GATEHOUSE_DATABASE_URL: string }> {
  const server = await startPostgres()
  const url = await server.createDatabase()
  closing.push(() => server.dropDatabase(url))
  return { GATEHOUSE_DATABASE_URL: url }
}

const spawn = (args: string[], { directory, environment }: Place) =>
  Bun.spawn([COMMAND, ...args], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })

async function run(args: string[], place: Place) {
  const child = spawn(args, place)
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { out, err, code }
}

async function succeed(args: string[], place: Place): Promise<string> {
  const { out, err, code } = await run(args, place)
  expect({ args, err, code }).toEqual({ args, err: '', code: 0 })
  return out
}

async function serve({ directory, environment }: Place): Promise<ServeProcess> {
  const gateway = await startServe({ directory, environment: { GATEHOUSE_LOG: 'error', ...environment } })
  closing.push(async () => {
    gateway.child.kill('SIGKILL')
    await gateway.child.exited
  })
  return gateway
}

async function stop({ child }: ServeProcess): Promise<void> {
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
}

/** Calls until `work` has ended, and so many before and after it. */
async function callDuring(gateway: ServeProcess, work: () => Promise<void>): Promise<number> {
  let calls = 0
  let target = Number.POSITIVE_INFINITY
  const begun = Promise.withResolvers<void>()
  async function client(): Promise<void> {
    while (calls < target) {
      if (++calls === CALLS) begun.resolve()
      const response = await gateway.chat('sandbox/general')
      expect(response.status).toBe(200)
      await response.arrayBuffer()
    }
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, client))
  await Promise.race([begun.promise, clients])
  await work().finally(() => {
    target = calls + CALLS
  })
  await clients
  return calls
}

/** Of the store: without a difference between its entries and its sums. */
async function requestsIn(place: Place, args: string[] = []): Promise<number> {
  const { difference, requests } = JSON.parse(await succeed(['ledger', 'reconcile', '--json', ...args], place))
  expect(difference).toBe(0)
  return requests
}

describe.each([
  ['SQLite', async () => newPlace()],
  ['PostgreSQL', async () => newPlace(await emptyPostgres())],
])('on %s', (_, locate) => {
  it('a backup beside calls is restored under another name, and serves', async () => {
    const place = await locate()
    const gateway = await serve(place)
    const calls = await callDuring(gateway, async () => {
      const out = await succeed(['backup', 'store.backup'], place)
      expect(out).toStartWith(`Wrote ${join(place.directory, 'store.backup')}: `)
    })
    await stop(gateway)
    expect(statSync(join(place.directory, 'store.backup')).mode & 0o777).toBe(0o600)
    expect(await succeed(['restore', 'store.backup', '--check'], place)).toContain('is sound: ')
    expect((await run(['restore', 'store.backup'], place)).code).toBe(1) // the store itself
    const other: Place = {
      ...place,
      environment: 'GATEHOUSE_DATABASE_URL' in place.environment ? await emptyPostgres() : {},
    }
    const args = ['--data-dir', 'restored']
    const { rows } = JSON.parse(await succeed(['restore', 'store.backup', '--json', ...args], other))
    expect(rows).toBeGreaterThan(0)
    const requests = await requestsIn(other, args)
    expect(requests).toBeLessThanOrEqual(calls)
    expect(await requestsIn(place)).toBe(calls)
    const again = await serve({ ...other, environment: { ...other.environment, GATEHOUSE_DATA_DIR: 'restored' } })
    expect((await again.chat('sandbox/general')).status).toBe(200)
    await stop(again)
  }, 120_000)
})

it('a store is copied from SQLite to PostgreSQL and back with the same ledger, and not while it is in use', async () => {
  const place = newPlace()
  const gateway = await serve(place)
  const calls = await callDuring(gateway, async () => {})
  const both: Place = { ...place, environment: await emptyPostgres() }
  const there = ['store', 'copy', '--from', 'sqlite', '--to', 'postgres']
  const { err, code } = await run(there, both)
  expect(code).toBe(1)
  expect(err).toContain('is in use by another process')
  await stop(gateway)
  const copied = JSON.parse(await succeed([...there, '--json'], both))
  expect(copied.ledger).toMatchObject({ differences: 0 })
  expect(await requestsIn(both)).toBe(calls)
  const back = ['store', 'copy', '--from', 'postgres', '--to', 'sqlite', '--data-dir', 'back']
  expect(JSON.parse(await succeed([...back, '--json'], both)).ledger).toEqual(copied.ledger)
  expect(await requestsIn(place, ['--data-dir', 'back'])).toBe(calls)
}, 120_000)

describe('a process that is killed', () => {
  /** A store with a large file. */
  async function filled(): Promise<Place> {
    const place = newPlace()
    const store = await openStore({ url: `sqlite:${join(place.directory, 'data/gatehouse.db')}` })
    for (let at = 0; at < 200; at++)
      await store.tokens.add(storedToken({ token_id: `tok_${at}`, name: `laptop ${at}`, hash: `hash ${at}` }))
    await store.close()
    mkdirSync(join(place.directory, 'data/outputs/task_1'), { recursive: true })
    writeFileSync(join(place.directory, 'data/outputs/task_1/0'), Buffer.alloc(64 * 1024 * 1024, 7))
    return place
  }

  async function killOnce(child: Bun.Subprocess, hasBegun: () => boolean | Promise<boolean>): Promise<void> {
    while (child.exitCode === null && !(await hasBegun())) await Bun.sleep(1)
    child.kill('SIGKILL')
    await child.exited
  }

  it('while it writes a backup leaves none, or a whole one', async () => {
    const place = await filled()
    const hasBegun = () => readdirSync(place.directory).some((name) => name.includes('.writing-'))
    await killOnce(spawn(['backup', 'store.backup'], place), hasBegun)
    const path = join(place.directory, 'store.backup')
    if (!existsSync(path)) await succeed(['backup', 'store.backup'], place)
    await succeed(['restore', 'store.backup', '--check'], place)
  }, 120_000)

  it('while it restores leaves no store, or a whole one', async () => {
    const place = await filled()
    await succeed(['backup', 'store.backup'], place)
    const args = ['restore', 'store.backup', '--data-dir', 'new', '--outputs', 'new-outputs']
    const directory = join(place.directory, 'new')
    const hasBegun = () => existsSync(directory) && readdirSync(directory).some((name) => name === 'gatehouse.db.new')
    await killOnce(spawn(args, place), hasBegun)
    // A file that is restored but whose store is not has to be named elsewhere.
    if (!existsSync(join(directory, 'gatehouse.db'))) await succeed([...args.slice(0, -1), 'other-outputs'], place)
    const store = await openStore({ url: `sqlite:${join(directory, 'gatehouse.db')}` })
    expect((await store.tokens.list()).length).toBe(200)
    await store.close()
  }, 120_000)

  it('while it restores into PostgreSQL leaves an empty database, or a whole one', async () => {
    const place = await filled()
    await succeed(['backup', 'store.backup'], place)
    const environment = await emptyPostgres()
    const there: Place = { ...place, environment }
    const args = ['restore', 'store.backup', '--outputs', 'new-outputs']
    const hasBegun = () => readdirSync(place.directory).some((name) => name.includes('.restoring-'))
    await killOnce(spawn(args, there), hasBegun)
    const url = environment.GATEHOUSE_DATABASE_URL
    if ((await schemaOf(url)).database === 0) await succeed([...args.slice(0, -1), 'other-outputs'], there)
    const store = await openStore({ url })
    expect((await store.tokens.list()).length).toBe(200)
    await store.close()
  }, 120_000)
})
