/** Checkpoints on a real file: that commits go on beside them, and what happens where one fails. */
import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { COMMITS_PER_CHECKPOINT } from '../shared-commit.ts'
import { createCheckpoints } from './checkpoints.ts'
import { openSqlite } from './sqlite.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-checkpoints-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** A database whose pages are in its log, since only `createCheckpoints` copies them. */
function createLogged(name: string) {
  const path = join(directory, name)
  const file = new Database(path, { create: true })
  file.run('PRAGMA journal_mode = WAL')
  file.run('PRAGMA wal_autocheckpoint = 0')
  file.run('create table filled (content blob)')
  const fill = () => file.run('insert into filled values (randomblob(100000))')
  fill()
  return { path, file, fill, size: () => statSync(path).size }
}

describe('checkpoints beside the event loop', () => {
  test('copy the pages of the log into the database, and begin no more once they are closed', async () => {
    const { path, file, fill, size } = createLogged('copy.db')
    const before = size()
    const checkpoints = createCheckpoints(path)
    void checkpoints.make()
    await checkpoints.close()
    const after = size()
    expect(after).toBeGreaterThan(before + 100_000)
    fill()
    await checkpoints.make()
    expect(size()).toBe(after)
    file.close()
  })

  test('let commits go on meanwhile, and lose none', async () => {
    const { path, file, fill } = createLogged('beside.db')
    const checkpoints = createCheckpoints(path)
    let rows = 1
    let isRunning = true
    const made = checkpoints.make().then(() => {
      isRunning = false
    })
    while (isRunning) {
      fill()
      rows++
      await new Promise(setImmediate)
    }
    await made
    await checkpoints.close()
    expect(rows).toBeGreaterThan(1)
    expect(file.query('select count(*) as rows from filled').get()).toEqual({ rows })
    expect(file.query('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
    file.close()
  })

  test('fail without consequence, and the next one is tried again', async () => {
    const { path, file, size } = createLogged('moved.db')
    const before = size()
    const link = join(directory, 'link.db')
    const checkpoints = createCheckpoints(link)
    await checkpoints.make()
    symlinkSync(path, link)
    await checkpoints.make()
    expect(size()).toBeGreaterThan(before + 100_000)
    await checkpoints.close()
    file.close()
  })

  test('are counted from the commits of an engine, whose log is bounded without them', async () => {
    const path = join(directory, 'engine.db')
    const engine = await openSqlite(path)
    const migrated = statSync(path).size
    expect((await sql`pragma wal_autocheckpoint`.execute(engine.db)).rows).toEqual([{ wal_autocheckpoint: 8_000 }])
    const value = 'a'.repeat(50_000)
    for (let commits = 0; commits < COMMITS_PER_CHECKPOINT; commits++) {
      await engine.write((write) =>
        write
          .insertInto('secrets')
          .values({ name: `${commits}`, value })
          .execute(),
      )
    }
    // Another connection remains open, so that the end of the engine copies nothing.
    const other = new Database(path, { readonly: true })
    other.query('select count(*) from secrets').get()
    await engine.close()
    expect(statSync(path).size).toBeGreaterThan(migrated + COMMITS_PER_CHECKPOINT * 40_000)
    other.close()
  })
})
