/** Opening a store: what is created, what is rejected, and several processes at once. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MIGRATIONS } from './migrate.ts'
import { openStore } from './open-store.ts'
import { RESTORE, type Store, StoreError } from './store.ts'

const directories: string[] = []
const stores: Store[] = []

async function freshDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-open-'))
  directories.push(directory)
  return directory
}

async function open(path: string): Promise<Store> {
  const store = await openStore({ url: `sqlite:${path}` })
  stores.push(store)
  return store
}

async function refusal(url: string): Promise<StoreError> {
  const error = await openStore({ url }).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof StoreError)) throw new Error(`expected a StoreError, got ${error}`)
  return error
}

const mode = async (path: string) => (await stat(path)).mode & 0o777

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true })
})

describe('addresses', () => {
  test('rejects an unknown scheme without repeating a possible password', async () => {
    const error = await refusal('mysql://user:hunter2@host/db')
    expect(error.message).toBe(
      'The store\'s address must be "sqlite:<path>", "sqlite::memory:" or ' +
        '"postgres://<user>:<password>@<host>:<port>/<database>"; it is "mysql:...".',
    )
  })

  test('rejects an address without a path or a scheme', async () => {
    expect((await refusal('sqlite:')).message).toContain('it is "sqlite:"')
    expect((await refusal('gatehouse.db')).message).toContain('must be "sqlite:<path>"')
    expect((await refusal('')).message).toContain('must be "sqlite:<path>"')
  })
})

describe('files', () => {
  test('releasing memory changes nothing that is stored', async () => {
    const store = await open(join(await freshDirectory(), 'gatehouse.db'))
    await store.models.firstSeen(['a', 'b'], 1)
    store.releaseMemory()
    expect(await store.models.ids()).toEqual(['a', 'b'])
  })

  test('creates missing directories and the file for the owner only', async () => {
    const directory = await freshDirectory()
    const path = join(directory, 'data', 'deeper', 'gatehouse.db')
    const store = await open(path)
    await store.models.firstSeen(['a'], 1)
    expect(await mode(join(directory, 'data'))).toBe(0o700)
    expect(await mode(join(directory, 'data', 'deeper'))).toBe(0o700)
    for (const name of readdirSync(join(directory, 'data', 'deeper'))) {
      expect([name, await mode(join(directory, 'data', 'deeper', name))]).toEqual([name, 0o600])
    }
  })

  test('has no function in its schema that SQLite before 3.43 does not know, so that older tools can check it', async () => {
    const path = join(await freshDirectory(), 'gatehouse.db')
    await open(path)
    const file = new Database(path, { readonly: true })
    const indexes = file.query<{ sql: string }, []>("select sql from sqlite_master where sql like '%index%'").all()
    file.close()
    const called = indexes.flatMap(({ sql }) => [...sql.matchAll(/(\w+)\(/g)].map(([, name]) => name))
    expect([...new Set(called)].sort()).toEqual(['cast', 'length'])
  })

  test('keeps the mode of an existing directory', async () => {
    const directory = await freshDirectory()
    await chmod(directory, 0o750)
    await open(join(directory, 'gatehouse.db'))
    expect(await mode(directory)).toBe(0o750)
  })

  test('leaves one file after it was closed, with the log merged into it', async () => {
    const directory = await freshDirectory()
    const store = await open(join(directory, 'gatehouse.db'))
    await store.models.firstSeen(['a'], 1)
    expect(readdirSync(directory).sort()).toEqual(['gatehouse.db', 'gatehouse.db-shm', 'gatehouse.db-wal'])
    await store.close()
    expect(readdirSync(directory)).toEqual(['gatehouse.db'])
  })

  test('rejects a file that is not a database by name, and does not change it', async () => {
    const path = join(await freshDirectory(), 'notes.txt')
    const text = 'not a database, but long enough to look at. '.repeat(100)
    await writeFile(path, text)
    const error = await refusal(`sqlite:${path}`)
    expect(error.message).toBe(`Cannot use ${path} as the database: file is not a database. ${RESTORE}`)
    expect(await Bun.file(path).text()).toBe(text)
  })

  describe('whose database is damaged', () => {
    async function damagedAt(name: string): Promise<string> {
      const path = join(await freshDirectory(), 'gatehouse.db')
      await (await open(path)).close()
      const file = new Database(path)
      const root = file
        .query<{ rootpage: number }, [string]>('select rootpage from sqlite_master where name = ?')
        .get(name)
      const size = file.query<{ page_size: number }, []>('PRAGMA page_size').get()?.page_size ?? 0
      file.close()
      const bytes = await Bun.file(path).bytes()
      const start = ((root?.rootpage ?? 0) - 1) * size
      await writeFile(path, bytes.fill(0xa7, start, start + size))
      return path
    }
    const MALFORMED = 'database disk image is malformed'

    test('are rejected with the page of the manual where a start reads the damage', async () => {
      const path = await damagedAt('sqlite_autoindex_kysely_migration_1')
      expect((await refusal(`sqlite:${path}`)).message).toBe(
        `Cannot use ${path} as the database: ${MALFORMED}. ${RESTORE}`,
      )
    })

    test('are named with the page of the manual where an operation reads the damage', async () => {
      const store = await open(await damagedAt('tokens'))
      const error = await store.tokens.list().catch((reason: unknown) => reason)
      expect(error).toMatchObject({
        code: 'storage_unavailable',
        message: `The gateway cannot use its database: ${MALFORMED}. ${RESTORE}`,
      })
      expect(await store.projects.list()).toEqual([])
    })

    test('are told to restore them by a page that exists', () => {
      const [, page = ''] = /\((docs\/[^)]+)\)/.exec(RESTORE) ?? []
      expect(readFileSync(join(import.meta.dir, '../..', page), 'utf8')).toStartWith('# Back up and restore\n')
      expect(RESTORE).toContain('"Back up and restore"')
    })
  })

  test('rejects a database that was emptied, with and without its write-ahead log, and does not change it', async () => {
    const directory = await freshDirectory()
    const path = join(directory, 'gatehouse.db')
    const store = await open(path)
    await store.models.firstSeen(['a'], 1)
    const log = await Bun.file(`${path}-wal`).bytes()
    await store.close()
    await writeFile(path, '')
    const message = `Cannot open the database ${path}: the file is empty, so what it contained is lost; nothing was changed.`
    expect((await refusal(`sqlite:${path}`)).message).toStartWith(message)
    await writeFile(`${path}-wal`, log)
    expect((await refusal(`sqlite:${path}`)).message).toStartWith(message)
    expect([Bun.file(path).size, await Bun.file(`${path}-wal`).bytes()]).toEqual([0, log])
    await rm(path)
    await rm(`${path}-wal`)
    expect(await (await open(path)).models.firstSeen(['a'], 2)).toEqual(new Map([['a', 2]]))
  })

  test('rejects a path below a file by name', async () => {
    const path = join(await freshDirectory(), 'file')
    await writeFile(path, '')
    expect((await refusal(`sqlite:${path}/gatehouse.db`)).message).toStartWith(
      `Cannot open the database ${path}/gatehouse.db: `,
    )
  })

  test('rejects a directory in place of the file by name', async () => {
    const directory = await freshDirectory()
    expect((await refusal(`sqlite:${directory}`)).message).toBe(
      `Cannot open the database ${directory}: it is a directory, and must be a file.`,
    )
  })
})

describe('versions', () => {
  test('rejects a database of a newer version by name, and does not change it', async () => {
    const path = join(await freshDirectory(), 'gatehouse.db')
    await (await open(path)).close()
    const file = new Database(path)
    file.run("insert into kysely_migration values ('9999-from-later', '2030-01-01T00:00:00.000Z')")
    file.close()
    const error = await refusal(`sqlite:${path}`)
    expect(error.message).toStartWith(`The database ${path} was written by a newer version of Gatehouse`)
    expect(error.message).toContain('"9999-from-later"')
    expect(error.message).toContain(`"${Object.keys(MIGRATIONS).sort().at(-1)}"`)
    const again = new Database(path)
    again.run("delete from kysely_migration where name = '9999-from-later'")
    again.close()
    await (await open(path)).ping()
  })

  test('rolls back a failed migration, and the next start runs it completely', async () => {
    const path = join(await freshDirectory(), 'gatehouse.db')
    const file = new Database(path)
    file.run('create table models (in_the_way text)') // the third table of the first migration
    file.close()
    const error = await refusal(`sqlite:${path}`)
    expect(error.message).toBe(`The database ${path} could not be migrated; it was not changed.`)
    const look = new Database(path)
    const names = look.query<{ name: string }, []>("select name from sqlite_master where type = 'table'").all()
    expect(names.map(({ name }) => name)).not.toContain('tokens')
    look.run('drop table models')
    look.close()
    expect(await (await open(path)).tokens.list()).toEqual([])
  })

  test('names migrations so that they sort in their order', () => {
    const names = Object.keys(MIGRATIONS)
    expect(names).toEqual(names.toSorted())
    for (const [index, name] of names.entries())
      expect(name).toMatch(new RegExp(`^${String(index + 1).padStart(4, '0')}-`))
  })
})

describe('several processes', () => {
  test('open a new file at the same time, and one of them adds the first token', async () => {
    const path = join(await freshDirectory(), 'fresh', 'gatehouse.db')
    const script = `
      import { openStore } from ${JSON.stringify(join(import.meta.dir, 'open-store.ts'))}
      const store = await openStore({ url: 'sqlite:' + process.argv[1] })
      const token = { token_id: 'tok_' + process.pid, name: 'n', prefix: 'p', hash: 'h' + process.pid, models: ['*'],
        families: null, expires_at: null, disabled: false, created_at: 1, last_used_at: null }
      console.log(await store.tokens.addFirst(token))
      await store.close()`
    const children = Array.from({ length: 6 }, () =>
      Bun.spawn([process.execPath, '-e', script, path], { stdout: 'pipe', stderr: 'pipe' }),
    )
    const answers = await Promise.all(
      children.map(async (child) => ({
        out: (await new Response(child.stdout).text()).trim(),
        error: await new Response(child.stderr).text(),
        exit: await child.exited,
      })),
    )
    expect(answers.map(({ error, exit }) => ({ error, exit }))).toEqual(answers.map(() => ({ error: '', exit: 0 })))
    expect(answers.map(({ out }) => out).sort()).toEqual(['false', 'false', 'false', 'false', 'false', 'true'])
    expect(await (await open(path)).tokens.list()).toHaveLength(1)
  }, 120_000)

  test("wait for each other's writes without blocking their event loop", async () => {
    const path = join(await freshDirectory(), 'gatehouse.db')
    const store = await open(path)
    const other = new Database(path)
    other.run('begin immediate')
    let written = false
    const started = performance.now()
    const writing = store.models.firstSeen(['a'], 1).then(() => {
      written = true
    })
    // Turns of the event loop while the write waits: SQLite's own wait would block them.
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
    expect(written).toBe(false)
    expect(performance.now() - started).toBeLessThan(5_000) // far below the ten seconds that the write may wait in total
    other.run('commit')
    other.close()
    await writing
    expect(await store.models.firstSeen(['a'], 2)).toEqual(new Map([['a', 1]]))
  })
})
