/** `gatehouse restore`: restores a backup into a store that does not exist yet. */
import { resolve } from 'node:path'
import { checkBackup, restoreBackup } from '../../store/backup/restore-backup.ts'
import { openStore } from '../../store/open-store.ts'
import { type Arguments, STORE_FLAGS } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import { locateStore } from '../store-location.ts'
import type { Terminal } from '../terminal.ts'
import { backupText, summaryOf } from './backup.ts'

const HELP = `Usage: gatehouse restore <file> [options]

Reads the whole backup, restores it into a new store, compares the numbers of rows, and migrates it to the schema of this
build. Exits with 1, and changes nothing, if the backup is damaged or cut short, or if the store exists already: name
another data directory, or an empty PostgreSQL database in GATEHOUSE_DATABASE_URL.

Options:
  --check                 only read the backup
  --stopped               no gateway has run since the backup: tasks and batches continue as they were; otherwise what may
                          have been ordered since is looked for, and not ordered again
  --outputs <directory>   where the finished files go (default: outputs.directory of the file, then outputs in the data
                          directory); it must be empty
  --data-dir <directory>  data directory (default: GATEHOUSE_DATA_DIR, data_dir of the file, ./data)
  --config <file>         configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print one line of JSON

Examples:
  gatehouse restore gatehouse.backup --check
  gatehouse restore gatehouse.backup --data-dir /var/lib/gatehouse-restored
  GATEHOUSE_DATABASE_URL=postgres://... gatehouse restore gatehouse.backup
`

const FLAGS = { check: 'switch', stopped: 'switch', outputs: 'text', ...STORE_FLAGS } as const

export const run = plainCommand('restore', HELP, { flags: FLAGS, positionals: ['a backup'], run: restore })

async function restore(given: Arguments, terminal: Terminal) {
  const path = resolve(terminal.cwd, given.positionals[0] ?? '')
  if (given.has('check')) {
    const manifest = await checkBackup(path)
    return { data: summaryOf(path, manifest), text: () => backupText(`${path} is sound`, manifest) }
  }
  const { url, outputs, data_dir, name: place } = locateStore(given, terminal)
  const named = given.text('outputs')
  const configured = 'directory' in outputs ? outputs.directory : resolve(data_dir, 'outputs')
  const directory = named === undefined ? configured : resolve(terminal.cwd, named)
  const manifest = await restoreBackup({ path, url, outputs: directory, is_stopped: given.has('stopped') })
  await (await openStore({ url })).close() // builds what a migration leaves for later
  const text = () => backupText(`Restored ${path} into ${place}`, manifest)
  return { data: { store: place, ...summaryOf(path, manifest) }, text }
}
