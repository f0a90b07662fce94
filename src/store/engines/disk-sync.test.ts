import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { createDiskSync, rewriteFile, type SyncFile } from './disk-sync.ts'
import { openSqlite } from './sqlite.ts'

const unlocked = { holdWriteLock: async (work: () => void) => work() }

test('a file is opened and rewritten once, at the first call, and closed', async () => {
  const calls: string[] = []
  const files: SyncFile = {
    open: async (path) => calls.push(`open ${path}`),
    sync: async (file) => void calls.push(`sync ${file}`),
    rewrite: (path) => void calls.push(`rewrite ${path}`),
    close: async (file) => void calls.push(`close ${file}`),
  }
  const { sync, close } = createDiskSync('db-wal', { ...unlocked, files })
  expect(calls).toEqual([])
  await sync()
  await sync()
  await close()
  expect(calls).toEqual(['open db-wal', 'rewrite db-wal', 'sync 1', 'sync 1', 'close 1'])
  await createDiskSync('other', { ...unlocked, files }).close()
  expect(calls).toHaveLength(5)
})

test('a file that could not be opened is opened at the next call', async () => {
  let tries = 0
  const files: SyncFile = {
    open: async () => (++tries === 1 ? Promise.reject(new Error('EMFILE')) : 7),
    sync: async (file) => void expect(file).toBe(7),
    rewrite: () => {},
    close: async () => {},
  }
  const { sync, close } = createDiskSync('db-wal', { ...unlocked, files })
  await expect(Promise.all([sync(), sync()])).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
  await sync()
  await sync()
  await close()
  expect(tries).toBe(2)
})

test('after a sync that failed, no call succeeds before the file is written and synced once more', async () => {
  const calls: string[] = []
  const outcomes: string[] = []
  const files: SyncFile = {
    open: async () => 1,
    async sync() {
      calls.push('sync')
      const code = outcomes.shift()
      if (code) throw new Error(code)
    },
    rewrite: (path) => void calls.push(`rewrite ${path}`),
    close: async () => {},
  }
  let isLocked = false
  const holdWriteLock = async (work: () => void) => {
    if (isLocked) throw new Error('SQLITE_BUSY')
    work()
  }
  const { sync } = createDiskSync('db-wal', { holdWriteLock, files })
  await sync()
  expect(calls.splice(0)).toEqual(['rewrite db-wal', 'sync'])
  outcomes.push('EIO')
  isLocked = true
  const refusal = { code: 'SQLITE_IOERR_FSYNC' }
  await expect(sync()).rejects.toMatchObject(refusal)
  await expect(sync()).rejects.toMatchObject(refusal)
  expect(calls.splice(0)).toEqual(['sync'])
  outcomes.push('EIO')
  isLocked = false
  await expect(sync()).rejects.toMatchObject(refusal)
  expect(calls.splice(0)).toEqual(['rewrite db-wal', 'sync', 'rewrite db-wal', 'sync'])
  await sync()
  expect(calls).toEqual(['sync'])
})

test('a rewrite changes nothing of a file of several parts', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sync-'))
  try {
    const path = join(directory, 'file')
    const bytes = Buffer.from(Array.from({ length: 2_500_000 }, (_, at) => at % 251))
    writeFileSync(path, bytes)
    rewriteFile(path)
    expect(readFileSync(path).equals(bytes)).toBe(true)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('a real file is synced, and one that is missing is an error of the disk', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sync-'))
  try {
    const missing = createDiskSync(join(directory, 'none'), unlocked)
    await expect(missing.sync()).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
    writeFileSync(join(directory, 'file'), 'text')
    const found = createDiskSync(join(directory, 'file'), unlocked)
    await found.sync()
    await found.close()
  } finally {
    rmSync(directory, { recursive: true })
  }
})

describe('a database in a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sync-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'gatehouse.db')
  const link = join(directory, 'link.db')

  async function writeTo(engine: Engine, name: string): Promise<unknown> {
    try {
      await engine.write((write) => write.insertInto('secrets').values({ name, value: 'b' }).execute())
      return (await sql`pragma synchronous`.execute(engine.db)).rows
    } finally {
      await engine.close()
    }
  }

  test('lets no commit wait for the disk within SQLite: they go there beside the event loop', async () => {
    expect(await writeTo(await openSqlite(path), 'a')).toEqual([{ synchronous: 1 }])
  })

  test('has its log beside the file, also where a link leads to it', async () => {
    symlinkSync(path, link)
    expect(await writeTo(await openSqlite(link), 'b')).toEqual([{ synchronous: 1 }])
  })

  test('syncs each commit itself where there is no write-ahead log', async () => {
    const file = await openSqlite(':memory:')
    expect(await writeTo(file, 'c')).toEqual([{ synchronous: 2 }])
  })
})
