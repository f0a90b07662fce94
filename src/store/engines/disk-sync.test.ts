import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { createDiskSync } from './disk-sync.ts'
import { openSqlite } from './sqlite.ts'

test('a file is opened once, at the first call, and closed', async () => {
  const calls: string[] = []
  const files: Parameters<typeof createDiskSync>[1] = {
    open: async (path) => calls.push(`open ${path}`),
    sync: async (file) => void calls.push(`sync ${file}`),
    close: async (file) => void calls.push(`close ${file}`),
  }
  const { sync, close } = createDiskSync('db-wal', files)
  expect(calls).toEqual([])
  await sync()
  await sync()
  await close()
  expect(calls).toEqual(['open db-wal', 'sync 1', 'sync 1', 'close 1'])
  await createDiskSync('other', files).close()
  expect(calls).toHaveLength(4)
})

test('a file that could not be opened is opened at the next call', async () => {
  let tries = 0
  const files: Parameters<typeof createDiskSync>[1] = {
    open: async () => (++tries === 1 ? Promise.reject(new Error('EMFILE')) : 7),
    sync: async (file) => void expect(file).toBe(7),
    close: async () => {},
  }
  const { sync, close } = createDiskSync('db-wal', files)
  await expect(Promise.all([sync(), sync()])).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
  await sync()
  await sync()
  await close()
  expect(tries).toBe(2)
})

test('a real file is synced, and one that is missing is an error of the disk', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sync-'))
  try {
    const missing = createDiskSync(join(directory, 'none'))
    await expect(missing.sync()).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
    writeFileSync(join(directory, 'file'), 'text')
    const found = createDiskSync(join(directory, 'file'))
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

  test('waits for the disk within SQLite only at checkpoints: commits go there beside the event loop', async () => {
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
