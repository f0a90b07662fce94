/** Writes a backup: an archive with all rows as of one moment, the finished files, and a manifest. */
import { createHash } from 'node:crypto'
import { type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { sql } from 'kysely'
import { readRange, TAR_END, tarHead, tarPadding } from '../../kit/tar.ts'
import { schemaNumber } from '../schema-state.ts'
import { StoreError } from '../store.ts'
import type { Database } from '../tables.ts'
import type { RowCounts } from './load-store.ts'
import { MANIFEST, MANIFEST_HASH, type Manifest, newManifest, sha256, verifyArchive } from './manifest.ts'
import { encodeRow, type RowSource } from './rows.ts'
import { withSnapshot } from './snapshot.ts'

type BackupParts = {
  url: string
  /** Where the backup is written; it must not exist. */
  path: string
  version: string
  made_at: string
  /** Finished files: those of a directory are in the backup, a bucket is only named. */
  outputs: { directory: string } | { bucket: string }
}

/** Of lines before they are compressed. */
const PART_BYTES = 4 * 1024 * 1024
const compress = promisify(gzip)

/** Throws StoreError. A backup that fails or is killed leaves no file with this name. */
export async function writeBackup(parts: BackupParts): Promise<Manifest> {
  const { path } = parts
  if (await exists(path)) throw new StoreError(`${path} exists, and was not changed: name another file.`)
  const temporary = `${path}.writing-${crypto.randomUUID()}`
  const file = await open(temporary, 'wx+', 0o600)
  try {
    await withSnapshot(parts.url, {}, (source, db) => writeArchive(file, { ...parts, source, db }))
    await file.sync()
    const manifest = await verifyArchive(file, path)
    await rename(temporary, path)
    await syncDirectory(dirname(path))
    return manifest
  } finally {
    await file.close()
    await rm(temporary, { force: true })
  }
}

type ArchiveParts = BackupParts & { source: RowSource; db: Database }

async function writeArchive(file: FileHandle, { source, db, outputs, version, made_at }: ArchiveParts): Promise<void> {
  const archive = createArchive(file)
  const rows = await writeRows(archive, source)
  const needs = source.tables.some(({ name }) => name === 'request_contents') ? await neededSecrets(db) : []
  const files = 'bucket' in outputs ? { files: 0, bytes: 0, ...outputs } : await writeFiles(archive, outputs.directory)
  const { engine, migration, tables } = source
  const manifest = newManifest({
    version,
    made_at,
    engine,
    schema: schemaNumber([migration]),
    migration,
    tables,
    rows,
    outputs: files,
    needs,
    sha256: archive.digest(),
  })
  const text = JSON.stringify(manifest)
  await archive.add(MANIFEST, Buffer.from(text))
  await archive.add(MANIFEST_HASH, Buffer.from(sha256(text)))
  await archive.write(TAR_END)
}

type Archive = ReturnType<typeof createArchive>

function createArchive(file: FileHandle) {
  const hash = createHash('sha256')
  async function write(bytes: Buffer): Promise<void> {
    hash.update(bytes)
    for (let rest = bytes; rest.length > 0; ) rest = rest.subarray((await file.write(rest)).bytesWritten)
  }
  return {
    write,
    async add(name: string, content: Buffer): Promise<void> {
      await write(tarHead(name, content.length))
      await write(content)
      await write(tarPadding(content.length))
    },
    /** Of what was written so far. */
    digest: () => hash.copy().digest('hex'),
  }
}

async function writeRows(archive: Archive, source: RowSource): Promise<RowCounts> {
  const counts: RowCounts = Object.fromEntries(source.tables.map(({ name }) => [name, 0]))
  let part = { table: '', number: 0, lines: [] as string[], bytes: 0 }
  async function flush(): Promise<void> {
    if (part.lines.length === 0) return
    const name = `store/${part.table}/${String(part.number).padStart(8, '0')}.ndjson.gz`
    await archive.add(name, await compress(`${part.lines.join('\n')}\n`))
    part = { table: part.table, number: part.number + 1, lines: [], bytes: 0 }
  }
  for await (const { table, rows } of source.batches()) {
    if (table !== part.table) {
      await flush()
      part = { table, number: 0, lines: [], bytes: 0 }
    }
    counts[table] = (counts[table] ?? 0) + rows.length
    for (const row of rows) {
      const line = encodeRow(row)
      part.lines.push(line)
      part.bytes += line.length
      if (part.bytes >= PART_BYTES) await flush()
    }
  }
  await flush()
  return counts
}

/** Recorded contents are encrypted with a key that is not in the store. */
async function neededSecrets(db: Database): Promise<Manifest['needs']> {
  const { rows } = await sql<{ key_id: string }>`
    select distinct key_id from request_contents order by 1`.execute(db)
  return rows.length === 0 ? [] : [{ name: 'GATEHOUSE_CONTENTS_KEY', key_ids: rows.map(({ key_id }) => key_id) }]
}

/** Files that are removed meanwhile have expired, and are left out. */
async function writeFiles(archive: Archive, directory: string): Promise<{ files: number; bytes: number }> {
  const total = { files: 0, bytes: 0 }
  for await (const name of filesOf(directory, '')) {
    const source = await open(join(directory, name), 'r').catch(ignoreAbsent)
    if (!source) continue
    try {
      const { size } = await source.stat()
      await archive.write(tarHead(`outputs/${name}`, size))
      for await (const bytes of readRange(source, 0, size)) await archive.write(bytes)
      await archive.write(tarPadding(size))
      total.files += 1
      total.bytes += size
    } finally {
      await source.close()
    }
  }
  return total
}

/** Names that begin with a dot are of files that are being written. */
async function* filesOf(directory: string, prefix: string): AsyncGenerator<string> {
  const entries = (await readdir(join(directory, prefix), { withFileTypes: true }).catch(ignoreAbsent)) ?? []
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    if (entry.name.startsWith('.')) continue
    const name = join(prefix, entry.name)
    if (entry.isDirectory()) yield* filesOf(directory, name)
    else if (entry.isFile()) yield name
  }
}

function ignoreAbsent(cause: unknown): undefined {
  if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
  return undefined
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  await directory.sync()
  await directory.close()
}
