/** `gatehouse migrate`, and `gatehouse serve` with `store.migrate: manual`. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MIGRATIONS } from '../src/store/migrate.ts'
import { openStore } from '../src/store/open-store.ts'
import { freePort } from './kit/free-port.ts'
import { startPostgres } from './kit/postgres.ts'
import { serveDirectory, writeConfig } from './kit/serve-process.ts'
import { LAST, UNDO_LAST } from './kit/undo-migrations.ts'

const COMMAND = join(import.meta.dir, '../bin/gatehouse')
const BUILD = Object.keys(MIGRATIONS).length

let directory: string
let remove: () => void
beforeEach(() => {
  ;({ directory, remove } = serveDirectory())
})
afterEach(() => remove())

const spawn = (args: string[], environment: Record<string, string> = {}) =>
  Bun.spawn([COMMAND, ...args], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })

async function migrate(args: string[], environment: Record<string, string> = {}) {
  const child = spawn(['migrate', ...args], environment)
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { out, err, code }
}

/** A store as the version before has left it. */
async function olderStore(): Promise<string> {
  mkdirSync(join(directory, 'data'))
  const path = join(directory, 'data/gatehouse.db')
  await (await openStore({ url: `sqlite:${path}` })).close()
  using file = new Database(path)
  file.run(UNDO_LAST)
  return path
}

describe('gatehouse migrate', () => {
  it('shows what is missing with status 3, the statements, and applies them', async () => {
    await olderStore()
    const status = await migrate(['status'])
    expect({ err: status.err, code: status.code }).toEqual({ err: '', code: 3 })
    expect(status.out).toContain(`schema of the database  ${BUILD - 1} (${join(directory, 'data')})\n`)
    expect(status.out).toContain(`schema of this build    ${BUILD}\n`)
    expect(status.out).toContain('older: run gatehouse migrate apply\n')
    expect(status.out).toContain(`missing                 ${LAST}\n`)
    const plan = await migrate(['plan'])
    expect(plan.code).toBe(3)
    expect(plan.out).toMatch(new RegExp(`-- ${LAST}\n(create|alter) `))
    const applied = await migrate(['apply'])
    expect({ ...applied }).toEqual({
      out: `applied ${LAST}\nThe database (${join(directory, 'data')}) has schema ${BUILD}.\n`,
      err: '',
      code: 0,
    })
    expect(JSON.parse((await migrate(['status', '--json'])).out)).toMatchObject({
      status: 'current',
      database: BUILD,
      build: BUILD,
      pending: [],
    })
    expect((await migrate(['apply'])).out).toStartWith('Nothing is missing')
  })

  it('says for how many rows of SQLite the writes of other processes wait for an index', async () => {
    const path = await olderStore()
    expect((await migrate(['plan'])).out).toContain('-- tasks_by_model\ncreate index tasks_by_model on tasks')
    {
      using file = new Database(path)
      const columns = file.query<{ name: string; notnull: number }, []>('pragma table_info(tasks)').all()
      const names = columns.filter(({ notnull }) => notnull === 1).map(({ name }) => name)
      file.run(`insert into tasks (rowid, ${names.join(', ')}) values (5000000, ${names.map(() => 0).join(', ')})`)
    }
    const plan = await migrate(['plan'])
    expect(plan.out).toContain('-- tasks_by_model: 5000000 rows; writes of other processes wait, some 25 s\n')
  })

  it('exits with 4 where a newer build has changed the database, and shows both numbers', async () => {
    const path = await olderStore()
    using file = new Database(path)
    file.run("insert into kysely_migration values ('9999-from-later', '2030-01-01T00:00:00.000Z')")
    const { out, code } = await migrate(['status', '--json'])
    expect(code).toBe(4)
    expect(JSON.parse(out)).toMatchObject({ status: 'too new', database: 9999, build: BUILD, oldest: null })
    expect((await migrate(['apply'])).code).toBe(1)
  })

  it('creates no store where it only looks, and reads PostgreSQL', async () => {
    const { code, err } = await migrate(['status'])
    expect(code).toBe(3)
    expect(err).toStartWith(`There is no store in ${join(directory, 'data')}. Name the data directory`)
    expect(existsSync(join(directory, 'data'))).toBe(false)
    const environment = { GATEHOUSE_DATABASE_URL: await (await startPostgres()).createDatabase() }
    expect((await migrate(['status'], environment)).code).toBe(3)
    expect((await migrate(['apply'], environment)).code).toBe(0)
    expect((await migrate(['status'], environment)).code).toBe(0)
  })
})

describe('gatehouse migrate partition', () => {
  it('is refused on SQLite, on an older schema, and with unknown options', async () => {
    const refused = await migrate(['partition', '--dry-run'])
    expect(refused).toMatchObject({ out: '', code: 1 })
    expect(refused.err).toContain('Only a store in PostgreSQL can be partitioned.')
    expect(existsSync(join(directory, 'data'))).toBe(false)
    const environment = { GATEHOUSE_DATABASE_URL: await (await startPostgres()).createDatabase() }
    const empty = await migrate(['partition'], environment)
    expect(empty).toMatchObject({ out: '', code: 1 })
    expect(empty.err).toContain('does not have the schema of this build: run gatehouse migrate status.')
    expect((await migrate(['partition', '--days', '3'], environment)).code).toBe(2)
    expect((await migrate(['apply', '--dry-run'], environment)).code).toBe(2)
  })

  it('prints its steps, changes nothing with --dry-run, and can be repeated', async () => {
    const url = await (await startPostgres()).createDatabase()
    const environment = { GATEHOUSE_DATABASE_URL: url }
    await (await openStore({ url })).close()
    const dry = await migrate(['partition', '--dry-run'], environment)
    expect({ err: dry.err, code: dry.code }).toEqual({ err: '', code: 0 })
    expect(dry.out).toStartWith('Nothing was changed. The steps:\n1. Build a unique index')
    const plan = JSON.parse((await migrate(['partition', '--dry-run', '--json'], environment)).out)
    expect(plan).toMatchObject({ dry_run: true, rows: 0, is_done: false, oldest: 46 })
    expect(plan.until_ms % 86_400_000).toBe(0)
    const done = await migrate(['partition'], environment)
    expect(done).toMatchObject({ err: '', code: 0 })
    expect(done.out).toStartWith('The request log is partitioned. The steps were:\n1. Build')
    const again = await migrate(['partition'], environment)
    expect(again).toMatchObject({ err: '', code: 0 })
    expect(again.out).toMatch(/^The request log \(.+\) is partitioned already\.\n$/)
    expect(JSON.parse((await migrate(['partition', '--json'], environment)).out)).toMatchObject({ is_done: true })
    expect(JSON.parse((await migrate(['status', '--json'], environment)).out)).toMatchObject({ status: 'current' })
  })
})

describe('store.migrate: manual', () => {
  it('waits for the migration, alive and not ready, and then serves; a command is refused', async () => {
    await olderStore()
    writeConfig(directory, { store: { migrate: 'manual' } })
    const refused = spawn(['token', 'list'])
    expect(await refused.exited).toBe(1)
    expect(await new Response(refused.stderr).text()).toContain('run gatehouse migrate apply')
    const port = await freePort()
    const serve = spawn(['serve', '--json', '--port', String(port)])
    const url = `http://127.0.0.1:${port}`
    await untilStatus(`${url}/healthz`, 200)
    await untilStatus(`${url}/readyz`, 503)
    const notReady = await fetch(`${url}/readyz`)
    expect(await notReady.json()).toEqual({
      status: 'not ready',
      reason: `schema older than this build: the database has ${BUILD - 1}, this build needs ${BUILD}; run gatehouse migrate apply`,
    })
    expect((await fetch(`${url}/v1/models`)).status).toBe(503)
    expect((await migrate(['apply'])).code).toBe(0)
    await untilStatus(`${url}/readyz`, 200)
    serve.kill('SIGTERM')
    expect(await serve.exited).toBe(0)
  })

  it('stops while it waits', async () => {
    await olderStore()
    writeConfig(directory, { store: { migrate: 'manual' } })
    const serve = spawn(['serve', '--json', '--port', '0'])
    const reader = serve.stderr.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('waiting for the schema of the database')
    serve.kill('SIGTERM')
    expect(await serve.exited).toBe(0)
  })
})

async function untilStatus(url: string, status: number): Promise<void> {
  for (;;) {
    const found = await fetch(url, { keepalive: false }).then(
      (response) => response.status,
      () => 0,
    )
    if (found === status) return
    await Bun.sleep(20)
  }
}
