/** Finds the store that a command works on, and explains where it looked when there is none. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { storePath, storeUrl } from '../config/config.ts'
import { readEnvironment } from '../config/load/environment.ts'
import { DEFAULT_FILE, type FileStore, fileStore } from '../config/load/load.ts'
import { type Arguments, configFlags } from './arguments.ts'
import type { Terminal } from './terminal.ts'

type StoreLocation = {
  url: string
  /** False only for a SQLite file that does not exist yet. */
  exists: boolean
  /** Whether a flag, a variable or the configuration file names the store; otherwise it is `./data`. */
  is_named: boolean
  /** Whether a command may migrate it. */
  mode: 'auto' | 'manual'
  /** The data directory, also where the store is elsewhere. */
  data_dir: string
  outputs: NonNullable<FileStore['outputs']>
  /** For messages: the directory, or `the PostgreSQL database`. Contains no password. */
  name: string
}

export const OTHER_DIRECTORIES =
  'Name the data directory of the gateway with --data-dir, GATEHOUSE_DATA_DIR, or data_dir in gatehouse.yaml.'

/** The first of: --data-dir or the variables, `data_dir` of the configuration file, `./data`. */
export function locateStore(given: Arguments, { environment, cwd }: Terminal): StoreLocation {
  const settings = readEnvironment({ environment, cwd, flags: configFlags(given) })
  const file = fileStore(resolve(cwd, settings.config ?? DEFAULT_FILE), environment)
  const named = settings.data_dir ?? file.data_dir
  const data_dir = named ?? resolve(cwd, 'data')
  const outputs = file.outputs ?? { directory: resolve(data_dir, 'outputs') }
  const [mode, files] = [file.migrate ?? 'auto', { data_dir, outputs }] as const
  if (settings.database_url !== undefined) {
    return { url: settings.database_url, exists: true, is_named: true, mode, ...files, name: 'the PostgreSQL database' }
  }
  return {
    url: storeUrl(data_dir),
    exists: existsSync(storePath(data_dir)),
    is_named: named !== undefined,
    mode,
    ...files,
    name: data_dir,
  }
}

/** What `openStore` takes. */
type StoreToOpen = Pick<StoreLocation, 'url' | 'mode'>

/** The store to read: an empty one in memory when there is none, with a note, so that reading creates no files. */
export function storeToRead(given: Arguments, terminal: Terminal): StoreToOpen {
  const { url, exists, mode, name } = locateStore(given, terminal)
  if (exists) return { url, mode }
  if (!given.has('json')) terminal.err(`There is no store in ${name}. ${OTHER_DIRECTORIES}\n`)
  return { url: 'sqlite::memory:', mode: 'auto' }
}

/**
 * The store to write. A new one is created only in a directory that is named: in `./data` it would be a second one that no
 * gateway reads.
 */
export function storeToWrite(given: Arguments, terminal: Terminal): StoreToOpen {
  const { url, exists, is_named, mode, name } = locateStore(given, terminal)
  if (exists || is_named) return { url, mode }
  throw new Error(`There is no store in ${name}. Start the gateway there first. ${OTHER_DIRECTORIES}`)
}
