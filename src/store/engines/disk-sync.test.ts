import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { createDiskSync, type SyncFile } from './disk-sync.ts'
import { openSqlite } from './sqlite.ts'

test('a file is opened once, at the first call, and closed', async () => {
  const calls: string[] = []
  const files: SyncFile = {
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

test('SQLite itself waits for the disk only at checkpoints: commits go there beside the event loop', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sync-'))
  const engine = await openSqlite(join(directory, 'gatehouse.db'))
  try {
    const { rows } = await sql`pragma synchronous`.execute(engine.db)
    expect(rows).toEqual([{ synchronous: 1 }])
    await engine.write((write) => write.insertInto('secrets').values({ name: 'a', value: 'b' }).execute())
  } finally {
    await engine.close()
    rmSync(directory, { recursive: true })
  }
})
