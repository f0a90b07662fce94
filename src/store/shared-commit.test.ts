/** One commit for many writes: none is lost by another's failure, and none resolves before it is stored. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { sql } from 'kysely'
import type { Engine } from './engine.ts'
import { openSqlite } from './engines/sqlite.ts'
import { COMMITS_PER_CHECKPOINT, createSharedCommit } from './shared-commit.ts'
import type { Write } from './tables.ts'

const engines: Engine[] = []

async function open(): Promise<Engine> {
  const engine = await openSqlite(':memory:')
  engines.push(engine)
  return engine
}

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
})

const add = (write: Write, name: string, value = name) =>
  write.insertInto('secrets').values({ name, value }).returning('name').executeTakeFirstOrThrow()

const names = async ({ db }: Engine) =>
  (await db.selectFrom('secrets').select('name').orderBy('name').execute()).map(({ name }) => name)

test('writes of one turn share a commit, and each gets its own result', async () => {
  const engine = await open()
  const run = spyOn(Database.prototype, 'run')
  const answers = await Promise.all(['a', 'b', 'c'].map((name) => engine.write((write) => add(write, name))))
  const begins = run.mock.calls.filter(([statement]) => statement === 'begin immediate')
  run.mockRestore()
  expect(answers).toEqual([{ name: 'a' }, { name: 'b' }, { name: 'c' }])
  expect(begins).toHaveLength(1)
})

test('only the failed write is rolled back', async () => {
  const engine = await open()
  const failing = async (write: Write) => {
    await add(write, 'half')
    throw new Error('no')
  }
  const results = await Promise.allSettled([
    engine.write((write) => add(write, 'a')),
    engine.write(failing),
    engine.write((write) => add(write, 'b')),
    engine.write((write) => add(write, 'a')),
  ])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
  await expect(engine.write(failing)).rejects.toThrow('no')
  expect(await names(engine)).toEqual(['a', 'b'])
})

test('more writes than fit one transaction are all stored', async () => {
  const engine = await open()
  await Promise.all(Array.from({ length: 700 }, (_, index) => engine.write((write) => add(write, `${index}`))))
  expect(await names(engine)).toHaveLength(700)
})

test('on a full disk no lost write is reported as stored, the error is the original one, and later writes succeed', async () => {
  const engine = await open()
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(engine.db)
  await sql.raw(`pragma max_page_count = ${(rows[0]?.page_count ?? 0) + 20}`).execute(engine.db)
  const all = Array.from({ length: 60 }, (_, index) => `${index}`)
  const results = await Promise.allSettled(
    all.map((name) => engine.write((write) => add(write, name, 'x'.repeat(3_000)))),
  )
  const answered = all.filter((_, index) => results[index]?.status === 'fulfilled')
  expect(answered.length).toBeLessThan(all.length)
  expect(await names(engine)).toEqual(answered.toSorted())
  const reasons = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))
  expect(new Set(reasons)).toEqual(new Set(['SQLiteError: database or disk is full']))
  await sql`pragma max_page_count = 100000`.execute(engine.db)
  await engine.write((write) => add(write, 'later'))
  expect(await names(engine)).toContain('later')
})

test('a store that is being closed finishes its pending writes', async () => {
  const engine = await open()
  let written = 0
  const writes = Array.from({ length: 5 }, (_, index) =>
    engine
      .write((write) => add(write, `${index}`))
      .then(() => {
        written += 1
      }),
  )
  await engine.close()
  engines.length = 0
  await Promise.all(writes)
  expect(written).toBe(5)
})

describe('the way to the disk', () => {
  /** Syncs and checkpoints that end when the test says so. */
  function slowDisk(engine: Engine) {
    const syncs: PromiseWithResolvers<void>[] = []
    const checkpoints: PromiseWithResolvers<void>[] = []
    const waitIn = (list: PromiseWithResolvers<void>[]) => () => {
      const wait = Promise.withResolvers<void>()
      list.push(wait)
      return wait.promise
    }
    const { write, settled } = createSharedCommit(engine.db, { sync: waitIn(syncs), checkpoint: waitIn(checkpoints) })
    const turns = async () => {
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    }
    return { write, settled, syncs, turns, checkpoints }
  }

  test('is awaited by a write that is to be durable, and not by one that is not', async () => {
    const engine = await open()
    const { write, syncs, turns } = slowDisk(engine)
    const ended: string[] = []
    const note = (name: string) => () => void ended.push(name)
    void write((rows) => add(rows, 'durable')).then(note('durable'))
    void write((rows) => add(rows, 'row of a log'), { is_synced: false }).then(note('row of a log'))
    await turns()
    expect([ended, await names(engine)]).toEqual([['row of a log'], ['durable', 'row of a log']])
    syncs[0]?.resolve()
    await turns()
    expect([ended, syncs.length]).toEqual([['row of a log', 'durable'], 1])
    await write((rows) => add(rows, 'another row'), { is_synced: false })
    expect(syncs).toHaveLength(1)
  })

  test('is a checkpoint, too, after the sixty-fourth commit and not before, and the next commit waits for it', async () => {
    const engine = await open()
    const { write, checkpoints, turns } = slowDisk(engine)
    const commit = (name: string) => write((rows) => add(rows, name), { is_synced: false })
    for (let commits = 1; commits < COMMITS_PER_CHECKPOINT; commits++) await commit(`${commits}`)
    await turns()
    expect(checkpoints).toHaveLength(0)
    await commit('last')
    const next = commit('next')
    await turns()
    expect([checkpoints.length, (await names(engine)).includes('next')]).toEqual([1, false])
    checkpoints[0]?.resolve()
    await next
    expect([checkpoints.length, (await names(engine)).includes('next')]).toEqual([1, true])
  })

  test('is shared by the writes that arrive meanwhile, which it keeps together', async () => {
    const engine = await open()
    const { write, settled, syncs, turns } = slowDisk(engine)
    const first = write((rows) => add(rows, 'a'))
    await turns()
    const later = ['b', 'c', 'd'].map((name) => write((rows) => add(rows, name)))
    await turns()
    expect([syncs.length, await names(engine)]).toEqual([1, ['a']])
    syncs[0]?.resolve()
    await first
    await turns()
    expect([syncs.length, await names(engine)]).toEqual([2, ['a', 'b', 'c', 'd']])
    syncs[1]?.resolve()
    await Promise.all([...later, settled()])
  })

  test('that fails is an error of every write that was to be durable, and of no later one', async () => {
    const engine = await open()
    const { write, syncs, turns } = slowDisk(engine)
    const results = Promise.allSettled([
      write((rows) => add(rows, 'a')),
      write((rows) => add(rows, 'b'), { is_synced: false }),
    ])
    await turns()
    syncs[0]?.reject(new Error('the disk is broken'))
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    const next = write((rows) => add(rows, 'c'))
    await turns()
    syncs[1]?.resolve()
    expect(await next).toEqual({ name: 'c' })
  })
})
