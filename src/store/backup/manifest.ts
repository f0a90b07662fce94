/** The last entry of a backup: what it contains, and what it needs that it does not contain. */
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { readRange, readTar } from '../../kit/tar.ts'
import { StoreError } from '../store.ts'
import type { RowCounts } from './load-store.ts'
import type { Table } from './rows.ts'

export const MANIFEST = 'manifest.json'
export const MANIFEST_HASH = 'manifest.sha256'
const FORMAT = 1
const MAX_MANIFEST_BYTES = 16 * 1024 * 1024

export type Manifest = {
  /** Of this archive; readers refuse another one. */
  gatehouse_backup: number
  /** Of the build that wrote it. */
  version: string
  made_at: string
  engine: string
  schema: number
  migration: string
  tables: Table[]
  rows: RowCounts
  outputs: {
    files: number
    bytes: number
    /** They are in this bucket, and not in the backup. */
    bucket?: string
  }
  /** Secrets by name that a restored gateway needs, never their values; `key_ids` identify keys and do not reveal them. */
  needs: { name: string; key_ids: string[] }[]
  /** Of everything before this entry. */
  sha256: string
}

export const newManifest = (parts: Omit<Manifest, 'gatehouse_backup'>): Manifest => ({
  gatehouse_backup: FORMAT,
  ...parts,
})

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Reads the whole archive. Throws StoreError where anything is missing or changed. */
export async function verifyArchive(file: FileHandle, path: string): Promise<Manifest> {
  try {
    const { manifest, end } = await findManifest(file)
    const hash = createHash('sha256')
    for await (const bytes of readRange(file, 0, end)) hash.update(bytes)
    if (hash.digest('hex') !== manifest.sha256) throw new Error('its content is not what was written')
    return manifest
  } catch (cause) {
    throw new StoreError(`The backup ${path} cannot be used: ${(cause as Error).message}. Nothing was changed.`, cause)
  }
}

async function findManifest(file: FileHandle): Promise<{ manifest: Manifest; end: number }> {
  let found: { text: string; end: number } | undefined
  for await (const { name, size, at, content } of readTar(file)) {
    if (name !== MANIFEST && name !== MANIFEST_HASH) continue
    if (size > MAX_MANIFEST_BYTES) throw new Error('its manifest is damaged')
    const chunks: Buffer[] = []
    for await (const bytes of content()) chunks.push(bytes)
    const text = Buffer.concat(chunks).toString()
    if (name === MANIFEST) found = { text, end: at }
    else if (found && text === sha256(found.text)) return { manifest: parse(found.text), end: found.end }
    else throw new Error('its manifest is damaged')
  }
  throw new Error('it has no manifest')
}

function parse(text: string): Manifest {
  const manifest = JSON.parse(text) as Manifest
  if (manifest.gatehouse_backup === FORMAT) return manifest
  throw new Error(`its format is ${manifest.gatehouse_backup}, and this version reads ${FORMAT}`)
}
