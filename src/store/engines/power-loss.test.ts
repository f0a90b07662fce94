/** Checks that a power failure loses nothing confirmed of an SQLite database, also after a sync that has failed. */
import { Database } from 'bun:sqlite'
import { afterEach, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine } from '../engine.ts'
import type { SyncFile } from './disk-sync.ts'
import { openSqlite } from './sqlite.ts'

const engines: Engine[] = []
const directories: string[] = []
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

/**
 * As Linux has it: a sync that fails loses what it had to write, and marks it as written. Later syncs succeed without it.
 * The database itself is on the disk as it is, since only SQLite writes there, and syncs it.
 */
async function openOnFailingDisk() {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-power-'))
  directories.push(directory)
  const path = join(directory, 'gatehouse.db')
  const log = `${path}-wal`
  let [seen, durable] = [Buffer.alloc(0), Buffer.alloc(0)]
  const outcomes: ('fails' | 'succeeds')[] = []
  const files: SyncFile = {
    open: async () => 1,
    close: async () => {},
    rewrite(path) {
      expect(path).toBe(log)
      seen = Buffer.alloc(0)
    },
    async sync() {
      const isLost = outcomes.shift() === 'fails'
      const now = readFileSync(log)
      const next = Buffer.alloc(now.length)
      durable.copy(next)
      for (const [at, byte] of now.entries()) if (!isLost && byte !== seen[at]) next[at] = byte
      seen = now
      durable = next
      if (isLost) throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })
    },
  }
  const engine = await openSqlite(path, files)
  engines.push(engine)
  seen = readFileSync(log) // SQLite itself has synced what it wrote while it opened
  durable = Buffer.from(seen)
  const addTo = (to: Engine) => (name: string) =>
    to.write((write) => write.insertInto('secrets').values({ name, value: name }).execute())
  return {
    path,
    outcomes,
    add: addTo(engine),
    async startAnother() {
      const another = await openSqlite(path, files)
      engines.push(another)
      return addTo(another)
    },
    async afterPowerFailure() {
      const copy = join(directory, `${crypto.randomUUID()}.db`)
      copyFileSync(path, copy)
      writeFileSync(`${copy}-wal`, durable)
      const copied = await openSqlite(copy)
      engines.push(copied)
      const rows = await copied.db.selectFrom('secrets').select('name').orderBy('name').execute()
      return rows.map(({ name }) => name)
    },
  }
}

test('keeps each write that was confirmed', async () => {
  const { add, afterPowerFailure } = await openOnFailingDisk()
  await add('a')
  await add('b')
  expect(await afterPowerFailure()).toEqual(['a', 'b'])
})

test('keeps what was confirmed after a sync that has failed, although the next sync does not write what that one lost', async () => {
  const { add, outcomes, afterPowerFailure } = await openOnFailingDisk()
  await add('a')
  outcomes.push('fails')
  await expect(add('b')).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
  await add('c')
  expect(await afterPowerFailure()).toEqual(['a', 'b', 'c'])
})

test('confirms nothing after a sync that has failed, until the log could be written once more', async () => {
  const { path, add, outcomes, afterPowerFailure } = await openOnFailingDisk()
  await add('a')
  const other = new Database(path)
  outcomes.push('fails', 'fails', 'fails')
  await expect(add('b')).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
  await expect(add('c')).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
  await add('d')
  other.run("insert into secrets (name, value) values ('other', '')")
  await add('e')
  other.close()
  expect(await afterPowerFailure()).toEqual(['a', 'b', 'c', 'd', 'e', 'other'])
})

test('keeps what a process confirmed that was started after the sync of another one had failed', async () => {
  const { add, outcomes, startAnother, afterPowerFailure } = await openOnFailingDisk()
  await add('a')
  outcomes.push('fails', 'fails')
  await expect(add('b')).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
  const addLater = await startAnother()
  await addLater('c')
  expect(await afterPowerFailure()).toEqual(['a', 'b', 'c'])
})
