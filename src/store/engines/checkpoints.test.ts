/** Checkpoints on a real file: what goes on beside them, what happens where one fails, and that the log does not grow. */
import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { manualClock } from '../../../test/kit/clock.ts'
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
    // A call that blocks leaves time for one.
    expect(rows).toBeGreaterThan(2)
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

test('a checkpoint whose thread cannot start fails without consequence, and the next one is tried again', async () => {
  let starts = 0
  const start = () => {
    starts++
    throw new Error('no more threads')
  }
  const checkpoints = createCheckpoints('a.db', { start, clock: manualClock() })
  await checkpoints.make()
  await checkpoints.make()
  expect(starts).toBe(2)
})

describe('a checkpoint of a slow disk', () => {
  /** A thread whose answers the test sends. */
  function createSlow() {
    const clock = manualClock()
    const thread = Object.assign(new EventEmitter(), { asked: 0, isEnded: false, postMessage, terminate, unref() {} })
    let ticket = 0
    function postMessage(question: { ticket: number }) {
      ticket = question.ticket
      thread.asked++
    }
    async function terminate() {
      thread.isEnded = true
      return 0
    }
    const answer = async () => {
      thread.emit('message', { ticket, answer: null })
      await new Promise(setImmediate)
    }
    return { clock, thread, answer, checkpoints: createCheckpoints('a.db', { start: () => thread as never, clock }) }
  }
  const isSettled = (work: Promise<void>) => Promise.race([work.then(() => true), new Promise(setImmediate)])

  test('is waited for one second, and the next begins once it has ended', async () => {
    const { clock, thread, answer, checkpoints } = createSlow()
    const made = checkpoints.make()
    clock.advance(999)
    expect(await isSettled(made)).not.toBe(true)
    clock.advance(1)
    expect(await isSettled(made)).toBe(true)
    await checkpoints.make()
    expect(thread.asked).toBe(1)
    await answer()
    const next = checkpoints.make()
    expect(thread.asked).toBe(2)
    await answer()
    expect(await isSettled(next)).toBe(true)
  })

  test('is not ended before its time: the thread would leave a lock on the database', async () => {
    const { clock, thread, answer, checkpoints } = createSlow()
    const made = checkpoints.make()
    clock.advance(100_000)
    await made
    expect(thread.isEnded).toBe(false)
    checkpoints.close()
    expect(thread.isEnded).toBe(false)
    await answer()
    expect(thread.isEnded).toBe(true)
  })

  test('leaves its thread to end when it is idle', async () => {
    const { clock, thread, answer, checkpoints } = createSlow()
    void checkpoints.make()
    await answer()
    clock.advance(19_999)
    expect(thread.isEnded).toBe(false)
    clock.advance(1)
    expect(thread.isEnded).toBe(true)
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

  test('copies its log beside the event loop, and begins it anew; SQLite itself would at 8,000 pages', async () => {
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

  test.each([true, false])(
    'copies nothing of a log that the disk did not take, until it has (synced: %p)',
    async (is_synced) => {
      const path = join(directory, `gap-${is_synced}.db`)
      let isBroken = false
      const engine = await openSqlite(path, {
        open: async () => 0,
        async sync() {
          if (isBroken) throw new Error('EIO')
        },
        rewrite: () => {},
        close: async () => {},
      })
      await engine.write(async () => {})
      isBroken = true
      const migrated = statSync(path).size
      const value = 'a'.repeat(20_000)
      for (let commits = 0; commits < COMMITS_PER_CHECKPOINT; commits++) {
        const row = { name: `${commits}`, value }
        const written = engine.write((write) => write.insertInto('secrets').values(row).execute(), { is_synced })
        // Not by `rejects`, which runs the event loop within itself, and waits there for a timer.
        expect(await written.catch(String)).toEqual(
          is_synced ? 'Error: The disk did not take a commit.' : expect.anything(),
        )
      }
      await engine.write(async () => {}, { is_synced: false })
      expect(statSync(path).size).toBe(migrated)
      isBroken = false
      await commitRound(engine, 1)
      expect(statSync(path).size).toBeGreaterThan(migrated + COMMITS_PER_CHECKPOINT * 20_000)
      await engine.close()
    },
  )
})
