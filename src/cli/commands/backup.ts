/** `gatehouse backup`: writes the store and the finished files into one file. */
import { resolve } from 'node:path'
import type { Manifest } from '../../store/backup/manifest.ts'
import { writeBackup } from '../../store/backup/write-backup.ts'
import { type Arguments, STORE_FLAGS } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import { locateStore, OTHER_DIRECTORIES } from '../store-location.ts'
import type { Terminal } from '../terminal.ts'
import { VERSION } from './version.ts'

const HELP = `Usage: gatehouse backup <file> [options]

Writes all rows of the store as of one moment, and the finished files of a directory, into one file (tar, mode 0600), also
while gateways run, and reads it again. Works on SQLite and PostgreSQL; either can restore it. The file has the tokens'
hashes and all stored contents: protect it. It has no secrets of the environment, and names those that are needed.

Options:
  --data-dir <directory>  data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data)
  --config <file>         configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print one line of JSON

Examples:
  gatehouse backup gatehouse.backup
  GATEHOUSE_DATABASE_URL=postgres://... gatehouse backup /backup/gatehouse.backup
`

export const run = plainCommand('backup', HELP, { flags: STORE_FLAGS, positionals: ['a file to write'], run: backup })

async function backup(given: Arguments, terminal: Terminal) {
  const { url, exists, outputs, name: place } = locateStore(given, terminal)
  if (!exists) throw new Error(`There is no store in ${place}. ${OTHER_DIRECTORIES}`)
  const path = resolve(terminal.cwd, given.positionals[0] ?? '')
  const made_at = new Date().toISOString()
  const manifest = await writeBackup({ url, path, version: VERSION, made_at, outputs })
  return { data: summaryOf(path, manifest), text: () => backupText(`Wrote ${path}`, manifest) }
}

const rowsOf = ({ rows }: Pick<Manifest, 'rows'>): number => Object.values(rows).reduce((sum, one) => sum + one, 0)

export function summaryOf(file: string, manifest: Manifest): Record<string, unknown> {
  const { version, made_at, schema, rows, outputs, needs, sha256 } = manifest
  return { file, version, made_at, schema, rows: rowsOf(manifest), tables: rows, outputs, needs, sha256 }
}

/** `done`: what was done with the backup. */
export function backupText(done: string, manifest: Manifest): string {
  const { made_at, schema, outputs, needs } = manifest
  const files =
    outputs.bucket === undefined
      ? `${outputs.files} finished files`
      : `without the finished files, which are in the bucket ${outputs.bucket}`
  const keys = needs.map(({ name, key_ids }) => `It needs ${name} with the key ${key_ids.join(', ')}.\n`)
  return `${done}: ${rowsOf(manifest)} rows of schema ${schema} as of ${made_at}, ${files}.\n${keys.join('')}`
}
