/** Backups and copies of every persistent engine, restored into both. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storedToken } from '../../../test/kit/accounts.ts'
import { ENGINES } from '../../../test/kit/engines.ts'
import { startPostgres } from '../../../test/kit/postgres.ts'
import { UNDO_LAST } from '../../../test/kit/undo-migrations.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'
import { TAR_END, tarHead, tarPadding } from '../../kit/tar.ts'
import type { Batch } from '../batches/batch-store.ts'
import type { FileRow } from '../files/file-row.ts'
import { MIGRATIONS } from '../migrate.ts'
import { openStore } from '../open-store.ts'
import type { Store } from '../store.ts'
import { schemaOf } from '../store-schema.ts'
import { copyStore } from './copy-store.ts'
import { MANIFEST, MANIFEST_HASH, sha256 } from './manifest.ts'
import { checkBackup, restoreBackup } from './restore-backup.ts'
import { writeBackup } from './write-backup.ts'

/** Beyond what a number of JavaScript holds exactly. */
const LARGE = '9007199254740993'
const BIG_TEXT = 'é"\\\n\u2028'.repeat(300_000)

let directory: string
const closing: (() => unknown)[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-backup-'))
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  rmSync(directory, { recursive: true, force: true })
})

async function emptyPostgres(): Promise<string> {
  const server = await startPostgres()
  const url = await server.createDatabase()
  closing.push(() => server.dropDatabase(url))
  return url
}

async function open(url: string): Promise<Store> {
  const store = await openStore({ url })
  closing.push(() => store.close())
  return store
}

const task = (name: string, request: object = {}) =>
  blankTask({
    task_id: `task_${name}`,
    token_id: 'tok_a',
    family: 'video-generation',
    model: 'm',
    submit_time: 1,
    request: request as never,
    base_url: '',
    deadline_at: 9,
    due_ms: 1,
  })

const FILE: FileRow = {
  file_id: `file-gh${'0'.repeat(24)}`,
  token_id: 'tok_1',
  project_id: null,
  purpose: 'batch',
  filename: 'é.jsonl',
  content_type: 'application/jsonl',
  bytes: 30,
  created_at: 1,
  expires_at: null,
  output_key: 'task_1/0',
  problems: '{"total":0}',
}
const PART = { kind: 'output', part: 10_001, lines: 1, bytes: 7 } as const
const BATCH: Batch = {
  batch_id: 'batch_1',
  token_id: 'tok_1',
  project_id: null,
  api: 'openai',
  endpoint: '/v1/embeddings',
  status: 'in_progress',
  request: { input_file_id: FILE.file_id, headers: {}, base_url: '', metadata: { run: 'é' } },
  progress: { in_progress_at: 2 },
  created_at: 1,
  expires_at: 86_401,
  cancelling_at: null,
  deleted_at: null,
  total: 3,
  succeeded: 0,
  errored: 0,
  canceled: 0,
  expired: 0,
  input_tokens: 0,
  cached_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  due_ms: 5,
  leased_by: '',
  fence: 0,
}

const RESTORED = { backup_ms: Date.parse('2026-01-31T00:00:00.000Z'), at_ms: 1_769_900_000_000 }

async function expectBatch({ batches, files }: Store, more: Partial<Batch['progress']>): Promise<void> {
  const { batch_id } = BATCH
  expect(await files.find(FILE.file_id, 2, 'tok_1')).toEqual(FILE)
  expect(await batches.find(batch_id, 'tok_1')).toEqual({
    ...BATCH,
    succeeded: 2,
    progress: { ...BATCH.progress, ...more },
  })
  expect(await batches.parts(batch_id)).toEqual([PART])
  expect(await batches.results(batch_id, 'output', 1)).toEqual([{ line: 2, text: BIG_TEXT }])
  expect((await batches.pending(batch_id, 0, 10)).map(({ line }) => line)).toEqual([3])
}

async function fill(store: Store, run: (statement: string) => Promise<void>): Promise<void> {
  for (let at = 0; at < 250; at++)
    await store.tokens.add(storedToken({ token_id: `tok_${at}`, name: `laptop ${at}`, hash: `hash ${at}` }))
  await store.tasks.add({ task: task('large', { prompt: BIG_TEXT }) })
  await store.secrets.get('links', () => 'a secret of the store')
  await run(`insert into budget_accounts (account_key, start_ms, end_ms, scope_key, settled, credit, held, notified)
    values ('a', 0, 0, 's', ${LARGE}, -${LARGE}, 0, 0)`)
  await store.files.begin(FILE)
  await store.files.finish(FILE)
  await store.batches.add({ ...BATCH, status: 'in_progress' })
  await store.batches.addLines(
    BATCH,
    [1, 2, 3].map((line) => ({ line, offset: line * 10, bytes: 9, custom_id: `${line}` })),
  )
  for (const line of [1, 2]) {
    const [waiting] = await store.batches.pending(BATCH.batch_id, line - 1, 1)
    expect(waiting && (await store.batches.start(BATCH, waiting))).toBe('started')
    await store.batches.end(
      BATCH.batch_id,
      { line, attempts: 1 },
      { outcome: 'succeeded', kind: 'output', text: BIG_TEXT },
    )
  }
  await store.batches.moved(BATCH, PART, [1])
  await run(`insert into request_contents (row_id, at_ms, key_id, sealed) values (1, 2, 'abcdef0123456789', 'x')`)
}

const parts = (url: string) => ({
  url,
  path: join(directory, 'store.backup'),
  version: '1.2.3',
  made_at: '2026-01-31T00:00:00.000Z',
  outputs: { directory: join(directory, 'outputs') },
})

function writeOutputs(): void {
  mkdirSync(join(directory, 'outputs/task_1'), { recursive: true })
  mkdirSync(join(directory, 'outputs/.writing'))
  writeFileSync(join(directory, 'outputs/task_1/0'), Buffer.alloc(3_000_000, 5))
  writeFileSync(join(directory, 'outputs/task_1/0~type'), 'video/mp4')
  writeFileSync(join(directory, 'outputs/.writing/half'), 'half')
}

async function expectRestored(url: string, more: Partial<Batch['progress']> = {}): Promise<void> {
  const store = await open(url)
  expect((await store.tokens.list()).length).toBe(250)
  expect((await store.tasks.find('task_large'))?.request).toEqual({ prompt: BIG_TEXT })
  expect(await store.secrets.get('links', () => 'another one')).toBe('a secret of the store')
  await expectBatch(store, more)
  expect(await largeNumbers(url)).toEqual([LARGE, `-${LARGE}`])
  expect(await schemaOf(url)).toMatchObject({ status: 'current', oldest: expect.any(Number) })
}

async function largeNumbers(url: string): Promise<string[]> {
  const select = 'select cast(settled as text) as settled, cast(credit as text) as credit from budget_accounts'
  if (url.startsWith('sqlite:')) {
    using file = new Database(url.slice('sqlite:'.length))
    return Object.values(file.query<Record<string, string>, []>(select).get() ?? {})
  }
  const { Client } = await import('pg')
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(select)
  await client.end()
  return Object.values(rows[0])
}

for (const { name, open: openNew, run, url, cleanup } of ENGINES) {
  if (!run || !url) continue
  describe(`a backup of ${name}`, () => {
    afterEach(cleanup)

    test('restores all rows and files into both engines, while the store is open', async () => {
      const store = await openNew()
      await fill(store, run)
      writeOutputs()
      const manifest = await writeBackup(parts(url()))
      const { path } = parts(url())
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(manifest).toMatchObject({
        version: '1.2.3',
        rows: { tokens: 250, tasks: 1, budget_accounts: 1, files: 1, batches: 1, batch_lines: 3, batch_parts: 1 },
        outputs: { files: 2, bytes: 3_000_009 },
        needs: [{ name: 'GATEHOUSE_CONTENTS_KEY', key_ids: ['abcdef0123456789'] }],
      })
      expect(await checkBackup(path)).toEqual(manifest)
      for (const target of [`sqlite:${join(directory, 'new/gatehouse.db')}`, await emptyPostgres()]) {
        const outputs = join(directory, `outputs of ${target.slice(0, 6)}`)
        await restoreBackup({ path, url: target, outputs, now_ms: RESTORED.at_ms })
        await expectRestored(target, { restored: RESTORED })
        expect(readFileSync(join(outputs, 'task_1/0')).equals(Buffer.alloc(3_000_000, 5))).toBe(true)
        expect(readdirSync(join(outputs, 'task_1')).sort()).toEqual(['0', '0~type'])
        expect(readdirSync(outputs)).toEqual(['task_1'])
        await expect(restoreBackup({ path, url: target, outputs: undefined })).rejects.toThrow(/exists|already/)
      }
      expect(readdirSync(directory).filter((one) => /writing|restoring|\.new/.test(one))).toEqual([])
    }, 120_000)

    test('has the rows of one moment, while others are added', async () => {
      const store = await openNew()
      let is_over = false
      let added = 0
      const adding = (async () => {
        // A task and its inputs are added in one transaction.
        while (!is_over) await store.tasks.add({ task: task(`${added++}`), inputs: { image: 'x' } })
      })()
      while (added < 20) await Bun.sleep(1)
      const { rows } = await writeBackup(parts(url()))
      is_over = true
      await adding
      expect(rows.tasks).toBeGreaterThan(0)
      expect(rows.task_inputs).toBe(rows.tasks as number)
      const target = `sqlite:${join(directory, 'new/gatehouse.db')}`
      await restoreBackup({ path: parts(url()).path, url: target, outputs: undefined })
      expect((await (await open(target)).tasks.list({ limit: 1 })).length).toBe(1)
    }, 120_000)

    test('is copied into the other engine, with equal ledgers, unless it is in use', async () => {
      const store = await openNew()
      await fill(store, run)
      const target = name === 'postgres' ? `sqlite:${join(directory, 'new/gatehouse.db')}` : await emptyPostgres()
      await expect(copyStore({ from: url(), to: target })).rejects.toThrow('is in use by another process')
      await store.close()
      const { rows, ledger } = await copyStore({ from: url(), to: target })
      expect(rows.tokens).toBe(250)
      expect(ledger).toEqual({ entries: 0, amount: 0n, cost: 0n, differences: 0 })
      await expectRestored(target)
    }, 120_000)
  })
}

describe('a damaged backup', () => {
  test('is refused before anything is changed, wherever it is cut or changed', async () => {
    const url = `sqlite:${join(directory, 'gatehouse.db')}`
    const store = await open(url)
    await store.tokens.add(storedToken({ token_id: 'tok_a' }))
    writeOutputs()
    const { path } = parts(url)
    await writeBackup(parts(url))
    await expect(writeBackup(parts(url))).rejects.toThrow('exists, and was not changed')
    const whole = readFileSync(path)
    const target = `sqlite:${join(directory, 'new/gatehouse.db')}`
    const damaged = [
      whole.subarray(0, whole.length >> 1),
      whole.subarray(0, whole.length - 1_500),
      Buffer.alloc(0),
      Buffer.from('something else'.repeat(1_000)),
      ...[600, whole.length >> 1, whole.length - 1_600, whole.length - 2_700].map((at) => {
        const changed = Buffer.from(whole)
        changed[at] = (changed[at] ?? 0) ^ 1
        return changed
      }),
    ]
    for (const bytes of damaged) {
      writeFileSync(path, bytes)
      await expect(restoreBackup({ path, url: target, outputs: join(directory, 'new/outputs') })).rejects.toThrow(
        'cannot be used',
      )
      expect(existsSync(join(directory, 'new'))).toBe(false)
    }
  })

  test('a backup that does not exist, or is a directory, is named with the reason', async () => {
    const none = join(directory, 'none.backup')
    const restored = (path: string) =>
      restoreBackup({ path, url: `sqlite:${join(directory, 'new/gatehouse.db')}`, outputs: undefined })
    for (const read of [checkBackup, restored]) {
      await expect(read(none)).rejects.toThrow(`The backup ${none} cannot be read: there is no such file.`)
      await expect(read(directory)).rejects.toThrow(`The backup ${directory} cannot be read: it is a directory.`)
    }
  })

  test('a backup that names what is no table of a store is refused, though its checksums are right', async () => {
    const url = `sqlite:${join(directory, 'gatehouse.db')}`
    await open(url)
    const manifest = await writeBackup(parts(url))
    const target = `sqlite:${join(directory, 'new/gatehouse.db')}`
    const column = { name: 'name', type: 'text' }
    for (const tables of [
      [{ name: 'kysely_migration', columns: [column] }],
      [{ name: 'pg_catalog.pg_authid', columns: [column] }],
      [{ name: 'tokens', columns: [column, { name: 'other', type: 'text' }] }],
    ]) {
      const text = JSON.stringify({ ...manifest, tables, rows: {}, sha256: sha256('') })
      const entry = (name: string, content: Buffer) =>
        Buffer.concat([tarHead(name, content.length), content, tarPadding(content.length)])
      const forged = [entry(MANIFEST, Buffer.from(text)), entry(MANIFEST_HASH, Buffer.from(sha256(text))), TAR_END]
      writeFileSync(parts(url).path, Buffer.concat(forged))
      await expect(restoreBackup({ path: parts(url).path, url: target, outputs: undefined })).rejects.toThrow(
        /a store has no (table|column)/,
      )
      expect(existsSync(join(directory, 'new'))).toBe(false)
    }
  })

  test('a backup of a newer schema is refused with both numbers', async () => {
    const url = `sqlite:${join(directory, 'gatehouse.db')}`
    await open(url)
    using file = new Database(join(directory, 'gatehouse.db'))
    file.run("insert into kysely_migration values ('9999-from-later', '2030-01-01T00:00:00.000Z')")
    await expect(writeBackup(parts(url))).rejects.toThrow('was written by a newer version')
    expect(readdirSync(directory).some((one) => one.startsWith('store.backup'))).toBe(false)
  })

  test('a store of an older schema is restored with it, and then migrated', async () => {
    const url = `sqlite:${join(directory, 'gatehouse.db')}`
    const store = await open(url)
    await store.tokens.add(storedToken({ token_id: 'tok_a' }))
    using file = new Database(join(directory, 'gatehouse.db'))
    file.run(UNDO_LAST)
    expect((await writeBackup(parts(url))).schema).toBe(Object.keys(MIGRATIONS).length - 1)
    const target = `sqlite:${join(directory, 'new/gatehouse.db')}`
    await restoreBackup({ path: parts(url).path, url: target, outputs: undefined })
    expect((await (await open(target)).tokens.list()).length).toBe(1)
    expect(await schemaOf(target)).toMatchObject({ status: 'current', pending: [] })
  })
})
