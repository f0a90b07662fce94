/** Restores a backup into a store that does not exist yet. */
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { readTar, type TarEntry } from '../../kit/tar.ts'
import { whyUnreadable } from '../../kit/why-unreadable.ts'
import { markRestored } from '../batches/batches.ts'
import { MIGRATIONS } from '../migrate.ts'
import { schemaNumber } from '../schema-state.ts'
import { StoreError } from '../store.ts'
import { markRestoredTasks } from '../tasks/task-sent.ts'
import { fillStore, loadRows } from './load-store.ts'
import { type Manifest, verifyArchive } from './manifest.ts'
import { decodeRow, type RowBatch, type RowSource } from './rows.ts'
import { tablesOf } from './snapshot.ts'

type RestoreParts = {
  path: string
  url: string
  /** Where the finished files go; it must be empty or absent. Undefined: they are left out. */
  outputs: string | undefined
  /** Unix milliseconds; default: of the machine. */
  now_ms?: number
  /** No gateway has run since the backup, so that nothing was ordered. */
  is_stopped?: boolean
}

const decompress = promisify(gunzip)
/** So long a list of a provider may lack an order that it has accepted. */
const LISTED_MILLISECONDS = 300_000
/** Of one part: four megabytes of lines, or one row. */
const MAX_PART_BYTES = 1024 ** 3

/** Throws StoreError, and changes nothing, where the backup is damaged or something is there already. */
export async function restoreBackup({
  path,
  url,
  outputs,
  now_ms = Date.now(),
  is_stopped,
}: RestoreParts): Promise<Manifest> {
  const file = await openBackup(path)
  try {
    const manifest = await verifyArchive(file, path)
    assertKnown(manifest, path)
    await assertTables(manifest, path)
    const directory = manifest.outputs.files > 0 ? outputs : undefined
    if (directory !== undefined) await assertEmpty(directory)
    let is_placed = false
    const filled = fillStore(url, async (write) => {
      await loadRows(write, sourceOf(file, manifest), manifest.rows)
      const backup_ms = Date.parse(manifest.made_at)
      if (!is_stopped) await markRestored(write, { backup_ms, at_ms: now_ms })
      if (!is_stopped)
        await markRestoredTasks(write, { sent_at: Math.floor(backup_ms / 1000), due_ms: now_ms + LISTED_MILLISECONDS })
      // Before the rows become visible, which refer to them.
      if (directory !== undefined) await restoreFiles(file, directory, manifest)
      is_placed = directory !== undefined
    })
    await filled.catch(async (cause) => {
      if (is_placed && directory !== undefined) await rm(directory, { recursive: true, force: true })
      throw cause
    })
    return manifest
  } finally {
    await file.close()
  }
}

/** Reads the whole backup. Throws StoreError where it is damaged. */
export async function checkBackup(path: string): Promise<Manifest> {
  const file = await openBackup(path)
  try {
    return await verifyArchive(file, path)
  } finally {
    await file.close()
  }
}

async function openBackup(path: string): Promise<FileHandle> {
  const unreadable = (why: string, cause?: unknown) =>
    new StoreError(`The backup ${path} cannot be read: ${why}.`, cause)
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw unreadable(whyUnreadable(cause), cause)
  })
  if (!(await file.stat()).isDirectory()) return file
  await file.close()
  throw unreadable('it is a directory')
}

function assertKnown({ migration, schema, version }: Manifest, path: string): void {
  if (Object.hasOwn(MIGRATIONS, migration)) return
  const build = schemaNumber(Object.keys(MIGRATIONS))
  throw new StoreError(
    `The backup ${path} was written by Gatehouse ${version} with schema ${schema}, and this build knows ${build}: restore it with that version or a later one.`,
  )
}

/** The checksum is no signature: an archive that somebody else has made must not name what is no table of a store. */
async function assertTables({ migration, tables }: Manifest, path: string): Promise<void> {
  const known = new Map((await tablesOf(migration)).map(({ name, columns }) => [name, columns.map((one) => one.name)]))
  for (const { name, columns } of tables) {
    const names = known.get(name)
    const unknown = names === undefined ? name : columns.find((one) => !names.includes(one.name))?.name
    if (unknown === undefined) continue
    const place = names === undefined ? 'table' : `column of ${name}`
    throw new StoreError(
      `The backup ${path} cannot be used: a store has no ${place} ${JSON.stringify(unknown)}. Nothing was changed.`,
    )
  }
}

async function assertEmpty(directory: string): Promise<void> {
  const found = await readdir(directory).catch(() => [])
  if (found.length > 0)
    throw new StoreError(
      `The directory ${directory} is not empty, and was not changed: name another one with --outputs.`,
    )
}

const sourceOf = (file: FileHandle, { engine, migration, tables }: Manifest): RowSource => ({
  engine,
  migration,
  tables,
  async *batches() {
    for await (const entry of readTar(file)) {
      const [, table] = /^store\/([a-z_]+)\/\d+\.ndjson\.gz$/.exec(entry.name) ?? []
      if (table !== undefined) yield await batchOf(table, entry)
    }
  },
})

async function batchOf(table: string, entry: TarEntry): Promise<RowBatch> {
  const chunks: Buffer[] = []
  for await (const bytes of entry.content()) chunks.push(bytes)
  const text = (await decompress(Buffer.concat(chunks), { maxOutputLength: MAX_PART_BYTES })).toString()
  return { table, rows: text.split('\n').slice(0, -1).map(decodeRow) }
}

/** Under another name until all are there. */
async function restoreFiles(file: FileHandle, directory: string, { outputs }: Manifest): Promise<void> {
  const temporary = `${directory}.restoring-${crypto.randomUUID()}`
  try {
    let files = 0
    for await (const { name, content } of readTar(file)) {
      const [, key] = /^outputs\/(.+)$/.exec(name) ?? []
      if (key === undefined) continue
      if (key.split('/').some((part) => part === '' || part === '.' || part === '..'))
        throw new StoreError(`The backup has a file with the name ${JSON.stringify(name)}, which leads elsewhere.`)
      await writeFile(join(temporary, key), content())
      files += 1
    }
    if (files !== outputs.files)
      throw new StoreError(`The backup has ${files} files of ${outputs.files}; nothing was restored.`)
    await rmdir(directory).catch(ignoreAbsent) // it is empty
    await rename(temporary, directory)
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

async function writeFile(path: string, content: AsyncIterable<Buffer>): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const bytes of content)
      for (let rest = bytes; rest.length > 0; ) rest = rest.subarray((await file.write(rest)).bytesWritten)
    await file.sync()
  } finally {
    await file.close()
  }
}

function ignoreAbsent(cause: unknown): void {
  if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
}
