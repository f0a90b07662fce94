/** `gatehouse restore`: restores a backup into a store that does not exist yet. */
import { resolve } from 'node:path'
import { checkBackup, restoreBackup } from '../../store/backup/restore-backup.ts'
import { openStore } from '../../store/open-store.ts'
import { readCommand, STORE_FLAGS } from '../arguments.ts'
import { locateStore } from '../store-location.ts'
import { json, type Terminal } from '../terminal.ts'
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

export async function run(args: string[], terminal: Terminal): Promise<number> {
  const flags = { check: 'switch', stopped: 'switch', outputs: 'text', ...STORE_FLAGS } as const
  const given = readCommand({ help: HELP, terminal, command: 'restore', args, flags, positionals: ['a backup'] })
  if (!given) return 0
  const path = resolve(terminal.cwd, given.positionals[0] ?? '')
  if (given.has('check')) {
    const manifest = await checkBackup(path)
    terminal.out(given.has('json') ? json(summaryOf(path, manifest)) : backupText(`${path} is sound`, manifest))
    return 0
  }
  const { url, outputs, data_dir, name: place } = locateStore(given, terminal)
  const named = given.text('outputs')
  const configured = 'directory' in outputs ? outputs.directory : resolve(data_dir, 'outputs')
  const directory = named === undefined ? configured : resolve(terminal.cwd, named)
  const manifest = await restoreBackup({ path, url, outputs: directory, is_stopped: given.has('stopped') })
  await (await openStore({ url })).close() // builds what a migration leaves for later
  terminal.out(
    given.has('json')
      ? json({ store: place, ...summaryOf(path, manifest) })
      : backupText(`Restored ${path} into ${place}`, manifest),
  )
  return 0
}
