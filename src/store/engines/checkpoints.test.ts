/** Checkpoints on a real file: what goes on beside them, what happens where one fails, and that the log does not grow. */
import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
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
  test('copy the pages of the log into the database, beside what else the thread of the caller does', async () => {
    const { path, file, fill, size } = createLogged('copy.db')
    const before = size()
    const checkpoints = createCheckpoints(path)
    let isRunning = true
    const made = checkpoints.make().then(() => {
      isRunning = false
    })
    let rows = 1
    for (; isRunning; rows++) {
      fill()
      await new Promise(setImmediate)
    }
    await made
    checkpoints.close()
    expect(rows).toBeGreaterThan(1)
    expect(size()).toBeGreaterThan(before + 100_000)
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
    expect(size()).toBe(before)
    symlinkSync(path, link)
    await checkpoints.make()
    expect(size()).toBeGreaterThan(before + 100_000)
    checkpoints.close()
    file.close()
  })
})

describe('an engine', () => {
  /** Ends after the next checkpoint: what is written then is in the log alone. */
  async function commitRound(engine: Engine, round: number): Promise<void> {
    const value = 'a'.repeat(20_000)
    for (let commits = 0; commits < COMMITS_PER_CHECKPOINT; commits++) {
      const row = { name: `${round} ${commits}`, value }
      await engine.write((write) => write.insertInto('secrets').values(row).execute())
    }
    await engine.write(async () => {})
  }

  test('copies its log beside the event loop, and begins it anew; without that, a commit that fills 8,000 pages does', async () => {
    const path = join(directory, 'engine.db')
    const engine = await openSqlite(path)
    const migrated = statSync(path).size
    expect((await sql`pragma wal_autocheckpoint`.execute(engine.db)).rows).toEqual([{ wal_autocheckpoint: 8_000 }])
    await commitRound(engine, 1)
    expect(statSync(path).size).toBeGreaterThan(migrated + COMMITS_PER_CHECKPOINT * 20_000)
    const log = statSync(`${path}-wal`).size
    for (const round of [2, 3, 4]) await commitRound(engine, round)
    expect(statSync(`${path}-wal`).size).toBeLessThan(1.5 * log)
    await engine.close()
  })

  test('copies nothing of a log that the disk did not take, until it has', async () => {
    const path = join(directory, 'gap.db')
    let isBroken = true
    const engine = await openSqlite(path, {
      open: async () => 0,
      async sync() {
        if (isBroken) throw new Error('EIO')
      },
      rewrite: () => {},
      close: async () => {},
    })
    const migrated = statSync(path).size
    const value = 'a'.repeat(20_000)
    for (let commits = 0; commits < COMMITS_PER_CHECKPOINT; commits++) {
      const row = { name: `${commits}`, value }
      const written = engine.write((write) => write.insertInto('secrets').values(row).execute())
      await expect(written).rejects.toThrow('The disk did not take a commit.')
    }
    await engine.write(async () => {}, { is_synced: false })
    expect(statSync(path).size).toBe(migrated)
    isBroken = false
    await commitRound(engine, 1)
    expect(statSync(path).size).toBeGreaterThan(migrated + COMMITS_PER_CHECKPOINT * 20_000)
    await engine.close()
  })
})
